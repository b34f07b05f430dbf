"""Waiting runs: which may start, in whose turn, which find their seats taken, and how they are claimed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any

from sqlalchemy import CTE, Select, TextClause, and_, bindparam, exists, func, not_, or_, select, text, true, update
from sqlalchemy.sql.elements import ColumnElement, CompilerElement

from duly.clock import to_us
from duly.core.run import BY_TIME_OR_EVENT, Run
from duly.core.values import changed, value
from duly.store.crowd import Crowd
from duly.store.line import Line
from duly.store.rows import RUN_COLUMNS, dump, run_of
from duly.store.sql import Batch, Statement, rows_of
from duly.store.tables import budgets, holder_labels, limits, projects, runs, task_limits, task_needs, tasks

SINCE_EVER_US = -(2**62)
_columns = [runs.c[name] for name in RUN_COLUMNS]


def _live() -> TextClause:
    """Held or parked, in the very words of the index of seats: SQLite uses it for no others."""
    return text("runs.state IN ('held', 'parked')")


def _full(*, counted: ColumnElement[bool] | None = None) -> Select[Any]:
    """Tasks all of whose seats are taken, by the live runs that are counted."""
    return (
        select(runs.c.task)
        .select_from(runs.join(tasks, tasks.c.id == runs.c.task))
        .where(_live(), true() if counted is None else counted)
        .group_by(runs.c.task, tasks.c.seats)
        .having(func.count() >= tasks.c.seats)
        .correlate(None)
    )


def _short() -> Select[Any]:
    """Tasks that name a limit without room for one more of their runs."""
    return (
        select(task_limits.c.task)
        .select_from(task_limits.join(limits, limits.c.key == task_limits.c.key))
        .where(or_(limits.c.used + task_limits.c.weight > limits.c.most, limits.c.free_us > bindparam("now_us")))
    )


def _used_up() -> ColumnElement[bool]:
    """A budget lets no run at all start until it begins anew; one that had an attempt may count as a run already."""
    mine = or_(
        budgets.c.scope == "store",
        and_(budgets.c.scope == "project", budgets.c.target == runs.c.project),
        and_(budgets.c.scope == "task", budgets.c.target == runs.c.task),
    )
    over = and_(budgets.c.used_up == 1, budgets.c.renews_us > bindparam("now_us"))
    return and_(runs.c.attempt == 0, exists(select(budgets.c.scope).where(over, mine).correlate(runs)))


def _elsewhere() -> Select[Any]:
    """Tasks that need a label which this holder has not."""
    mine = select(holder_labels.c.label).where(holder_labels.c.holder == bindparam("holder"))
    return select(task_needs.c.task).where(task_needs.c.label.not_in(mine))


def _may_start() -> Select[Any]:
    return (
        select(*_columns)
        .where(
            runs.c.state == "waiting",
            runs.c.project == bindparam("project"),
            runs.c.not_before_us <= bindparam("now_us"),
            runs.c.task.not_in(_full()),
            runs.c.task.not_in(_short()),
            runs.c.task.not_in(_elsewhere()),
            not_(_used_up()),
        )
        .order_by(runs.c.rank, runs.c.due_us, runs.c.id)
        .limit(bindparam("most"))
    )


def _ready() -> TextClause:
    """Parked with the question answered, in the very words of the index of these."""
    return text("runs.state = 'parked' AND runs.answered_us IS NOT NULL")


def _may_go_on() -> Select[Any]:
    return (
        select(*_columns)
        .where(_ready(), runs.c.task.not_in(_short()), runs.c.task.not_in(_elsewhere()))
        .order_by(runs.c.answered_us, runs.c.id)
        .limit(bindparam("most"))
    )


def _projects() -> Select[Any]:
    """Find the projects with waiting runs by one look at the index each, however many runs wait."""
    waiting = runs.c.state == "waiting"
    first = select(func.min(runs.c.project).label("project")).where(waiting)
    found: CTE = first.cte("found", recursive=True)
    following = select(func.min(runs.c.project)).where(waiting, runs.c.project > found.c.project).scalar_subquery()
    found = found.union_all(select(following).where(found.c.project.is_not(None)))
    return (
        select(found.c.project, func.coalesce(projects.c.turn, 0))
        .select_from(found.outerjoin(projects, projects.c.name_key == found.c.project))
        .where(found.c.project.is_not(None))
    )


def _blocked() -> Select[Any]:
    live = (
        select(
            runs.c.id,
            runs.c.task,
            runs.c.holder,
            runs.c.started_us,
            runs.c.cancel_asked_us,
            runs.c.question,
        )
        .where(_live())
        .cte("live")
    )
    full = _full().cte("full_tasks")
    own = _full(counted=runs.c.opened_by != "backfill").cte("own_full")
    # The live run that has had its seat the longest stands for all.
    oldest = select(live.c.task, func.min(live.c.id).label("id"), func.max(live.c.cancel_asked_us).label("asked"))
    first = oldest.group_by(live.c.task).cte("first")
    overlap = func.coalesce(runs.c.overlap, tasks.c.overlap)
    by_time = or_(*[runs.c.opened_by == by for by in sorted(BY_TIME_OR_EVENT)])
    return (
        select(*_columns, live.c.id, live.c.holder, live.c.started_us, overlap, live.c.question)
        .select_from(
            runs.join(full, full.c.task == runs.c.task)
            .join(first, first.c.task == runs.c.task)
            .join(live, live.c.id == first.c.id)
            .join(tasks, tasks.c.id == runs.c.task)
        )
        .where(
            runs.c.state == "waiting",
            # True of every row, as the sum below changes no order: so that only what waits of these tasks is read, and
            # neither all that they ever ran nor all that waits.
            runs.c.due_us >= SINCE_EVER_US,
            runs.c.not_before_us <= bindparam("now_us"),
            # Overlap is asked of new occurrences: one that was tried before had its seat, and waits for it again.
            runs.c.interruptions == 0,
            runs.c.retries == 0,
            # What time brings is not lost to what fills the past: it waits for the seat that a backfill has.
            or_(and_(by_time, runs.c.task.in_(select(own.c.task))), runs.c.overlap.is_not(None)),
            or_(
                overlap == "skip",
                # One end asked for is enough: the next is asked when that one has come.
                and_(or_(overlap == "cancel_running", overlap == "kill_running"), first.c.asked.is_(None)),
            ),
        )
        .order_by(runs.c.due_us + 0)
        .limit(bindparam("most"))
    )


PACED = Statement(
    lambda: select(func.max(runs.c.not_before_us)).where(
        runs.c.state == "waiting",
        runs.c.project == bindparam("project"),
        runs.c.opened_by == "catch_up",
        runs.c.attempt == 0,
        runs.c.not_before_us > bindparam("now_us"),
    )
)
PROJECTS = Statement(_projects)
CLAIMABLE = Statement(_may_start)
READY = Statement(_may_go_on)
ANY_READY = Statement(lambda: select(runs.c.id).where(_ready()))
BLOCKED = Statement(_blocked)
SEATS_TAKEN = Batch(
    lambda size: select(runs.c.task, runs.c.seat).where(_live(), runs.c.task == rows_of(size, {"task": str}).c.task),
    ("task",),
)
TURN = Statement(
    lambda: (
        update(projects)
        .where(projects.c.name_key == bindparam("of"))
        .values(turn=select(func.max(projects.alias("p").c.turn)).scalar_subquery() + 1)
    )
)
_CLAIMED: dict[str, type] = {
    "id": str,
    "was_version": int,
    "holder": str,
    "claim_token": str,
    "lease_end_us": int,
    "lease_boot": str,
    "seat": int,
    "definition_version": int,
    "started_us": int,
    "taken": str,
    "fence_back": int,
}


def _claim(size: int) -> CompilerElement:
    v = rows_of(size, _CLAIMED)
    fence = select(tasks.c.fence).where(tasks.c.id == runs.c.task).scalar_subquery()
    return (
        update(runs)
        .where(runs.c.id == v.c.id, runs.c.version == v.c.was_version, or_(runs.c.state == "waiting", _ready()))
        .values(
            state="held",
            version=runs.c.version + 1,
            attempt=runs.c.attempt + 1,
            # In the statement, never from what was read, and one for each row: two attempts never carry one fence.
            fence=fence - v.c.fence_back,
            seat=v.c.seat,
            holder=v.c.holder,
            claim_token=v.c.claim_token,
            lease_end_us=v.c.lease_end_us,
            lease_boot=v.c.lease_boot,
            definition_version=v.c.definition_version,
            started_us=v.c.started_us,
            taken=v.c.taken,
            reason=None,
            handed_to=None,
            stopping_us=None,
        )
        .returning(runs.c.id, runs.c.fence)
    )


CLAIM = Batch(_claim, tuple(_CLAIMED), hot=True)


@value
class Claim:
    """What a claim gives a run that may start: holder, token, lease, seat, its places in limits, its definition."""

    run: Run
    holder: str
    token: str
    lease_end_us: int
    lease_boot: str
    seat: int
    definition_version: int
    started_at: datetime
    taken: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """A waiting run whose task has no free seat, the run that has had its seat the longest, and the rule for it.

    `question`: what that one has asked last, answered or not.
    """

    run: Run
    by_run: str
    by_holder: str | None
    since_us: int | None
    overlap: str
    question: str | None = None


class Waiting:
    """Read by admission and written by claims, in one transaction."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def projects(self) -> list[str]:
        """The keys of projects with waiting runs, those whose last turn was longest ago first."""
        found = [(row[1], row[0]) for row in self._line.rows(PROJECTS)]
        return [project for _, project in sorted(found)]

    def paced_until_us(self, project: str, now: datetime) -> int | None:
        """The last turn ahead that was given to a run of this project which catches up, and has not started yet."""
        row = self._line.row(PACED, project=project, now_us=to_us(now))
        return None if row is None else row[0]

    def claimable(self, now: datetime, most: int, *, holder: str, projects: Sequence[str] | None = None) -> list[Run]:
        """Waiting runs whose time has come, with a seat, room in their limits, and no label this holder lacks.

        By rank; of one rank the projects in turn, each in due order; `projects` where they have been asked for.
        """
        now_us = to_us(now)
        by_project = [
            [run_of(row) for row in self._line.rows(CLAIMABLE, project=key, now_us=now_us, holder=holder, most=most)]
            for key in (self.projects() if projects is None else projects)
        ]
        if len(by_project) == 1:
            return by_project[0]
        in_turn = [run for row in zip_longest(*by_project) for run in row if run is not None]
        return sorted(_in_turn_by_rank(in_turn), key=lambda run: run.rank)[:most]

    def ready(self, now: datetime, most: int, *, holder: str) -> list[Run]:
        """Parked runs whose question is answered, with room in their limits and no label this holder lacks.

        Each has its seat; who was answered first goes on first.
        """
        return [run_of(row) for row in self._line.rows(READY, holder=holder, most=most, now_us=to_us(now))]

    def had_turn(self, project: str) -> None:
        """Let a project's next turn come after those of all others."""
        self._line.run(TURN, of=project)

    def blocked(self, now: datetime, most: int) -> list[Blocked]:
        """Waiting runs, mostly of time and events, whose tasks have no free seat and do not simply queue."""
        width = len(RUN_COLUMNS)
        return [
            Blocked(
                run=run_of(row[:width]),
                by_run=row[width],
                by_holder=row[width + 1],
                since_us=row[width + 2],
                overlap=row[width + 3],
                question=row[width + 4],
            )
            for row in self._line.rows(BLOCKED, now_us=to_us(now), most=most)
        ]

    def seats_taken(self, tasks_: Sequence[str]) -> dict[str, set[int]]:
        """The seats of these tasks that are taken."""
        taken: dict[str, set[int]] = {task: set() for task in tasks_}
        for task, seat in self._line.many(SEATS_TAKEN, [(task,) for task in tasks_]):
            taken[task].add(seat)
        return taken

    def claim(self, claims: Sequence[Claim]) -> list[Run]:
        """Claim runs and take their places in limits; gives those won, in their order, as they stand now.

        The fence of each task was raised before by the number of its claims; the last of them gets the highest.
        """
        left = Counter(claim.run.task for claim in claims)
        left_at = []
        for claim in claims:
            left[claim.run.task] -= 1
            left_at.append(left[claim.run.task])
        rows = [
            (
                claim.run.id,
                claim.run.version,
                claim.holder,
                claim.token,
                claim.lease_end_us,
                claim.lease_boot,
                claim.seat,
                claim.definition_version,
                to_us(claim.started_at),
                dump(dict(claim.taken)) if claim.taken else None,
                back,
            )
            for claim, back in zip(claims, left_at, strict=True)
        ]
        fences = dict(self._line.many(CLAIM, rows))
        won = [_claimed(claim, fences[claim.run.id]) for claim in claims if claim.run.id in fences]
        taken: Counter[str] = Counter()
        for run in won:
            taken.update(run.taken)
        Crowd(self._line).move(taken)
        return won


def _claimed(claim: Claim, fence: int) -> Run:
    """The run as the claim has left it: what stood under its version when it was read stands there still."""
    return changed(
        claim.run,
        state="held",
        version=claim.run.version + 1,
        attempt=claim.run.attempt + 1,
        fence=fence,
        seat=claim.seat,
        holder=claim.holder,
        claim_token=claim.token,
        lease_end_us=claim.lease_end_us,
        lease_boot=claim.lease_boot,
        definition_version=claim.definition_version,
        started_at=claim.started_at,
        taken=dict(claim.taken),
        reason=None,
        handed_to=None,
        stopping_since=None,
    )


def _in_turn_by_rank(runs_: Sequence[Run]) -> list[Run]:
    """The same runs; of each rank and project the n-th stands beside the n-th of the other projects."""
    nth: Counter[tuple[int, str]] = Counter()
    placed = []
    for run in runs_:
        nth[run.rank, run.project] += 1
        placed.append((nth[run.rank, run.project], run))
    return [run for _, run in sorted(placed, key=lambda pair: pair[0])]
