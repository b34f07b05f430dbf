"""Whether a module is being imported only because one of its functions is to be called."""

import os
from contextvars import ContextVar

VARIABLE = "DULY_IMPORTING"
IN_THREAD: ContextVar[bool] = ContextVar("duly_importing", default=False)
"""Set where a function is called in a thread, whose environment is that of the whole process."""


def is_importing() -> bool:
    """Say so; what is defined or served meanwhile is not meant."""
    return IN_THREAD.get() or bool(os.environ.get(VARIABLE))
