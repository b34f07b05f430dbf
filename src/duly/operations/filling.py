"""`backfill`: occurrences of the past that never ran, opened each once, behind everything else that waits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile

from duly import ids, zones
from duly.core import lifecycle, offers
from duly.core.admission import rank_of
from duly.core.names import key_of
from duly.core.occurrences import at_key
from duly.core.run import Run
from duly.core.schedule import TICK, count_due, dues
from duly.core.spans import write_instant
from duly.core.task import Task
from duly.errors import Invalid
from duly.operations import shapes
from duly.operations.lookup import find_task, told
from duly.operations.runs import check_task
from duly.operations.skipping import check_has_times
from duly.store import Session, Store
from duly.store.eras import Era, eras_from
from duly.store.offers import expire
from duly.store.switches import lift_over

OPENED_MOST = 10_000
"""Runs that one backfill opens."""
LOOKED_AT_MOST = 50_000
"""Occurrences that one backfill looks at, those that ran included."""
OVERLAPS = ("queue", "skip")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Which span to fill, both ends included, and what its runs do where the seats are taken."""

    first: datetime
    last: datetime
    overlap: str = "queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """What a backfill did, or would do: the occurrences that never ran, and those that have a run and are left."""

    task: Task
    until: datetime
    """How far it went: not beyond what the schedule has come to by itself."""
    ahead: int
    """Occurrences of the span beyond that, which are the schedule's own."""
    dues: tuple[datetime, ...]
    ran: Mapping[str, Run]
    runs: tuple[Run, ...] = ()
    overlap: str
    dry_run: bool


def backfill(
    store: Store,
    word: str,
    ask: Ask,
    *,
    by: str,
    anyway: bool = False,
    dry_run: bool = False,
    run: str | None = None,
) -> Filled:
    """Open a run for each occurrence in a span that has none; `dry_run` says which and opens nothing.

    They are the occurrences of the schedule that was in force at their time (before the first one, of that), and are
    performed by the definition in force now. They wait for seats and limits behind all other runs of the store, and
    what time brings is never skipped because one of them runs. Nothing beyond the task's cursor is opened.
    """
    _check(ask)
    with store.write() as session:
        lift_over(session)
        expire(session)
        task = find_task(session, word)
        check_has_times(task)
        check_task(session, task, anyway=anyway, run=run)
        if ask.first > session.now:
            raise Invalid("it lies ahead: the schedule opens what is to come", field="--from", hint="--from 7d")
        until = min(ask.last, task.planned_until)
        found = _occurrences(session, task, ask.first, until)
        ran = session.runs.of_occurrences(task.id, [at_key(due) for due in found])
        never = tuple(due for due in found if at_key(due) not in ran)
        _check_number(never)
        filled = Filled(
            task=task,
            until=until,
            ahead=_ahead(task, ask.last),
            dues=never,
            ran=ran,
            overlap=ask.overlap,
            dry_run=dry_run,
        )
        return filled if dry_run else replace(filled, runs=_open(session, filled, by=by, anyway=anyway))


def shape(done: Filled) -> dict[str, object]:
    """Show what a backfill did or would do."""
    return {
        "task": done.task.id,
        "task_name": told(done.task),
        "count": len(done.dues),
        "first": shapes.instant(done.dues[0]) if done.dues else None,
        "last": shapes.instant(done.dues[-1]) if done.dues else None,
        "until": shapes.instant(done.until),
        "ahead": done.ahead,
        "ran": len(done.ran),
        "not_started": not_started(done),
        "overlap": done.overlap,
        "dry_run": done.dry_run,
        "runs": [run.id for run in done.runs],
    }


def not_started(done: Filled) -> int:
    """How many of those that have a run ended without a start, so that `retry` would be the way to them."""
    return sum(run.outcome == "skipped" for run in done.ran.values())


def _check(ask: Ask) -> None:
    if ask.last < ask.first:
        raise Invalid(
            f"{write_instant(ask.last)} lies before --from, {write_instant(ask.first)}",
            field="--to",
            hint=f"--from {write_instant(ask.last)} --to {write_instant(ask.first)}",
        )
    if ask.overlap not in OVERLAPS:
        raise Invalid(
            f"a backfill never ends what runs, so it is one of {', '.join(OVERLAPS)}",
            field="--overlap",
            hint="--overlap queue",
        )


def _occurrences(session: Session, task: Task, first: datetime, until: datetime) -> list[datetime]:
    """The occurrences in [first, until], each of the schedule that was in force at its time."""
    held = [replace(era, until=min(era.until, until)) for era in eras_from(session, task, first - TICK)]
    number = sum(count_due(era.definition, era.zone, era.since, era.until) for era in held)
    if number > LOOKED_AT_MOST:
        raise Invalid(
            f"the span has {number:,} occurrences, and one backfill looks at {LOOKED_AT_MOST:,}",
            field="--to",
            details={"count": number, "most": LOOKED_AT_MOST},
        )
    return [due for era in held for due in _within(era)]


def _ahead(task: Task, last: datetime) -> int:
    if task.done or last <= task.planned_until:
        return 0
    return count_due(task.definition, zones.zone(task.definition.zone), task.planned_until, last)


def _within(era: Era) -> Iterator[datetime]:
    return takewhile(lambda due: due <= era.until, dues(era.definition, era.zone, era.since))


def _check_number(never: Sequence[datetime]) -> None:
    if len(never) > OPENED_MOST:
        last = write_instant(never[OPENED_MOST - 1])
        raise Invalid(
            f"{len(never):,} occurrences never ran, and one backfill opens {OPENED_MOST:,}",
            field="--to",
            hint=f"--to {last}, then go on from there",
            details={"count": len(never), "most": OPENED_MOST, "last": last},
        )


def _open(session: Session, filled: Filled, *, by: str, anyway: bool) -> tuple[Run, ...]:
    task, rules = filled.task, filled.task.definition.rules
    # Their ids stand in the order of their instants, as lists of runs do.
    names = sorted(ids.new("run") for _ in filled.dues)
    runs = tuple(
        Run(
            id=id_,
            task=task.id,
            occurrence=at_key(due),
            due_at=due,
            opened_at=session.now,
            opened_by="backfill",
            opened_by_whom=by,
            not_before=session.now,
            definition_version=task.definition_version,
            anyway=anyway,
            queued=filled.overlap == "queue",
            overlap=filled.overlap,
            project=key_of(task.definition.project),
            rank=rank_of("backfill", rules),
        )
        for id_, due in zip(names, filled.dues, strict=True)
    )
    if runs:
        session.runs.insert(runs)
        session.ledger.add([lifecycle.opened_by_hand(run) for run in runs])
        _name_in_records(session, task, runs, by=by)
    return runs


def _name_in_records(session: Session, task: Task, runs: Sequence[Run], *, by: str) -> None:
    """Let missed records name the run that their newest occurrence has now; for an open offer that is the answer."""
    by_due = {run.due_at: run for run in runs}
    for one in session.missed.between(task.id, runs[0].due_at, runs[-1].due_at):
        run = by_due.get(one.until_at)
        if run is None or one.run is not None:
            continue
        offered = one.state == "open"
        after = offers.accepted(one, run.id, by=by, now=session.now) if offered else replace(one, run=run.id)
        if session.missed.decide(one, after) and offered:
            session.ledger.add([offers.told(after, "accepted", now=session.now, run=run)])
