"""What `doctor` looks at of channels: each takes what it is sent, and each that a task names is there."""

import importlib.util
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from duly.core.channel_reading import NAMED, is_webhook
from duly.core.channels import GATHERED_FOR
from duly.core.names import key_of
from duly.core.pings import BEFORE
from duly.core.spans import write_instant
from duly.operations.ailment import Ailment
from duly.operations.lookup import told
from duly.store.store import Session, Store

GIVEN_UP_WITHIN = timedelta(days=7)
SLOW = timedelta(minutes=10)
"""What waits for longer at a channel that does not fail waits for somebody who serves."""
NAMED_MOST = 5


def channels(_: Store, session: Session) -> Iterator[Ailment]:
    """Every channel takes what it is sent; nothing waits for long, and no task names one that is not there."""
    found = session.channels.all()
    waiting = session.notices.waiting_since()
    given_up = session.notices.failed_since(session.now - GIVEN_UP_WITHIN)
    for one in found:
        key = key_of(one.name)
        since, count = waiting.get(key, (session.now, 0))
        if one.failing_since is not None:
            yield Ailment(
                check="channel_fails",
                subject=one.name,
                text=f"the channel {one.name} has taken nothing since {_text(one.failing_since)}: {one.error}",
                details={"channel": one.name, "failures": one.failures, "waiting": count, "error": one.error},
                hint=f"duly channel test {one.name}, or duly channel set {one.name} URL",
            )
        elif count and session.now - since > max(SLOW, one.every + GATHERED_FOR):
            yield Ailment(
                check="notices_wait",
                subject=one.name,
                text=f"{count} notices wait for the channel {one.name}, the oldest since {_text(since)}",
                details={"channel": one.name, "waiting": count, "since": write_instant(since)},
                hint="duly serve: whoever serves the store sends them",
            )
        if given_up.get(key):
            yield Ailment(
                check="notices_given_up",
                subject=one.name,
                text=f"{given_up[key]} notices of the last week never reached the channel {one.name}",
                details={"channel": one.name, "given_up": given_up[key]},
                hint=f"duly channel test {one.name}",
            )
        if not is_webhook(one.url) and not NAMED.fullmatch(one.url) and importlib.util.find_spec("apprise") is None:
            yield Ailment(
                check="channel_needs_extra",
                subject=one.name,
                text=f"the channel {one.name} is told by Apprise, which is not installed here",
                details={"channel": one.name},
                hint="pip install 'duly[notify]' where the store is served",
            )
    yield from _monitors(session, given_up)
    yield from _unknown(session, {key_of(one.name) for one in found})


def _monitors(session: Session, given_up: Mapping[str, int]) -> Iterator[Ailment]:
    failed = {key.removeprefix(BEFORE): count for key, count in given_up.items() if key.startswith(BEFORE)}
    for task in session.tasks.by_ids(failed).values():
        if task.removed_at is None and task.definition.rules.ping is not None:
            yield Ailment(
                check="pings_given_up",
                subject=told(task),
                text=f"{failed[task.id]} pings of the last week never reached the monitor of {told(task)}",
                details={"task": told(task), "given_up": failed[task.id]},
                hint=f"duly edit {told(task)} --ping URL; the runs of the task tell the errors",
            )


def _unknown(session: Session, known: set[str]) -> Iterator[Ailment]:
    missing: dict[str, list[str]] = {}
    for task in session.tasks.in_scope("store", ""):
        for name in task.definition.rules.notify or ():
            if key_of(name) not in known:
                missing.setdefault(name, []).append(told(task))
    for name, tasks in sorted(missing.items()):
        named = ", ".join(tasks[:NAMED_MOST]) + (f" and {len(tasks) - NAMED_MOST} more" if tasks[NAMED_MOST:] else "")
        yield Ailment(
            check="channel_unknown",
            subject=name,
            text=f"there is no channel {name}, which {named} should tell",
            details={"channel": name, "tasks": tasks},
            hint=f"duly channel set {name} URL",
        )


def _text(at: datetime) -> str:
    return write_instant(at.replace(microsecond=0))
