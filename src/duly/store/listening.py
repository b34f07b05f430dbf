"""What listens: events received start the tasks that listen, and Duly's own events are told in the same transaction.

Used by whoever emits, and by the store itself before it commits: what the ledger was told may be an event too.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from duly import ids
from duly.core import events, own_events
from duly.core.events import Event, Opens, PassedOver
from duly.core.names import key_of
from duly.core.own_events import Listener, Own
from duly.core.reading import shown
from duly.core.run import Entry, Run
from duly.core.task import Broken, Definition, Task
from duly.core.triggers import On
from duly.errors import Invalid, Taken
from duly.store.pauses import holding

if TYPE_CHECKING:
    from duly.store.rows import Pause
    from duly.store.store import Session

FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What a fault of ours, or of what a later version wrote, may raise."""
ECHOES_MOST = 100
"""Rounds in which what one event causes causes events in turn; a chain ends long before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A task that listens to an event: the run that was opened, or why none was."""

    task: Task
    run: Run | None
    passed: PassedOver | None
    windows: Mapping[str, datetime] = field(default_factory=dict)


def arrive(session: "Session", event: Event, *, always: bool = True) -> list[Heard]:
    """Receive an event and start each task that listens to it, once; gives the listeners in order of creation.

    Not `always`: an event that no task takes is not kept. One that cannot be judged is put aside, and keeps no other
    from its run.
    """
    body, pauses = events.parsed(event.body), session.pauses.all()
    heard = [one for task in _listeners(session, event.source) if (one := _judge(session, task, event, body, pauses))]
    if heard or always:
        session.events.insert([event])
    entries: list[Entry] = []
    for place, one in enumerate(heard):
        if one.passed is not None:
            entries += [events.passed_over(one.task, event, one.passed)] if one.passed.reason is not None else []
            continue
        run, entry = events.opened(one.task, event, id_=ids.new("run"))
        # A key outlives its event where runs are kept longer: what it opened then is what it opens now.
        first = session.runs.by_occurrence(one.task.id, run.occurrence)
        heard[place] = replace(one, run=first or run)
        if first is None:
            session.runs.insert([run])
            session.events.opened += 1
            entries.append(entry)
            for window, until in one.windows.items():
                session.events.begin_window(one.task.id, window, until)
    session.ledger.add(entries)
    _make_room(session, heard)
    return heard


def echo(session: "Session") -> None:
    """Tell Duly's own events of all that this transaction told its ledger, to the tasks that listen to them."""
    told = 0
    for _ in range(ECHOES_MOST):
        fresh = [entry for entry in session.ledger.added[told:] if own_events.may_tell(entry)]
        told = len(session.ledger.added)
        if not fresh:
            return
        listened = set(session.events.our_sources())
        if not listened:
            return
        for own in _owns(session, fresh, listened):
            if own.source in listened:
                _tell(session, own)


def check(session: "Session", of: str, definition: Definition) -> None:
    """Refuse a definition whose end would start itself again, by what it and others say."""
    listening = _listener(of, definition)
    if not listening.triggers:
        return
    others = {
        task.id: _listener(task.id, task.definition)
        for source in own_events.OF_RUNS
        for task in _listeners(session, source)
    }
    found = own_events.cycle(listening, list(others.values()))
    if found is not None:
        raise Invalid(
            f"its end would start it again: {' → '.join(shown(name) for name in found)}",
            field="triggers",
            hint="let one of them listen to something else than the end of the one before it",
            details={"cycle": list(found)},
        )


def _listeners(session: "Session", source: str) -> list[Task]:
    named = session.events.listeners(source)
    found = session.tasks.by_ids(named) if named else {}
    return [found[id_] for id_ in named]


def _listener(id_: str, definition: Definition) -> Listener:
    triggers = tuple(trigger for trigger in definition.triggers if isinstance(trigger, On))
    return Listener(id=id_, name=definition.name, project=definition.project, triggers=triggers)


def _tell(session: "Session", own: Own) -> None:
    """Tell one event of Duly's own; what goes wrong is its listeners' trouble, and never that of what caused it."""
    try:
        with session.line.savepoint():
            arrive(session, _received(session, own), always=False)
    except (Taken, *FAULTS) as error:
        told = f"telling it {own.source} failed: {type(error).__name__}: {error}"
        for task in _listeners(session, own.source):
            session.tasks.set_trouble(task.id, Broken(field="triggers", message=told))


def _judge(session: "Session", task: Task, event: Event, body: object, pauses: "Sequence[Pause]") -> Heard | None:
    if task.broken is not None and not task.definition.triggers:
        # What does not read cannot be asked; what was put aside for another reason waits with its run.
        message = f"its {task.broken.field} no longer reads: {task.broken.message}"
        return Heard(task=task, run=None, passed=PassedOver(reason=None, message=message))
    try:
        verdict = events.judge(
            task,
            event,
            body,
            paused=bool(pauses and holding(pauses, task=task.id, project_key=key_of(task.definition.project))),
            until_of=lambda window: session.events.window(task.id, window),
        )
    except FAULTS as error:
        told = f"judging an event failed: {type(error).__name__}: {error}"
        session.tasks.set_trouble(task.id, Broken(field="triggers", message=told))
        return Heard(task=task, run=None, passed=PassedOver(reason=None, message=told))
    match verdict:
        case None:
            return None
        case Opens():
            return Heard(task=task, run=None, passed=None, windows=verdict.windows)
        case PassedOver():
            return Heard(task=task, run=None, passed=verdict)


def _make_room(session: "Session", heard: Iterable[Heard]) -> None:
    from duly.store.queueing import trim

    for one in heard:
        if one.run is not None and one.run.state == "waiting":
            trim(session, one.task)


def _owns(session: "Session", entries: Sequence[Entry], listened: set[str]) -> list[Own]:
    """Make events of entries, each run's end once, with the tasks as they stand now."""
    named = sorted({entry.run for entry in entries if entry.kind in own_events.ENDS and entry.run is not None})
    runs = {}
    if named and not listened.isdisjoint(own_events.OF_RUNS):
        runs = {run.id: run for run in session.runs.by_ids(named) if run.state == "ended"}
    causes = session.events.by_ids({run.event for run in runs.values() if run.event is not None})
    tasks = session.tasks.by_ids({entry.task for entry in entries if entry.task is not None})
    owns: list[Own] = []
    for entry in entries:
        task = tasks.get(entry.task or "")
        if entry.kind not in own_events.ENDS:
            owns.append(own_events.of_entry(entry, task))
        elif entry.run in runs:
            run = runs.pop(entry.run)
            cause = causes.get(run.event or "")
            owns += own_events.of_run(run, task, () if cause is None else cause.through)
    return owns


def _received(session: "Session", own: Own) -> Event:
    # A run that was taken up again after its end ends twice.
    again = own.key is not None and session.events.by_key(own.source, own.key) is not None
    return Event(
        id=ids.new("evt"),
        source=own.source,
        key=None if again else own.key,
        body=json.dumps(own.body, ensure_ascii=False),
        at=session.now,
        by=events.OURS,
        through=own.through,
        after=session.ledger.last(),
    )
