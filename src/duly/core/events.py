"""Events: how they are read, which listeners they match, and whether a task that listens is started by one."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from duly.core.admission import rank_of
from duly.core.event_text import keys_of, write_on
from duly.core.names import key_of
from duly.core.occurrences import event_key
from duly.core.run import Entry, Run
from duly.core.spans import write_instant, write_span
from duly.core.task import Definition, Task
from duly.core.triggers import On
from duly.errors import Invalid

BODY_MOST = 1024 * 1024
"""Bytes of an event's JSON."""
DEPTH_MOST = 100
"""Lists and objects inside each other in an event's JSON."""
KIND_MOST = 120
"""Characters of one value that tell the kinds of a throttle apart."""
CHAIN_MOST = 10
"""Tasks that one event may come through; the next is not started any more."""
OURS = "duly"
"""The first word of the sources that only Duly itself emits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened, as it was received; `body` is its JSON, as it was written."""

    id: str
    source: str
    key: str | None
    body: str
    at: datetime
    by: str
    through: tuple[str, ...] = ()
    """The tasks it came through, by their ids, oldest first."""
    after: int = 0
    """The number of the last entry of the ledger before it: clocks step, and who listened then is asked by order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opens:
    """The task is started; these windows of its throttles begin, each until an instant."""

    windows: Mapping[str, datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedOver:
    """The task listens to this very event and is not started: why, and the figures."""

    reason: str | None
    """A reason of the closed set; None where the event is no occurrence of the task, and its ledger is told nothing."""
    message: str
    details: Mapping[str, object] = field(default_factory=dict)


def check_body(text: str) -> str:
    """Give an event's JSON as it is kept; Invalid when it is none, too large, or too deep."""
    if len(text.encode("utf-8", "surrogatepass")) > BODY_MOST:
        raise Invalid("an event's data are at most 1 MiB of JSON", field="data")
    kept = text.strip()
    try:
        value = json.loads(kept, parse_float=_finite, parse_int=_whole, parse_constant=_no_number)
        kept.encode()
    except UnicodeEncodeError as error:
        raise Invalid("it is not valid UTF-8", field="data", text=kept, at=error.start) from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        at = error.pos if isinstance(error, json.JSONDecodeError) else 0
        told = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        hint = "a text stands in double quotes: '\"…\"'" if kept[:1].isalpha() else 'such as \'{"branch": "main"}\''
        raise Invalid(f"it is not JSON: {told}", field="data", text=kept, at=at, hint=hint) from None
    _check_depth(value)
    return kept


def same_body(one: str, other: str) -> bool:
    """Tell whether two events' JSON mean the same: blanks and the order of an object's keys tell nothing."""
    return one == other or _canonical(one) == _canonical(other)


def parsed(body: str) -> object:
    """Read an event's JSON for matching: numbers are the texts they are written as."""
    return json.loads(body, parse_float=str, parse_int=str)


def matches(trigger: On, source: str, body: object) -> bool:
    """Tell whether an event is one that this trigger takes: by its source, and by each of the pairs."""
    if trigger.source != source:
        return False
    return all(
        any(key_of(text) == key_of(wanted) for text in _texts(body, keys_of(path))) for path, wanted in trigger.match
    )


def window_of(trigger: On, body: object) -> str:
    """Name the window of a throttle in which an event falls: the trigger, and what stands at its paths, made alike.

    Small letters, `#` for each number, one blank for several, and not more than the beginning of a long text.
    """
    assert trigger.throttle is not None
    kinds = [_alike(",".join(_texts(body, keys_of(path)))) for path in trigger.throttle.by]
    return "\n".join([write_on(trigger), *kinds])


def sources_of(definition: Definition) -> frozenset[str]:
    """Give the sources that a definition listens to."""
    return frozenset(trigger.source for trigger in definition.triggers if isinstance(trigger, On))


def judge(
    task: Task, event: Event, body: object, *, paused: bool, until_of: Callable[[str], datetime | None]
) -> Opens | PassedOver | None:
    """Judge whether an event starts a task; None where the task does not listen to it.

    `until_of` gives the end of a window that has begun. Suppressed events do not make it longer.
    """
    listening = [trigger for trigger in task.definition.triggers if isinstance(trigger, On)]
    taking = [trigger for trigger in listening if matches(trigger, event.source, body)]
    if not taking:
        return None
    return _held(task, paused=paused) or _chained(task, event) or _throttle(taking, event.at, body, until_of)


def opened(task: Task, event: Event, *, id_: str) -> tuple[Run, Entry]:
    """Open a run for an event: due at the event's own moment."""
    run = Run(
        id=id_,
        task=task.id,
        occurrence=event_key(event.source, event.key or event.id),
        due_at=event.at,
        opened_at=event.at,
        opened_by="event",
        opened_by_whom=event.by,
        not_before=event.at,
        definition_version=task.definition_version,
        project=key_of(task.definition.project),
        rank=rank_of("event", task.definition.rules),
        event=event.id,
    )
    details: dict[str, object] = {"event": event.id, "source": event.source, "key": event.key}
    entry = Entry(
        kind="opened",
        at=event.at,
        task=task.id,
        occurrence=run.occurrence,
        run=run.id,
        reason="event",
        by=event.by,
        details=details,
    )
    return run, entry


def passed_over(task: Task, event: Event, passed: PassedOver) -> Entry:
    """Tell of an event that a task listens to and that does not start it."""
    assert passed.reason is not None
    return Entry(
        kind="skipped",
        at=event.at,
        task=task.id,
        occurrence=event_key(event.source, event.key or event.id),
        reason=passed.reason,
        by=event.by,
        details={"event": event.id, "source": event.source, "key": event.key, "why": passed.message, **passed.details},
    )


def _held(task: Task, *, paused: bool) -> PassedOver | None:
    if task.done:
        return PassedOver(reason=None, message="it is done")
    if not task.definition.enabled:
        return PassedOver(reason="disabled", message="it is disabled")
    return PassedOver(reason="paused", message="it is paused") if paused else None


def _chained(task: Task, event: Event) -> PassedOver | None:
    through = list(event.through)
    if task.id in event.through:
        message = "the event came through this task already"
        return PassedOver(reason="suppressed", message=message, details={"through": through})
    if len(through) >= CHAIN_MOST:
        message = f"the event came through {len(through)} tasks, and a chain ends there"
        return PassedOver(reason="suppressed", message=message, details={"through": through, "most": CHAIN_MOST})
    return None


def _throttle(
    taking: Sequence[On], at: datetime, body: object, until_of: Callable[[str], datetime | None]
) -> Opens | PassedOver:
    """Ask each trigger's throttle; one that lets the event through is enough."""
    windows: dict[str, datetime] = {}
    last: tuple[datetime, On, str] | None = None
    opens = False
    for trigger in taking:
        if trigger.throttle is None:
            opens = True
            continue
        window = window_of(trigger, body)
        until = until_of(window)
        if until is None or at >= until:
            opens = True
            windows[window] = at + trigger.throttle.within
        elif last is None or until > last[0]:
            last = until, trigger, window
    if opens:
        return Opens(windows=windows)
    assert last is not None
    return _throttled(*last)


def _throttled(until: datetime, trigger: On, window: str) -> PassedOver:
    assert trigger.throttle is not None
    within = write_span(trigger.throttle.within)
    whole = until.replace(microsecond=0) + timedelta(seconds=bool(until.microsecond))
    message = f"throttled until {write_instant(whole)}, one in {within}"
    details = {"until": write_instant(until), "within": within, "alike": window.split("\n")[1:]}
    return PassedOver(reason="suppressed", message=message, details=details)


def _texts(value: object, keys: tuple[str, ...]) -> list[str]:
    """Give the texts that stand at a path; of a list, those of all its members; of nothing, none."""
    if isinstance(value, list):
        return [text for member in value for text in _texts(member, keys)]
    if keys:
        inside = isinstance(value, dict) and keys[0] in value
        return _texts(value[keys[0]], keys[1:]) if inside and isinstance(value, dict) else []
    if isinstance(value, dict):
        return []
    # Numbers were read as the texts they are.
    return [value if isinstance(value, str) else json.dumps(value)]


def _alike(text: str) -> str:
    return " ".join(re.sub(r"\d+", "#", text.lower()).split())[:KIND_MOST]


def _canonical(body: str) -> str:
    return json.dumps(json.loads(body), sort_keys=True)


def _check_depth(value: object) -> None:
    depth, layer = 0, [value]
    while containers := [one for one in layer if isinstance(one, dict | list)]:
        depth += 1
        if depth > DEPTH_MOST:
            raise _too_deep()
        layer = [member for one in containers for member in (one.values() if isinstance(one, dict) else one)]


def _too_deep() -> Invalid:
    return Invalid(f"lists and objects stand in each other more than {DEPTH_MOST} deep", field="data")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


def _whole(text: str) -> float:
    return _finite(text)


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number in JSON")
