"""Lists of what waits for a person or has had its answer: missed occurrences and questions, a page at a time."""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol, TypeVar

from duly.errors import Invalid
from duly.operations.listing import Projects, ledger_task, name_of, within
from duly.store import Session


class Awaited(Protocol):
    """What is listed: it has an id in order of creation, a task, and a state."""

    @property
    def id(self) -> str: ...  # noqa: D102 - said above
    @property
    def task(self) -> str: ...  # noqa: D102
    @property
    def state(self) -> str: ...  # noqa: D102


T = TypeVar("T", bound=Awaited)


class Rows(Protocol[T]):
    """Where they are kept: all of them, or those that are still open at a moment, the newest first."""

    def listed(self, *, before: str, task: str | None, most: int) -> list[T]: ...  # noqa: D102 - said above
    def open(self, now: datetime, *, before: str, task: str | None, most: int) -> list[T]: ...  # noqa: D102


def listed(
    session: Session,
    rows: Rows[T],
    *,
    prefix: str,
    seen: Callable[[T, datetime], T],
    shape: Callable[[T], dict[str, object]],
    task: str | None,
    only_open: bool,
    cursor: str | None,
    most: int,
    projects: Projects,
    state: str | None,
) -> tuple[list[dict[str, object]], str | None]:
    """List a page, the newest first, each as `seen` now and with the name of its task; the second value continues it.

    `prefix` begins the ids that a cursor may be; Invalid for any other.
    """
    before = "~" if cursor is None else cursor
    if not (before == "~" or before.startswith(prefix)):
        raise Invalid(f'"{before}" is not what a list gave as `next`', field="--cursor", text=before, at=0)
    of = None if task is None else ledger_task(session, task)

    def read(before: str, count: int) -> list[T]:
        if only_open:
            return rows.open(session.now, before=before, task=of, most=count)
        return rows.listed(before=before, task=of, most=count)

    def fits(one: T) -> bool:
        return seen(one, session.now).state == state

    found = within(
        session,
        read,
        lambda one: (one.id, one.task),
        projects=projects,
        before=before,
        most=most + 1,
        fits=None if state is None else fits,
    )
    page = found[:most]
    named = session.tasks.by_ids({one.task for one in page})
    items = [shape(seen(one, session.now)) | {"task_name": name_of(named.get(one.task), one.task)} for one in page]
    return items, page[-1].id if len(found) > most else None
