"""The files in a run folder by whose locks holders are proven alive or dead: where they lie, and whose there are."""

import os
from pathlib import Path

HOLDERS = "holders"
SUFFIX = ".lock"


def lock_path(run_folder: Path, holder: str) -> Path:
    """The lock file of a holder."""
    return run_folder / HOLDERS / f"{holder}{SUFFIX}"


def lock_files(run_folder: Path) -> set[str]:
    """Give the ids of the holders that have a lock file, taken or left behind."""
    try:
        names = os.listdir(run_folder / HOLDERS)  # noqa: PTH208 - a name each, no more
    except OSError:
        return set()
    return {name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)}
