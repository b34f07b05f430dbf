"""The crowd that admission sees: what is taken of each limit, moved in the same step that takes or frees it.

`verify` counts again what these counters say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, delete, exists, func, insert, not_, select, update
from sqlalchemy.sql.elements import CompilerElement

from duly.clock import MICROSECOND, from_us, to_us
from duly.core.ledger import never_began
from duly.core.limits import Limit, next_start, unset
from duly.core.run import Run, Step
from duly.store.line import Line
from duly.store.rows import at, us
from duly.store.sql import Batch, Statement, insert_batch, rows_of
from duly.store.tables import holder_labels, limit_starts, limits, task_limits, task_needs

COLUMNS = tuple(column.name for column in limits.columns)
_all = [limits.c[name] for name in COLUMNS]
ALL = Statement(lambda: select(*_all).order_by(limits.c.key))
BY_KEYS = Batch(lambda size: select(*_all).where(limits.c.key == rows_of(size, {"key": str}).c.key), ("key",))
SOONEST_FREE = Statement(lambda: select(func.min(limits.c.free_us)).where(limits.c.free_us > bindparam("now_us")))
INSERT = Statement(lambda: insert(limits).values({c.name: bindparam(c.name, type_=c.type) for c in limits.columns}))
SET = Statement(
    lambda: (
        update(limits)
        .where(limits.c.key == bindparam("of"))
        .values({name: bindparam(name) for name in ("most", "rate", "rate_us", "free_us", "set_us", "set_by")})
    )
)
DELETE = Statement(lambda: delete(limits).where(limits.c.key == bindparam("of")))
NAMED_BY = Statement(
    lambda: (
        select(task_limits.c.task, task_limits.c.weight)
        .where(task_limits.c.key == bindparam("key"))
        .order_by(task_limits.c.weight.desc(), task_limits.c.task)
    )
)
FORGET_UNSET = Statement(
    lambda: delete(limits).where(
        limits.c.set_us.is_(None),
        limits.c.used == 0,
        not_(exists(select(task_limits.c.key).where(task_limits.c.key == limits.c.key))),
    )
)
STARTS = Statement(
    lambda: (
        select(limit_starts.c.at_us)
        .where(limit_starts.c.key == bindparam("key"), limit_starts.c.at_us > bindparam("since_us"))
        .order_by(limit_starts.c.at_us)
    )
)
START = insert_batch(limit_starts, ("key", "at_us", "run", "attempt"))
FORGET_STARTS = Statement(
    lambda: delete(limit_starts).where(
        limit_starts.c.key == bindparam("of"), limit_starts.c.at_us <= bindparam("until_us")
    )
)
FREE = Statement(lambda: update(limits).where(limits.c.key == bindparam("of")).values(free_us=bindparam("free_us")))
CLEAR_LIMITS = Statement(lambda: delete(task_limits).where(task_limits.c.task == bindparam("of")))
CLEAR_NEEDS = Statement(lambda: delete(task_needs).where(task_needs.c.task == bindparam("of")))
ADD_LIMITS = insert_batch(task_limits, ("task", "key", "weight"))
ADD_NEEDS = insert_batch(task_needs, ("task", "label"))
ADD_LABELS = insert_batch(holder_labels, ("holder", "label"))
CLEAR_LABELS = Statement(lambda: delete(holder_labels).where(holder_labels.c.holder == bindparam("of")))
_MOVED: dict[str, type] = {"key": str, "by": int}


def _moved(size: int) -> CompilerElement:
    v = rows_of(size, _MOVED)
    return update(limits).where(limits.c.key == v.c.key).values(used=limits.c.used + v.c.by).returning(limits.c.key)


MOVED = Batch(_moved, tuple(_MOVED))
_ATTEMPT: dict[str, type] = {"run": str, "attempt": int}


def _never_began(size: int) -> CompilerElement:
    v = rows_of(size, _ATTEMPT)
    named = exists(select(v.c.run).where(v.c.run == limit_starts.c.run, v.c.attempt == limit_starts.c.attempt))
    return delete(limit_starts).where(named).returning(limit_starts.c.key)


NEVER_BEGAN = Batch(_never_began, tuple(_ATTEMPT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A claim that counts against a limit's rate."""

    key: str
    at: datetime
    run: str
    attempt: int


class Crowd:
    """Limits with their counters, and which of them and which labels each task names."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def all(self) -> list[Limit]:
        """Every limit that is set or named by a task, by key."""
        return [_of(row) for row in self._line.rows(ALL)]

    def by_keys(self, keys: Sequence[str]) -> dict[str, Limit]:
        """The limits of these keys as they stand; one that is not set is what its key means unset."""
        found = {row[0]: _of(row) for row in self._line.many(BY_KEYS, [(key,) for key in sorted(set(keys))])}
        return {key: found.get(key) or unset(key) for key in keys}

    def soonest_free_us(self, now: datetime) -> int | None:
        """The earliest instant ahead at which a rate that is reached has room again."""
        row = self._line.row(SOONEST_FREE, now_us=to_us(now))
        return None if row is None else row[0]

    def set(self, limit: Limit) -> None:
        """Write what a limit allows; what is taken of it stays as it is."""
        self._ensure([limit.key])
        self._line.run(
            SET,
            of=limit.key,
            most=limit.most,
            rate=limit.rate,
            rate_us=None if limit.rate_for is None else limit.rate_for // MICROSECOND,
            free_us=us(self._free_at(limit)),
            set_us=us(limit.set_at),
            set_by=limit.set_by,
        )

    def forget_unset(self) -> None:
        """Drop limits that nobody has set, no task names and no run takes."""
        self._line.run(FORGET_UNSET)

    def named_by(self, key: str) -> list[tuple[str, int]]:
        """The tasks that name a limit, with their weights, the heaviest first."""
        return [(row[0], row[1]) for row in self._line.rows(NAMED_BY, key=key)]

    def set_task(self, task: str, weights: Mapping[str, int], needs: Sequence[str]) -> None:
        """Write which limits and labels a task names; nothing at all where it is removed."""
        self._line.run(CLEAR_LIMITS, of=task)
        self._line.run(CLEAR_NEEDS, of=task)
        self._ensure(list(weights))
        self._line.many(ADD_LIMITS, [(task, key, weight) for key, weight in sorted(weights.items())])
        self._line.many(ADD_NEEDS, [(task, label) for label in sorted(set(needs))])

    def set_labels(self, holder: str, labels: Sequence[str]) -> None:
        """Write which labels a holder has; none when it is gone."""
        self._line.run(CLEAR_LABELS, of=holder)
        self._line.many(ADD_LABELS, [(holder, label) for label in sorted(set(labels))])

    def move(self, by: Mapping[str, int]) -> None:
        """Move the counters of limits by so much; to be called in the step that takes or frees, and nowhere else."""
        moved = {key: amount for key, amount in by.items() if amount}
        if not moved:
            return
        self._ensure(list(moved))
        self._line.many(MOVED, sorted(moved.items()))

    def stepped(self, steps: Sequence[Step]) -> None:
        """Take and free what these steps, which were written, take and free."""
        by: dict[str, int] = {}
        for step in steps:
            if step.before.taken == step.after.taken:
                continue
            for key, weight in step.before.taken.items():
                by[key] = by.get(key, 0) - weight
            for key, weight in step.after.taken.items():
                by[key] = by.get(key, 0) + weight
        self.move(by)
        self._unstart([step.before for step in steps if never_began(step)])

    def started(self, starts: Sequence[Started]) -> None:
        """Count claims against the rates of these limits, and note until when each has no room."""
        self._line.many(START, [(one.key, to_us(one.at), one.run, one.attempt) for one in starts])
        for limit in self.by_keys(sorted({one.key for one in starts})).values():
            self._line.run(FREE, of=limit.key, free_us=us(self._free_at(limit)))
            latest = max(one.at for one in starts if one.key == limit.key)
            if limit.rate_for is not None:
                self._line.run(FORGET_STARTS, of=limit.key, until_us=to_us(latest - limit.rate_for))

    def starts(self, key: str, since: datetime) -> list[datetime]:
        """The claims that counted against a limit's rate after an instant, in their order."""
        return [from_us(row[0]) for row in self._line.rows(STARTS, key=key, since_us=to_us(since))]

    def _unstart(self, back: Sequence[Run]) -> None:
        """Count no longer, against any rate, claims that were given back: nothing of theirs began."""
        rows = [(run.id, run.attempt) for run in back if run.taken]
        freed = {row[0] for row in self._line.many(NEVER_BEGAN, rows)} if rows else set()
        for limit in self.by_keys(sorted(freed)).values():
            self._line.run(FREE, of=limit.key, free_us=us(self._free_at(limit)))

    def _free_at(self, limit: Limit) -> datetime | None:
        if limit.rate is None or limit.rate_for is None:
            return None
        last = self.starts(limit.key, from_us(0))
        return next_start(last, limit.rate, limit.rate_for)

    def _ensure(self, keys: Sequence[str]) -> None:
        known = {row[0] for row in self._line.many(BY_KEYS, [(key,) for key in keys])}
        for key in sorted(set(keys) - known):
            self._line.run(INSERT, **_cells(unset(key)))


def _of(row: Sequence[Any]) -> Limit:
    r = dict(zip(COLUMNS, row, strict=True))
    return Limit(
        key=r["key"],
        most=r["most"],
        used=r["used"],
        rate=r["rate"],
        rate_for=None if r["rate_us"] is None else timedelta(microseconds=r["rate_us"]),
        free_at=at(r["free_us"]),
        set_at=at(r["set_us"]),
        set_by=r["set_by"],
    )


def _cells(limit: Limit) -> dict[str, Any]:
    return {
        "key": limit.key,
        "most": limit.most,
        "rate": limit.rate,
        "rate_us": None if limit.rate_for is None else limit.rate_for // MICROSECOND,
        "used": limit.used,
        "free_us": us(limit.free_at),
        "set_us": us(limit.set_at),
        "set_by": limit.set_by,
    }
