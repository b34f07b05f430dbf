"""Loop files as values: what one says, what is wrong with it, and what a look at the folders of a project has seen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

KIND = "file"
"""The kind of source of a task that a loop file defines."""
NOT_THERE = "it is not there"
"""Why a folder could not be read that does not exist."""
FILE_MOST = 1024 * 1024
"""Bytes of a loop file; its prompt alone may have 20,000 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is wrong with a loop file: the field as definitions name it, what, in which line, what to write instead."""

    field: str
    message: str
    line: int | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A loop file that reads: the definition that it gives, without project, and where its parts stand."""

    path: str
    line: int
    """Where its name stands."""
    name: str
    given: Mapping[str, Any]
    lines: Mapping[str, int]
    """The lines of its fields, by their names in a definition."""
    digest: str
    """Of all that it says: the same digest is the same definition."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoilt:
    """A loop file that does not read, and why."""

    path: str
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What a look at the loop folders of a project has seen."""

    found: tuple[Loop | Spoilt, ...] = ()
    """The files, those of the nearest folder first, in a folder by their names."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Folders that could not be read, and why: nothing is known of what is in them."""
    missing: str | None = None
    """Why the project's own folder cannot be used: nothing is known at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A stored task of the project, as far as loop files have to do with it."""

    task: str
    name: str
    kind: str | None
    path: str | None = None
    digest: str | None = None
    fault: Fault | None = None


def source_of(loop: Loop) -> dict[str, object]:
    """Make what a task keeps of the file that it comes from."""
    return {"kind": KIND, "path": loop.path, "line": loop.line, "digest": loop.digest}


def spoilt_source(source: Mapping[str, object], fault: Fault) -> dict[str, object]:
    """Add what is wrong with its file to what a task keeps of it; the digest of what was read last stays."""
    return {**source, "fault": fault_to_json(fault)}


def path_of(source: Mapping[str, object]) -> str | None:
    """Give the file that a task comes from; None for a task that comes from none."""
    path = source.get("path")
    return path if source.get("kind") == KIND and isinstance(path, str) else None


def fault_of(source: Mapping[str, object]) -> Fault | None:
    """Give what is wrong with a task's file, as a task keeps it."""
    return fault_from_json(source.get("fault"))


def fault_to_json(fault: Fault) -> dict[str, object]:
    """Write a fault for the store and for who reads JSON."""
    return {"field": fault.field, "message": fault.message, "line": fault.line, "hint": fault.hint}


def fault_from_json(stored: object) -> Fault | None:
    """Read a fault back; what is none is none."""
    if not isinstance(stored, Mapping):
        return None
    line, hint = stored.get("line"), stored.get("hint")
    return Fault(
        field=str(stored.get("field", "file")),
        message=str(stored.get("message", "it does not read")),
        line=line if isinstance(line, int) else None,
        hint=str(hint) if hint is not None else None,
    )


def told(fault: Fault, path: str) -> str:
    """Say in one line what is wrong with a file."""
    where = path if fault.line is None else f"{path}:{fault.line}"
    return f"{where}: {fault.message}" if fault.field == "file" else f"{where}: {fault.field}: {fault.message}"
