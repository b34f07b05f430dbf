"""Reports of faults of ours: what happened and where, without what anybody typed or sent."""

import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path

from duly import __version__, clock
from duly.store.address import state_folder

REPORTS = "reports"


def write(fault: BaseException, asked: str, environ: Mapping[str, str]) -> Path:
    """Keep a fault in a file that only its user reads; OSError where it cannot be written."""
    folder = state_folder(environ) / REPORTS
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    at = clock.now()
    path = folder / f"{at:%Y%m%dT%H%M%S}.{at.microsecond:06d}-{os.getpid()}.txt"
    text = [
        f"duly {__version__}, python {sys.version.split()[0]}, {sys.platform}, at {at.isoformat()}",
        asked,
        "",
        *traceback.format_exception(fault),
    ]
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write("\n".join(text))
    return path
