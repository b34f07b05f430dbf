"""What a word means to who asks from elsewhere; of what lies in projects they do not reach, nothing is told."""

from collections.abc import Callable
from typing import TypeVar

from duly.core.questions import Question
from duly.core.run import Missed, Run
from duly.core.task import Task
from duly.errors import Invalid, Refused
from duly.operations import lookup
from duly.operations.askers import Asker, check_project
from duly.store.store import Session

T = TypeVar("T")


def task(session: Session, asker: Asker, word: str) -> Task:
    """Find the task a word means; Refused `unknown_task`, and `not_allowed` in another project."""
    found = _quietly(asker, "unknown_task", "there is no such task", lambda: lookup.find_task(session, word))
    check_project(asker, found.definition.project)
    return found


def run(session: Session, asker: Asker, word: str) -> Run:
    """Find the run a word means; Refused `unknown_run`, and `not_allowed` in another project."""
    found = _quietly(asker, "unknown_run", "there is no such run", lambda: lookup.find_run(session, word))
    check_task_id(session, asker, found.task)
    return found


def task_or_run(session: Session, asker: Asker, word: str) -> Task | Run:
    """Find the run or the task a word means; Refused `unknown_id`, and `not_allowed` in another project."""
    found = _quietly(asker, "unknown_id", "there is no such task or run", lambda: lookup.find_any(session, word))
    check_task_id(session, asker, found.id if isinstance(found, Task) else found.task)
    return found


def missed(session: Session, asker: Asker, word: str) -> Missed:
    """Find the missed occurrence a word means; Refused `unknown_id`, and `not_allowed` in another project."""
    found = _quietly(asker, "unknown_id", "nothing missed is called so", lambda: lookup.find_missed(session, word))
    check_task_id(session, asker, found.task)
    return found


def question(session: Session, asker: Asker, word: str) -> Question:
    """Find the question a word means; Refused `unknown_id`, and `not_allowed` in another project."""
    found = _quietly(asker, "unknown_id", "no question is called so", lambda: lookup.find_question(session, word))
    check_task_id(session, asker, found.task)
    return found


def check_task_id(session: Session, asker: Asker, id_: str) -> None:
    """Refuse who is held to other projects than that of a task, removed or not."""
    found = session.tasks.by_id(id_)
    if found is not None:
        check_project(asker, found.definition.project)
    elif asker.projects is not None:
        raise Refused("not_allowed", "nobody knows any more which project it belongs to")


def _quietly(asker: Asker, reason: str, sentence: str, find: Callable[[], T]) -> T:
    """Find something; who is held to projects is not told of what else there is: names that are near, candidates."""
    try:
        return find()
    except (Invalid, Refused) as fault:
        if asker.projects is None:
            raise
        raise Refused(reason, sentence) from fault
