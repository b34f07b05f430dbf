"""Budgets and what is charged to them: set aside in the claim, settled with the attempt, given back with the claim.

What is spent is a sum over attempts' rows, never a counter: an answer that was lost books nothing twice.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, bindparam, delete, func, insert, literal, select, update
from sqlalchemy.sql.elements import ColumnElement, CompilerElement

from duly import zones
from duly.clock import to_us
from duly.core.amounts import KINDS, Allowance, Amounts
from duly.core.budgets import Budget, Scope, Standing, is_used_up, period, scopes_of, spent_in
from duly.core.ledger import never_began
from duly.core.run import Step
from duly.store.line import Line
from duly.store.rows import at, us
from duly.store.sql import Batch, Statement, insert_batch, rows_of
from duly.store.tables import budgets, charges

COLUMNS = tuple(column.name for column in budgets.columns)
_all = [budgets.c[name] for name in COLUMNS]
_this = and_(budgets.c.scope == bindparam("of_scope"), budgets.c.target == bindparam("of_target"))
ALL = Statement(lambda: select(*_all).order_by(budgets.c.scope, budgets.c.target))
ANY = Statement(lambda: select(budgets.c.scope).limit(1))
ANY_LIVE = Statement(lambda: select(charges.c.run).where(charges.c.live == 1).limit(1))
INSERT = Statement(lambda: insert(budgets).values({c.name: bindparam(c.name, type_=c.type) for c in budgets.columns}))
DELETE = Statement(lambda: delete(budgets).where(_this))
STANDS = Statement(
    lambda: update(budgets).where(_this).values(renews_us=bindparam("renews_us"), used_up=bindparam("used_up"))
)
RENEWS = Statement(lambda: select(func.min(budgets.c.renews_us)).where(budgets.c.renews_us > bindparam("now_us")))
_SCOPE: dict[str, type] = {"scope": str, "target": str}


def _by_scopes(size: int) -> CompilerElement:
    v = rows_of(size, _SCOPE)
    return select(*_all).where(budgets.c.scope == v.c.scope, budgets.c.target == v.c.target)


def _spent(*of: ColumnElement[bool]) -> Statement:
    """Sum what was claimed in a period, what is live apart from what is not."""
    sums = [func.sum(charges.c[name]) for name in ("runs", "tokens", "usd_micro")]
    within = (charges.c.at_us >= bindparam("since_us"), charges.c.at_us < bindparam("until_us"))
    return Statement(lambda: select(charges.c.live, *sums).where(*within, *of).group_by(charges.c.live))


BY_SCOPES = Batch(_by_scopes, tuple(_SCOPE))
SPENT: dict[Scope, Statement] = {
    "task": _spent(charges.c.task == bindparam("target")),
    "project": _spent(charges.c.project == bindparam("target")),
    "store": _spent(literal("") == bindparam("target")),
}
CHARGE = insert_batch(charges, ("run", "attempt", "task", "project", "at_us", "live", "runs", "tokens", "usd_micro"))
CHARGED = Batch(
    lambda size: select(charges.c.run).where(charges.c.run == rows_of(size, {"run": str}).c.run, charges.c.runs > 0),
    ("run",),
)
_BACK: dict[str, type] = {"run": str, "attempt": int}
_SETTLED: dict[str, type] = {**_BACK, "tokens": int, "usd_micro": int}
_RETURNING = (charges.c.task, charges.c.project)


def _give_back(size: int) -> CompilerElement:
    v = rows_of(size, _BACK)
    mine = select(v.c.run).where(v.c.run == charges.c.run, v.c.attempt == charges.c.attempt).exists()
    return delete(charges).where(mine).returning(*_RETURNING)


def _settle(size: int) -> CompilerElement:
    v = rows_of(size, _SETTLED)
    return (
        update(charges)
        .where(charges.c.run == v.c.run, charges.c.attempt == v.c.attempt, charges.c.live == 1)
        .values(
            live=0,
            tokens=func.coalesce(v.c.tokens, charges.c.tokens),
            usd_micro=func.coalesce(v.c.usd_micro, charges.c.usd_micro),
        )
        .returning(*_RETURNING)
    )


GIVE_BACK = Batch(_give_back, tuple(_BACK))
SETTLE = Batch(_settle, tuple(_SETTLED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What a claim sets aside: for whom it is counted, and how much."""

    run: str
    attempt: int
    task: str
    project: str
    """The project's key."""
    amounts: Amounts


class Budgets:
    """Budgets as they are set and as they stand."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def any(self) -> bool:
        """Tell whether there is any budget at all."""
        return self._line.row(ANY) is not None

    def all(self) -> list[Budget]:
        """Every budget, those of tasks included."""
        return [_of(row) for row in self._line.rows(ALL)]

    def of(self, scopes: Iterable[tuple[Scope, str]]) -> list[Budget]:
        """Those of these budgets that there are, in the order of asking."""
        asked = list(dict.fromkeys(scopes))
        found = {(row[0], row[1]): _of(row) for row in self._line.many(BY_SCOPES, asked)}
        return [found[scope] for scope in asked if scope in found]

    def standing(self, budget: Budget, now: datetime) -> Standing:
        """How a budget stands now, in the period of this instant."""
        since, until = period(now, budget.allowed.per, zones.zone(budget.zone))
        given = {"since_us": to_us(since), "until_us": to_us(until), "target": budget.target}
        sums = {
            # A server sums whole numbers to what is none in Python.
            live: Amounts(runs=int(runs), tokens=int(tokens), usd_micro=int(usd))
            for live, runs, tokens, usd in self._spent(budget, given)
        }
        nothing = Amounts()
        return Standing(
            budget=budget, since=since, until=until, spent=sums.get(0, nothing), reserved=sums.get(1, nothing)
        )

    def soonest_us(self, now: datetime) -> int | None:
        """The earliest instant ahead at which a budget of which something is spent begins anew."""
        row = self._line.row(RENEWS, now_us=to_us(now))
        return None if row is None else row[0]

    def put(self, budget: Budget, now: datetime) -> None:
        """Write a budget in the place of what stood there; what is spent stays spent."""
        self.remove(budget.scope, budget.target)
        cells = {
            "scope": budget.scope,
            "target": budget.target,
            "per": budget.allowed.per,
            "zone": budget.zone,
            **{kind: getattr(budget.allowed, kind) for kind in KINDS},
            "renews_us": None,
            "used_up": 0,
            "set_us": us(budget.set_at),
            "set_by": budget.set_by,
        }
        self._line.run(INSERT, **cells)
        self._look_at([budget], now)

    def remove(self, scope: Scope, target: str) -> None:
        """Let this bound hold no more."""
        self._line.run(DELETE, of_scope=scope, of_target=target)

    def charged(self, run_ids: Sequence[str]) -> set[str]:
        """Those of these runs that count as a run already, by an attempt before."""
        return {row[0] for row in self._line.many(CHARGED, [(id_,) for id_ in sorted(set(run_ids))])}

    def reserve(self, claimed: Sequence[Charge], now: datetime) -> None:
        """Set aside what these claims, which were won now, may cost."""
        if not claimed:
            return
        rows = [
            (
                one.run,
                one.attempt,
                one.task,
                one.project,
                to_us(now),
                1,
                *(getattr(one.amounts, kind) for kind in KINDS),
            )
            for one in claimed
        ]
        self._line.many(CHARGE, rows)
        self._moved({(one.task, one.project) for one in claimed}, now)

    def stepped(self, steps: Sequence[Step]) -> None:
        """Settle what these steps, which were written, brought to an end; what never began costs nothing."""
        over = [step for step in steps if step.before.state == "held" and step.after.state != "held"]
        if not over or self._line.row(ANY_LIVE) is None:
            return
        back = [step for step in over if never_began(step)]
        gone = {step.before.id for step in back}
        moved = self._line.many(GIVE_BACK, [(step.before.id, step.before.attempt) for step in back])
        spent = [(step.before.id, step.before.attempt, *spent_in(step)) for step in over if step.before.id not in gone]
        moved += self._line.many(SETTLE, spent)
        self._moved({(row[0], row[1]) for row in moved}, max(step.entries[-1].at for step in over if step.entries))

    def _spent(self, budget: Budget, given: dict[str, Any]) -> list[tuple[Any, ...]]:
        return self._line.rows(SPENT[budget.scope], **given)

    def _moved(self, of: Iterable[tuple[str, str]], now: datetime) -> None:
        self._look_at(self.of(scope for task, project in sorted(of) for scope in scopes_of(task, project)), now)

    def _look_at(self, found: Iterable[Budget], now: datetime) -> None:
        """Note of each of these budgets when it begins anew, and whether no run at all fits until then."""
        for budget in found:
            standing = self.standing(budget, now)
            told = {"renews_us": to_us(standing.until), "used_up": int(is_used_up(standing))}
            self._line.run(STANDS, of_scope=budget.scope, of_target=budget.target, **told)


def _of(row: Sequence[Any]) -> Budget:
    r = dict(zip(COLUMNS, row, strict=True))
    return Budget(
        scope=r["scope"],
        target=r["target"],
        allowed=Allowance(per=r["per"], **{kind: r[kind] for kind in KINDS}),
        zone=r["zone"],
        set_at=at(r["set_us"]),
        set_by=r["set_by"],
    )
