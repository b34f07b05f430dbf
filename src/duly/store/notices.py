"""Notices: the outbox, one row a notice and channel; what was told of each task; how far the ledger was read for it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import bindparam, delete, func, insert, select, update

from duly.clock import from_us, to_us
from duly.core.names import key_of
from duly.core.notices import WELL, Notice, Told, from_json, to_json
from duly.core.values import value
from duly.store.line import Line
from duly.store.notice_tables import notice_states, notices
from duly.store.rows import dump, mapping
from duly.store.sql import Batch, Statement, insert_batch, rows_of

State = Literal["waiting", "sent", "failed", "quiet"]
READ_TO = ""
"""The subject under which it stands how far the ledger was read."""
COLUMNS = tuple(column.name for column in notices.columns)
PAGE = 200

INSERT = insert_batch(notices, COLUMNS)
KNOWN = Batch(
    lambda size: select(notices.c.cause, notices.c.channel).where(
        notices.c.cause == rows_of(size, {"cause": str}).c.cause
    ),
    ("cause",),
)
WAITING = Statement(
    lambda: (
        select(*notices.columns)
        .where(notices.c.state == "waiting", notices.c.channel == bindparam("of_channel"))
        .order_by(notices.c.id)
        .limit(bindparam("most"))
    )
)
OLDEST = Statement(
    lambda: (
        select(notices.c.channel, func.min(notices.c.at_us), func.count())
        .where(notices.c.state == "waiting")
        .group_by(notices.c.channel)
    )
)
FAILED_SINCE = Statement(
    lambda: (
        select(notices.c.channel, func.count())
        .where(notices.c.at_us >= bindparam("since_us"), notices.c.state == "failed")
        .group_by(notices.c.channel)
    )
)
OF_RUN = Statement(
    lambda: (
        select(*notices.columns)
        .where(notices.c.run == bindparam("run"), notices.c.run.is_not(None))
        .order_by(notices.c.id)
    )
)
LISTED = Statement(
    lambda: (
        select(*notices.columns)
        .where(notices.c.id < bindparam("before"))
        .order_by(notices.c.id.desc())
        .limit(bindparam("most"))
    )
)
FORGET = Statement(
    lambda: delete(notices).where(notices.c.at_us < bindparam("before_us"), notices.c.state != "waiting")
)
COUNT_OLD = Statement(
    lambda: (
        select(func.count())
        .select_from(notices)
        .where(notices.c.at_us < bindparam("before_us"), notices.c.state != "waiting")
    )
)
QUIET = Statement(
    lambda: update(notices).where(notices.c.state == "waiting").values(state="quiet", state_us=bindparam("now_us"))
)
QUIET_CHANNEL = Statement(
    lambda: (
        update(notices)
        .where(notices.c.state == "waiting", notices.c.channel == bindparam("of_channel"))
        .values(state="quiet", state_us=bindparam("now_us"))
    )
)
_MOVED: dict[str, type] = {"id": str, "state": str, "state_us": int, "tries": int, "error": str}
TOLD = Statement(lambda: select(notice_states.c.told).where(notice_states.c.subject == bindparam("of")))
TOLD_ALL = Batch(
    lambda size: select(notice_states.c.subject, notice_states.c.told).where(
        notice_states.c.subject == rows_of(size, {"subject": str}).c.subject
    ),
    ("subject",),
)
TELL_ANEW = Statement(
    lambda: update(notice_states).where(notice_states.c.subject == bindparam("of")).values(told=bindparam("said"))
)
TELL = Statement(
    lambda: insert(notice_states).values(
        subject=bindparam("of", type_=notice_states.c.subject.type),
        told=bindparam("said", type_=notice_states.c.told.type),
    )
)
UNTELL = Statement(lambda: delete(notice_states).where(notice_states.c.subject == bindparam("of")))


def _moved(size: int) -> Any:
    v = rows_of(size, _MOVED)
    return (
        update(notices)
        .where(notices.c.id == v.c.id, notices.c.state == "waiting")
        .values(state=v.c.state, state_us=v.c.state_us, tries=notices.c.tries + v.c.tries, error=v.c.error)
    )


MOVED = Batch(_moved, tuple(_MOVED))


@value
class Outgoing:
    """A notice on its way to one channel, or arrived there, or given up, or not needed any more."""

    id: str
    channel: str
    """The key of the channel's name."""
    notice: Notice
    state: State = "waiting"
    state_at: datetime
    tries: int = 0
    error: str | None = None


class Notices:
    """Notices are put once a cause and channel, and moved once from waiting to their end."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def put(self, found: Iterable[tuple[str, Notice, str]], now: datetime) -> int:
        """Put notices, as (id, notice, channel's name); those whose cause the channel was told are passed over."""
        wanted = list(found)
        known = {tuple(row) for row in self._line.many(KNOWN, [(c,) for c in sorted({n.cause for _, n, _ in wanted})])}
        fresh = {(notice.cause, key_of(channel)): (id_, notice) for id_, notice, channel in wanted}
        rows = [
            _cells(Outgoing(id=id_, channel=channel, notice=notice, state_at=now))
            for (cause, channel), (id_, notice) in fresh.items()
            if (cause, channel) not in known
        ]
        self._line.many(INSERT, rows)
        return len(rows)

    def known(self, causes: Iterable[str]) -> set[str]:
        """Those of these causes of which anybody was told, or will be."""
        return {row[0] for row in self._line.many(KNOWN, [(cause,) for cause in sorted(set(causes))])}

    def waiting(self, channel: str, most: int = PAGE) -> list[Outgoing]:
        """What waits for a channel, the oldest first."""
        return [_of(row) for row in self._line.rows(WAITING, of_channel=key_of(channel), most=most)]

    def waiting_since(self) -> dict[str, tuple[datetime, int]]:
        """Since when something waits for a channel, by the key of its name, and how much it is."""
        return {row[0]: (from_us(row[1]), int(row[2])) for row in self._line.rows(OLDEST)}

    def failed_since(self, since: datetime) -> dict[str, int]:
        """How many notices from then on were given up, by the key of their channel's name."""
        return {row[0]: int(row[1]) for row in self._line.rows(FAILED_SINCE, since_us=to_us(since))}

    def of_run(self, run: str) -> list[Outgoing]:
        """The notices about a run, the oldest first."""
        return [_of(row) for row in self._line.rows(OF_RUN, run=run)]

    def listed(self, *, before: str = "~", most: int = 50) -> list[Outgoing]:
        """Notices, the newest first."""
        return [_of(row) for row in self._line.rows(LISTED, before=before, most=most)]

    def move(self, ids: Sequence[str], state: State, *, now: datetime, tried: bool, error: str | None = None) -> None:
        """Write what became of waiting notices."""
        cells = (state, to_us(now), int(tried), error)
        self._line.many(MOVED, [(id_, *cells) for id_ in ids])

    def keep_quiet(self, now: datetime, channel: str | None = None) -> int:
        """Let what waits, for one channel or for all, not be told any more."""
        if channel is None:
            return self._line.run(QUIET, now_us=to_us(now))
        return self._line.run(QUIET_CHANNEL, of_channel=key_of(channel), now_us=to_us(now))

    def forget(self, before: datetime, *, take: bool) -> int:
        """Take away notices from before then that do not wait, or only count them."""
        if take:
            return self._line.run(FORGET, before_us=to_us(before))
        row = self._line.row(COUNT_OLD, before_us=to_us(before))
        return 0 if row is None else int(row[0])

    def told(self, tasks: Iterable[str]) -> dict[str, Told]:
        """What is known of these tasks, by their ids."""
        wanted = sorted(set(tasks))
        rows = self._line.many(TOLD_ALL, [(id_,) for id_ in wanted])
        return dict.fromkeys(wanted, WELL) | {row[0]: from_json(mapping(row[1])) for row in rows}

    def tell(self, task: str, told: Told) -> None:
        """Write what is known of a task; of one that is well nothing is kept."""
        self._say(task, None if told == WELL else to_json(told))

    def read_to(self) -> int | None:
        """The last entry of the ledger of which notices were made; None where none was ever read."""
        row = self._line.row(TOLD, of=READ_TO)
        seq = None if row is None else mapping(row[0]).get("seq")
        return seq if isinstance(seq, int) else None

    def set_read_to(self, seq: int) -> None:
        """Write how far the ledger was read."""
        self._say(READ_TO, {"seq": seq})

    def _say(self, subject: str, said: Mapping[str, object] | None) -> None:
        if said is None:
            self._line.run(UNTELL, of=subject)
        elif not self._line.run(TELL_ANEW, of=subject, said=dump(said)):
            self._line.run(TELL, of=subject, said=dump(said))


def _of(row: Sequence[Any]) -> Outgoing:
    c = dict(zip(COLUMNS, row, strict=True))
    notice = Notice(
        kind=c["kind"],
        cause=c["cause"],
        at=from_us(c["at_us"]),
        task=c["task"],
        run=c["run"],
        subject=c["subject"],
        details=mapping(c["details"]),
    )
    return Outgoing(
        id=c["id"],
        channel=c["channel"],
        notice=notice,
        state=c["state"],
        state_at=from_us(c["state_us"]),
        tries=c["tries"],
        error=c["error"],
    )


def _cells(one: Outgoing) -> tuple[Any, ...]:
    notice = one.notice
    return (
        one.id,
        notice.cause,
        one.channel,
        to_us(notice.at),
        notice.kind,
        notice.task,
        notice.run,
        notice.subject,
        dump(notice.details),
        one.state,
        to_us(one.state_at),
        one.tries,
        one.error,
    )
