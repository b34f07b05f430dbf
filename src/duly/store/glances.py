"""Glances: all that tells a holder whether there is anything to do, and when next, asked in one statement.

Most looks find nothing to do. Where each question is a round trip to a server, asking them one by one costs more than
the work that the others find.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import Select, exists, select

from duly.clock import from_us, to_us
from duly.core.values import value
from duly.store import budgets, crowd, holders, missed, pauses, questions, removing, runs, tasks, waiting
from duly.store.sql import Statement
from duly.store.store import Session


@value
class Glance:
    """How the store stood at one moment, for whoever asks what there is to do; instants in microseconds."""

    now_us: int
    due_us: int | None
    """The earliest next instant of all tasks."""
    pause_us: int | None
    """The earliest end of a pause."""
    offer_us: int | None
    """The earliest end of an open offer."""
    start_us: int | None
    """The earliest instant ahead at which a waiting run may start."""
    rate_us: int | None
    """The earliest instant ahead at which a rate that is reached has room again."""
    budget_us: int | None
    """The earliest instant ahead at which a budget of which something is spent begins anew."""
    question_us: int | None
    """The earliest deadline of an open question."""
    waiting: bool
    """Runs wait, whether they may start or not."""
    ready: bool
    """Parked runs have their answer."""
    leaving: bool
    """Tasks are done and to be removed."""
    other_zone_data: bool
    """Tasks were computed by other zone data than these."""
    newer_zone_data: bool
    """Holders are on record, whether they live or not, that have newer zone data than these."""


def _asked() -> Select[Any]:
    soonest: list[Any] = [
        tasks.SOONEST,
        pauses.SOONEST,
        missed.SOONEST,
        runs.NOT_BEFORE,
        crowd.SOONEST_FREE,
        budgets.RENEWS,
        questions.SOONEST,
    ]
    any_: list[Any] = [runs.ANY_WAITING, waiting.ANY_READY, removing.LEAVING, tasks.ANY_OTHER_ZONE_DATA, holders.NEWER]
    return select(*[one.write().scalar_subquery() for one in soonest], *[exists(one.write()) for one in any_])


ASKED = Statement(_asked)


def glance(session: Session, zone_data: str) -> Glance:
    """See what there is to do at the session's moment, for a process with this version of zone data."""
    now_us = to_us(session.now)
    row = session.line.row(ASKED, now_us=now_us, version=zone_data)
    assert row is not None
    return Glance(
        now_us=now_us,
        due_us=row[0],
        pause_us=row[1],
        offer_us=row[2],
        start_us=row[3],
        rate_us=row[4],
        budget_us=row[5],
        question_us=row[6],
        waiting=bool(row[7]),
        ready=bool(row[8]),
        leaving=bool(row[9]),
        other_zone_data=bool(row[10]),
        newer_zone_data=bool(row[11]),
    )


def soonest(seen: Glance) -> datetime | None:
    """The next instant at which something is due, is over (a pause, an offer, a question), may start, or has room."""
    over = [seen.pause_us, seen.offer_us, seen.question_us]
    instants = [seen.due_us, *over, seen.start_us, seen.rate_us, seen.budget_us]
    ahead = [us for us in instants if us is not None]
    return from_us(min(ahead)) if ahead else None


def has_come(seen: Glance, us: int | None) -> bool:
    """Tell whether one of the glance's instants is not ahead of it any more."""
    return us is not None and us <= seen.now_us
