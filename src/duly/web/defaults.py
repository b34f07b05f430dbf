"""Default rules of the store and of projects: those of tasks whose authors wrote none."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from duly.operations import defaults, shapes
from duly.operations.defaults import Defaulted
from duly.web.bodies import Asked
from duly.web.describing import described
from duly.web.fields import WORD_MOST, Word
from duly.web.frame import Admin, Ask, Reads, answer
from duly.web.schemas import RULES

router = APIRouter(tags=["store"])
EXAMPLE = {"max_age": "12h", "on_missed": "offer"}
Rule = Annotated[list[Annotated[str, Query(max_length=WORD_MOST)]] | None, Query(max_length=100)]


@router.get("/defaults", **described("List the default rules", right="read", answer="[default]"))
def all_(ask: Reads) -> Response:
    """List every default rule, the store's first, and how many tasks have each for want of their own."""
    with ask.store.read() as session:
        found = [
            one
            for one in defaults.listed(session)
            if ask.asker.projects is None or (one.project is not None and ask.sees(one.project))
        ]
    items = [shapes.default(one.rule, one.value, project=one.project, tasks=one.tasks) for one in found]
    return answer({"items": items, "next": None})


@router.put(
    "/defaults",
    **described("Write the default rules", right="admin", body=RULES, example=EXAMPLE, answer="defaults"),
)
def write(ask: Admin, body: Asked, project: Word = None) -> Response:
    """Write the default rules of the store, or of a project, anew: what is not given is no default any more."""
    _check(ask, project)
    return _answer(defaults.write_defaults(ask.store, body, project=project, by=ask.by))


@router.delete("/defaults", **described("Take default rules away", right="admin", answer="defaults"))
def remove(ask: Admin, rule: Rule = None, project: Word = None) -> Response:
    """Take default rules away, those that are named or all: tasks go back to the default beneath."""
    _check(ask, project)
    if rule:
        return _answer(defaults.remove_defaults(ask.store, rule, project=project, by=ask.by))
    return _answer(defaults.write_defaults(ask.store, {}, project=project, by=ask.by))


def _check(ask: Ask, project: str | None) -> None:
    if project is None:
        ask.check_everything("a default of the store")
    else:
        ask.check(project)


def _answer(done: Defaulted) -> Response:
    return answer({"project": done.project, "rules": dict(done.after), "tasks": done.tasks})
