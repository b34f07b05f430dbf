"""Why a moment is, or is not, one of a task's instants under one definition: each trigger's answer, and the bounds.

Says the same as `schedule.is_due`, and beside a *no* what the trigger wants that the moment does not have.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import assert_never
from zoneinfo import ZoneInfo

from duly.core import words
from duly.core.cron import Line, read_line
from duly.core.readings import Days, Pattern, at_or_after, days_of_month, wants_day
from duly.core.schedule import last_due_before, next_due
from duly.core.spans import write_instant, write_local, write_span
from duly.core.task import Definition, Rules
from duly.core.triggers import (
    CRON_WEEKDAY,
    Cron,
    Daily,
    Every,
    On,
    Once,
    Trigger,
    Weekly,
    is_due_at,
    is_interval_like,
    once_instants,
    wall_clock,
)
from duly.core.wallclock import EPOCH, REAL, Stretch, instant_of, instants_of, law, stretch_at, whole_seconds
from duly.core.when import write_time

SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmet:
    """One thing that a trigger wants and a moment does not have, in words: the hour is 10, it runs in the hour 9."""

    what: str
    has: str
    wants: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one trigger says of a moment: `reason` None is yes, with `mark` gap or fold where its wall is bent there.

    Reasons of a *no*: fields, gap, fold, fraction, before_anchor, between, elsewhere, event.
    """

    trigger: Trigger
    reason: str | None = None
    unmet: tuple[Unmet, ...] = ()
    mark: str | None = None
    figures: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Whether a definition is due at a moment, why not, and its instants on both sides.

    `reason` is one of `reasons.NOT_DUE`; `answers` are the triggers', in their order.
    """

    due: bool
    reason: str | None
    answers: tuple[Answer, ...]
    figures: Mapping[str, object]
    before: datetime | None
    after: datetime | None


def judge(definition: Definition, zone: ZoneInfo, at: datetime) -> Judgement:
    """Judge one moment by a definition's triggers and bounds; state (paused, done …) is not asked."""
    answers = tuple(_answer(trigger, definition.rules, zone, at) for trigger in definition.triggers)
    reason, figures = _reason(definition.rules, answers, at)
    before = last_due_before(definition, zone, at) if definition.triggers else None
    after = next_due(definition, zone, at) if definition.triggers else None
    if reason == "no_match" and "unmet" not in figures:
        figures = {**figures, **_nearest(at, before, after)}
    return Judgement(due=reason is None, reason=reason, answers=answers, figures=figures, before=before, after=after)


def _nearest(at: datetime, before: datetime | None, after: datetime | None) -> dict[str, object]:
    if before is None and after is None:
        return {}
    if after is None or (before is not None and at - before <= after - at):
        assert before is not None
        return {"nearest_s": _seconds(at - before), "side": "earlier"}
    return {"nearest_s": _seconds(after - at), "side": "later"}


def _reason(rules: Rules, answers: tuple[Answer, ...], at: datetime) -> tuple[str | None, Mapping[str, object]]:
    if not answers:
        return "by_hand", {}
    yes = next((answer for answer in answers if answer.reason is None), None)
    if rules.start is not None and at < rules.start:
        return "before_start", {"start_at": write_instant(rules.start), "before_by_s": _seconds(rules.start - at)}
    if rules.until is not None and at > rules.until:
        return "after_until", {"until_at": write_instant(rules.until), "after_by_s": _seconds(at - rules.until)}
    if yes is not None:
        return None, yes.figures
    # What is bent by a change of clocks surprises more than what simply does not match.
    bent = next((answer for answer in answers if answer.reason in {"gap", "fold"}), None)
    only = bent or (answers[0] if len(answers) == 1 else None)
    if only is None:
        return "no_match", {"triggers": len(answers)}
    assert only.reason is not None
    figures = dict(only.figures)
    if only.unmet:
        figures["unmet"] = unmet_text(only.unmet)
    return "no_match" if only.reason == "fields" else only.reason, figures


def unmet_text(unmet: tuple[Unmet, ...]) -> str:
    """Say what is not met: `the weekday is Saturday, and it runs on weekdays (Monday to Friday)`."""
    return "; ".join(f"the {one.what} is {one.has}, and it runs {one.wants}" for one in unmet)


def _answer(trigger: Trigger, rules: Rules, zone: ZoneInfo, at: datetime) -> Answer:
    match trigger:
        case Cron() | Daily() | Weekly():
            return _wall(trigger, rules, zone, at)
        case Once():
            return _once(trigger, rules, zone, at)
        case Every():
            return _every(trigger, at)
        case On():
            return Answer(trigger=trigger, reason="event", figures={"source": trigger.source})
    assert_never(trigger)


def _wall(trigger: Cron | Daily | Weekly, rules: Rules, zone: ZoneInfo, at: datetime) -> Answer:
    if at.microsecond:
        return Answer(trigger=trigger, reason="fraction", figures={"fraction_s": at.microsecond / 1_000_000})
    pattern, _ = wall_clock(trigger, law(rules.gap, rules.fold))
    second = whole_seconds(at)
    stretch = stretch_at(zone, second)
    reading = second + stretch.offset
    due = is_due_at((trigger,), zone, at, gap=rules.gap, fold=rules.fold)
    if at_or_after(pattern, reading) == reading:
        passes = instants_of(zone, reading, REAL)
        figures = _fold(reading, second, passes, rules) if len(passes) > 1 else {}
        if due:
            return Answer(trigger=trigger, mark="fold" if figures else None, figures=figures)
        return Answer(trigger=trigger, reason="fold", figures=figures)
    missing = _missing(pattern, stretch, second)
    if due:
        assert missing is not None, "due without a reading that it stands for"
        return Answer(trigger=trigger, mark="gap", figures=_gap(missing, stretch, rules))
    if missing is not None:
        told = _gap(missing, stretch, rules) | ({"follows": "the real clock"} if is_interval_like(trigger) else {})
        return Answer(trigger=trigger, reason="gap", figures=told)
    return Answer(trigger=trigger, reason="fields", unmet=_unmet(trigger, pattern, reading))


def _missing(pattern: Pattern, stretch: Stretch, second: int) -> int | None:
    """Give the wanted reading that a gap which ends at this second leaves out."""
    if second != stretch.start or stretch.before >= stretch.offset:
        return None
    found = at_or_after(pattern, second + stretch.before)
    return found if found is not None and found < second + stretch.offset else None


def _gap(missing: int, stretch: Stretch, rules: Rules) -> dict[str, object]:
    left, shown = stretch.start + stretch.before, stretch.start + stretch.offset
    clocks = {"from": _wall_text(left)[11:], "to": _wall_text(shown)[11:]}
    return {"missing": _wall_text(missing), **clocks, "gap": rules.gap}


def _fold(reading: int, second: int, passes: tuple[int, ...], rules: Rules) -> dict[str, object]:
    which = "first" if second == passes[0] else "second"
    other = passes[1] if which == "first" else passes[0]
    return {
        "repeated": _wall_text(reading),
        "pass": which,
        "fold": rules.fold,
        "other_at": write_instant(instant_of(other)),
    }


def _once(trigger: Once, rules: Rules, zone: ZoneInfo, at: datetime) -> Answer:
    found = once_instants(trigger, zone, law(rules.gap, rules.fold))
    if at in found:
        there = at.astimezone(zone).replace(tzinfo=None)
        moved = trigger.local is not None and trigger.local != there
        missing: dict[str, object] = {"missing": write_local(trigger.local)} if moved and trigger.local else {}
        return Answer(trigger=trigger, mark="gap" if moved else None, figures=missing)
    if not found:
        assert trigger.local is not None
        return Answer(trigger=trigger, reason="gap", figures={"missing": write_local(trigger.local), "gap": rules.gap})
    if trigger.local is not None:
        reading = whole_seconds(trigger.local.replace(tzinfo=EPOCH.tzinfo))
        passes = instants_of(zone, reading, REAL)
        if len(passes) > 1 and not at.microsecond and whole_seconds(at) in passes:
            return Answer(trigger=trigger, reason="fold", figures=_fold(reading, whole_seconds(at), passes, rules))
    return Answer(trigger=trigger, reason="elsewhere", figures={"once_at": write_instant(found[0])})


def _every(trigger: Every, at: datetime) -> Answer:
    told: dict[str, object] = {"every": write_span(trigger.span), "anchor_at": write_instant(trigger.anchor)}
    if at < trigger.anchor:
        return Answer(trigger=trigger, reason="before_anchor", figures=told)
    rest = (at - trigger.anchor) % trigger.span
    if not rest:
        return Answer(trigger=trigger, figures=told)
    told |= {"after_step_s": _seconds(rest), "before_step_s": _seconds(trigger.span - rest)}
    return Answer(trigger=trigger, reason="between", figures=told)


def _unmet(trigger: Cron | Daily | Weekly, pattern: Pattern, reading: int) -> tuple[Unmet, ...]:
    there = EPOCH + timedelta(seconds=reading)
    if isinstance(trigger, Cron):
        return _unmet_fields(read_line(trigger.expression), pattern, there)
    out = []
    if isinstance(trigger, Weekly) and there.weekday() not in trigger.weekdays:
        days = tuple(sorted(CRON_WEEKDAY[day] for day in trigger.weekdays))
        out.append(Unmet(what="weekday", has=_weekday(there), wants=words.weekdays_want(days)))
    if there.time() not in trigger.times:
        wanted = words.listed([write_time(one) for one in trigger.times])
        out.append(Unmet(what="time", has=write_time(there.time()), wants=f"at {wanted}"))
    return tuple(out)


def _unmet_fields(line: Line, pattern: Pattern, there: datetime) -> tuple[Unmet, ...]:
    date, month, weekday = line.fields[3:]
    out = []
    if there.month not in month.values:
        out.append(Unmet(what="month", has=words.MONTH_NAMES[there.month - 1], wants=words.field_wants(month)))
    if there.month in month.values and not wants_day(pattern, (there - EPOCH).days):
        dates, weekdays = _halves(pattern.days)
        on_date = there.day in days_of_month(dates, there.year, there.month)
        on_weekday = there.day in days_of_month(weekdays, there.year, there.month)
        if not pattern.days.both:
            has = f"{_weekday(there)} the {words.ordinal(there.day)}"
            out.append(Unmet(what="day", has=has, wants=words.days_want(date, weekday)))
        if pattern.days.both and not on_date:
            out.append(Unmet(what="day", has=f"the {words.ordinal(there.day)}", wants=words.field_wants(date)))
        if pattern.days.both and not on_weekday:
            counted = any(item.special == "#" for item in weekday.items)
            which = f", the {words.COUNTED[(there.day + 6) // 7]} of the month" if counted else ""
            out.append(Unmet(what="weekday", has=_weekday(there) + which, wants=words.field_wants(weekday)))
    return (*out, *_unmet_time(line, there))


def _unmet_time(line: Line, there: datetime) -> tuple[Unmet, ...]:
    """Say which fields of the time fail; where several do and the times are few, the time as a whole."""
    values = zip(line.fields[:3], (there.second, there.minute, there.hour), strict=True)
    out = [
        Unmet(what=one.kind.name, has=str(value), wants=words.field_wants(one))
        for one, value in values
        if value not in one.values
    ]
    times = words.times_want(line)
    if len(out) > 1 and times is not None:
        return (Unmet(what="time", has=write_time(there.time()), wants=f"at {times}"),)
    return tuple(reversed(out))


@lru_cache(maxsize=1024)
def _halves(days: Days) -> tuple[Days, Days]:
    """Part wanted days into those of the date field and those of the weekday field."""
    whole = Days()
    dates = replace(days, weekdays=whole.weekdays, nth=frozenset(), last_of=frozenset(), both=True)
    weekdays = Days(weekdays=days.weekdays, nth=days.nth, last_of=days.last_of)
    return dates, weekdays


def _weekday(there: datetime) -> str:
    return words.DAY_NAMES[CRON_WEEKDAY[there.weekday()]]


def _wall_text(reading: int) -> str:
    return write_local((EPOCH + timedelta(seconds=reading)).replace(tzinfo=None))


def _seconds(span: timedelta) -> float:
    return round(span.total_seconds(), 6)
