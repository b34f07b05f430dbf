"""Pinging: what the ledger tells of tasks with a monitor is put into the outbox and asked, one at a time of each task.

Whoever takes a ping by its conditional write has it for two minutes. One that dies between asking and writing leaves
it to whoever comes then.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from duly import ids
from duly.clock import to_us
from duly.core import pings
from duly.core.notices import Notice
from duly.core.pings import BEFORE, ENDINGS, Ending, Ping
from duly.notify.asking import ask
from duly.notify.on_its_way import OnItsWay, Sent
from duly.notify.sending import Sender
from duly.store import Session, Store
from duly.store.notices import Outgoing, State
from duly.store.rows import Written

PAGE = 500
"""Entries that are read at once."""
BEHIND_MOST = 5_000
"""Entries of no interest after which it is written down all the same how far the ledger was read."""
AT_ONCE_MOST = 16
"""Monitors that are asked at the same time."""
Tell = Callable[[str, Mapping[str, object]], None]


class Asking:
    """One ping on its way."""

    def __init__(self, sender: Sender, url: str, one: Outgoing, rang: threading.Event) -> None:
        self.one = one
        self.ending = ending_of(one.notice)
        self.way = OnItsWay(lambda: ask(sender, url, self.ending), sender, rang)


class Pinging:
    """Makes the pings of a store and asks the monitors; in one thread, beside others that do the same."""

    def __init__(self, sender: Callable[[], Sender], tell: Tell, rang: threading.Event) -> None:
        self._sender = sender
        self._tell = tell
        self._rang = rang
        self._seen = 0
        """Up to here this process has found nothing of interest."""
        self._asking: dict[str, Asking] = {}
        self._stuck: dict[str, Asking] = {}
        self._troubled: set[tuple[str, Ending]] = set()
        """What was told of in the log, and has not arrived since."""
        self.soonest: datetime | None = None
        """When a monitor is asked next, as it is known now."""

    @property
    def busy(self) -> bool:
        """Pings are on their way."""
        return bool(self._asking)

    def gather(self, store: Store) -> int:
        """Put what is due into the outbox, and give how many that were."""
        put = 0
        while True:
            with store.read() as session:
                watched, page = _page(session, self._seen)
                fresh = _wanted(page, watched)
                behind = page[-1].seq - (session.pings.read_to() or 0) if page else 0
            if not page:
                return put
            if fresh or behind > BEHIND_MOST:
                with store.write() as session:
                    put += _take(session)
            else:
                self._seen = page[-1].seq

    def step(self, store: Store) -> None:
        """Write down what became of pings, and ask what is due: of each task at most one at a time."""
        self._stuck = {task: one for task, one in self._stuck.items() if one.way.lives()}
        for task, asking in list(self._asking.items()):
            outcome = asking.way.over()
            if outcome is not None:
                self._settle(store, task, asking, outcome)
                del self._asking[task]
                if asking.way.outcome is None:
                    self._stuck[task] = asking
        self.soonest = None
        with store.read() as session:
            waiting = [key for key in session.notices.waiting_since() if key.startswith(BEFORE)]
        for key in waiting:
            task = key.removeprefix(BEFORE)
            if task not in self._asking and task not in self._stuck and len(self._asking) < AT_ONCE_MOST:
                self._begin(store, task)

    def _begin(self, store: Store, task: str) -> None:
        with store.read() as session:
            now = session.now
            found = pings.turn([_ping(one) for one in session.notices.waiting(BEFORE + task)], now)
        if found.next is None and not found.left_out and not found.given_up:
            self._await(found.at)
            return
        with store.write(ring=False) as session:
            claimed = self._claim(session, task)
        if claimed is not None:
            url, one = claimed
            self._asking[task] = Asking(self._sender(), url, one, self._rang)

    def _claim(self, session: Session, task: str) -> tuple[str, Outgoing] | None:
        """Take a task's next ping; None where there is none now, or somebody was faster."""
        waiting = {one.id: one for one in session.notices.waiting(BEFORE + task)}
        known = session.tasks.by_ids([task]).get(task)
        url = None if known is None else known.definition.rules.ping
        if url is None:
            session.notices.move(list(waiting), "quiet", now=session.now, tried=False)
            return None
        found = pings.turn([_ping(one) for one in waiting.values()], session.now)
        for id_ in found.left_out:
            session.notices.move([id_], "quiet", now=session.now, tried=False, error=waiting[id_].error)
        for id_ in found.given_up:
            why = waiting[id_].error or "nobody could ask in time"
            session.notices.move([id_], "failed", now=session.now, tried=False, error=why)
        if found.next is None:
            self._await(found.at)
            return None
        one = waiting[found.next]
        return (url, one) if session.pings.claim(one, to_us(session.now)) else None

    def _await(self, at: datetime | None) -> None:
        if at is not None:
            self.soonest = at if self.soonest is None else min(self.soonest, at)

    def _settle(self, store: Store, task: str, asking: Asking, outcome: Sent) -> None:
        """Write down what became of a ping."""
        one, tries = asking.one, asking.one.tries + 1
        over = outcome.for_good or tries >= pings.TRIES_MOST
        with store.write(ring=False) as session:
            state: State = "sent" if outcome.error is None else "failed" if over else "waiting"
            session.notices.move([one.id], state, now=session.now, tried=False, error=outcome.error)
        about = (task, asking.ending)
        if outcome.error is None:
            self._troubled.discard(about)
        elif over and about not in self._troubled:
            self._troubled.add(about)
            told = {"task": task, "run": one.notice.run, "ping": asking.ending, "tries": tries, "error": outcome.error}
            self._tell("ping failed", told)


def ending_of(notice: Notice) -> Ending:
    """Say what a ping tells of."""
    return ENDINGS[notice.subject or "success"]


def _page(session: Session, seen: int) -> tuple[Mapping[str, int], Sequence[Written]]:
    """Give the tasks that ping, each with the entry after which it does, and the next entries."""
    watched = session.pings.watched()
    if not watched:
        return watched, []
    read_to = max(session.pings.read_to() or 0, min(watched.values()), seen)
    return watched, session.ledger.after(read_to, most=PAGE)


def _take(session: Session) -> int:
    """Make pings of the next entries in one transaction, with the word of how far they go."""
    watched, page = _page(session, 0)
    if not page:
        return 0
    wanted = _wanted(page, watched)
    tasks = session.tasks.by_ids({one.entry.task for one in wanted if one.entry.task is not None})
    made = []
    for one in wanted:
        task = tasks.get(one.entry.task or "")
        found = None
        if task is not None:
            found = pings.of_entry(one.seq, one.entry, gated=task.definition.rules.gate is not None)
        if found is not None:
            made.append((found, f"{BEFORE}{found.task}"))
    session.pings.unwatch([one.entry.task for one in wanted if one.entry.kind == "removed" and one.entry.task])
    session.pings.set_read_to(page[-1].seq)
    fresh = sorted(ids.several("ntc", len(made)))
    return session.notices.put(((id_, *row) for id_, row in zip(fresh, made, strict=True)), session.now)


def _wanted(page: Sequence[Written], watched: Mapping[str, int]) -> list[Written]:
    """Give the entries by which tasks that ping start, end or go."""
    found = []
    for one in page:
        after = watched.get(one.entry.task or "")
        if one.entry.kind in pings.KINDS and after is not None and one.seq > after:
            found.append(one)
    return found


def _ping(one: Outgoing) -> Ping:
    return Ping(
        id=one.id,
        ending=ending_of(one.notice),
        at=one.notice.at,
        tries=one.tries,
        moved_at=one.state_at,
        error=one.error,
    )
