"""Budgets as people set them: what the whole store, or one project, may spend in a day or a month."""

from collections.abc import Mapping
from dataclasses import dataclass

from duly import zones
from duly.core.amounts import BOUND_MOST, KINDS, UNITS, WORDS, Allowance, figure
from duly.core.budgets import SPENDS, Budget, Lacking, Scope, Standing, lacking, scopes_of, wanted
from duly.core.fields import BY_PATH
from duly.core.names import key_of
from duly.core.reading import read_field, read_name, shown
from duly.core.run import Entry, Run
from duly.core.spans import write_instant
from duly.core.task import Task
from duly.errors import Invalid, Refused
from duly.operations import shapes
from duly.operations.lookup import find_task, project_key, told
from duly.store import Session, Store
from duly.store.switches import lift_over

STORE = "store"
PROJECT = "project:"
TASK = "task:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A budget as it stands, under the name by which a person knows it: `store`, `project:NAME` or `task:NAME`."""

    name: str
    standing: Standing


def set_budget(store: Store, key: str, allowed: Allowance, *, by: str) -> Shown:
    """Set what the store (`store`) or a project (`project:NAME`) may spend, by the days of this machine's zone.

    What was spent in this period stays spent, also beyond a new bound. Invalid without any bound.
    """
    if all(getattr(allowed, kind) is None for kind in KINDS):
        raise Invalid("a budget bounds something", field="KEY", hint="--runs N, --tokens N or --usd X")
    for kind, field in (("runs", "--runs"), ("tokens", "--tokens"), ("usd_micro", "--usd")):
        bound = getattr(allowed, kind)
        if bound is not None and not 0 <= bound <= BOUND_MOST:
            raise Invalid(f"{bound:,} is not between 0 and {BOUND_MOST:,}", field=field)
    with store.write() as session:
        lift_over(session)
        scope, target = _scope(session, key)
        before = session.budgets.of([(scope, target)])
        after = Budget(
            scope=scope,
            target=target,
            allowed=allowed,
            zone=before[0].zone if before else zones.machine_zone() or "UTC",
            set_at=session.now,
            set_by=by,
        )
        session.budgets.put(after, session.now)
        if not before or before[0].allowed != allowed:
            session.ledger.add([_entry(session, after, by, "set")])
        return _shown(session, after)


def remove_budget(store: Store, key: str, *, by: str) -> Shown:
    """Let a bound hold no more; refused `unknown_id` where none is set."""
    with store.write() as session:
        lift_over(session)
        scope, target = _scope(session, key, known=False)
        found = session.budgets.of([(scope, target)])
        if not found:
            set_ = [_name(session, one) for one in session.budgets.all() if one.scope != "task"]
            raise Refused(
                "unknown_id",
                f"no budget {shown(key)} is set",
                details={"key": key, "budgets": set_},
                hint=f"one of {', '.join(set_)}" if set_ else None,
            )
        gone = _shown(session, found[0])
        session.budgets.remove(scope, target)
        session.ledger.add([_entry(session, found[0], by, "removed")])
        return gone


def read_allowance(given: Mapping[str, object]) -> Allowance:
    """Read what may be spent, as JSON has it; Invalid names what does not read."""
    try:
        read = read_field(BY_PATH["rules.budget"], given)
    except Invalid as fault:
        field = (fault.field or "").removeprefix("rules.budget").removeprefix(".")
        raise Invalid(fault.message, field=field or None, hint=fault.hint, details=fault.details) from None
    assert isinstance(read, Allowance)
    return read


def find(session: Session, key: str) -> Shown | None:
    """Give the budget of a key as it stands; None where it is not set."""
    scope, target = _scope(session, key, known=False)
    found = session.budgets.of([(scope, target)])
    return _shown(session, found[0]) if found else None


def standing(session: Session) -> list[Shown]:
    """Every budget as it stands, those of tasks included: the store's, the projects', the tasks'."""
    found = sorted(session.budgets.all(), key=lambda one: ("store", "project", "task").index(one.scope))
    return [_shown(session, one) for one in found]


def shape(one: Shown) -> dict[str, object]:
    """Show a budget as it stands: what is spent, set aside and allowed of each kind; money in dollars."""
    budget = one.standing.budget
    out: dict[str, object] = {"scope": one.name, "per": budget.allowed.per, "zone": budget.zone}
    for part, amounts in (
        ("spent", one.standing.spent),
        ("reserved", one.standing.reserved),
        ("limit", budget.allowed),
    ):
        out[part] = {WORDS[kind]: figure(kind, getattr(amounts, kind)) for kind in KINDS}
    out |= {
        "since": shapes.instant(one.standing.since),
        "until": shapes.instant(one.standing.until),
        "set_at": shapes.instant(budget.set_at),
        "set_by": budget.set_by,
    }
    return out


def lacks(session: Session, task: Task, run: Run | None = None) -> Lacking | None:
    """What the budgets of a task lack for the next attempt of this run, or for one more run of it."""
    if not session.budgets.any():
        return None
    found = session.budgets.of(scopes_of(task.id, key_of(task.definition.project)))
    spends = task.definition.action.get("kind") == SPENDS
    again = run is not None and bool(session.budgets.charged([run.id]))
    asked = wanted(task.definition.rules.estimate, again=again)
    return lacking([session.budgets.standing(one, session.now) for one in found], asked, spends=spends)


def check_budget(session: Session, task: Task) -> None:
    """Refuse what a person asks of a task whose budgets have no room for it now."""
    found = lacks(session, task)
    if found is None:
        return
    told_ = budget_figures(session, found)
    one = Shown(name=str(told_["key"]), standing=found.standing)
    raise Refused(
        "budget_exceeded",
        "{key} has no budget left for {name}: {taken} of {bound} {unit} a {per} are taken, and it begins anew at"
        " {until}".format(name=told(task), **told_),
        details={"task": task.id, "budget": shape(one)},
        hint="--queue lets it wait for the next period",
    )


def budget_figures(session: Session, found: Lacking) -> dict[str, object]:
    """Give what a budget lacks in figures: what of it is taken, of how much, and when it begins anew."""
    kind, standing_ = found.kind, found.standing
    taken = getattr(standing_.spent, kind) + getattr(standing_.reserved, kind)
    return {
        "key": _name(session, standing_.budget),
        "taken": figure(kind, taken),
        "bound": figure(kind, getattr(standing_.budget.allowed, kind)),
        "unit": UNITS[kind],
        "per": standing_.budget.allowed.per,
        "until": write_instant(standing_.until),
    }


def _scope(session: Session, key: str, *, known: bool = True) -> tuple[Scope, str]:
    if key == STORE:
        return "store", ""
    if key.startswith(PROJECT):
        name = read_name(key.removeprefix(PROJECT), "KEY")
        return "project", project_key(session, name) if known else key_of(name)
    if key.startswith(TASK):
        name = told(find_task(session, key.removeprefix(TASK)))
        raise Invalid(
            "a task's own budget is one of its rules", field="KEY", hint=f"duly edit {name} --budget runs=10,per=day"
        )
    raise Invalid(
        f"{shown(key)} is no budget's key", field="KEY", text=key, at=0, hint="store, or project:NAME for one project"
    )


def _shown(session: Session, budget: Budget) -> Shown:
    return Shown(name=_name(session, budget), standing=session.budgets.standing(budget, session.now))


def _name(session: Session, budget: Budget) -> str:
    if budget.scope == "store":
        return STORE
    if budget.scope == "project":
        return PROJECT + (session.projects.name(budget.target) or budget.target)
    task = session.tasks.by_id(budget.target)
    return TASK + (budget.target if task is None else told(task))


def _entry(session: Session, budget: Budget, by: str, what: str) -> Entry:
    details: dict[str, object] = {"budget": _name(session, budget), "change": what, "per": budget.allowed.per}
    details |= {WORDS[kind]: figure(kind, getattr(budget.allowed, kind)) for kind in KINDS}
    return Entry(kind="defined", at=session.now, by=by, details=details)
