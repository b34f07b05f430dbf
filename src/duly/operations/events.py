"""Emitting events: each is kept before it is answered, and starts every task that listens to it, once a key."""

from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches

from duly import ids
from duly.clock import to_us
from duly.core import events
from duly.core.event_text import read_source
from duly.core.events import Event
from duly.core.fields import KEY_MOST
from duly.core.occurrences import event_key
from duly.core.reading import shown
from duly.core.run import Run
from duly.core.spans import write_instant
from duly.core.task import Task
from duly.errors import Invalid, Refused, StoreUnknown
from duly.operations import event_shapes
from duly.operations.lookup import find_event
from duly.store import Session, Store
from duly.store.listening import arrive
from duly.store.switches import lift_over

NEAR = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A run that an event opened, and its task."""

    run: Run
    task: Task | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotOpened:
    """A task that listens to an event and was not started by it."""

    task: Task | None
    reason: str | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """What became of an event; `again`: it had been emitted before, and this is what became of it then."""

    event: Event
    again: bool
    opened: tuple[Opened, ...]
    not_opened: tuple[NotOpened, ...]
    near: str | None
    """Where nobody listens: a source alike to which somebody does."""


def emit(store: Store, source: str, *, by: str, key: str | None = None, data: str | None = None) -> Emitted:
    """Receive an event; the same `key` again with the same data answers as the first time and changes nothing.

    `data` is JSON. Invalid for what cannot be read; Refused `not_allowed` for sources of Duly's own, `key_reused` for a
    key that came with other data.
    """
    name = _source(source)
    _check_key(key)
    body = events.check_body(data) if data is not None else "null"
    id_ = ids.new("evt")
    try:
        return _emit(store, name, id_=id_, by=by, key=key, body=body)
    except StoreUnknown:
        # The answer to the commit was lost: what stands now is what it would have said.
        with store.read() as session:
            stands = session.events.by_id(id_)
            if stands is None:
                raise
            return replace(_as_then(session, stands), again=False)


def listed(
    session: Session,
    *,
    source: str | None,
    key: str | None,
    since: datetime | None,
    cursor: str | None,
    most: int,
) -> tuple[list[dict[str, object]], str | None]:
    """List events, the newest first, without their data; the second value continues the list."""
    before = "~" if cursor is None else cursor
    if not (before == "~" or before.startswith("evt_")):
        raise Invalid(f"{shown(before)} is not what a list gave as `next`", field="--cursor", text=before, at=0)
    since_us = 0 if since is None else to_us(since)
    found = session.events.listed(before=before, source=source, key=key, since_us=since_us, most=most + 1)
    page = found[:most]
    return [event_shapes.line(one) for one in page], page[-1].id if len(found) > most else None


def told(session: Session, word: str) -> Emitted:
    """Tell what became of an event, by its id; Refused `unknown_id`, Invalid when it is ambiguous."""
    return _as_then(session, find_event(session, word))


def _emit(store: Store, name: str, *, id_: str, by: str, key: str | None, body: str) -> Emitted:
    with store.write() as session:
        lift_over(session)
        first = session.events.by_key(name, key) if key is not None else None
        if first is not None:
            if not events.same_body(first.body, body):
                raise Refused(
                    "key_reused",
                    f"the key {key} of {name} was used at {write_instant(first.at)} with other data",
                    details={"event": first.id, "source": name, "key": key, "at": write_instant(first.at)},
                    hint="another --key, or the same data",
                )
            return _as_then(session, first)
        event = Event(id=id_, source=name, key=key, body=body, at=session.now, by=by, after=session.ledger.last())
        session.events.heard(event)
        heard = arrive(session, event)
        return Emitted(
            event=event,
            again=False,
            opened=tuple(Opened(run=one.run, task=one.task) for one in heard if one.run is not None),
            not_opened=tuple(
                NotOpened(task=one.task, reason=one.passed.reason, message=one.passed.message)
                for one in heard
                if one.passed is not None
            ),
            near=None if heard else _near(session, name),
        )


def _source(text: str) -> str:
    try:
        name = read_source(text)
    except Invalid as error:
        raise Invalid(error.message, field="source", text=text, at=error.at, hint=error.hint) from None
    if name.partition(".")[0] == events.OURS:
        raise Refused(
            "not_allowed",
            f"only Duly itself emits {name}",
            details={"source": name},
            hint="a source that does not begin with duly",
        )
    return name


def _check_key(key: str | None) -> None:
    if key is None:
        return
    if not 1 <= len(key) <= KEY_MOST:
        raise Invalid(f"a key has 1 to {KEY_MOST} characters", field="key")
    for at, char in enumerate(key):
        if not char.isprintable():
            raise Invalid(f"a key has no control characters (U+{ord(char):04X})", field="key", text=key, at=at)


def _as_then(session: Session, event: Event) -> Emitted:
    """Tell what became of an event when it came: its runs as they stand now, and whom it did not start."""
    found = session.runs.by_ids(session.events.runs_of(event.id))
    occurrence = event_key(event.source, event.key or event.id)
    runs = sorted((run for run in found if run.occurrence == occurrence), key=lambda run: run.id)
    told = session.ledger.at(to_us(event.at), occurrence)
    passed = [one.entry for one in told if one.entry.run is None and one.entry.kind == "skipped"]
    tasks = session.tasks.by_ids({*(run.task for run in runs), *(entry.task for entry in passed if entry.task)})
    return Emitted(
        event=event,
        again=True,
        opened=tuple(Opened(run=run, task=tasks.get(run.task)) for run in runs),
        not_opened=tuple(
            NotOpened(
                task=tasks.get(entry.task or ""),
                reason=entry.reason,
                message=str(entry.details.get("why") or entry.reason),
            )
            for entry in passed
        ),
        near=None,
    )


def _near(session: Session, name: str) -> str | None:
    found = get_close_matches(name, session.events.listened(), n=1, cutoff=NEAR)
    return found[0] if found else None
