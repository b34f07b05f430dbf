"""What `verify` reads of events: each that is kept has exactly one fate for every task that listened to it then."""

from collections import Counter
from collections.abc import Iterator, Sequence

from duly.clock import to_us
from duly.core import events
from duly.core.events import Event
from duly.core.occurrences import event_key
from duly.core.task import Task
from duly.core.triggers import On
from duly.operations.audit_fates import Finding
from duly.store import Session
from duly.store.auditing import Auditing
from duly.store.rows import mapping

PAGE = 500
Fates = set[tuple[str, str]]


def event_fates(session: Session, audit: Auditing) -> Iterator[Finding]:
    """P6 for events, as far as the definitions of now tell: what an older version listened to is not asked."""
    listening: dict[str, list[tuple[Task, int]]] = {}
    after = ""
    while page := session.events.page(after, most=PAGE):
        after = page[-1].id
        for source in {event.source for event in page} - listening.keys():
            listening[source] = list(_listening(session, audit, source))
        if not any(listening[event.source] for event in page):
            continue
        opened = _fates(audit.opened_for([event.id for event in page]))
        owed = [
            (event, task)
            for event in page
            for task, since in listening[event.source]
            if (task.id, event.id) not in opened and _owed(task, since, event) and _takes(task, event)
        ]
        passed = _fates(audit.passed_over_at([(task.id, to_us(event.at)) for event, task in owed]))
        for event, task in owed:
            if (task.id, event.id) not in passed and not _answered_before(session, task, event):
                text = f"no fate for {event.id} of {event.source}"
                yield Finding(promise="P6", task=task.id, run=None, text=text)


def fates_twice(task: str, told: Sequence[tuple[str, str | None, str | None, str]]) -> Iterator[Finding]:
    """P6: of the entries that opened one occurrence or passed it over, no two are fates of one event."""
    named = (
        mapping(details).get("event") for kind, _, reason, details in told if kind == "skipped" or reason == "event"
    )
    for event, number in Counter(str(event) for event in named if event is not None).items():
        if number > 1:
            yield Finding(promise="P6", task=task, run=None, text=f"{event} has {number} fates")


def _listening(session: Session, audit: Auditing, source: str) -> Iterator[tuple[Task, int]]:
    """Give the tasks that listen to a source and would take its events now, each with the entry of its version.

    What is older than the ledger has none.
    """
    for task in session.tasks.by_ids(session.events.listeners(source)).values():
        if task.broken is not None or task.done:
            continue
        told = ((seq, mapping(text)) for seq, text in audit.versions_told(task.id))
        yield task, max((seq for seq, it in told if it.get("version") == task.definition_version), default=0)


def _fates(told: Sequence[tuple[str, str]]) -> Fates:
    return {(task, str(mapping(details).get("event"))) for task, details in told}


def _takes(task: Task, event: Event) -> bool:
    body = events.parsed(event.body)
    triggers = (trigger for trigger in task.definition.triggers if isinstance(trigger, On))
    return any(events.matches(trigger, event.source, body) for trigger in triggers)


def _answered_before(session: Session, task: Task, event: Event) -> bool:
    """Its key outlived an event of the same key that is gone: the run that one opened is its answer too."""
    return session.runs.by_occurrence(task.id, event_key(event.source, event.key or event.id)) is not None


def _owed(task: Task, since: int, event: Event) -> bool:
    """The task stood as it stands when the event came, and nothing of that time is pruned."""
    pruned = task.pruned_until is not None and event.at <= task.pruned_until
    return since <= event.after and not pruned
