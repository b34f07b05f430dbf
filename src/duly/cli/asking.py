"""Asking a person before what cannot be taken back; where nobody can be asked, `--yes` says it beforehand."""

import sys
from collections.abc import Mapping

import click

from duly.cli import out
from duly.cli.frame import settings
from duly.errors import Refused

YES = click.Option(["--yes"], is_flag=True, help="Do not ask.")


def confirm(question: str, *, what: str, hint: str, details: Mapping[str, object]) -> None:
    """Ask on a terminal; Refused `needs_confirmation` where the answer is no, or nobody can be asked."""
    if settings().as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(
            "needs_confirmation", f"{what} needs a yes, and nobody can be asked here", details=details, hint=hint
        )
    out.flush()
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Refused("needs_confirmation", "nothing was changed", details=details)
