"""Missed occurrences for people: the list of them, and the answers to those that are offered. Each is answered once."""

from dataclasses import dataclass
from datetime import datetime

from duly import ids
from duly.core import lifecycle, offers
from duly.core.notes import check_note
from duly.core.run import Missed, Run
from duly.core.spans import write_instant
from duly.core.task import Task
from duly.errors import Refused
from duly.operations import awaiting, shapes
from duly.operations.listing import Projects
from duly.operations.lookup import find_missed, told
from duly.operations.owned import refuse_missing
from duly.operations.runs import check_task
from duly.store import Session, Store
from duly.store.counters import count_back
from duly.store.offers import expire
from duly.store.switches import lift_over, move

STATES = ("open", "accepted", "declined", "expired", "closed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What accepting did: the record as it stands, and the run that was opened or goes on."""

    missed: Missed
    run: Run


def listed(
    session: Session,
    *,
    task: str | None,
    only_open: bool,
    cursor: str | None,
    most: int,
    projects: Projects = None,
    state: str | None = None,
) -> tuple[list[dict[str, object]], str | None]:
    """List missed occurrences, the newest first, each with the name of its task; the second value continues it."""
    return awaiting.listed(
        session,
        session.missed,
        prefix="mis_",
        seen=offers.seen,
        shape=shapes.missed,
        task=task,
        only_open=only_open,
        cursor=cursor,
        most=most,
        projects=projects,
        state=state,
    )


def accept(store: Store, word: str, *, by: str, anyway: bool = False, run: str | None = None) -> Accepted:
    """Run a missed occurrence all the same, of a count the newest; it waits for its seat and its limits.

    Refused: `already_answered` with who and when; `already_waiting`, `already_running`, `already_ended` with the run
    where the occurrence has one; `paused` (not with `anyway`, unless a `run` asks); `unknown_task` when its task was
    removed.
    """
    with store.write() as session:
        lift_over(session)
        expire(session)
        one = find_missed(session, word)
        if one.state in {"accepted", "declined"}:
            raise _answered(one)
        task = _task_of(session, one)
        refuse_missing(store, session, task)
        check_task(session, task, anyway=anyway, run=run)
        there = session.runs.by_occurrence(task.id, offers.newest_of(one))
        if there is not None and offers.names_a_run_to_go_on(one, there):
            return _go_on(session, one, there, task, by=by, anyway=anyway)
        if there is not None:
            raise _has_run(one, there)
        opened = offers.run_for(one, task, id_=ids.new("run"), by=by, anyway=anyway, now=session.now)
        after = _decide(session, one, offers.accepted(one, opened.id, by=by, now=session.now))
        session.runs.insert([opened])
        session.ledger.add(
            [offers.told(after, "accepted", now=session.now, run=opened), lifecycle.opened_by_hand(opened)],
        )
        return Accepted(missed=after, run=opened)


def decline(store: Store, word: str, *, by: str, note: str | None = None) -> Missed:
    """Say that an offer is not wanted. Refused `already_answered` with who and when, or with why nobody was asked."""
    check_note(note)
    with store.write() as session:
        expire(session)
        one = find_missed(session, word)
        if one.state != "open":
            raise _answered(one)
        after = _decide(session, one, offers.declined(one, by=by, note=note, now=session.now))
        session.ledger.add([offers.told(after, "declined", now=session.now)])
        return after


def _go_on(session: Session, one: Missed, run: Run, task: Task, *, by: str, anyway: bool) -> Accepted:
    after = _decide(session, one, offers.accepted(one, run.id, by=by, now=session.now))
    step = offers.goes_on(run, task, missed=one.id, by=by, anyway=anyway, now=session.now)
    won = move(session, [step])
    assert won, "nobody else writes inside this transaction"
    count_back(session.line, run.task, run.id)
    return Accepted(missed=after, run=step.after)


def _decide(session: Session, one: Missed, after: Missed) -> Missed:
    """Write the answer; refused where another came first, whatever was read before."""
    if session.missed.decide(one, after):
        return after
    again = session.missed.by_id(one.id)
    assert again is not None
    raise _answered(again)


def _task_of(session: Session, one: Missed) -> Task:
    task = session.tasks.by_id(one.task)
    if task is None or task.removed_at is not None:
        name = one.task if task is None else told(task)
        raise Refused(
            "unknown_task",
            f"the task {name} was removed, so nothing of it runs any more",
            details={"missed": one.id, "task": one.task},
        )
    return task


def _answered(one: Missed) -> Refused:
    when = f" at {_at(one.decided_at)}" if one.decided_at is not None else ""
    hint = None
    match one.state:
        case "accepted":
            text = f"{one.decided_by} accepted it{when}: {one.run}"
            hint = f"duly show {one.run}"
        case "declined":
            text = f"{one.decided_by} declined it{when}" + (f": {one.note}" if one.note else "")
        case "expired":
            text = f"nobody answered it, and its time was over{when}"
            hint = f"duly accept {one.id} runs it all the same"
        case _ if one.decided_by is not None:
            text = f"it is asked no longer: {one.decided_by} removed its task{when}"
        case _:
            text = f"it was not offered but closed as {one.reason}, so there is nothing to decline"
            hint = f"duly accept {one.id} runs it all the same"
    details: dict[str, object] = {
        "missed": one.id,
        "state": one.state,
        "decided_by": one.decided_by,
        "decided_at": shapes.instant(one.decided_at),
        "note": one.note,
        "run": one.run,
        "reason": one.reason,
    }
    return Refused("already_answered", text, details=details, hint=hint)


def _has_run(one: Missed, run: Run) -> Refused:
    reason, text = {
        "waiting": ("already_waiting", "has a run that waits"),
        "ended": ("already_ended", f"has run: {run.outcome}"),
        "parked": ("already_running", "is running, and waits for an answer"),
    }.get(run.state, ("already_running", f"is running, held by {run.holder}"))
    more = f"; of its {one.count:,} occurrences the newest would run" if one.count > 1 else ""
    return Refused(
        reason,
        f"{write_instant(one.until_at)} {text} ({run.id}){more}",
        details={
            "missed": one.id,
            "occurrence": run.occurrence,
            "run": run.id,
            "state": shapes.state(run),
            "outcome": run.outcome,
        },
        hint=f"duly show {run.id}",
    )


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
