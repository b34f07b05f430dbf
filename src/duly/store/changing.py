"""Changing a definition: what was due under the old one has its fate first, then the new one is in force.

All of it happens in the caller's transaction, so when it returns nothing of the old schedule can start.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from duly.clock import to_us
from duly.core import lifecycle
from duly.core.names import key_of
from duly.core.rule_fields import NEW_ERA
from duly.core.run import Entry, Run
from duly.core.spans import write_instant
from duly.core.task import Broken, Definition, Task
from duly.core.triggers import On, Trigger
from duly.store import definitions_written
from duly.store.pauses import holding
from duly.store.plans import arm, bring_up_to_now, disarm
from duly.store.rows import Pause
from duly.store.store import Session
from duly.store.switches import attempt, end_waiting, is_armed, move, switch_on

BY_TIME = frozenset({"schedule", "catch_up"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What a change of a definition did: the task as it stands, whether a new era began, how many runs it ended."""

    task: Task
    new_era: bool
    ended: int


def change(session: Session, before: Task, definition: Definition, *, by: str, changed: Sequence[str]) -> Changed:
    """Put a definition in force in place of the one a task has; `changed` names the fields for the ledger.

    Another schedule begins a new era now and owes nothing before it. Any other change leaves the cursor, the phase of
    intervals and the waiting runs as they are. Switches and holds mean what they always mean.
    """
    definition = session.defaults.fill_in(definition)
    pauses = session.pauses.all()
    wanted = replace(before, definition=definition, broken=None)
    was_on, is_on = is_armed(before, pauses), is_armed(wanted, pauses)
    another = is_another_schedule(before, definition)
    revived = before.done and before.definition.rules.times != definition.rules.times
    new_era = another or revived
    past = _up_to_now(session, before, pauses, rest=new_era or is_on) if new_era or was_on != is_on else before
    cursor = max(past.planned_until, session.now) if new_era else past.planned_until
    after = replace(past, definition=definition, broken=None)
    if new_era or was_on != is_on or _moves_starts(before.definition, definition):
        after = arm(after, cursor)
    ended = _end_old_runs(session, before, definition, by=by) if another else 0
    if not is_on:
        after = disarm(after)
        if was_on:
            reason = "paused" if definition.enabled else "disabled"
            ended += end_waiting(session, before, reason=reason, by=by, by_hand_too=False)
    era_from_us = to_us(cursor) if new_era else _era_of(session, before)
    # Not `before`: planning up to now may have made a version of its own, by new zone data.
    after = definitions_written.rewrite(session, past, after, era_from_us=era_from_us)
    session.ledger.add(_told(session, before, after, by=by, changed=changed, era_from=cursor if new_era else None))
    return Changed(task=after, new_era=new_era, ended=ended)


def is_another_schedule(before: Task, definition: Definition) -> bool:
    """Whether a definition means other instants or events than the one in force; one that does not read means none."""
    old, new = before.definition, definition
    return (
        before.broken is not None
        or (old.triggers, old.zone) != (new.triggers, new.zone)
        or any(getattr(old.rules, name) != getattr(new.rules, name) for name in NEW_ERA)
    )


def _up_to_now(session: Session, task: Task, pauses: Sequence[Pause], *, rest: bool) -> Task:
    """Give every occurrence up to now its fate under the definition in force; `rest`: also what it did not owe.

    What it did not owe are occurrences while it was off, or while it did not read: they are told in one counted entry,
    and the cursor is at now. After its last of `times` a task has no occurrences.
    """
    task = bring_up_to_now(session, task)
    if not rest or task.done:
        return task
    readable = _as_it_last_read(session, task)
    if readable is None or not readable.definition.triggers:
        return task
    reason = "schedule_changed"
    if not task.definition.enabled:
        reason = "disabled"
    elif holding(pauses, task=task.id, project_key=key_of(task.definition.project)):
        reason = "paused"
    found = attempt(session, task, partial(switch_on, session, readable, reason=reason, at=session.now))
    return task if found is None else replace(found, definition=task.definition, broken=task.broken)


def _as_it_last_read(session: Session, task: Task) -> Task | None:
    """The task with the definition whose occurrences are told of: its own, or where that is broken its version's."""
    if task.broken is None:
        return task
    read = session.versions.read(task.id, task.definition_version)
    return None if read is None or isinstance(read, Broken) else replace(task, definition=read, broken=None)


def _moves_starts(old: Definition, new: Definition) -> bool:
    """Whether the next start is another though what is due is the same."""
    return (old.rules.spread, old.rules.times) != (new.rules.spread, new.rules.times)


def _end_old_runs(session: Session, before: Task, definition: Definition, *, by: str) -> int:
    """End the waiting runs that the old schedule opened; one that had an attempt ends with the outcome of its last."""
    events = _on(before.definition.triggers) != _on(definition.triggers)
    steps = [
        lifecycle.skip(run, reason="schedule_changed", now=session.now, details={}, by=by)
        for run in session.runs.waiting_of(before.id)
        if _is_old(run, events_too=events)
    ]
    return len(move(session, steps))


def _is_old(run: Run, *, events_too: bool) -> bool:
    return run.opened_by in BY_TIME or (events_too and run.opened_by == "event")


def _on(triggers: Sequence[Trigger]) -> set[Trigger]:
    return {trigger for trigger in triggers if isinstance(trigger, On)}


def _era_of(session: Session, task: Task) -> int:
    versions = session.versions.all(task.id)
    return versions[-1].era_from_us if versions else to_us(task.planned_until)


def _told(
    session: Session, before: Task, after: Task, *, by: str, changed: Sequence[str], era_from: datetime | None
) -> list[Entry]:
    details: dict[str, object] = {"version": after.definition_version, "changed": list(changed)}
    if era_from is not None:
        details["era_from"] = write_instant(era_from)
    for name in ("name", "project"):
        if name in changed:
            details[f"was_{name}"] = getattr(before.definition, name)
    entries = [Entry(kind="defined", at=session.now, task=after.id, by=by, details=details)]
    if before.definition.enabled != after.definition.enabled:
        kind = "enabled" if after.definition.enabled else "disabled"
        entries.append(Entry(kind=kind, at=session.now, task=after.id, by=by))
    return entries
