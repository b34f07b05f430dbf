"""How a call that failed is told: the fault, the place, what to try; and the exit code that goes with it."""

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from duly.cli import out
from duly.cli.table import cells_of, plain
from duly.errors import DulyError, Invalid

DONE, FAILED, USAGE, REFUSED, NOT_FOUND, STORE, OURS, INTERRUPTED = 0, 1, 2, 3, 4, 5, 70, 130
CODES: Mapping[str, int] = {
    "invalid": USAGE,
    "unknown_task": NOT_FOUND,
    "unknown_run": NOT_FOUND,
    "unknown_id": NOT_FOUND,
    "store_away": STORE,
    "store_newer": STORE,
}
CARET_ROOM = 72
LIKE = 0.7
"""How alike an unknown option and a known one must be for the known one to be offered."""
# What a full disk or a lost terminal answers to output.
OUTPUT_FAILS = frozenset({errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG})


def code_of(fault: BaseException) -> int:
    """Give the exit code of a fault: by its reason, 70 for what should not have happened."""
    if isinstance(fault, DulyError):
        return CODES.get(fault.reason, REFUSED)
    if isinstance(fault, click.ClickException):
        return USAGE
    return OURS


def told(fault: BaseException, *, args: Sequence[str], as_json: bool) -> int:
    """Tell a fault on standard error and give its exit code."""
    if isinstance(fault, click.ClickException):
        fault = usage(fault, args)
    if isinstance(fault, UnicodeEncodeError):
        fault = _not_text(args) or fault
    if isinstance(fault, OSError) and fault.filename is None and fault.errno in OUTPUT_FAILS:
        fault = _Ours(f"the output cannot be written: {fault.strerror}")
        code = FAILED
    elif not isinstance(fault, DulyError):
        fault = _ours(fault, args)
        code = OURS
    else:
        code = code_of(fault)
    message = named(fault)
    if as_json:
        details = dict(fault.details) | _place(fault)
        out.note(out.as_json({"reason": fault.reason, "message": message, "details": details}))
        return code
    red = "\x1b[31m" if out.coloured(sys.stderr) else ""
    out.note(f"{red}duly:{out.RESET if red else ''} {plain(message)}")
    if isinstance(fault, Invalid):
        for line in caret(fault):
            out.note(line)
    if fault.hint:
        out.note(f"try: {plain(fault.hint)}")
    return code


def interrupted() -> int:
    """End a call that was interrupted from the keyboard."""
    out.note("")
    return INTERRUPTED


def named(fault: DulyError) -> str:
    """Put the field before the message: as an option where there is one, else as its place in the JSON."""
    if isinstance(fault, Invalid) and fault.field:
        return f"{option_of(fault.field)}: {fault.message}"
    return fault.message


def option_of(field: str) -> str:
    """Give the words of the command line for a field of a definition."""
    from duly.cli.fields import spelled

    return spelled(field)


def caret(fault: Invalid) -> list[str]:
    """Draw the text of a fault with a caret under the place, moved into view where it is long."""
    if fault.text is None or fault.at is None:
        return []
    start = max(0, min(fault.at - CARET_ROOM // 2, len(fault.text) - CARET_ROOM))
    before = plain(fault.text[start : fault.at])
    shown = before + plain(fault.text[fault.at : start + CARET_ROOM])
    lead = "…" if start else ""
    tail = "…" if start + CARET_ROOM < len(fault.text) else ""
    return [f"  {lead}{shown}{tail}", "  " + " " * cells_of(lead + before) + "^"]


def usage(fault: click.ClickException, args: Sequence[str] = ()) -> Invalid:
    """Turn what the parser of the command line says into the one form all faults have."""
    from duly.cli.frame import COMMANDS

    ctx = getattr(fault, "ctx", None)
    # The parser of a command's options does not say whose they are.
    called = next((f"duly {word}" for word in args if word in COMMANDS), "duly")
    hint = f"{ctx.command_path if ctx is not None else called} --help"
    if isinstance(fault, click.exceptions.NoSuchCommand):
        near = fault.possibilities
        over = ctx.command_path if ctx is not None else "duly"
        what = "command" if over == "duly" else f"verb of {over}"
        return Invalid(f'there is no {what} "{fault.command_name}"', hint=f"{over} {near[0]}" if near else hint)
    if isinstance(fault, click.exceptions.NoSuchOption):
        return Invalid(f"there is no option {fault.option_name}", hint=_meant(fault) or hint)
    if isinstance(fault, click.BadOptionUsage):
        what = "needs a value" if "requires" in fault.message else "takes no value"
        return Invalid(f"{fault.option_name} {what}", hint=hint)
    if isinstance(fault, click.MissingParameter):
        what = fault.param.make_metavar(ctx) if fault.param is not None and ctx is not None else "something"
        if isinstance(fault.param, click.Option):
            what = fault.param.opts[0]
        return Invalid(f"{what} is missing", hint=hint)
    message = fault.format_message().strip().rstrip(".")
    return Invalid(message[:1].lower() + message[1:], hint=hint)


def _meant(fault: click.exceptions.NoSuchOption) -> str | None:
    """Give the option that was probably meant: the dashes that all of them have are no likeness."""
    from difflib import get_close_matches

    typed = fault.option_name.lstrip("-")
    begun = [name for name in fault.possibilities or () if typed and name.lstrip("-").startswith(typed)]
    known = [name.lstrip("-") for name in fault.possibilities or ()]
    near = get_close_matches(typed, known, n=1, cutoff=LIKE)
    return begun[0] if begun else f"--{near[0]}" if near else None


def _not_text(args: Sequence[str]) -> Invalid | None:
    """Name the word whose bytes are no UTF-8, where one was typed."""
    for word in args:
        try:
            word.encode()
        except UnicodeEncodeError:
            return Invalid(f'"{plain(word)}" is not valid UTF-8')
    return None


def _place(fault: DulyError) -> dict[str, object]:
    found: dict[str, object] = {}
    if isinstance(fault, Invalid):
        found = {"field": fault.field, "text": fault.text, "at": fault.at}
    found["hint"] = fault.hint
    return {key: value for key, value in found.items() if value is not None}


class _Ours(DulyError):
    """What is in nobody's set of reasons: a fault of Duly itself, or output that cannot be written."""

    reason = "fault"


def _ours(fault: BaseException, args: Sequence[str]) -> DulyError:
    """Keep what happened in a report, and say where it is."""
    name = type(fault).__name__
    try:
        path = _report(fault, args)
    except OSError as bad:
        return _Ours(
            f"a fault of ours ({name}), and no report could be written ({bad.strerror}): {plain(str(fault))[:200]}"
        )
    return _Ours(f"a fault of ours ({name}); the report is {path}", details={"report": str(path)})


def _report(fault: BaseException, args: Sequence[str]) -> Path:
    from duly.operations import reports

    # Words may hold what nobody else shall read, so only the names of options are kept.
    told_args = " ".join(word.split("=")[0] if word.startswith("-") else "…" for word in args[1:])
    return reports.write(fault, f"duly {args[0] if args else ''} {told_args}", os.environ)
