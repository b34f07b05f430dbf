"""Skipping occurrences by hand: those to come, which planning will leave out, and runs that still wait."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from duly import ids, zones
from duly.core import lifecycle
from duly.core.names import key_of
from duly.core.notes import check_note
from duly.core.occurrences import at_key, is_of_time
from duly.core.pieces import pieces
from duly.core.planning import owed
from duly.core.run import BY_TIME_OR_EVENT, Entry, Run
from duly.core.schedule import TICK, is_due, last_due_before, next_due
from duly.core.skips import Range, covering, next_kept
from duly.core.spans import write_instant
from duly.core.task import Task
from duly.core.triggers import yields_instants
from duly.errors import Invalid, Refused
from duly.operations import shapes
from duly.operations.lookup import find_task, told
from duly.store import Session, Store
from duly.store.eras import eras
from duly.store.pauses import holding
from duly.store.switches import is_armed, lift_over, move

NEXT = "next"
AT = "at"
BEFORE = "before"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Which occurrences: the next one, the one at an instant, or all before an instant."""

    what: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """What a skip did: how many occurrences to come it leaves out, within which bounds, and which runs it ended."""

    task: Task
    count: int
    first: datetime | None
    last: datetime | None
    runs: tuple[Run, ...] = ()
    already: bool = False
    """All of it had been skipped before, so nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    session: Session
    task: Task
    zone: ZoneInfo
    base: datetime
    """Occurrences after this one are still to come."""
    ranges: Sequence[Range]
    by: str
    note: str | None


def skip(store: Store, word: str, ask: Ask, *, by: str, note: str | None = None) -> Skipped:
    """Let occurrences of a task not run: fate `skipped_by_hand`, now for runs that wait, at their time for the others.

    Refused: `already_running`, `already_ended` with the run that an occurrence has; `done` when nothing is to come.
    Invalid: an instant that is no occurrence (with the nearest), a task without a schedule.
    """
    check_note(note)
    with store.write() as session:
        lift_over(session)
        task = find_task(session, word)
        check_has_times(task)
        zone = zones.zone(task.definition.zone)
        ranges = session.skips.of(task.id, after=task.planned_until)
        scene = _Scene(
            session=session, task=task, zone=zone, base=_base(session, task), ranges=ranges, by=by, note=note
        )
        if ask.what == NEXT:
            return _next(scene)
        assert ask.at is not None
        return _at(scene, ask.at) if ask.what == AT else _before(scene, ask.at)


def check_has_times(task: Task) -> None:
    """Refuse a task that time never opens, or whose times nobody can tell."""
    if task.broken is not None:
        raise Refused(
            "invalid",
            f"{told(task)} has no schedule that reads: its {task.broken.field}: {task.broken.message}",
            details={"task": task.id, "field": task.broken.field},
        )
    if not yields_instants(task.definition.triggers):
        raise Invalid(f"{told(task)} has no times of its own: nothing opens it but people and events")


def marked(session: Session, items: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    """Give instants to come of tasks with who skipped them and why, or null."""
    ranges = session.skips.ahead(sorted({str(item["task"]) for item in items}))
    marked_ = []
    for item in items:
        range_ = covering(ranges.get(str(item["task"]), ()), datetime.fromisoformat(str(item["due_at"])))
        marked_.append(item | {"skipped": shapes.skipped(range_)})
    return marked_


def shape(done: Skipped) -> dict[str, object]:
    """Show what a skip did."""
    return {
        "task": done.task.id,
        "task_name": told(done.task),
        "count": done.count,
        "first": shapes.instant(done.first),
        "last": shapes.instant(done.last),
        "runs": [run.id for run in done.runs],
        "already": done.already,
    }


def _base(session: Session, task: Task) -> datetime:
    """The instant after which occurrences are still to come: the cursor, or the end of what holds the task now."""
    holds = holding(session.pauses.all(), task=task.id, project_key=key_of(task.definition.project))
    if is_armed(task, holds):
        return task.planned_until
    ends = [hold.until for hold in holds if hold.until is not None]
    return max(task.planned_until, session.now, *ends)


def _next(scene: _Scene) -> Skipped:
    now = scene.session.now
    delayed = [run for run in _waiting(scene) if run.not_before > now]
    if delayed:
        # Opened already, but its time to start is still to come: to a person that is what comes next.
        run = min(delayed, key=lambda run: (run.not_before, run.due_at))
        return Skipped(task=scene.task, count=0, first=None, last=None, runs=_end(scene, [run]))
    following = None if scene.task.done else next_kept(scene.task.definition, scene.zone, scene.base, scene.ranges)
    if following is None:
        raise _nothing_more(scene.task)
    return _leave_out(scene, following, following, shown=(following, following, 1))


def _at(scene: _Scene, at: datetime) -> Skipped:
    run = scene.session.runs.by_occurrence(scene.task.id, at_key(at))
    if run is not None:
        return _skip_run(scene, run)
    if at <= scene.task.planned_until:
        raise _behind(scene, at)
    if scene.task.done:
        raise _nothing_more(scene.task)
    if not is_due(scene.task.definition, scene.zone, at):
        raise _no_occurrence(scene, at)
    if covering(scene.ranges, at) is not None:
        return Skipped(task=scene.task, count=0, first=at, last=at, already=True)
    return _leave_out(scene, at, at, shown=(at, at, 1))


def _before(scene: _Scene, end: datetime) -> Skipped:
    runs = _end(scene, [run for run in _waiting(scene) if run.due_at < end])
    last = end - TICK
    stretches = [
        stretch
        for piece in pieces(scene.base, last, scene.ranges)
        if piece.by_hand is None
        and not scene.task.done
        and (stretch := owed(scene.task.definition, scene.zone, piece.after, piece.until)) is not None
    ]
    if stretches:
        count = sum(stretch.count for stretch in stretches)
        # From where time stands now and not from the first of them: what an edit brings before the end is left out too.
        done = _leave_out(scene, scene.base + TICK, last, shown=(stretches[0].first, stretches[-1].last, count))
        return replace(done, runs=runs)
    return Skipped(task=scene.task, count=0, first=None, last=None, runs=runs, already=not runs)


def _leave_out(scene: _Scene, first: datetime, last: datetime, *, shown: tuple[datetime, datetime, int]) -> Skipped:
    """Keep a range for planning to leave out, and tell of the occurrences that it has as the schedule stands."""
    session, id_ = scene.session, ids.new("skp")
    range_ = Range(first=first, last=last, by=scene.by, note=scene.note)
    session.skips.insert(id_, scene.task.id, range_, session.now)
    earliest, latest, count = shown
    session.ledger.add(
        [
            Entry(
                kind="skipped",
                at=session.now,
                task=scene.task.id,
                occurrence=at_key(earliest),
                reason="skipped_by_hand",
                by=scene.by,
                count=count,
                until_at=latest if count > 1 else None,
                details=_details(scene) | {"skip": id_},
            )
        ]
    )
    return Skipped(task=scene.task, count=count, first=earliest, last=latest)


def _waiting(scene: _Scene) -> list[Run]:
    """Runs that time has opened and nobody has begun."""
    return [
        run
        for run in scene.session.runs.waiting_of(scene.task.id)
        if run.opened_by in BY_TIME_OR_EVENT and is_of_time(run.occurrence) and run.attempt == 0
    ]


def _end(scene: _Scene, runs: Sequence[Run]) -> tuple[Run, ...]:
    steps = [
        lifecycle.skip(run, reason="skipped_by_hand", now=scene.session.now, details=_details(scene), by=scene.by)
        for run in runs
    ]
    won = move(scene.session, steps)
    return tuple(step.after for step in steps if step.after.id in won)


def _details(scene: _Scene) -> dict[str, object]:
    return {} if scene.note is None else {"note": scene.note}


def _skip_run(scene: _Scene, run: Run) -> Skipped:
    if run.state == "waiting" and run.attempt == 0:
        return Skipped(task=scene.task, count=0, first=run.due_at, last=run.due_at, runs=_end(scene, [run]))
    details: Mapping[str, object] = {
        "run": run.id,
        "state": shapes.state(run),
        "holder": run.holder,
        "outcome": run.outcome,
        "reason": run.reason,
    }
    when = write_instant(run.due_at)
    if run.state == "ended":
        text = f"the run of {when} has ended: {run.outcome} ({run.id})"
        raise Refused("already_ended", text, details=details, hint=f"duly show {run.id}")
    text = f"the run of {when} has begun ({run.id}" + (f", held by {run.holder})" if run.holder else ")")
    raise Refused("already_running", text, details=details, hint=f"duly cancel {run.id}")


def _behind(scene: _Scene, at: datetime) -> Invalid | Refused:
    """Why an occurrence that time has passed cannot be skipped any more."""
    era = next((era for era in eras(scene.session, scene.task) if era.since < at <= era.until), None)
    if era is None or not is_due(era.definition, era.zone, at):
        return _no_occurrence(scene, at)
    for one in scene.session.missed.between(scene.task.id, at, at):
        wants = one.state == "open"
        return Refused(
            "already_ended",
            f"{write_instant(at)} was missed ({one.reason}) and has not run, so there is nothing to skip",
            details={"missed": one.id, "reason": one.reason, "state": one.state},
            hint=f"duly decline {one.id}" if wants else None,
        )
    return Refused(
        "already_ended",
        f"{write_instant(at)} is over and has not run, so there is nothing to skip",
        details={"task": scene.task.id},
        hint=f"duly ledger --task {scene.task.id}",
    )


def _nothing_more(task: Task) -> Refused:
    return Refused("done", f"nothing of {told(task)} is to come any more", details={"task": task.id})


def _no_occurrence(scene: _Scene, at: datetime) -> Invalid:
    definition, zone = scene.task.definition, scene.zone
    near = [
        write_instant(found)
        for found in (last_due_before(definition, zone, at), next_due(definition, zone, at))
        if found is not None and found > scene.task.planned_until
    ]
    said = f"; the nearest are {' and '.join(near)}" if len(near) > 1 else f"; the nearest is {near[0]}" if near else ""
    return Invalid(
        f"{told(scene.task)} is not due at {write_instant(at)}{said}",
        field="--at",
        hint=f"--at {near[-1]}" if near else None,
        details={"task": scene.task.id, "nearest": near},
    )
