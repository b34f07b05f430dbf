"""The text of one attempt's prompt: read, with its snippets, in its command's template, its places filled.

Snippets are the files `.agents/snippets/NAME.md`, and standing knowledge is the file `.agents/knowledge.md`: of the
folder to work in, else of the nearest folder above it up to the root of its git worktree; snippets else of the home.
"""

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from duly import zones
from duly.core.action_fields import PROMPT_FILE_MOST
from duly.ports import Assignment
from duly.prompts import commands as slash
from duly.prompts import snippets
from duly.prompts.making import Facts, make
from duly.runners.command import EVENT
from duly.runners.success import cwd_of

OURS = ".agents"
SNIPPET_MOST = 1024 * 1024
KNOWLEDGE_MOST = 256 * 1024
NAMES_MOST = 2_000
"""Snippets that one folder may hold; of more the others are not seen."""


class Unread(Exception):
    """The prompt cannot be had; in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """What is asked, what goes before it, and what the log should tell of how it was made."""

    prompt: str
    knowledge: str | None = None
    """The standing knowledge of the project."""
    notes: tuple[str, ...] = ()


def text_of(assignment: Assignment, known: Mapping[str, str] | None = None) -> Text:
    """Make the text; `known`: the agent's commands, names and templates, where it does not know them itself.

    Raises Unread where a part that the author named cannot be had.
    """
    cwd = Path(cwd_of(assignment))
    given, file = assignment.action.get("prompt"), assignment.action.get("prompt_file")
    text = given if isinstance(given, str) else _read(cwd / str(file), PROMPT_FILE_MOST, "the prompt file")
    expanded = snippets.expand(text, _finder(_folders(cwd)))
    called = slash.expand(expanded.text, known or {})
    made = make(called, _facts(assignment))
    size = len(made.encode("utf-8", "replace"))
    if size > PROMPT_FILE_MOST:
        raise Unread(
            f"the prompt has {size:,} bytes with all that is put into it, and {PROMPT_FILE_MOST:,} are allowed"
        )
    if not made.strip():
        raise Unread("the prompt is empty")
    knowledge, fault = _knowledge(_folders(cwd))
    left = ", ".join(f"#{name}" for name in expanded.left)
    notes = [f"[prompt] {left}: left as it stands, after {expanded.count} snippets"] if left else []
    return Text(prompt=made, knowledge=knowledge, notes=(*notes, *([f"[knowledge] {fault}"] if fault else [])))


def _facts(assignment: Assignment) -> Facts:
    return Facts(
        run=assignment.run,
        attempt=assignment.attempt,
        due_at=assignment.due_at,
        zone=zones.zone(assignment.zone),
        input=assignment.input,
        event=None if assignment.event is None else assignment.event.body,
        event_file=str(assignment.folder / EVENT),
    )


def _folders(cwd: Path) -> list[Path]:
    """The folder to work in and those above it up to the root of its worktree; itself alone where it has none."""
    above = [cwd, *cwd.parents]
    root = next((at for at, one in enumerate(above) if (one / ".git").exists()), 0)
    return above[: root + 1]


def _finder(folders: Sequence[Path]) -> Callable[[str], str | None]:
    """Give what finds a snippet by its name, the nearest first; the folders are looked at when one is asked for."""
    known: dict[str, Path] = {}
    looked = False

    def find(name: str) -> str | None:
        nonlocal looked
        if not looked:
            looked = True
            for folder in (Path.home(), *reversed(folders)):
                known.update(_named(folder / OURS / "snippets"))
        path = known.get(name)
        return None if path is None else _read(path, SNIPPET_MOST, f"the snippet #{name},")

    return find


def _named(folder: Path) -> dict[str, Path]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(one.name for one in islice(entries, NAMES_MOST) if one.name.endswith(".md"))
    except OSError:
        return {}
    return {name.removesuffix(".md"): folder / name for name in names}


def _knowledge(folders: Sequence[Path]) -> tuple[str | None, str | None]:
    """Read the nearest standing knowledge; what is wrong with it is told, and is no failure."""
    for folder in folders:
        path = folder / OURS / "knowledge.md"
        if not path.exists():
            continue
        try:
            text = _read(path, KNOWLEDGE_MOST, "it is left out:").strip()
        except Unread as unread:
            return None, str(unread)
        return text or None, None
    return None, None


def _read(path: Path, most: int, what: str) -> str:
    """Read a text of at most so many bytes from a file, and from nothing else that could be waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise Unread(f"{what} {path} is no file")
            data = file.read(most + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no file's name"
        raise Unread(f"{what} {path} cannot be read: {why}") from None
    if len(data) > most:
        raise Unread(f"{what} {path} is larger than {most:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unread(f"{what} {path} is not UTF-8 (byte {error.start})") from None
