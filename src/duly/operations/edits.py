"""Edits: a definition changed in part or written anew, whole or not at all, by whoever saw its version last."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from duly.core import when
from duly.core.defaults import without_defaults
from duly.core.definition_json import definition_to_json, triggers_from_json
from duly.core.fields import FIELDS
from duly.core.names import key_of
from duly.core.task import Definition, Task
from duly.core.triggers import Triggers
from duly.errors import NOTHING, Invalid, Refused
from duly.operations.judging import judge_in_store
from duly.operations.lookup import find_task, told
from duly.operations.owned import refuse_edit
from duly.operations.rail import wait_for_a_person
from duly.operations.tasks import switch
from duly.operations.versions import check_version
from duly.store import Session, Store
from duly.store.changing import change
from duly.store.switches import lift_over

Given = Mapping[str, object]
NEED_NO_FOLDER = frozenset({"call", "http"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field of a definition, before and after, as JSON has it; None where nothing is written."""

    field: str
    old: object
    new: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """What an edit did: the task before and after, field by field; `ended`: waiting runs of the old schedule."""

    before: Task
    after: Task
    changes: tuple[Change, ...]
    new_era: bool
    ended: int
    warnings: tuple[str, ...]


class _Undone(Exception):
    """A dry run is over: the transaction is rolled back."""

    def __init__(self, edited: Edited) -> None:
        self.edited = edited


def edit(
    store: Store,
    word: str,
    patch: Given,
    *,
    cleared: Given = NOTHING,
    by: str,
    if_version: int | None = None,
    dry_run: bool = False,
    run: str | None = None,
    held: str | None = None,
) -> Edited:
    """Change parts of a task's definition: a JSON merge patch (RFC 7396), in which null goes back to the default.

    `cleared` is one that is applied before it. Triggers that neither names are not read again. Refused:
    `version_conflict` when `if_version` is not the task's, `already_exists` when its new name is taken. What changes
    nothing writes nothing. What a `run` switches on waits for a person, and what is changed and `held` for a reason
    does.
    """

    def make(written: Given) -> Given:
        return merged(merged(written, cleared), patch)

    return _edit(store, word, make, by=by, if_version=if_version, dry_run=dry_run, run=run, held=held)


def rewrite(
    store: Store,
    word: str,
    given: Given,
    *,
    by: str,
    if_version: int | None = None,
    dry_run: bool = False,
    run: str | None = None,
) -> Edited:
    """Write a task's definition anew, whole: what is not given goes back to its default; the zone stays without one.

    The same triggers written again are the same, and keep the phase of their intervals.
    """
    return _edit(store, word, lambda _now: given, by=by, if_version=if_version, dry_run=dry_run, run=run)


def as_written(session: Session, task: Task) -> dict[str, object]:
    """Give a task's definition as its author wrote it; of a broken one what is there, to be mended."""
    if task.broken is None:
        return definition_to_json(without_defaults(task.definition))
    bare: dict[str, object] = {"name": task.definition.name, "project": task.definition.project}
    try:
        stored = json.loads(session.tasks.text(task.id))
    except (ValueError, RecursionError):
        stored = {}
    return (bare | stored if isinstance(stored, dict) else bare) | {"enabled": task.definition.enabled}


def triggers_as_text(task: Task, written: Given) -> list[object]:
    """Give a task's triggers as people write them; of a broken one what is there."""
    if task.broken is None or _triggers_of(task, written):
        return [when.write(trigger) for trigger in _triggers_of(task, written)] or ["manual"]
    found = written.get("triggers")
    return list(found) if isinstance(found, list) else []


def unchanged(task: Task) -> Edited:
    """Give the edit that does nothing."""
    return Edited(before=task, after=task, changes=(), new_era=False, ended=0, warnings=())


def merged(target: object, patch: object) -> dict[str, object]:
    """Apply a JSON merge patch to an object."""
    out = dict(target) if isinstance(target, Mapping) else {}
    assert isinstance(patch, Mapping)
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(value, Mapping):
            out[key] = merged(out.get(key), value)
        else:
            out[key] = value
    return out


def _edit(
    store: Store,
    word: str,
    make: Callable[[Given], Given],
    *,
    by: str,
    if_version: int | None,
    dry_run: bool,
    run: str | None,
    held: str | None = None,
) -> Edited:
    with store.read() as session:
        # Judged before the lock is taken: what does not read keeps nobody waiting.
        task = find_task(session, word)
        refuse_edit(task)
        _read(session, task, make(as_written(session, task)))
    try:
        with store.write() as session:
            lift_over(session)
            task = find_task(session, word)
            refuse_edit(task)
            check_version(session, task, if_version)
            edited = write_in(session, task, make(as_written(session, task)), by=by)
            if not task.definition.enabled and edited.after.definition.enabled:
                edited = replace(edited, after=wait_for_a_person(session, edited.after, run=run, by=by))
            if held is not None and edited.changes:
                edited = replace(edited, after=wait_for_a_person(session, edited.after, run=None, by=by, why=held))
            if dry_run:
                raise _Undone(edited)
            return edited
    except _Undone as undone:
        return undone.edited


def write_in(session: Session, task: Task, given: Given, *, by: str) -> Edited:
    """Write a task's definition anew in the caller's transaction; what changes nothing writes nothing."""
    definition, warnings = _read(session, task, given)
    written = as_written(session, task)
    changes = differences(written, definition_to_json(definition))
    fields = [one.field for one in changes]
    if not changes and task.broken is None:
        return Edited(before=task, after=task, changes=(), new_era=False, ended=0, warnings=warnings)
    if fields == ["enabled"] and task.broken is None:
        after = switch(session, task, on=definition.enabled, by=by)
        return Edited(before=task, after=after, changes=changes, new_era=False, ended=0, warnings=warnings)
    _check_name(session, task, definition)
    before = None if task.broken is not None else task.definition
    notes = judge_in_store(session, definition, before=before)
    warnings += notes if "rules.limits" in fields else ()
    done = change(session, task, definition, by=by, changed=fields)
    return Edited(
        before=task, after=done.task, changes=changes, new_era=done.new_era, ended=done.ended, warnings=warnings
    )


def _read(session: Session, task: Task, given: Given) -> tuple[Definition, tuple[str, ...]]:
    from duly.definitions import read_definition

    written = as_written(session, task)
    kept = _triggers_of(task, written)
    zone = written.get("zone")
    read = read_definition(
        given,
        now=session.now,
        default_zone=zone if isinstance(zone, str) else None,
        kept=kept,
        verbatim=bool(kept) and given.get("triggers") == written.get("triggers"),
    )
    _check_folder(session, task, read.definition)
    return read.definition, read.warnings


def _triggers_of(task: Task, written: Given) -> Triggers:
    if task.broken is None:
        return task.definition.triggers
    try:
        return triggers_from_json(written.get("triggers", ()))
    except Invalid:
        return ()


def differences(old: Given, new: Given) -> tuple[Change, ...]:
    """Compare two definitions field by field, in the order of the table of fields."""
    found = []
    for field in FIELDS:
        before, after = (_at(one, field.place) for one in (old, new))
        if before != after:
            found.append(Change(field=field.path, old=before, new=after))
    kinds = [_at(one, ("action", "kind")) for one in (old, new)]
    if kinds[0] != kinds[1]:
        found.append(Change(field="action.kind", old=kinds[0], new=kinds[1]))
    return tuple(found)


def _at(one: object, place: tuple[str, ...]) -> object:
    for step in place:
        one = one.get(step) if isinstance(one, Mapping) else None
    return one


def _check_name(session: Session, task: Task, definition: Definition) -> None:
    taken = session.tasks.by_name(key_of(definition.project), key_of(definition.name))
    if taken is not None and taken.id != task.id:
        raise Refused(
            "already_exists",
            f"there is a task {told(taken)} already",
            details={"task": taken.id, "name": taken.definition.name, "project": taken.definition.project},
            hint="another name",
        )


def _check_folder(session: Session, task: Task, definition: Definition) -> None:
    """Refuse work without a folder where it had one, or needed none, and its project has none to give it."""
    if definition.action["kind"] in NEED_NO_FOLDER:
        return  # without one it works where its holder does, or in none
    before = {} if task.broken is not None else task.definition.action
    asked = before.get("cwd") is not None or before.get("kind") in NEED_NO_FOLDER
    if asked and session.defaults.fill_in(definition).action.get("cwd") is None:
        project = definition.project
        raise Invalid(
            f"it would be without a folder: the project {project} has none",
            field="action.cwd",
            hint=f"duly project set {project} --dir PATH",
        )
