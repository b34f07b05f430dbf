"""What `verify` reads of events: each that is kept has exactly one fate for every task that listened to it then."""

from collections.abc import Iterator, Mapping, Sequence

from duly.core import events
from duly.core.events import Event
from duly.core.occurrences import event_key
from duly.core.run import Entry
from duly.core.task import Task
from duly.core.triggers import On
from duly.operations.audit_fates import Finding
from duly.store import Session

PAGE = 500


def event_fates(
    session: Session, by_task: Mapping[str, Sequence[Entry]], defined: Mapping[tuple[str, int], int]
) -> Iterator[Finding]:
    """P6 for events, as far as the definitions of now tell: what an older version listened to is not asked.

    `defined` gives the number of the entry that tells of a version of a task; what is older than the ledger has none.
    """
    told: dict[tuple[str, str], int] = {}
    opened: set[tuple[str, str | None]] = set()
    for of, entries in by_task.items():
        for entry in entries:
            if _is_fate(entry):
                fate = of, str(entry.details.get("event"))
                told[fate] = told.get(fate, 0) + 1
                # A key may outlive its event: what it opened then is the fate of the next event of that key too.
                opened |= {(of, entry.occurrence)} if entry.kind == "opened" else set()
    for (named, id_), number in told.items():
        if number > 1:
            yield Finding(promise="P6", task=named, run=None, text=f"{id_} has {number} fates")
    listening: dict[str, list[Task]] = {}
    for event in _kept(session):
        if event.source not in listening:
            listening[event.source] = list(_listening(session, event.source))
        body = events.parsed(event.body)
        for task in listening[event.source]:
            since = defined.get((task.id, task.definition_version), 0)
            occurrence = event_key(event.source, event.key or event.id)
            if (task.id, event.id) in told or (task.id, occurrence) in opened or not _owed(task, since, event):
                continue
            takes = (trigger for trigger in task.definition.triggers if isinstance(trigger, On))
            if any(events.matches(trigger, event.source, body) for trigger in takes):
                text = f"no fate for {event.id} of {event.source}"
                yield Finding(promise="P6", task=task.id, run=None, text=text)


def _is_fate(entry: Entry) -> bool:
    if "event" not in entry.details:
        return False
    return (entry.kind == "opened" and entry.reason == "event") or (entry.kind == "skipped" and entry.run is None)


def _kept(session: Session) -> Iterator[Event]:
    after = ""
    while page := session.events.page(after, most=PAGE):
        yield from page
        after = page[-1].id


def _listening(session: Session, source: str) -> Iterator[Task]:
    """Give the tasks that listen to a source and would take its events now."""
    for task in session.tasks.by_ids(session.events.listeners(source)).values():
        if task.broken is None and not task.done:
            yield task


def _owed(task: Task, since: int, event: Event) -> bool:
    """The task stood as it stands when the event came, and nothing of that time is pruned."""
    pruned = task.pruned_until is not None and event.at <= task.pruned_until
    return since <= event.after and not pruned
