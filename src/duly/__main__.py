"""`python -m duly` and the command `duly`."""

import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn

INTERRUPTED = 130


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    try:
        from duly.cli.frame import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = INTERRUPTED  # before the command line could hear of it
    _leave(code)


def _leave(code: int) -> NoReturn:
    """Leave at once where nothing is left to do: taking all modules apart again takes longer than most commands."""
    if "duly.app.service" in sys.modules or threading.active_count() > 1:
        sys.exit(code)  # who served has threads and children to part from in order
    # What cannot be brought out now was told by `run`, whose code says so.
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
