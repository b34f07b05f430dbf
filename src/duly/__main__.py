"""`python -m duly` and the command `duly`."""

import os
import sys
import threading
from typing import NoReturn


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    from duly.cli.frame import run

    _leave(run(sys.argv[1:]))


def _leave(code: int) -> NoReturn:
    """Leave at once where nothing is left to do: taking all modules apart again takes longer than most commands."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        sys.exit(code)
    if threading.active_count() > 1:
        sys.exit(code)
    os._exit(code)


if __name__ == "__main__":
    main()
