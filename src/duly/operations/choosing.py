"""Which tasks a list asks for: by project, name, label, words and state, page by page; reading changes nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from duly.core.loops import fault_of
from duly.core.names import key_of
from duly.core.reading import nearest, shown
from duly.core.task import Task
from duly.errors import Invalid
from duly.operations import listing
from duly.operations.listing import Listed, Projects
from duly.store.pauses import holding
from duly.store.rows import Pause
from duly.store.store import Session

STATES = ("enabled", "disabled", "paused", "running", "failing", "broken", "done")
PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked for; what is None is not asked about. Of several labels a task has all."""

    project: str | None = None
    name: str | None = None
    labels: Sequence[tuple[str, str | None]] = ()
    """A label of this value, or of any."""
    text: str | None = None
    """Words that stand, in any case, in the project, the name or the description."""
    state: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    """What of the state of tasks does not stand in their rows."""

    pauses: Sequence[Pause] = ()
    live: frozenset[str] = frozenset()


def chosen(
    session: Session, wanted: Wanted, *, cursor: str | None, most: int, projects: Projects = None
) -> tuple[list[Listed], str | None]:
    """List live tasks by project and name from a cursor on; the second value continues the list.

    Invalid for a state that there is not.
    """
    _check_state(wanted.state)
    after = listing.task_cursor(session, cursor)
    standing = _standing(session, wanted.state)
    found: list[Task] = []
    for task in _tasks(session, after, _keys(wanted, projects)):
        if _fits(task, wanted, standing):
            found.append(task)
            if len(found) > most:
                break
    page = found[:most]
    return listing.with_runs(session, page), page[-1].id if len(found) > most else None


def label(text: str) -> tuple[str, str | None]:
    """Read a label that is asked for: `K`, or `K=V`."""
    key, equals, value = text.partition("=")
    if not key:
        raise Invalid(f"{shown(text)} is no label", field="label", text=text, at=0, hint="team, or team=data")
    return key, value if equals else None


def _check_state(state: str | None) -> None:
    if state is not None and state not in STATES:
        raise Invalid(
            f"{shown(state)} is no state of a task",
            field="state",
            text=state,
            at=0,
            hint=nearest(state, STATES) or f"one of {', '.join(STATES)}",
            details={"allowed": list(STATES)},
        )


def _standing(session: Session, state: str | None) -> _Standing:
    match state:
        case "paused":
            return _Standing(pauses=session.pauses.all())
        case "running":
            return _Standing(live=frozenset(run.task for run in session.runs.live()))
        case _:
            return _Standing()


def _keys(wanted: Wanted, projects: Projects) -> Sequence[str] | None:
    """The keys of the projects to look through, in their order; None for all."""
    if wanted.project is None:
        return None if projects is None else sorted(projects)
    key = key_of(wanted.project)
    return [key] if projects is None or key in projects else []


def _tasks(session: Session, after: tuple[str, str], keys: Sequence[str] | None) -> Iterator[Task]:
    if keys is None:
        yield from _pages(session, after)
        return
    for key in keys:
        if key < after[0]:
            continue
        for task in _pages(session, max(after, (key, ""))):
            if key_of(task.definition.project) != key:
                break
            yield task


def _pages(session: Session, after: tuple[str, str]) -> Iterator[Task]:
    while page := session.tasks.page(after=after, most=PAGE):
        yield from page
        last = page[-1].definition
        after = (key_of(last.project), key_of(last.name))


def _fits(task: Task, wanted: Wanted, standing: _Standing) -> bool:
    definition = task.definition
    if wanted.name is not None and key_of(wanted.name) != key_of(definition.name):
        return False
    for key, value in wanted.labels:
        if key not in definition.labels or value not in (None, definition.labels[key]):
            return False
    if wanted.text is not None:
        stands_in = f"{definition.project}/{definition.name}\n{definition.description}".casefold()
        if wanted.text.casefold() not in stands_in:
            return False
    return wanted.state is None or _is(task, wanted.state, standing)


def _is(task: Task, state: str, standing: _Standing) -> bool:
    match state:
        case "enabled" | "disabled":
            return task.definition.enabled == (state == "enabled")
        case "paused":
            return bool(holding(standing.pauses, task=task.id, project_key=key_of(task.definition.project)))
        case "running":
            return task.id in standing.live
        case "failing":
            return task.failures_in_a_row > 0 and not task.done
        case "broken":
            return task.broken is not None or fault_of(task.source) is not None
        case _:
            return task.done
