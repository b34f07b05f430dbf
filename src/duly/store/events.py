"""Events: what was received, from which sources, who listens to them, and the windows of throttles."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, bindparam, delete, insert, or_, select, update

from duly.clock import from_us, to_us
from duly.core.events import Event
from duly.store.line import Line
from duly.store.sql import Batch, Statement, insert_batch, rows_of
from duly.store.tables import event_sources, events, runs, task_sources, tasks, throttles

OURS_FROM, OURS_TO = "duly.", "duly/"
"""All sources that begin with `duly.` lie between these two."""
_columns = [events.c[name] for name in ("id", "source", "key", "body", "at_us", "by", "through", "after_seq")]

INSERT = insert_batch(events, [column.name for column in _columns])
BY_ID = Statement(lambda: select(*_columns).where(events.c.id == bindparam("id")))
BY_IDS = Batch(lambda size: select(*_columns).where(events.c.id == rows_of(size, {"id": str}).c.id), ("id",))
IDS_LIKE = Statement(
    lambda: select(events.c.id).where(events.c.id.like(bindparam("pattern"), escape="\\")).limit(bindparam("most"))
)
PAGE = Statement(
    lambda: select(*_columns).where(events.c.id > bindparam("after")).order_by(events.c.id).limit(bindparam("most"))
)
_text = events.c.id.type
LISTED = Statement(
    lambda: (
        select(*_columns)
        .where(
            events.c.id < bindparam("before"),
            or_(bindparam("source", type_=_text).is_(None), events.c.source == bindparam("source")),
            or_(bindparam("key", type_=_text).is_(None), events.c.key == bindparam("key")),
            events.c.at_us >= bindparam("since_us"),
        )
        .order_by(events.c.id.desc())
        .limit(bindparam("most"))
    )
)
BY_KEY = Statement(
    lambda: select(*_columns).where(events.c.source == bindparam("source"), events.c.key == bindparam("key")).limit(1)
)
LISTENERS = Statement(
    lambda: (
        select(tasks.c.id)
        .select_from(task_sources.join(tasks, tasks.c.id == task_sources.c.task))
        .where(task_sources.c.source == bindparam("source"), tasks.c.removed_us.is_(None))
        .order_by(tasks.c.id)
    )
)
_ours = and_(task_sources.c.source >= OURS_FROM, task_sources.c.source < OURS_TO)
OUR_SOURCES = Statement(lambda: select(task_sources.c.source).where(_ours).distinct())
SOURCES = Statement(lambda: select(task_sources.c.source).distinct().order_by(task_sources.c.source))
FORGET = Statement(lambda: delete(task_sources).where(task_sources.c.task == bindparam("task")))
LISTEN = insert_batch(task_sources, ["task", "source"])
HEARD = Statement(
    lambda: (
        update(event_sources)
        .where(event_sources.c.name == bindparam("of"))
        .values(last_us=bindparam("last_us"), last_key=bindparam("last_key"), received=event_sources.c.received + 1)
    )
)
HEARD_FIRST = Statement(
    lambda: insert(event_sources).values(
        name=bindparam("of", type_=event_sources.c.name.type),
        last_us=bindparam("last_us", type_=event_sources.c.last_us.type),
        last_key=bindparam("last_key", type_=event_sources.c.last_key.type),
        received=1,
    )
)
KNOWN = Statement(
    lambda: select(
        event_sources.c.name, event_sources.c.last_us, event_sources.c.last_key, event_sources.c.received
    ).order_by(event_sources.c.name)
)
WINDOW = Statement(
    lambda: select(throttles.c.until_us).where(
        throttles.c.task == bindparam("task"), throttles.c.key == bindparam("key")
    )
)
BEGIN_AGAIN = Statement(
    lambda: (
        update(throttles)
        .where(throttles.c.task == bindparam("of"), throttles.c.key == bindparam("window"))
        .values(until_us=bindparam("until_us"))
    )
)
BEGIN = Statement(
    lambda: insert(throttles).values(
        task=bindparam("of", type_=throttles.c.task.type),
        key=bindparam("window", type_=throttles.c.key.type),
        until_us=bindparam("until_us", type_=throttles.c.until_us.type),
    )
)
LAST_BEFORE = Statement(
    lambda: (
        select(events.c.key, events.c.at_us)
        .where(events.c.source == bindparam("source"), events.c.at_us <= bindparam("at_us"))
        .order_by(events.c.at_us.desc(), events.c.id.desc())
        .limit(1)
    )
)
RUNS_OF = Statement(lambda: select(runs.c.id).where(runs.c.event == bindparam("event")).order_by(runs.c.id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where events come from: the last one received, whether any task took it or not."""

    name: str
    last_at: datetime
    last_key: str | None
    received: int


class Events:
    """Events are received once and never changed; `opened` counts the runs this transaction opened for them."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self.opened = 0

    def insert(self, received: Iterable[Event]) -> None:
        """Keep events; IntegrityError when one's source has an event of its key already."""
        self._line.many(
            INSERT,
            [
                (one.id, one.source, one.key, one.body, to_us(one.at), one.by, json.dumps(one.through), one.after)
                for one in received
            ],
        )

    def by_id(self, id_: str) -> Event | None:
        """The event of this id."""
        row = self._line.row(BY_ID, id=id_)
        return None if row is None else _event(row)

    def by_ids(self, ids: Iterable[str]) -> dict[str, Event]:
        """The events of these ids by their ids."""
        return {row[0]: _event(row) for row in self._line.many(BY_IDS, [(id_,) for id_ in ids])}

    def by_key(self, source: str, key: str) -> Event | None:
        """The event of this source and key; an event that came without a key has its id for one."""
        row = self._line.row(BY_KEY, source=source, key=key)
        if row is not None:
            return _event(row)
        named = self.by_id(key)
        return named if named is not None and (named.source, named.key) == (source, None) else None

    def page(self, after: str, *, most: int) -> list[Event]:
        """Events in order of their coming, after the one of this id."""
        return [_event(row) for row in self._line.rows(PAGE, after=after, most=most)]

    def listed(
        self, *, before: str = "~", source: str | None = None, key: str | None = None, since_us: int = 0, most: int = 50
    ) -> list[Event]:
        """Events for people, the newest first, with ids below `before`."""
        given: dict[str, Any] = {"before": before, "source": source, "key": key, "since_us": since_us, "most": most}
        return [_event(row) for row in self._line.rows(LISTED, **given)]

    def ids_like(self, pattern: str, most: int) -> list[str]:
        """Ids of events that match a LIKE pattern."""
        return [row[0] for row in self._line.rows(IDS_LIKE, pattern=pattern, most=most)]

    def runs_of(self, event: str) -> list[str]:
        """The ids of the runs that an event opened."""
        return [row[0] for row in self._line.rows(RUNS_OF, event=event)]

    def listeners(self, source: str) -> list[str]:
        """The ids of live tasks that listen to a source, in order of creation; broken ones too."""
        return [row[0] for row in self._line.rows(LISTENERS, source=source)]

    def our_sources(self) -> list[str]:
        """Those of Duly's own sources that any task listens to."""
        return [row[0] for row in self._line.rows(OUR_SOURCES)]

    def listened(self) -> list[str]:
        """Every source that any task listens to."""
        return [row[0] for row in self._line.rows(SOURCES)]

    def set_sources(self, task: str, sources: Iterable[str]) -> None:
        """Write which sources a task listens to, in place of those before; none for a task that is removed."""
        self._line.run(FORGET, task=task)
        self._line.many(LISTEN, [(task, source) for source in sorted(sources)])

    def heard(self, event: Event) -> None:
        """Note the last event of a source, matched or not."""
        given: dict[str, Any] = {"of": event.source, "last_us": to_us(event.at), "last_key": event.key}
        if not self._line.run(HEARD, **given):
            self._line.run(HEARD_FIRST, **given)

    def known(self) -> list[Source]:
        """The sources that have ever sent an event."""
        return [
            Source(name=row[0], last_at=from_us(row[1]), last_key=row[2], received=row[3])
            for row in self._line.rows(KNOWN)
        ]

    def last_before(self, source: str, at: datetime) -> tuple[str | None, datetime] | None:
        """The key and the moment of the last event of a source that came by this instant; None where none is kept."""
        row = self._line.row(LAST_BEFORE, source=source, at_us=to_us(at))
        return None if row is None else (row[0], from_us(row[1]))

    def window(self, task: str, key: str) -> datetime | None:
        """The end of a window of a task's throttle, over or not; None where none has begun."""
        row = self._line.row(WINDOW, task=task, key=key)
        return None if row is None else from_us(row[0])

    def begin_window(self, task: str, key: str, until: datetime) -> None:
        """Let a window of a task's throttle last until an instant."""
        given: dict[str, Any] = {"of": task, "window": key, "until_us": to_us(until)}
        if not self._line.run(BEGIN_AGAIN, **given):
            self._line.run(BEGIN, **given)


def _event(row: Sequence[Any]) -> Event:
    id_, source, key, body, at_us, by, through, after = row
    through = tuple(json.loads(through))
    return Event(id=id_, source=source, key=key, body=body, at=from_us(at_us), by=by, through=through, after=after)
