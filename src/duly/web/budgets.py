"""Budgets: what the whole store, or one project, may spend in a day or a month."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from duly.core.amounts import BOUND_MOST
from duly.errors import Refused
from duly.operations import budgets
from duly.operations.budgets import PROJECT, Shown
from duly.store import Session
from duly.web import fields
from duly.web.bodies import Asked
from duly.web.describing import described
from duly.web.fields import WORD_MOST
from duly.web.frame import Admin, Ask, Reads, answer, nothing

router = APIRouter(tags=["store"])
COUNT = {"type": "integer", "minimum": 0, "maximum": BOUND_MOST}
BUDGET: dict[str, Any] = fields.object_of(
    {"runs": COUNT, "tokens": COUNT, "usd": {"type": ["number", "string"]}, "per": {"enum": ["day", "month"]}}, "per"
)
Key = Annotated[str, Path(max_length=WORD_MOST, description="`store`, or `project:NAME`")]


@router.get("/budgets", **described("List the budgets", right="read", answer="[budget]"))
def all_(ask: Reads) -> Response:
    """List the budgets as they stand, those of tasks included."""
    with ask.store.read() as session:
        found = [one for one in budgets.standing(session) if _sees(ask, session, one)]
    return answer({"items": [budgets.shape(one) for one in found], "next": None})


@router.get("/budgets/{key}", **described("Show a budget", right="read", answer="budget"))
def one(ask: Reads, key: Key) -> Response:
    """Show a budget as it stands: what is spent, set aside and allowed."""
    _check(ask, key)
    with ask.store.read() as session:
        found = budgets.find(session, key)
    if found is None:
        raise Refused("unknown_id", "no such budget is set")
    return answer(budgets.shape(found))


@router.put(
    "/budgets/{key}",
    **described("Set a budget", right="admin", body=BUDGET, example={"usd": 20, "per": "day"}, answer="budget"),
)
def set_(ask: Admin, key: Key, body: Asked) -> Response:
    """Set what may be spent in each day or month; what was spent in this one stays spent."""
    _check(ask, key)
    return answer(budgets.shape(budgets.set_budget(ask.store, key, budgets.read_allowance(body), by=ask.by)))


@router.delete("/budgets/{key}", **described("Remove a budget", right="admin", status=204))
def remove(ask: Admin, key: Key) -> Response:
    """Take a budget away: nothing is bound by it any more."""
    _check(ask, key)
    budgets.remove_budget(ask.store, key, by=ask.by)
    return nothing()


def _check(ask: Ask, key: str) -> None:
    if key.startswith(PROJECT):
        ask.check(key.removeprefix(PROJECT))
    else:
        ask.check_everything("this budget")


def _sees(ask: Ask, session: Session, one: Shown) -> bool:
    if ask.asker.projects is None:
        return True
    budget = one.standing.budget
    if budget.scope == "task":
        task = session.tasks.by_id(budget.target)
        return task is not None and ask.sees(task.definition.project)
    return budget.scope == "project" and ask.sees(budget.target)
