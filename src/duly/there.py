"""Whether a folder that somebody named is there to be used, as far as that can be seen."""

import os

from duly.core.loops import NOT_THERE


def missing(folder: str) -> str | None:
    """Say why a folder cannot be used; an empty one is where a disk is not mounted."""
    try:
        with os.scandir(folder) as there:
            return None if next(there, None) is not None else "it is empty, as a disk that is not mounted would be"
    except FileNotFoundError:
        return NOT_THERE
    except OSError as bad:
        return f"it cannot be read: {bad.strerror}"
