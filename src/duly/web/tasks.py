"""Tasks: list them, look at one, define, change and remove one."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Response

from duly.core.names import key_of
from duly.errors import Invalid
from duly.operations import choosing, defining, edits, listing, showing, tasks
from duly.operations.choosing import Wanted
from duly.operations.edits import Edited
from duly.web.bodies import Asked
from duly.web.describing import described
from duly.web.fields import WORD_MOST, Named, Word, choice
from duly.web.frame import Ask, Reads, Writes, answer, nothing
from duly.web.matching import Matched, version_of, wanted
from duly.web.pages import Paged, listed
from duly.web.schemas import DEFINITION, DEFINITION_EXAMPLE, PATCH, PATCH_EXAMPLE

router = APIRouter(tags=["tasks"])
API = "api"
ETAG = {"ETag": "its version"}
LABELS_MOST = 20
Labels = Annotated[Sequence[Annotated[str, Query(max_length=WORD_MOST)]] | None, Query(max_length=LABELS_MOST)]
Dry = Annotated[bool, Query(description="say what would come of it, and write nothing")]


@router.get("/tasks", **described("List the tasks", right="read", answer="[task]", headers={"Link": "the next page"}))
def all_(
    ask: Reads,
    page: Paged,
    project: Word = None,
    name: Word = None,
    label: Labels = None,
    q: Word = None,
    state: Annotated[str | None, choice(*choosing.STATES)] = None,
) -> Response:
    """List the tasks by project and name: of a project, with labels (`team`, `team=data`), words, or in a state."""
    asked = Wanted(project=project, name=name, labels=[choosing.label(one) for one in label or ()], text=q, state=state)
    with ask.store.read() as session:
        found, following = choosing.chosen(
            session, asked, cursor=page.cursor, most=page.most, projects=ask.asker.projects
        )
        return listed(page, [listing.shape(one) for one in found], following)


MADE = described(
    "Define a task",
    right="write",
    status=201,
    body=DEFINITION,
    example=DEFINITION_EXAMPLE,
    answer="task",
    errors=(409,),
    headers={"Location": "where it is", **ETAG},
)
MADE["responses"][200] = described("What it would be", right="write", answer="task")["responses"][200]


@router.post("/tasks", **MADE)
def create(ask: Writes, body: Asked, dry_run: Dry = False) -> Response:
    """Define a task, whole or not at all; `dry_run` judges it in the same way (200)."""
    done = defining.create(
        ask.store,
        body,
        by=ask.by,
        source={"kind": API},
        projects=ask.asker.projects,
        dry_run=dry_run,
        run=ask.asker.run,
    )
    with ask.store.read() as session:
        told = defining.shape(session, done, dry_run=dry_run)
    if dry_run:
        return answer(told)
    return answer(told, status=201, version=done.task.version, location=f"/tasks/{done.task.id}")


@router.get("/tasks/{id}", **described("Show a task", right="read", answer="task", headers=ETAG))
def one(ask: Reads, word: Named) -> Response:
    """Show a task, by its id or its name, with what its schedule means and its next instants."""
    with ask.store.read() as session:
        found = ask.task(session, word)
        return answer(showing.task(session, found).shape, version=found.version)


@router.get(
    "/tasks/{id}/definition",
    **described("Show a task's definition", right="read", answer="definition", headers=ETAG),
)
def definition(ask: Reads, word: Named) -> Response:
    """Show a task's definition as its author wrote it: what PUT takes."""
    with ask.store.read() as session:
        found = ask.task(session, word)
        return answer(edits.as_written(session, found), version=found.version)


@router.put(
    "/tasks/{id}",
    **described(
        "Define a task anew",
        right="write",
        body=DEFINITION,
        example=DEFINITION_EXAMPLE,
        answer="edited",
        errors=(409, 412, 428),
        headers=ETAG,
    ),
)
def replace(ask: Writes, word: Named, match: Matched, body: Asked, dry_run: Dry = False) -> Response:
    """Write a task's definition anew, whole: what is not given goes back to its default. If-Match is wanted."""
    wanted(match)
    _check_project(ask, body.get("project", "default"))
    with ask.store.read() as session:
        task = ask.task(session, word)
    version = version_of(match, task)
    done = edits.rewrite(ask.store, task.id, body, by=ask.by, if_version=version, dry_run=dry_run, run=ask.asker.run)
    return _edited(ask, done, dry_run=dry_run)


@router.patch(
    "/tasks/{id}",
    **described(
        "Change a task",
        right="write",
        body=PATCH,
        example=PATCH_EXAMPLE,
        merge=True,
        answer="edited",
        errors=(409, 412),
        headers=ETAG,
    ),
)
def change(ask: Writes, word: Named, match: Matched, body: Asked, dry_run: Dry = False) -> Response:
    """Change parts of a task's definition by a JSON merge patch (RFC 7396): null goes back to the default."""
    if "project" in body:
        _check_project(ask, "default" if body["project"] is None else body["project"])
    with ask.store.read() as session:
        task = ask.task(session, word)
    version = version_of(match, task)
    done = edits.edit(ask.store, task.id, body, by=ask.by, if_version=version, dry_run=dry_run, run=ask.asker.run)
    return _edited(ask, done, dry_run=dry_run)


@router.delete("/tasks/{id}", **described("Remove a task", right="write", status=204, errors=(409, 412)))
def remove(ask: Writes, word: Named, match: Matched) -> Response:
    """Remove a task: what waits ends skipped, what runs is cancelled; its runs and its ledger stay."""
    with ask.store.read() as session:
        task = ask.task(session, word)
    tasks.remove(ask.store, task.id, by=ask.by, if_version=version_of(match, task))
    return nothing()


def _edited(ask: Ask, done: Edited, *, dry_run: bool) -> Response:
    with ask.store.read() as session:
        return answer(defining.edited_shape(session, done, dry_run=dry_run), version=done.after.version)


def _check_project(ask: Ask, given: object) -> None:
    if not isinstance(given, str):
        raise Invalid("a text is wanted", field="project")
    defining.check_project(key_of(given), ask.asker.projects)
