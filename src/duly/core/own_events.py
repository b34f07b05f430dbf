"""Duly's own events: what it tells tasks that listen, made from its ledger's entries; and chains that never end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from duly.core.names import key_of
from duly.core.run import Entry, Run
from duly.core.spans import write_instant
from duly.core.task import Task
from duly.core.triggers import On

RUN_ENDED = "duly.run.ended"
RUN_ABANDONED = "duly.run.abandoned"
OF_RUNS = (RUN_ENDED, RUN_ABANDONED)
ENDS = frozenset({"ended", "skipped"})
"""Kinds of entries that may tell the end of a run."""
OF_KINDS: Mapping[str, str] = {
    "missed": "duly.missed",
    "defined": "duly.task.defined",
    "enabled": "duly.task.enabled",
    "disabled": "duly.task.disabled",
    "removed": "duly.task.removed",
    "holder_ended": "duly.holder.ended",
}
HOLDS = ("paused", "unpaused")
SCOPES = ("task", "project", "store")
SOURCES = (*OF_RUNS, *OF_KINDS.values(), *(f"duly.{scope}.{kind}" for kind in HOLDS for scope in SCOPES))
"""Every source that Duly itself emits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """An event of Duly's own, before it is received."""

    source: str
    key: str | None
    body: Mapping[str, object]
    through: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A task and what it listens to."""

    id: str
    name: str
    project: str
    triggers: tuple[On, ...]


def may_tell(entry: Entry) -> bool:
    """Tell whether an entry is one that an event is made of."""
    return entry.kind in OF_KINDS or entry.kind in HOLDS or (entry.kind in ENDS and entry.run is not None)


def of_run(run: Run, task: Task | None, through: Sequence[str]) -> list[Own]:
    """Give the events of a run that has ended; `through` are the tasks that its own event came through."""
    assert run.state == "ended"
    body: dict[str, object] = {
        **_of_task(run.task, task),
        "run": run.id,
        "occurrence": run.occurrence,
        "opened_by": run.opened_by,
        "due_at": write_instant(run.due_at),
        "started_at": write_instant(run.started_at) if run.started_at else None,
        "ended_at": write_instant(run.ended_at) if run.ended_at else None,
        "attempt": run.attempt,
        "outcome": run.outcome,
        "reason": run.reason,
        "error": run.error,
        "exit_code": run.exit_code,
    }
    sources = OF_RUNS if run.outcome == "abandoned" else (RUN_ENDED,)
    told = (*through, run.task) if run.task not in through else tuple(through)
    return [Own(source=source, key=run.id, body=body, through=told) for source in sources]


def of_entry(entry: Entry, task: Task | None) -> Own:
    """Give the event of an entry that tells of anything but the end of a run."""
    details = entry.details
    body: dict[str, object] = {**_of_task(entry.task, task), "at": write_instant(entry.at), "by": entry.by}
    body |= {"reason": entry.reason, "until_at": write_instant(entry.until_at) if entry.until_at else None}
    if entry.kind in HOLDS:
        scope = str(details.get("scope"))
        body |= {"note": details.get("note")} | ({"project": details.get("target")} if scope == "project" else {})
        return Own(source=f"duly.{scope}.{entry.kind}", key=None, body=body)
    if entry.kind == "missed":
        body |= {"occurrence": entry.occurrence, "count": entry.count or 1, "missed": details.get("missed")}
    if entry.kind == "holder_ended":
        body |= {"holder": entry.holder, "host": details.get("host")}
    if entry.kind == "defined":
        body |= {"version": details.get("version")}
    return Own(source=OF_KINDS[entry.kind], key=None, body=body)


def cycle(of: Listener, others: Sequence[Listener]) -> tuple[str, ...] | None:
    """Give the names along which the end of a task would start the task itself again, or None.

    Only what definitions name is seen: who listens to the ends of all tasks is kept from itself by its events.
    """
    before: dict[str, Listener] = {}
    left = [of]
    while left:
        one = left.pop()
        for other in (of, *(other for other in others if other.id != of.id)):
            if not any(_names(trigger, other) for trigger in one.triggers):
                continue
            if other.id == of.id:
                return _spelled(of, one, before)
            if other.id not in before:
                before[other.id] = one
                left.append(other)
    return None


def _spelled(of: Listener, last: Listener, before: Mapping[str, Listener]) -> tuple[str, ...]:
    """Follow the ends: that of `of` starts `last`, whose end starts the one before it, and so on back to `of`."""
    names, one = [of.name, last.name], last
    while one.id != of.id:
        one = before[one.id]
        names.append(one.name)
    return tuple(names)


def _names(trigger: On, task: Listener) -> bool:
    """Tell whether a trigger listens to the ends of this very task, by its name or its id."""
    if trigger.source not in OF_RUNS:
        return False
    wanted = {path: value for path, value in trigger.match if path in ("task", "task_id", "project")}
    is_ = {"task": task.name, "task_id": task.id, "project": task.project}
    return (
        wanted.keys() != {"project"}
        and bool(wanted)
        and all(key_of(wanted[path]) == key_of(is_[path]) for path in wanted)
    )


def _of_task(id_: str | None, task: Task | None) -> dict[str, object]:
    if task is None:
        return {"task": None, "task_id": id_, "project": None}
    return {"task": task.definition.name, "task_id": task.id, "project": task.definition.project}
