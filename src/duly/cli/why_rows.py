"""The screens of `why`: the answer on the first line, below it what stands behind it, a name and a value a line."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from duly.cli import out
from duly.cli.moments import away, full_text
from duly.cli.table import Cell, pairs, plain, wrapped
from duly.cli.why_parts import Rows, beside, hold_text, noticed, run, said, story, wall_of
from duly.cli.words import colour, mark, rule_text
from duly.core.figures import Wall, distance, local_text
from duly.operations import why_answer
from duly.operations.lookup import ending, told

if TYPE_CHECKING:
    from duly.core.explaining import Answer
    from duly.operations.why_values import Neighbour, Why

OWN_SHOWN = 6
"""Rules of the author's own that one screen names."""
WHOSE: Mapping[str, str] = {
    "own": "",
    "project": " (the project's default)",
    "store": " (the store's default)",
    "built_in": " (default)",
}
TRIGGERS_SHOWN = 4
MARKED_AS: Mapping[str, str] = {
    "missed": "failed",
    "offered": "waiting",
    "overdue": "waiting",
    "not_opened": "skipped",
    "would_start": "succeeded",
    "would_wait": "waiting",
    "may_be_skipped": "skipped",
    "would_not_open": "skipped",
}
"""Fates that no run has, and the outcome or state whose mark they bear."""
FATE_COLOURS: Mapping[str, str] = {
    "missed": "red",
    "offered": "yellow",
    "overdue": "yellow",
    "not_opened": "yellow",
    "unknown": "yellow",
    "would_start": "green",
    "would_wait": "yellow",
    "may_be_skipped": "yellow",
    "would_not_open": "yellow",
}
"""Of fates that no run has; the others are coloured as their outcomes."""


def screen(found: "Why") -> list[str]:
    """Lay out the answer to one question."""
    return [*_head(found), *pairs(_rows(found))]


def _head(found: "Why") -> list[str]:
    """The answer in one sentence: its mark and the task's name stand out, its words alone tell it."""
    fate = found.fate.word
    name = plain(told(found.task)) if found.task is not None else ""
    line = plain(why_answer.first_line(found, wall_of(found)))
    styles = fate_colour(fate)
    if found.asked_at is None and found.kind == "task" and found.troubles:
        fate, styles = "overdue", ("yellow",)
    first, *rest = wrapped(f"{fate_mark(fate)} {line}", out.width())
    if name and name in first:
        before, _, after = first.partition(name)
        first = out.styled(before, *styles) + out.styled(name, "bold") + out.styled(after, *styles)
    else:
        first = out.styled(first, *styles)
    return [first, *(out.styled(f"  {more}", *styles) for more in rest)]


def fate_mark(fate: str) -> str:
    """Give the mark of a fate."""
    return mark(MARKED_AS.get(fate, fate))


def fate_colour(fate: str) -> tuple[str, ...]:
    """Give the colour of a fate; its words say the same."""
    return (FATE_COLOURS[fate],) if fate in FATE_COLOURS else colour(fate)


def _rows(found: "Why") -> Rows:
    rows = Rows()
    if found.asked_at is None and found.kind == "task":
        more = found.troubles[1:]
        rows += [("also", said(why_answer.trouble(one, wall_of(found)), "yellow")) for one in more]
    rows += _asked(found)
    rows += _triggers(found)
    rows += _reason(found)
    rows += run(found)
    rows += _record(found)
    rows += _then(found)
    rows += _version(found)
    rows += _around(found)
    rows += _see(found)
    return rows


def _asked(found: "Why") -> Rows:
    """The instant that the answer is about, on the task's wall and in UTC."""
    rows = Rows()
    if found.at is not None:
        name = "asked" if found.asked_at == found.at else "last" if found.kind == "task" else "due"
        rows.append((name, f"{_instant(found.at, found.zone)}, {away(found.at, found.now)}"))
    if found.kind == "run" and found.asked_at is not None:
        rows.append(("asked", f"{_instant(found.asked_at, found.zone)}, {away(found.asked_at, found.now)}"))
    starts = found.start_at
    if starts is not None and found.at is not None and starts != found.at:
        rows.append(("starts", f"{full_text(starts, found.zone)}, {distance(starts - found.at)} later by its spread"))
    return rows


def _instant(at: datetime, zone: ZoneInfo | None) -> str:
    wall = full_text(at, zone)
    there = at.astimezone(UTC)
    if zone is None or at.astimezone(zone).utcoffset() == timedelta(0):
        return wall
    same_day = there.date() == at.astimezone(zone).date()
    return f"{wall} ({there:%H:%M:%SZ})" if same_day else f"{wall} ({there.year:04d}-{there:%m-%d %H:%M:%SZ})"


def _triggers(found: "Why") -> Rows:
    """What the triggers say; of several each its own answer, where the instant is none of theirs."""
    from duly.operations.previewing import say

    judged, in_force = found.judgement, found.in_force
    if in_force is None or found.zone is None or judged is None:
        return []
    answers = judged.answers
    rows: Rows = [("when", said(f"{say(tuple(one.trigger for one in answers))} ({found.zone.key})"))]
    if not judged.due and len(answers) > 1:
        rows += [("", said(_no(one, found.zone))) for one in answers[:TRIGGERS_SHOWN]]
    rows += [("", said(bent)) for bent in dict.fromkeys(_bent(one) for one in answers) if bent]
    return rows


def _no(answer: "Answer", zone: ZoneInfo) -> str:
    from duly.core.explaining import unmet_text
    from duly.core.sentences import sentence
    from duly.core.when import write

    reason = "no_match" if answer.reason == "fields" else answer.reason or ""
    figures = dict(answer.figures) | ({"unmet": unmet_text(answer.unmet)} if answer.unmet else {})
    return f"{write(answer.trigger)}: {sentence('not_due', reason, figures, Wall(zone=zone))}"


def _bent(answer: "Answer") -> str:
    """What a change of clocks makes of an instant that is due."""
    if answer.mark == "gap":
        return f"it stands for {answer.figures['missing']}, which does not come on that wall (gap is run)"
    if answer.mark == "fold":
        figures = answer.figures
        return f"{figures['repeated']} comes twice on that wall, and this is its {figures['pass']} pass"
    return ""


def _reason(found: "Why") -> Rows:
    """The words that scripts read: the reason, and the rule behind it with its value."""
    reason = why_answer.reason_of(found.fate, found.waiting_for)
    if reason is None:
        return []
    rule = ""
    if found.rule is not None:
        rule = f"; {found.rule.name} is {_value(found.rule.value)}{WHOSE[found.rule.whose]}"
    rows: Rows = [("reason", said(f"{reason}{rule}"))]
    if reason == "nobody" and found.fate.word == "would_wait":
        grace = timedelta(seconds=float(str(found.fate.figures["grace_s"])))
        after = f"{distance(grace)} after it is due it counts as missed"
        rows.append(("then", said(f"{after}, and on_missed decides: {found.fate.figures['on_missed']}")))
    return rows


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return rule_text(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " ".join(str(one) for one in value)
    return "not set" if value is None else str(value)


def _record(found: "Why") -> Rows:
    """A missed record or a counted stretch: how many, from when to when, who found them, what was decided."""
    rows: Rows = []
    stretch, missed = found.fate.stretch, found.fate.missed
    if stretch is not None and stretch.count > 1:
        span = f"{local_text(stretch.first, wall_of(found))} to {local_text(stretch.last, wall_of(found))}"
        rows.append(("one of", said(f"{stretch.count:,} with this fate, from {span}")))
    if found.fate.run is None and found.fate.noticed_at is not None:
        name = "noticed" if missed is not None else "counted"
        rows.append((name, said(f"{local_text(found.fate.noticed_at, wall_of(found))} {noticed(found)}".rstrip())))
    if found.outage is not None:
        from duly.core.story import tell

        rows.append(("outage", said(tell(found.outage.entry, wall_of(found)))))
    if missed is not None and missed.state != "closed":
        whom = f" by {missed.decided_by}" if missed.decided_by else ""
        decided = "" if missed.decided_at is None else f" {away(missed.decided_at, found.now)}{whom}"
        became = f", run {ending(missed.run)}" if missed.run else ""
        note = f": {missed.note}" if missed.note else ""
        rows.append(("offer", said(f"{ending(missed.id)}, {missed.state}{decided}{became}{note}")))
    return rows


def _then(found: "Why") -> Rows:
    """What else was or is the case: pauses, other runs, what would be in the way, who serves."""
    # The pause that the first line tells of is not told twice.
    told_already = "paused" in {found.fate.reason, *(one.what for one in found.troubles[:1])}
    rows: Rows = [("paused", said(hold_text(hold, found), "yellow")) for hold in found.holds[told_already:]]
    if found.at is not None and found.at > found.now:
        rows += [("also", said(why_answer.trouble(one, wall_of(found)), "yellow")) for one in found.troubles[1:]]
    rows += [("beside", said(beside(run, found))) for run in found.beside]
    if found.serving is not None:
        named = ", ".join(f"{ending(row.id)} on {row.host} (pid {row.pid})" for row in found.serving)
        rows.append(("served by", said(named or "nobody", *(() if named else ("yellow",)))))
    return rows


def _version(found: "Why") -> Rows:
    """The definition in force at that time, and which of its rules are the author's own."""
    from duly.core.definition_json import rule_to_json
    from duly.core.rule_fields import RULES
    from duly.core.task import Broken

    in_force = found.in_force
    if in_force is None or found.task is None:
        return []
    until = f" until {full_text(in_force.until, found.zone)}" if in_force.until is not None else ""
    by = f" by {found.defined_by}" if found.defined_by else ""
    text = f"version {in_force.version}{by}, in force since {full_text(in_force.since, found.zone)}{until}"
    if isinstance(in_force.definition, Broken):
        return [("defined", said(text))]
    definition = in_force.definition
    own = [
        f"{field.name} {_value(rule_to_json(getattr(definition.rules, field.name)))}"
        + WHOSE[definition.inherited.get(field.name, "own")]
        for field in RULES
        if field.name in definition.own_rules or field.name in definition.inherited
    ]
    more = f" and {len(own) - OWN_SHOWN} more" if len(own) > OWN_SHOWN else ""
    rules = f"{', '.join(own[:OWN_SHOWN])}{more}; the others are defaults" if own else "all are defaults"
    return [("defined", said(text)), ("rules", said(rules))]


def _around(found: "Why") -> Rows:
    rows: Rows = []
    if found.before is not None:
        rows.append(("before", _neighbour(found.before, found)))
    if found.after is not None:
        upcoming = found.upcoming
        name = "next" if found.asked_at is None else "after"
        if upcoming is None:
            rows.append((name, _neighbour(found.after, found)))
        else:
            told_already = bool(found.troubles) and upcoming.fate.reason == found.troubles[0].what
            reason = None if told_already else why_answer.because(upcoming, wall_of(upcoming))
            word = upcoming.fate.word.replace("_", " ")
            text = f"{_instant(found.after.due_at, found.zone)}, {away(found.after.due_at, found.now)}: {word}"
            rows.append((name, said(f"{text}: {reason}" if reason else text)))
    return rows


def _neighbour(one: "Neighbour", found: "Why") -> Cell:
    assert found.at is not None
    fate = "" if one.fate is None else f": {one.fate.replace('_', ' ')}"
    reason = f", {one.reason}" if one.reason else ""
    apart = distance(one.due_at - found.at)
    side = "earlier" if one.due_at < found.at else "later"
    return said(f"{full_text(one.due_at, found.zone)}, {apart} {side}{fate}{reason}")


def _see(found: "Why") -> Rows:
    """What to type next."""
    own, missed = found.fate.run, found.fate.missed
    if found.kind == "run":
        return story(found)
    if missed is not None and missed.state == "open":
        newest = " (runs the newest of them)" if missed.count > 1 else ""
        return [("see", said(f"duly accept {ending(missed.id)}{newest}, or duly decline {ending(missed.id)}"))]
    if own is not None:
        more = f", duly log {ending(own.id)}" if own.attempt else ""
        return [("see", f"duly why {ending(own.id)}{more}")]
    return []
