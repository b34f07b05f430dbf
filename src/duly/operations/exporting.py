"""`export`: definitions as their authors could have written them, in the words that are read when they are applied."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from duly.core import when
from duly.core.definition_json import definition_to_json
from duly.core.fields import BY_PATH
from duly.core.names import key_of
from duly.core.task import Definition, Task
from duly.operations import shapes
from duly.operations.lookup import find_task
from duly.store.store import Session

PAGE = 1_000
ALWAYS = ("name", "triggers", "zone", "action")
"""What stands in an exported definition even where it is the default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """The definitions that could be written out, and the tasks whose definition no longer reads."""

    definitions: Sequence[dict[str, object]]
    broken: Sequence[Task]


def export(session: Session, words: Sequence[str]) -> Exported:
    """Write out the definitions of these tasks, each once, or of all; a broken one is named and left out."""
    wanted = {task.id: task for task in (find_task(session, word) for word in words)}
    tasks = list(wanted.values()) if words else list(_all(session))
    return Exported(
        definitions=[written(task.definition) for task in tasks if not _is_unread(task)],
        broken=[task for task in tasks if _is_unread(task)],
    )


def written(definition: Definition) -> dict[str, object]:
    """Write a definition as an author would: triggers as text, and nothing that says only what is so anyway."""
    whole = definition_to_json(definition)
    whole["triggers"] = [when.write(trigger) for trigger in definition.triggers] or ["manual"]
    return {name: value for name, value in whole.items() if name in ALWAYS or value not in (_default(name), {}, None)}


def left_out(task: Task) -> dict[str, object]:
    """Name a task whose definition could not be written out, and why."""
    return {
        "task": task.id,
        "name": task.definition.name,
        "project": task.definition.project,
        "broken": shapes.broken(task.broken),
    }


def _default(name: str) -> object:
    return BY_PATH[name].default if name in BY_PATH else None


def _is_unread(task: Task) -> bool:
    """Say whether the text of the definition no longer reads; one that was only put aside does."""
    return task.broken is not None and not task.definition.action


def _all(session: Session) -> Iterator[Task]:
    after = ("", "")
    while page := session.tasks.page(after=after, most=PAGE):
        yield from page
        last = page[-1].definition
        after = (key_of(last.project), key_of(last.name))
