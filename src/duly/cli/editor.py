"""Letting a person edit a text: in their editor, opened again with what is wrong until it can be taken or is given up.

No text is lost: it lies in a file of its own from the first moment, and stays there when it is given up.
"""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from duly.cli import out
from duly.cli.faults import caret
from duly.cli.frame import settings
from duly.cli.table import plain
from duly.errors import DulyError, Invalid

T = TypeVar("T")
MARK = "#! "
"""Begins each line at the top that tells a fault in the text; they are taken out when it is read."""
STDERR = 2
USUAL = ("sensible-editor", "editor", "nano", "vi")
NAMED_MOST = 40
FAULTS_TOLD = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Left(Generic[T]):
    """How an editing ended: with what was made of the text, or with nothing; `kept` is where a text lies that was."""

    made: T | None
    kept: Path | None = None


def edit(text: str, take: Callable[[str], T], *, name: str, is_empty: Callable[[str], bool]) -> Left[T]:
    """Let a person edit a text until `take` makes something of it.

    Left as it was, or emptied, it makes nothing. Where `take` raises, the text is opened again with the fault at its
    top; left so, the fault is raised, with the file in which the text is kept.
    """
    line = command(os.environ)
    path = _place(name)
    opened, given, fault = text, text, None
    while True:
        _write(path, _headed(given, fault))
        _open(line, path, opened=opened, given=given)
        found = _without_marks(_read(path))
        if is_empty(found) or (found == given and fault is None):
            return Left(made=None, kept=_settled(path, given, opened))
        if found == given and fault is not None:
            _settled(path, given, opened)
            raise _kept(fault, path)
        given = found
        try:
            made = take(found)
        except DulyError as bad:
            if bad.reason == "version_conflict":
                _settled(path, given, opened)
                raise _kept(bad, path) from bad
            fault = bad
            continue
        path.unlink(missing_ok=True)
        return Left(made=made)


def command(environ: Mapping[str, str]) -> str:
    """Give the command line of the person's editor; Invalid where there is none."""
    for variable in ("VISUAL", "EDITOR"):
        if environ.get(variable, "").strip():
            return environ[variable]
    for program in USUAL:
        if shutil.which(program) is not None:
            return program
    raise Invalid("no editor is set", field="EDITOR", hint="EDITOR=nano duly edit TASK, or say by options what changes")


def _open(line: str, path: Path, *, opened: str, given: str) -> None:
    with _deaf_to_interrupts():
        try:
            done = subprocess.run(
                ["sh", "-c", f'{line} "$@"', line, str(path)],
                check=False,
                # With --json only our document may go to standard output.
                stdout=STDERR if settings().as_json else None,
            )
        except OSError as bad:
            _settled(path, given, opened)
            raise Invalid(f"the editor cannot be started: {bad.strerror}", field="EDITOR") from bad
    if done.returncode != 0:
        found = _without_marks(_read(path))
        fault = Invalid(f"the editor `{plain(line)}` ended with status {done.returncode}", field="EDITOR")
        raise _kept(fault, path) if _settled(path, found, opened) is not None else fault


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Leave the keys that interrupt to the editor."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _headed(text: str, fault: DulyError | None) -> str:
    if fault is None:
        return text
    lines = [line for one in _faults(fault) for line in _lines(one)]
    lines.append("Mend it and save. Left as it is, or emptied, it changes nothing; the text is kept in this file.")
    return "".join(f"{MARK}{plain(line)}\n" for line in lines) + text


def _faults(fault: DulyError) -> Sequence[DulyError]:
    """The fault itself, then the further ones that were found with it."""
    errors = fault.details.get("errors")
    more: list[DulyError] = []
    if isinstance(errors, list):
        for error in errors[1:FAULTS_TOLD]:
            field = str(error["pointer"]).strip("/").replace("/", ".")
            more.append(Invalid(str(error["message"]), field=field))
    return [fault, *more]


def _lines(fault: DulyError) -> Iterator[str]:
    field = f"{fault.field}: " if isinstance(fault, Invalid) and fault.field else ""
    yield f"{field}{fault.message}"
    if isinstance(fault, Invalid):
        yield from caret(fault)
    if fault.hint:
        yield f"  try: {fault.hint}"


def _without_marks(text: str) -> str:
    """The text without our lines: those at its top only, since a text may hold such lines of its own."""
    while text.startswith(MARK):
        text = text.partition("\n")[2]
    return text


def _place(name: str) -> Path:
    """Make an empty file for this user alone, in the folder where texts are kept."""
    from duly import chance, clock
    from duly.store.address import state_folder

    folder = state_folder(os.environ) / "edits"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    word = re.sub(r"[^\w-]+", "-", name).strip("-")[:NAMED_MOST] or "task"
    path = folder / f"{word}-{clock.now():%Y%m%dT%H%M%S}-{chance.token_bytes(3).hex()}.toml"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    return path


def _write(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text.encode("utf-8", "surrogateescape"))
    path.chmod(0o600)  # an editor may have put a file of its own in its place


def _read(path: Path) -> str:
    """Read what the editor left, line ends as people mean them; a file that is gone is an emptied one."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return ""
    return data.decode("utf-8", "surrogateescape").removeprefix("\ufeff").replace("\r\n", "\n")


def _settled(path: Path, text: str, opened: str) -> Path | None:
    """Keep a text that is more than was given to edit, and no file for one that is not."""
    if text == opened:
        path.unlink(missing_ok=True)
        return None
    _write(path, text)
    return path


def _kept(fault: DulyError, path: Path) -> DulyError:
    """The fault with the word where the text lies, in its own form."""
    fault.details = {**fault.details, "kept": str(path)}
    if not settings().as_json:
        out.note(f"the text is kept in {plain(str(path))}")
    return fault
