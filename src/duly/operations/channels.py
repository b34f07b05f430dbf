"""Channels as people set them: where they are told, and what became of what they should have been told."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from duly.core import channel_reading
from duly.core.channels import DEFAULT_EVERY, Channel
from duly.core.names import key_of
from duly.core.reading import nearest, shown
from duly.core.run import Entry
from duly.core.spans import write_span
from duly.core.task import Definition
from duly.core.values import changed
from duly.errors import Invalid, Refused
from duly.operations import shapes
from duly.store import Session, Store
from duly.store.notices import Outgoing

MOST = 100
"""Channels of a store."""
EVERY_MOST = timedelta(days=1)
PING = "ping"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A channel with what waits for it, and how many tasks name it."""

    channel: Channel
    waiting: int
    waiting_since: datetime | None
    tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A channel as somebody wants it, whole."""

    name: str
    url: str
    secret: str | None = None
    every: timedelta = DEFAULT_EVERY
    only_named: bool = False


def read(
    name: object,
    url: object,
    *,
    secret: object = None,
    every: timedelta = DEFAULT_EVERY,
    only_named: bool = False,
    fields: Mapping[str, str] | None = None,
) -> Wish:
    """Read what somebody wants of a channel; Invalid names the field, in the words of `fields`."""
    words = fields or {}
    if every > EVERY_MOST:
        raise Invalid(f"{write_span(every)} is longer than {write_span(EVERY_MOST)}", field=words.get("every", "every"))
    found = channel_reading.read_url(url, words.get("url", "url"))
    if secret is not None and not channel_reading.is_webhook(found) and not channel_reading.NAMED.fullmatch(found):
        raise Invalid(
            "only a webhook is signed",
            field=words.get("secret", "secret"),
            hint="an address that begins with http:// or https://",
        )
    return Wish(
        name=channel_reading.read_channel(name, words.get("name", "name")),
        url=found,
        secret=None if secret is None else channel_reading.read_secret(secret, words.get("secret", "secret")),
        every=every,
        only_named=only_named,
    )


def set_channel(store: Store, wish: Wish, *, by: str) -> tuple[Channel, bool]:
    """Set a channel, a new one or in the place of the one of its name; gives it, and whether it is new.

    The first channel of a store hears of what happens from now on.
    """
    with store.write() as session:
        known = session.channels.all()
        before = next((one for one in known if key_of(one.name) == key_of(wish.name)), None)
        if before is None and len(known) >= MOST:
            raise Refused("limit_reached", f"there are {MOST} channels", details={"channels": MOST})
        fresh = Channel(
            name=wish.name if before is None else before.name,
            url=wish.url,
            secret=wish.secret,
            every=wish.every,
            only_named=wish.only_named,
            set_at=session.now,
            set_by=by,
            next_at=session.now,
        )
        if before is None:
            if not known:
                session.notices.set_read_to(session.ledger.last())
            session.channels.insert(fresh)
        else:
            fresh = changed(fresh, version=before.version + 1, last_at=before.last_at)
            session.channels.move(before, fresh)
        session.ledger.add([_entry(session, fresh, by, "set")])
        return fresh, before is None


def remove_channel(store: Store, name: str, *, by: str) -> Channel:
    """Take a channel away; what waits for it is not told any more."""
    with store.write() as session:
        found = find(session, name)
        session.channels.remove(found.name)
        session.notices.keep_quiet(session.now, found.name)
        session.ledger.add([_entry(session, found, by, "removed")])
        return found


def find(session: Session, name: str) -> Channel:
    """Find a channel by its name; refused `unknown_id` with those that there are."""
    found = session.channels.by_name(name)
    if found is not None:
        return found
    names = [one.name for one in session.channels.all()]
    near = nearest(name, names)
    hint = near or (f"one of {', '.join(names[:5])}" if names else "duly channel set NAME URL")
    raise Refused(
        "unknown_id", f"there is no channel {shown(name)}", details={"channel": name, "channels": names}, hint=hint
    )


def listed(session: Session) -> list[Shown]:
    """List the channels, by name."""
    return [_shown(session, one) for one in session.channels.all()]


def one(session: Session, name: str) -> Shown:
    """Give one channel as it stands."""
    return _shown(session, find(session, name))


def check_named(session: Session, definition: Definition) -> tuple[str, ...]:
    """Give a warning for each channel that a definition names and that is none."""
    names = definition.rules.notify
    if not names:
        return ()
    known = {key_of(one.name) for one in session.channels.all()}
    return tuple(
        f"there is no channel {shown(name)} yet: duly channel set {name} URL"
        for name in names
        if key_of(name) not in known
    )


def shape(found: Shown) -> dict[str, object]:
    """Show a channel; what may be a secret in its address is hidden."""
    channel = found.channel
    return {
        "name": channel.name,
        "url": channel_reading.masked(channel.url),
        "kind": _kind(channel),
        "secret": channel.secret,
        "every": write_span(channel.every) if channel.every else "0s",
        "only_named": channel.only_named,
        "tasks": found.tasks,
        "waiting": found.waiting,
        "waiting_since": shapes.instant(found.waiting_since),
        "failures": channel.failures,
        "failing_since": shapes.instant(channel.failing_since),
        "error": channel.error,
        "next_at": shapes.instant(channel.next_at) if found.waiting else None,
        "last_at": shapes.instant(channel.last_at),
        "set_at": shapes.instant(channel.set_at),
        "set_by": channel.set_by,
        "version": channel.version,
    }


def delivery(one: Outgoing, names: Mapping[str, str]) -> dict[str, object]:
    """Show what became of a notice at one channel, or of a ping; `names` are the channels by their keys."""
    ping = one.notice.kind == PING
    return {
        "channel": PING if ping else names.get(one.channel, one.channel),
        "state": one.state,
        "at": shapes.instant(one.state_at),
        "kind": one.notice.subject if ping else one.notice.kind,
        "tries": one.tries,
        "error": one.error,
    }


def of_run(session: Session, run: str) -> list[dict[str, object]]:
    """Show the notices about a run, with what became of each."""
    found = session.notices.of_run(run)
    if not found:
        return []
    names = {key_of(one.name): one.name for one in session.channels.all()}
    return [delivery(one, names) for one in found]


def _shown(session: Session, channel: Channel) -> Shown:
    since, count = session.notices.waiting_since().get(key_of(channel.name), (None, 0))
    key = key_of(channel.name)
    named = sum(
        key in {key_of(name) for name in task.definition.rules.notify or ()}
        for task in session.tasks.in_scope("store", "")
    )
    return Shown(channel=channel, waiting=count, waiting_since=since, tasks=named)


def _kind(channel: Channel) -> str:
    if channel_reading.NAMED.fullmatch(channel.url):
        return "secret"
    return "webhook" if channel_reading.is_webhook(channel.url) else "apprise"


def _entry(session: Session, channel: Channel, by: str, what: str) -> Entry:
    details: dict[str, object] = {
        "channel": channel.name,
        "change": what,
        "url": channel_reading.masked(channel.url),
        "signed": channel.secret is not None,
        "only_named": channel.only_named,
    }
    return Entry(kind="defined", at=session.now, by=by, details=details)
