"""Overlap: what becomes of waiting runs whose task has no free seat, by the task's rule."""

from dataclasses import dataclass
from typing import Literal

from duly.clock import from_us
from duly.core import lifecycle, parking
from duly.core.run import Run, Step
from duly.core.spans import write_instant
from duly.store import Session
from duly.store.queueing import superseded
from duly.store.switches import move
from duly.store.waiting import Blocked

BLOCKED_MOST = 200
"""Runs judged in one turn because their task's seats were taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What overlap did: how many waiting runs it ended, and how many live ones it asked to end."""

    ended: int
    asked: int


def step(session: Session) -> Judged:
    """Judge waiting runs without a seat in the caller's transaction."""
    found = session.waiting.blocked(session.now, BLOCKED_MOST)
    if not found:
        return Judged(ended=0, asked=0)
    skips = [_skipped(session, one) for one in found if one.overlap == "skip"]
    ended = len(move(session, skips))
    # The newest takes the place of the live run, and of all that waited before it.
    newest = {one.run.task: one for one in found if one.overlap != "skip"}
    asks = []
    for one in newest.values():
        live = session.runs.by_id(one.by_run)
        if live is None or live.cancel_asked_at is not None:
            continue
        how: Literal["term", "kill"] = "kill" if one.overlap == "kill_running" else "term"
        asks.append(_end(live, one.run, how, session))
    older = [one for one in found if one.overlap != "skip" and one is not newest[one.run.task]]
    ended += len(move(session, [superseded(session, one.run, newest[one.run.task].run) for one in older]))
    return Judged(ended=ended, asked=len(move(session, asks)))


def _skipped(session: Session, one: Blocked) -> Step:
    since = None if one.since_us is None else write_instant(from_us(one.since_us))
    details: dict[str, object] = {"run": one.by_run, "holder": one.by_holder, "since": since}
    asked = [] if one.question is None else session.questions.open_of(one.by_run)
    details |= {"question": asked[0].id} if asked else {}
    return lifecycle.skip(one.run, reason="already_running", now=session.now, details=details)


def _end(live: Run, newer: Run, how: Literal["term", "kill"], session: Session) -> Step:
    """Ask the live run to end, for the newer one; a parked one ends so, for nothing of it lives."""
    if live.state == "parked":
        return parking.cancelled(live, by=newer.id, now=session.now, why="overlap")
    return lifecycle.ask_cancel(live, by=newer.id, now=session.now, why="overlap", how=how)
