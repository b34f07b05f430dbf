"""Budgets: how much may be spent within a day or a month, and whether one more attempt fits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from duly.core.amounts import KINDS, MICRO, Allowance, Amounts, Per
from duly.core.run import Run, Step
from duly.core.spoken import PROMPTED
from duly.core.usage import COST, TOKENS, number
from duly.core.wallclock import instant_of, instants_of, law, offset_at, whole_seconds

Scope = Literal["task", "project", "store"]
SPENDS = "agent"
"""The kind of action that costs tokens and money."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a task, a project or the whole store may spend in each day or month of a zone."""

    scope: Scope
    target: str = ""
    """The task's id or the project's key; nothing for the store."""
    allowed: Allowance
    zone: str
    set_at: datetime | None = None
    """None for the budget of a task, which stands in its definition."""
    set_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A budget as it stands now: its period, what of it is spent, and what live attempts have set aside."""

    budget: Budget
    since: datetime
    until: datetime
    spent: Amounts
    reserved: Amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """What keeps an attempt from starting: a budget without room for it, and of which kind of amount."""

    standing: Standing
    kind: str
    wanted: int


def period(now: datetime, per: Per, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Give the day or month of the zone's wall in which an instant lies: its first instant, and the first after it.

    It begins at the first pass of a midnight that comes twice, and after a gap where a midnight is left out.
    """
    seconds = whole_seconds(now)
    local = instant_of(seconds + offset_at(zone, seconds)).replace(hour=0, minute=0, second=0)
    first = local if per == "day" else local.replace(day=1)
    # On the day of a fold at midnight the wall goes back to the day before: what has begun does not begin again.
    if _begins(_after(first, per), zone) <= seconds:
        first = _after(first, per)
    return instant_of(_begins(first, zone)), instant_of(_begins(_after(first, per), zone))


def scopes_of(task: str, project: str) -> tuple[tuple[Scope, str], ...]:
    """Give scope and target of the budgets from which a run of this task and project (its key) spends."""
    return ("task", task), ("project", project), ("store", "")


def wanted(estimate: Amounts | None, *, again: bool) -> Amounts:
    """Give what an attempt may cost: its estimate, and one run unless the run counts already (`again`)."""
    known = estimate or Amounts()
    return Amounts(runs=0 if again else 1, tokens=known.tokens, usd_micro=known.usd_micro)


def key_of_budget(budget: Budget) -> str:
    """Name a budget in one word: `store`, `project:` and the project's key, `task:` and the task's id."""
    return f"{budget.scope}:{budget.target}" if budget.target else budget.scope


def lacking(standings: Iterable[Standing], wanted: Amounts, *, spends: bool) -> Lacking | None:
    """Give the first of these budgets without room for so much more; None where it fits into all.

    `spends`: it may cost tokens and money. Where nothing of those is left nothing that spends fits, not even what
    nobody has estimated; what spends none is not asked about them.
    """
    for standing in standings:
        for kind in KINDS:
            bound, asked = getattr(standing.budget.allowed, kind), getattr(wanted, kind)
            if kind != "runs":
                asked = max(1, asked) if spends else 0
            used = getattr(standing.spent, kind) + getattr(standing.reserved, kind)
            if bound is not None and asked and used + asked > bound:
                return Lacking(standing=standing, kind=kind, wanted=getattr(wanted, kind))
    return None


def is_used_up(standing: Standing) -> bool:
    """Say whether no run at all may start in this period, whatever it costs."""
    return lacking([standing], Amounts(runs=1), spends=False) is not None


def told(standing: Standing) -> dict[str, object]:
    """Tell the figures of a budget as it stands: of each kind that it bounds what is spent, set aside and allowed."""
    out: dict[str, object] = {"per": standing.budget.allowed.per}
    for kind in KINDS:
        bound = getattr(standing.budget.allowed, kind)
        if bound is not None:
            figures = {"spent": getattr(standing.spent, kind), "reserved": getattr(standing.reserved, kind)}
            out[kind] = {**figures, "limit": bound}
    return out


def spent_in(step: Step) -> tuple[int | None, int | None]:
    """Give what the attempt that a step ends has cost, in tokens and in millionths of a dollar, as far as it was told.

    None leaves what was set aside for it: an agent that tells nothing is taken at its estimate. What died is charged
    with what it had told until then, and no more; what never prompted its agent costs nothing.
    """
    before, after = _usage(step.before), _usage(step.after)
    free = any(entry.kind == "swept" for entry in step.entries) or not step.after.agent.get(PROMPTED)
    unknown = 0 if free else None
    tokens, usd_micro = unknown, unknown
    if not after.keys().isdisjoint(TOKENS):
        tokens = max(0, int(sum(after.get(name, 0) - before.get(name, 0) for name in TOKENS)))
    if COST in after:
        usd_micro = max(0, round((after[COST] - before.get(COST, 0)) * MICRO))
    return tokens, usd_micro


def _usage(run: Run) -> dict[str, float]:
    found = run.agent.get("usage")
    given = found if isinstance(found, Mapping) else {}
    return {name: amount for name in (*TOKENS, COST) if (amount := number(given.get(name))) is not None}


def _after(first: datetime, per: Per) -> datetime:
    return first + timedelta(days=1) if per == "day" else (first + timedelta(days=32)).replace(day=1)


def _begins(midnight: datetime, zone: ZoneInfo) -> int:
    """The instant of a midnight on the wall; of one that comes twice the first, of one left out the end of its gap."""
    return instants_of(zone, whole_seconds(midnight), law())[0]
