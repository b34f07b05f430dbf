"""Sources as people set them: what is wanted of who sends events to one without a token of ours."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from duly.core import http_reading, senders
from duly.core.event_text import read_source
from duly.core.events import OURS
from duly.core.reading import shown
from duly.core.run import Entry
from duly.core.senders import DEFAULT_QUEUE, DEFAULT_WITHIN, TOKEN_HEADER, By, Preset, Proven, Sender, Unproven
from duly.core.spans import write_span
from duly.errors import Invalid, Refused
from duly.operations import events, shapes
from duly.operations.events import Emitted
from duly.secrets import Missing, Secrets
from duly.store import Session, Store
from duly.store.events import Source
from duly.store.switches import lift_over

QUEUE_MOST = 1_000_000
WITHIN_MOST = timedelta(hours=24)
AGAIN_AFTER_S = 30
NOT_HERE = "what this source compares with is not to be had here"
"""All that a sender is told of a secret that cannot be resolved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A source that sent something, is listened to, or wants something of who sends to it."""

    name: str
    sender: Sender | None
    heard: Source | None
    tasks: int


class Unshown(Refused):
    """Who sent it has shown nothing that this source wants."""

    def __init__(self, why: str) -> None:
        super().__init__("not_allowed", why)


def set_source(
    store: Store,
    name: str,
    *,
    by: str,
    hmac: str | None = None,
    token: str | None = None,
    preset: Preset | None = None,
    header: str | None = None,
    within: timedelta | None = None,
    queue: int | None = None,
) -> Known:
    """Set what a source wants of who sends to it, whole: `hmac` and `token` are names of secrets."""
    word = _read_name(name)
    how, secret = _proof(hmac, token, preset)
    header = _header(header, how)
    if within is not None and (how != "hmac" or preset == "github"):
        raise Invalid("only a signature with a moment of its own has one to compare", field="within", hint="--hmac")
    if within is not None and within > WITHIN_MOST:
        raise Invalid(f"it is longer than {write_span(WITHIN_MOST)}", field="within")
    if queue is not None and not 1 <= queue <= QUEUE_MOST:
        raise Invalid(f"{queue} is not between 1 and {QUEUE_MOST:,}", field="queue")
    with store.write() as session:
        lift_over(session)
        sender = Sender(
            name=word,
            by=how,
            secret=secret,
            preset=preset or "generic",
            header=header,
            within=within or DEFAULT_WITHIN,
            queue=queue or DEFAULT_QUEUE,
            set_at=session.now,
            set_by=by,
        )
        session.senders.set(sender)
        session.ledger.add([_entry(session, sender, by, "set")])
        return _known(session, word)


def remove_source(store: Store, name: str, *, by: str) -> Known:
    """Want nothing of who sends to a source but a token of ours; refused `unknown_id` where nothing is set."""
    word = _read_name(name)
    with store.write() as session:
        known = _known(session, word)
        if known.sender is None:
            names = [one.name for one in session.senders.all()][:5]
            raise Refused(
                "unknown_id",
                f"no source {shown(word)} is set",
                details={"source": word, "sources": names},
                hint=f"one of {', '.join(names)}" if names else None,
            )
        session.senders.remove(word)
        session.ledger.add([_entry(session, known.sender, by, "removed")])
        return known


def sources(session: Session) -> list[Known]:
    """List every source that is set, was heard of, or is listened to."""
    names = {one.name for one in session.senders.all()} | {one.name for one in session.events.known()}
    return [_known(session, name) for name in sorted(names | set(session.events.listened()))]


def one_source(session: Session, name: str) -> Known:
    """Give one source; refused `unknown_id` where nobody sends to it, listens to it or has set it."""
    known = _known(session, _read_name(name))
    if known.sender is None and known.heard is None and not known.tasks:
        raise Refused("unknown_id", f"there is no source {shown(known.name)}", details={"source": known.name})
    return known


def wanted(session: Session, name: str) -> tuple[Sender, str]:
    """Give what a source wants of who sends to it, and its secret's name; Unshown where it wants a token of ours."""
    try:
        sender = session.senders.by_name(read_source(name))
    except Invalid:
        sender = None
    if sender is None or sender.by is None or sender.secret is None:
        raise Unshown("a token is wanted: Authorization: Bearer TOKEN")
    return sender, sender.secret


def receive(
    store: Store, name: str, *, headers: Mapping[str, tuple[str, ...]], body: bytes, secrets: Secrets
) -> Emitted:
    """Take an event from who has shown what its source wants; the same one again answers as the first time.

    Unshown for whoever has not; Refused `rate_limited` while too much waits of what came before; Invalid for a body
    that is no event. `headers` by their names in small letters.
    """
    with store.read() as session:
        (sender, secret_name), now = wanted(session, name), session.now
    try:
        secret = secrets.value(secret_name)
    except Missing as missing:
        raise Refused("not_allowed", NOT_HERE) from missing
    found = senders.judge(sender, secret, headers, body, now)
    if isinstance(found, Unproven):
        raise Unshown(found.why)
    if not isinstance(found, Proven):
        raise Invalid(found.why, field="body")
    with store.read() as session:
        _check_room(session, sender, found.key)
    return events.emit(store, name, by=f"source {name}", key=found.key, data=found.data)


def shape(known: Known) -> dict[str, object]:
    """Show a source: what it wants, without any secret, and the last that was heard of it."""
    sender, heard = known.sender, known.heard
    return {
        "name": known.name,
        "proof": None if sender is None else sender.by,
        "secret": None if sender is None else sender.secret,
        "preset": None if sender is None else sender.preset,
        "header": sender.header if sender is not None and sender.by == "token" else None,
        "within": write_span(sender.within) if sender is not None and _has_moment(sender) else None,
        "queue": None if sender is None else sender.queue,
        "set_at": None if sender is None else shapes.instant(sender.set_at),
        "set_by": None if sender is None else sender.set_by,
        "tasks": known.tasks,
        "last_at": None if heard is None else shapes.instant(heard.last_at),
        "last_key": None if heard is None else heard.last_key,
        "received": 0 if heard is None else heard.received,
    }


def _check_room(session: Session, sender: Sender, key: str | None) -> None:
    if key is not None and session.events.by_key(sender.name, key) is not None:
        return  # it came before, and waits no second time
    waiting = session.senders.waiting(sender.name, sender.queue)
    if waiting >= sender.queue:
        raise Refused(
            "rate_limited",
            f"{waiting:,} runs of tasks that listen to {sender.name} wait, and no more is taken until there are fewer",
            details={"waiting": waiting, "queue": sender.queue, "retry_after_s": AGAIN_AFTER_S},
        )


def _has_moment(sender: Sender) -> bool:
    return sender.by == "hmac" and sender.preset == "generic"


def _proof(hmac: str | None, token: str | None, preset: Preset | None) -> tuple[By | None, str | None]:
    if hmac is not None and token is not None:
        raise Invalid("hmac and token exclude each other", field="token", hint="one of them")
    if preset == "github" and hmac is None:
        raise Invalid("GitHub signs what it sends", field="preset", hint="--hmac SECRET-NAME")
    if hmac is not None:
        return "hmac", http_reading.read_secret_name(hmac, "hmac")
    return (None, None) if token is None else ("token", http_reading.read_secret_name(token, "token"))


def _header(header: str | None, how: By | None) -> str:
    if header is None:
        return TOKEN_HEADER.lower()
    if how != "token":
        raise Invalid("it says where a token stands", field="header", hint="--token SECRET-NAME")
    small = header.strip().lower()
    if http_reading.TOKEN.fullmatch(small) is None or len(small) > 100:
        raise Invalid(f"{shown(header)} is not the name of a header", field="header")
    if small in ("authorization", "cookie"):
        raise Invalid("there a token of ours stands", field="header", hint=TOKEN_HEADER)
    return small


def _read_name(name: str) -> str:
    try:
        word = read_source(name)
    except Invalid as error:
        raise Invalid(error.message, field="source", text=name, at=error.at, hint=error.hint) from None
    if word.partition(".")[0] == OURS:
        raise Refused("not_allowed", f"only Duly itself emits {word}", details={"source": word})
    return word


def _known(session: Session, name: str) -> Known:
    heard = next((one for one in session.events.known() if one.name == name), None)
    return Known(
        name=name,
        sender=session.senders.by_name(name),
        heard=heard,
        tasks=len(session.events.listeners(name)),
    )


def _entry(session: Session, sender: Sender, by: str, what: str) -> Entry:
    details: dict[str, object] = {"source": sender.name, "change": what, "proof": sender.by, "preset": sender.preset}
    return Entry(kind="defined", at=session.now, by=by, details=details)
