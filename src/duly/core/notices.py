"""When a notice is due: on a change of state only, from the ledger's entries and what was told of a task last.

well ── fails `notify_after` times in a row ──▶ failing ── succeeds ──▶ well (told as recovered)
  └──────── a run is abandoned ────────▶ abandoned ── succeeds ──▶ well (told as recovered)

What was missed is told once until the task runs again; each question and each offer waits for an answer of its own.
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Literal

from duly.core.run import Entry
from duly.core.spans import exact_instant, write_instant
from duly.core.values import changed, value

Kind = Literal[
    "failing",
    "abandoned",
    "recovered",
    "missed",
    "offer",
    "question",
    "paused",
    "store_away",
    "budget",
    "test",
    "ping",
]
Severity = Literal["info", "success", "warning", "failure"]
SEVERITIES: Mapping[str, Severity] = {
    "failing": "failure",
    "abandoned": "failure",
    "recovered": "success",
    "missed": "warning",
    "offer": "info",
    "question": "info",
    "paused": "failure",
    "store_away": "failure",
    "budget": "warning",
    "test": "info",
    "ping": "info",
}
TOLD_KINDS = frozenset({"ended", "skipped", "missed", "parked", "paused", "removed", "outage"})
"""Kinds of entries of which a notice, or the end of what was told, may be made."""
NEVER_RAN = frozenset({"missed_skip", "stale", "too_many"})
"""Why an occurrence did not run that nobody hears of otherwise."""
FAILURES = frozenset({"failed", "timed_out", "abandoned"})
DULY = "duly"
ERROR_MOST = 500
"""Characters of an error that a notice tells."""


@value
class Told:
    """What is known of a task and was told of it: its failures in a row, how it stands, whether it misses its times."""

    failures: int = 0
    state: Literal["well", "failing", "abandoned"] = "well"
    missed: bool = False
    run: str | None = None
    """The first run that failed."""
    since: datetime | None = None


@value
class Notice:
    """Something that somebody should know, once: `cause` is what it is told for, of which there is one notice."""

    kind: Kind
    cause: str
    at: datetime
    task: str | None = None
    run: str | None = None
    subject: str | None = None
    """The question or the missed occurrence that waits for an answer; the budget that is used up."""
    details: Mapping[str, object] = field(default_factory=dict)


@value
class Standing:
    """How what a notice tells of stands now."""

    open: bool | None = None
    """Whether its question or offer still waits for an answer; None where it has none."""
    removed: bool = False
    enabled: bool = True
    held_by_person: bool = False
    held_by_duly: bool = False


WELL = Told()


def of_entry(seq: int, entry: Entry, told: Told, *, after: int) -> tuple[Told, Notice | None]:
    """Give what is known of a task after one more entry, and the notice that is due by it; `after`: its notify_after.

    An entry that belongs to no task leaves what is known as it is.
    """
    match entry.kind:
        case "ended":
            return _ended(seq, entry, told, after)
        case "skipped" if entry.run is not None and entry.reason in NEVER_RAN:
            return _missed(seq, entry, told)
        case "missed" if entry.reason in NEVER_RAN:
            return _missed(seq, entry, told)
        case "missed" if entry.reason == "missed_offer":
            return told, _notice("offer", seq, entry, subject=_text(entry, "missed"))
        case "parked":
            return told, _notice("question", seq, entry, subject=_text(entry, "question"))
        case "paused" if entry.by == DULY and entry.task is not None:
            return told, _notice("paused", seq, entry, run=_text(entry, "run"))
        case "outage" if entry.reason == "store_away":
            return told, _notice("store_away", seq, entry)
        case "removed":
            return WELL, None
    return told, None


def of_budget(key: str, *, since: datetime, at: datetime, details: Mapping[str, object]) -> Notice:
    """Give the notice of a budget of which nothing is left in the period that began then."""
    cause = f"budget:{key}:{write_instant(since)}"
    return Notice(kind="budget", cause=cause, at=at, subject=key, details=details)


def of_test(channel: str, *, at: datetime) -> Notice:
    """Give the notice by which a person tries a channel."""
    return Notice(kind="test", cause=f"test:{write_instant(at)}", at=at, details={"channel": channel})


def is_settled(notice: Notice, standing: Standing) -> bool:
    """Tell whether nobody needs to hear of it any more: a person has answered, or has taken the task in hand."""
    if notice.kind in ("question", "offer"):
        return standing.open is False or standing.removed
    in_hand = standing.removed or not standing.enabled
    if notice.kind == "paused":
        return in_hand or not standing.held_by_duly
    if notice.kind in ("failing", "abandoned", "missed"):
        return in_hand or standing.held_by_person
    return False


def to_json(told: Told) -> dict[str, object]:
    """Write down what is known of a task."""
    return {
        "failures": told.failures,
        "state": told.state,
        "missed": told.missed,
        "run": told.run,
        "since": None if told.since is None else write_instant(told.since),
    }


def from_json(stored: Mapping[str, object]) -> Told:
    """Read what was written down; what does not read was never told."""
    failures, state, since, run = (stored.get(name) for name in ("failures", "state", "since", "run"))
    return Told(
        failures=failures if isinstance(failures, int) else 0,
        state=state if state in ("failing", "abandoned") else "well",
        missed=stored.get("missed") is True,
        run=run if isinstance(run, str) else None,
        since=exact_instant(since, field="since") if isinstance(since, str) else None,
    )


def _ended(seq: int, entry: Entry, told: Told, after: int) -> tuple[Told, Notice | None]:
    outcome = entry.details.get("outcome")
    if outcome == "succeeded":
        recovered = None
        if told.state != "well":
            since = None if told.since is None else write_instant(told.since)
            more = {"failures": told.failures, "first_run": told.run, "failing_since": since}
            recovered = _notice("recovered", seq, entry, more=more)
        return WELL, recovered
    ran = changed(told, missed=False)
    if outcome not in FAILURES:
        return ran, None
    failures = told.failures + 1
    known = changed(ran, failures=failures, run=told.run or entry.run, since=told.since or entry.at)
    more = {"failures": failures, "first_run": known.run}
    if entry.reason == "missed_offer":
        return known, _notice("offer", seq, entry, subject=_text(entry, "missed"), more=more)
    if outcome == "abandoned":
        if told.state == "abandoned":
            return known, None
        return changed(known, state="abandoned"), _notice("abandoned", seq, entry, more=more)
    if told.state == "well" and failures >= after:
        return changed(known, state="failing"), _notice("failing", seq, entry, more=more)
    return known, None


def _missed(seq: int, entry: Entry, told: Told) -> tuple[Told, Notice | None]:
    if told.missed:
        return told, None
    return changed(told, missed=True), _notice("missed", seq, entry, subject=_text(entry, "missed"))


def _notice(
    kind: Kind,
    seq: int,
    entry: Entry,
    *,
    subject: str | None = None,
    run: str | None = None,
    more: Mapping[str, object] | None = None,
) -> Notice:
    details: dict[str, object] = {
        **entry.details,
        "reason": entry.reason,
        "occurrence": entry.occurrence,
        "count": entry.count,
        "attempt": entry.attempt,
        "until": None if entry.until_at is None else write_instant(entry.until_at),
        **(more or {}),
    }
    known = {name: told for name, told in details.items() if told is not None}
    return Notice(
        kind=kind,
        cause=f"ledger:{seq}",
        at=entry.at,
        task=entry.task,
        run=entry.run or run,
        subject=subject,
        details=known,
    )


def _text(entry: Entry, name: str) -> str | None:
    found = entry.details.get(name)
    return found if isinstance(found, str) else None
