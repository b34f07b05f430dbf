"""Delivering: a channel is claimed, told what waits for it in one message, and what became of that is written down.

Whoever claims a channel by its conditional write has it for itself. One that dies between sending and writing leaves a
message that is sent again, by whoever claims next: its notices have the same ids.
"""

import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from duly.core import channels, notices
from duly.core.channels import GATHERED_FOR, GIVEN_UP_AFTER, Channel
from duly.core.names import key_of
from duly.notify.gathering import standing_of
from duly.notify.messages import Item
from duly.notify.on_its_way import OnItsWay, Sent
from duly.notify.sending import Sender, send
from duly.store import Session, Store
from duly.store.notices import Outgoing

Tell = Callable[[str, Mapping[str, object]], None]
AT_ONCE_MOST = 100
"""Notices of one message."""


class Sending:
    """One message to a channel, on its way."""

    def __init__(self, sender: Sender, channel: Channel, out: list[Outgoing], now: datetime, rang: threading.Event):
        self.channel = channel
        self.out = out
        items = [Item(id=one.id, notice=one.notice) for one in out]
        self.way = OnItsWay(lambda: send(sender, channel, items, now=now), sender, rang)


class Delivering:
    """Speaks to the channels of a store, each on its own; in one thread."""

    def __init__(self, sender: Callable[[], Sender], who: str, tell: Tell, rang: threading.Event) -> None:
        self._sender = sender
        self._who = who
        self._tell = tell
        self._rang = rang
        self._sending: dict[str, Sending] = {}
        self._stuck: dict[str, Sending] = {}
        self.soonest: datetime | None = None
        """When there is something to say next, as it is known now."""

    @property
    def busy(self) -> bool:
        """Messages are on their way."""
        return bool(self._sending)

    def step(self, store: Store, *, gathered_for: timedelta = GATHERED_FOR) -> None:
        """Write down what became of messages, and send what is due: of each channel at most one at a time."""
        self._stuck = {key: one for key, one in self._stuck.items() if one.way.lives()}
        for key, sending in list(self._sending.items()):
            outcome = sending.way.over()
            if outcome is not None:
                self._settle(store, sending, outcome)
                del self._sending[key]
                if sending.way.outcome is None:
                    self._stuck[key] = sending
        self.soonest = None
        for channel in self._due(store, gathered_for):
            with store.write(ring=False) as session:
                claimed = self._claim(session, channel)
            if claimed is not None:
                held, out = claimed
                self._sending[key_of(held.name)] = Sending(self._sender(), held, out, store.clock.now(), self._rang)

    def _due(self, store: Store, gathered_for: timedelta) -> list[Channel]:
        with store.read() as session:
            waiting = session.notices.waiting_since()
            if not waiting:
                return []
            found = []
            for channel in session.channels.all():
                key = key_of(channel.name)
                if key not in waiting or key in self._sending or key in self._stuck:
                    continue
                when = max(channel.next_at, waiting[key][0] + gathered_for)
                if when <= session.now and channels.may_be_claimed(channel, session.now):
                    found.append(channel)
                else:
                    when = max(when, channel.claimed_until or when)
                    self.soonest = when if self.soonest is None else min(self.soonest, when)
            return found

    def _claim(self, session: Session, seen: Channel) -> tuple[Channel, list[Outgoing]] | None:
        """Take a channel and what waits for it; None where somebody was faster, or nothing needs to be told."""
        channel = session.channels.by_name(seen.name)
        if channel is None or not channels.may_be_claimed(channel, session.now):
            return None
        out = session.notices.waiting(channel.name, AT_ONCE_MOST)
        standing = standing_of(session, (one.notice for one in out))
        settled = [one.id for one in out if notices.is_settled(one.notice, standing[one.notice.cause])]
        session.notices.move(settled, "quiet", now=session.now, tried=False)
        out = [one for one in out if one.id not in set(settled)]
        if not out:
            return None
        held = channels.claimed(channel, by=self._who, now=session.now)
        return (held, out) if session.channels.move(channel, held) else None

    def _settle(self, store: Store, sending: Sending, outcome: Sent) -> None:
        """Write down what became of a message, unless the channel was claimed or set anew meanwhile."""
        given_up = 0
        with store.write(ring=False) as session:
            now = session.now
            ids = [one.id for one in sending.out]
            if outcome.error is None:
                # It has arrived, whoever has the channel now.
                session.notices.move(ids, "sent", now=now, tried=True)
            channel = session.channels.by_name(sending.channel.name)
            if channel is None or channel.version != sending.channel.version:
                return
            if outcome.error is None:
                session.channels.move(channel, channels.spoken_to(channel, now=now))
            else:
                old = [one.id for one in sending.out if now - one.notice.at >= GIVEN_UP_AFTER]
                left = [one for one in ids if one not in set(old)]
                session.notices.move(old, "failed", now=now, tried=True, error=outcome.error)
                session.notices.move(left, "waiting", now=now, tried=True, error=outcome.error)
                after = channels.refused_by(channel, outcome.error, now=now, wait=outcome.wait)
                session.channels.move(channel, after)
                given_up = len(old)
        told = {"channel": sending.channel.name, "notices": len(sending.out)}
        if outcome.error is None:
            if sending.channel.failures:
                self._tell("channel back", told)
        elif given_up or not sending.channel.failures:
            self._tell("channel failed", {**told, "error": outcome.error, "given_up": given_up or None})
