"""Loop files and stored tasks brought together: what has to change so that the tasks are what the files say.

The path of a file is its identity. A name belongs to the nearest file that has it, a task of that name is taken over
with its history, and of what could not be read nothing is changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from posixpath import dirname

from duly.core.loops import KIND, NOT_THERE, Fault, Known, Looked, Loop, Spoilt
from duly.core.names import key_of

ADOPTED = frozenset({KIND, "cli", "api", "page", "mcp", "import"})
"""Kinds of sources whose tasks a file of the same name takes over; what a program defines it would define again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """A file without a task makes one."""

    loop: Loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A task gets the definition of its file, and its name; `adopted`: it had another source until now."""

    task: str
    loop: Loop
    adopted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoil:
    """A task keeps the definition that it has, and what is wrong with its file is shown."""

    task: str
    path: str
    fault: Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """A task whose file is gone, or no longer counts, goes too."""

    task: str
    path: str


Change = Add | Write | Spoil | Remove


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What has to change, in this order; and what is wrong with files that have no task, by their paths."""

    changes: tuple[Change, ...] = ()
    faults: tuple[tuple[str, Fault], ...] = ()


def decide(looked: Looked, known: Sequence[Known]) -> Decision:
    """Say what brings the stored tasks of a project to what its files say; nothing to do is an empty decision."""
    if looked.missing is not None:
        return Decision()
    by_path = {one.path: one for one in known if one.path is not None}
    by_name = {key_of(one.name): one for one in known}
    winners, beaten = _winners(looked, by_path)
    kept = {loop.path for loop in winners} | {one.path for one in looked.found if isinstance(one, Spoilt)}
    written: list[Add | Write] = []
    changes: list[Change] = []
    faults = [*beaten, *_unread(looked, by_path)]
    for loop in winners:
        task = by_path.get(loop.path) or _adopted(by_name.get(key_of(loop.name)), kept)
        holder = by_name.get(key_of(loop.name))
        if task is None and holder is not None:
            faults.append((loop.path, _taken(loop, holder)))
        elif task is None:
            written.append(Add(loop=loop))
        elif task.digest != loop.digest or task.path != loop.path or task.fault is not None:
            written.append(Write(task=task.task, loop=loop, adopted=task.path != loop.path))
    for spoilt in (one for one in looked.found if isinstance(one, Spoilt)):
        task, fault = by_path.get(spoilt.path), spoilt.faults[0]
        if task is None:
            faults += [(spoilt.path, one) for one in spoilt.faults]
        elif task.fault != fault:
            changes.append(Spoil(task=task.task, path=spoilt.path, fault=fault))
    used = {one.task for one in written if isinstance(one, Write)}
    gone = [
        Remove(task=one.task, path=path)
        for path, one in by_path.items()
        if path not in kept and one.task not in used and dirname(path) not in looked.unread
    ]
    # What goes makes room for names; what is renamed makes room for what is new.
    order = (*gone, *_renamed_in_order(written, by_name, {one.task for one in gone}), *changes)
    return Decision(changes=order, faults=tuple(faults))


def _unread(looked: Looked, by_path: Mapping[str, Known]) -> list[tuple[str, Fault]]:
    """Tell of folders that could not be read; of one that is not there only where tasks came from it."""
    told = {dirname(path) for path in by_path}
    return [
        (folder, Fault(field="file", message=why))
        for folder, why in looked.unread.items()
        if folder in told or why != NOT_THERE
    ]


def _winners(looked: Looked, by_path: Mapping[str, Known]) -> tuple[list[Loop], list[tuple[str, Fault]]]:
    """Of the files of one name the nearest counts; in one folder the one whose task has that name already."""
    first: dict[str, Loop] = {}
    beaten: list[tuple[str, Fault]] = []
    for loop in (one for one in looked.found if isinstance(one, Loop)):
        key = key_of(loop.name)
        other = first.get(key)
        if other is None:
            first[key] = loop
            continue
        if dirname(other.path) == dirname(loop.path) and _has_it(by_path, loop) and not _has_it(by_path, other):
            first[key], loop, other = loop, other, loop
        beaten.append((loop.path, _beaten(loop, other)))
    return list(first.values()), beaten


def _has_it(by_path: Mapping[str, Known], loop: Loop) -> bool:
    task = by_path.get(loop.path)
    return task is not None and key_of(task.name) == key_of(loop.name)


def _beaten(loop: Loop, by: Loop) -> Fault:
    near = "nearer" if dirname(loop.path) != dirname(by.path) else "other"
    message = f"it has the name {loop.name}, as the {near} file {by.path} has, which counts"
    return Fault(field="name", message=message, line=loop.line)


def _adopted(task: Known | None, kept: set[str]) -> Known | None:
    """A task of the same name is taken over, unless another file that is there has it, or a program defines it."""
    return None if task is None or task.path in kept or task.kind not in ADOPTED else task


def _taken(loop: Loop, holder: Known) -> Fault:
    whose = f"the file {holder.path}" if holder.path is not None else "a program"
    return Fault(field="name", message=f"there is a task {holder.name} already, which {whose} defines", line=loop.line)


def _renamed_in_order(
    written: Sequence[Add | Write], by_name: Mapping[str, Known], gone: set[str]
) -> tuple[Add | Write, ...]:
    """Put a change behind the one that gives up the name it wants; names that go in a ring stay in their order."""
    held = {key: one.task for key, one in by_name.items() if one.task not in gone}
    left, done = list(written), list[Add | Write]()
    while left:
        free = [one for one in left if held.get(key_of(one.loop.name)) in (None, getattr(one, "task", None))]
        if not free:
            return (*done, *left)
        for one in free:
            if isinstance(one, Write):
                held = {key: task for key, task in held.items() if task != one.task}
            held[key_of(one.loop.name)] = one.task if isinstance(one, Write) else one.loop.path
        done += free
        left = [one for one in left if one not in free]
    return tuple(done)
