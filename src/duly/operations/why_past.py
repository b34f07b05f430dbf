"""The fate of an instant whose time has come: its run, its missed record or its counted stretch, with the figures."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from duly.core import offers
from duly.core.definition_json import rule_to_json
from duly.core.lateness import grace_for
from duly.core.occurrences import at_key
from duly.core.run import Entry, Missed, Run
from duly.core.schedule import TICK, next_due
from duly.core.spans import write_instant
from duly.core.spreading import start_of
from duly.core.task import Broken, idle_timeout_of, on_interrupt_of, timeout_of
from duly.operations.why_then import Hold, author_of, holds_at, off_at
from duly.operations.why_values import Asking, Fate, Stretch
from duly.store.moments import Moments, first_of
from duly.store.rows import Written

RULE_OF: Mapping[str, str] = {
    "already_running": "overlap",
    "queue_full": "queue",
    "superseded": "overlap",
    "overlap": "overlap",
    "coalesced": "on_missed",
    "too_many": "at_most",
    "missed_skip": "on_missed",
    "missed_offer": "on_missed",
    "stale": "max_age",
    "gate_closed": "gate",
    "gate_failed": "gate",
    "timeout": "timeout",
    "idle": "idle_timeout",
    "holder_died": "on_interrupt",
    "lease_lost": "on_interrupt",
}
"""The rule that decides by each reason; the others are decided by people, or by no rule."""
SECOND = timedelta(seconds=1)
EVENTS_LOOKED_AT = 50
"""Runs opened before a moment, newest first, that are asked whether an event of that moment opened them."""
LATE_REASONS = frozenset({"coalesced", "too_many", "missed_skip", "missed_offer", "stale"})


def fate_at(asking: Asking, at: datetime, *, due: bool | None) -> Fate | None:
    """Give what the store tells of an instant; None where it tells nothing."""
    run = asking.session.runs.by_occurrence(asking.task.id, at_key(at))
    if run is not None:
        return of_run(asking, run, tuple(asking.session.ledger.of_run(run.id)))
    written = Moments(asking.session.line).stretch(asking.task.id, at)
    if written is None or not (due or at in (first_of(written), written.entry.until_at)):
        return None
    missed = asking.session.missed.by_id(str(written.entry.details.get("missed") or ""))
    return _of_stretch(asking, written, at) if missed is None else _of_missed(asking, written, missed, at)


def event_at(asking: Asking, at: datetime) -> Fate | None:
    """Give what became of an event received at a moment, or within its second where a whole one is asked about."""
    moments, end = Moments(asking.session.line), at + (TICK if at.microsecond else SECOND)
    for run in moments.runs_before(asking.task.id, end, EVENTS_LOOKED_AT):
        if run.opened_by == "event" and at <= run.due_at < end:
            return of_run(asking, run, tuple(asking.session.ledger.of_run(run.id)))
    passed = moments.passed_over(asking.task.id, at, end, 1)
    return of_passed(asking, passed[0]) if passed else None


def of_passed(asking: Asking, written: Written) -> Fate:
    """Give the fate of an event that a task listens to and was not started by."""
    entry = written.entry
    figures: dict[str, object] = {**entry.details, "by": entry.by}
    if entry.reason == "paused":
        figures |= _hold_figures(asking, entry.at)
    if entry.reason == "disabled":
        figures |= _off_figures(asking, entry.at)
    return Fate(
        word="not_opened",
        reason=entry.reason,
        rule=RULE_OF.get(entry.reason or ""),
        figures=_present(figures),
        noticed_at=entry.at,
        judged_at=entry.at,
    )


def of_run(asking: Asking, run: Run, story: Sequence[Written]) -> Fate:
    """Give the fate of an occurrence that opened a run, from the run and its entries."""
    opened = next((one.entry for one in story if one.entry.kind == "opened"), None)
    common = Fate(
        word="running" if run.state == "held" else run.state if run.outcome is None else run.outcome,
        use="no_start" if run.outcome == "skipped" else "ended",
        reason=run.reason if run.outcome is not None else None,
        run=run,
        noticed_at=run.opened_at,
        noticed_by=opened.holder if opened is not None else None,
        judged_at=run.ended_at or asking.session.now,
    )
    if run.outcome is None:
        return common
    figures = _run_figures(asking, run, [one.entry for one in story])
    return replace(common, rule=RULE_OF.get(run.reason or ""), figures=figures)


def _run_figures(asking: Asking, run: Run, entries: Sequence[Entry]) -> dict[str, object]:
    figures: dict[str, object] = {}
    last = next((one for one in reversed(entries) if one.kind in {"skipped", "ended"}), None)
    if last is not None:
        figures |= last.details
        figures["by"] = last.by
    figures |= {"exit_code": run.exit_code, "signal": run.signal, "error": _error(run)}
    asked = next((one for one in reversed(entries) if one.kind == "cancel_asked"), None)
    if asked is not None:
        figures |= {"by": asked.by, "asked_at": write_instant(asked.at), "newer": asked.by}
    if run.started_at is not None and run.ended_at is not None:
        figures["took_s"] = _seconds(run.ended_at - run.started_at)
    moment = run.ended_at or asking.session.now
    if run.reason == "paused":
        figures |= _hold_figures(asking, moment)
    if run.reason == "disabled":
        figures |= _off_figures(asking, moment)
    if run.reason == "schedule_changed":
        figures |= _change_figures(asking, moment)
    figures |= _already_running(figures, moment)
    return _present(figures | _rule_figures(asking, run.reason, moment, run))


def _error(run: Run) -> str | None:
    """Give what an end says beyond its reason; a status alone is told by its number."""
    said = (run.error or "").strip()
    return None if said in {"", run.reason, f"exit status {run.exit_code}"} else said


def _already_running(figures: Mapping[str, object], moment: datetime) -> dict[str, object]:
    since = figures.get("since")
    if isinstance(since, str):
        return {"had_for_s": _seconds(moment - datetime.fromisoformat(since))}
    return {}


def _of_missed(asking: Asking, written: Written, missed: Missed, at: datetime) -> Fate:
    entry, one = written.entry, offers.seen(missed, asking.session.now)
    figures: dict[str, object] = {**entry.details, "by": entry.by, "missed": one.id}
    if (entry.count or 1) > 1:
        figures["count"] = entry.count
    figures |= _late_figures(asking, at, one.noticed_at)
    figures |= _instead(asking, figures.pop("into", None))
    figures |= _rule_figures(asking, one.reason, one.noticed_at, None)
    return Fate(
        word="offered" if one.state == "open" else "missed",
        reason=one.reason,
        rule=RULE_OF.get(one.reason),
        figures=_present(figures),
        missed=one,
        stretch=_stretch(written),
        noticed_at=missed.noticed_at,
        noticed_by=missed.holder,
        judged_at=missed.noticed_at,
    )


def _late_figures(asking: Asking, at: datetime, noticed_at: datetime) -> dict[str, object]:
    """Say how late an instant was found, its spread left out, and how late still counts as punctual."""
    found = asking.versions.at(noticed_at)
    zone = None if found is None else found.zone()
    if found is None or zone is None or isinstance(found.definition, Broken):
        return {"late_by_s": _seconds(max(noticed_at - at, timedelta(0)))}
    definition = found.definition
    late_by = noticed_at - start_of(asking.task.id, definition, zone, at)
    grace = grace_for(definition.rules, at, next_due(definition, zone, at))
    return {"late_by_s": _seconds(max(late_by, timedelta(0))), "grace_s": _seconds(grace)}


def _instead(asking: Asking, into: object) -> dict[str, object]:
    """Name the run that stands for those that were found together with it."""
    run = asking.session.runs.by_occurrence(asking.task.id, str(into)) if into is not None else None
    return {} if run is None else {"instead": run.id, "instead_at": write_instant(run.due_at)}


def _of_stretch(asking: Asking, written: Written, at: datetime) -> Fate:
    entry = written.entry
    reason = entry.reason or "unknown"
    figures: dict[str, object] = {"by": entry.by, **entry.details}
    if (entry.count or 1) > 1:
        figures["count"] = entry.count
    if reason == "paused":
        figures |= _hold_figures(asking, at)
    if reason == "disabled":
        figures |= _off_figures(asking, at)
    if reason == "schedule_changed":
        figures |= _change_figures(asking, entry.at)
    if reason in LATE_REASONS:
        figures |= _late_figures(asking, at, entry.at)
        figures |= _instead(asking, figures.pop("into", None))
    figures |= _already_running(figures, at)
    return Fate(
        word="not_opened",
        reason=reason,
        rule=RULE_OF.get(reason),
        figures=_present(figures | _rule_figures(asking, reason, entry.at, None)),
        stretch=_stretch(written),
        noticed_at=entry.at,
        noticed_by=entry.holder,
        judged_at=entry.at,
    )


def _stretch(written: Written) -> Stretch:
    entry, first = written.entry, first_of(written)
    assert first is not None
    assert entry.until_at is not None
    return Stretch(
        first=first,
        last=entry.until_at,
        count=entry.count or 1,
        reason=entry.reason or "unknown",
        written_at=entry.at,
    )


def hold_figures(hold: Hold) -> dict[str, object]:
    """Give the figures of one pause."""
    scope = {"store": "the whole store", "project": f"the project {hold.target}"}.get(hold.scope, "it")
    ends = [at for at in (hold.until, hold.ended_at) if at is not None]
    return _present(
        {
            "scope": scope,
            "by": hold.by,
            "since": write_instant(hold.since),
            "until": write_instant(min(ends)) if ends else None,
            "note": hold.note,
        }
    )


def _hold_figures(asking: Asking, moment: datetime) -> dict[str, object]:
    holds = holds_at(asking.session, asking.task, moment)
    return hold_figures(holds[0]) if holds else {}


def _off_figures(asking: Asking, moment: datetime) -> dict[str, object]:
    off = off_at(asking.session, asking.task, moment)
    if off is None:
        return {}
    since = off.since or asking.versions.first()
    by = off.by or asking.task.created_by
    until = None if off.until is None else write_instant(off.until)
    return _present({"by": by, "since": None if since is None else write_instant(since), "until": until})


def _change_figures(asking: Asking, moment: datetime) -> dict[str, object]:
    """Say which version was written at a moment, and by whom."""
    found = asking.versions.at(moment + TICK)
    by = author_of(asking.session, asking.task, found)
    return {} if found is None else _present({"version": found.version, "by": by})


def _rule_figures(asking: Asking, reason: str | None, moment: datetime, run: Run | None) -> dict[str, object]:
    """Give the value of the rule behind a reason, by the version that decided."""
    rule = RULE_OF.get(reason or "")
    if rule is None:
        return {}
    definition = None
    if run is not None and run.attempt:
        read = asking.session.versions.read(asking.task.id, run.definition_version)
        definition = None if isinstance(read, Broken) else read
    if definition is None:
        found = asking.versions.at(moment)
        definition = None if found is None or isinstance(found.definition, Broken) else found.definition
    if definition is None:
        return {}
    value = rule_to_json(getattr(definition.rules, rule))
    if rule == "timeout" and definition.action:
        value = rule_to_json(timeout_of(definition))
    if rule == "on_interrupt":
        value = on_interrupt_of(definition.rules, definition.action)
    if rule == "idle_timeout" and definition.action:
        value = rule_to_json(idle_timeout_of(definition))
    figures: dict[str, object] = {rule: value}
    if rule == "max_age":
        figures["max_age_s"] = _seconds(definition.rules.max_age)
    return figures


def _present(figures: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in figures.items() if value is not None}


def _seconds(span: timedelta) -> float:
    return round(span.total_seconds(), 6)
