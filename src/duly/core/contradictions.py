"""Rules that contradict each other or the triggers: found when a definition is written, told with reason and figures.

Only what an author wrote can be at fault, judged by all rules in force: a default that makes an older task
contradictory leaves it as it is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from duly.core import spans, triggers
from duly.core.action_fields import bound_to
from duly.core.rule_fields import OF_AGENTS
from duly.core.schedule import next_due
from duly.core.successes import KINDS, success_to_json
from duly.core.task import Definition, Rules, timeout_of
from duly.errors import Invalid

OF_INSTANTS = ("start", "until", "times", "spread", "gap", "fold")
"""Rules that say nothing about a task which is never due by time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """What cannot hold at once: the rule at fault, why, the figures, and what to write instead."""

    rule: str
    message: str
    hint: str | None = None
    figures: Mapping[str, object] = field(default_factory=dict)


def refuse_contradictions(
    definition: Definition, zone: ZoneInfo, now: datetime, *, before: Definition | None = None
) -> None:
    """Raise Invalid for the first contradiction that was not there `before`."""
    known = {one.rule: one for one in contradictions(before, zone, now)} if before is not None else {}
    for one in contradictions(definition, zone, now):
        if known.get(one.rule) != one:
            raise _invalid(one)


def contradictions(definition: Definition, zone: ZoneInfo, now: datetime) -> Iterator[Contradiction]:
    """Find what contradicts in a definition whose defaults are filled in, as of `now`."""
    yield from _of_schedule(definition, zone, now)
    yield from _of_missing_partners(definition)
    yield from _of_spans(definition)
    yield from _of_agents(definition)
    yield from _of_success(definition)


def check_defaults(values: Mapping[str, object]) -> None:
    """Raise Invalid where default rules, alone, contradict each other."""
    rules = replace(Rules(), **values)  # type: ignore[arg-type]
    bare = Definition(name="any", action={"kind": "command"}, rules=rules, own_rules=frozenset(values))
    for one in _of_spans(bare):
        raise _invalid(one)


def _of_schedule(definition: Definition, zone: ZoneInfo, now: datetime) -> Iterator[Contradiction]:
    rules, own = definition.rules, definition.own_rules
    if not triggers.yields_instants(definition.triggers):
        what = "which events start" if definition.triggers else "which runs by hand only"
        for name in OF_INSTANTS:
            if name in own:
                text = f"it says nothing about a task {what}"
                yield Contradiction(rule=name, message=text, hint="a --when with times, or without this rule")
        if "remove_when_done" in own and rules.remove_when_done:
            yield Contradiction(rule="remove_when_done", message=f"a task {what} is never done")
        return
    timed = [trigger for trigger in definition.triggers if not isinstance(trigger, triggers.On)]
    if all(_knows_no_wall(trigger) for trigger in timed):
        for name in ("gap", "fold"):
            if name in own:
                text = "its triggers follow real time through every gap and fold, so there is nothing to decide"
                yield Contradiction(rule=name, message=text, hint="a fixed time such as daily 02:30")
    if rules.start is not None and rules.until is not None and rules.until <= rules.start:
        yield Contradiction(
            rule="until",
            message=f"it is not after the start, {spans.write_instant(rules.start)}",
            figures={"start": spans.write_instant(rules.start), "until": spans.write_instant(rules.until)},
        )
    elif own & {"start", "until"} and next_due(definition, zone, now) is None:
        yield _nothing_due(definition, zone, now)


def _knows_no_wall(trigger: triggers.Trigger) -> bool:
    return triggers.is_interval_like(trigger) or (isinstance(trigger, triggers.Once) and trigger.at is not None)


def _nothing_due(definition: Definition, zone: ZoneInfo, now: datetime) -> Contradiction:
    rules = definition.rules
    free = next_due(replace(definition, rules=replace(rules, until=None)), zone, now)
    at_fault = "until" if rules.until is not None else "start"
    bounds = {"start": rules.start, "until": rules.until}
    figures: dict[str, object] = {name: spans.write_instant(at) for name, at in bounds.items() if at is not None}
    figures["next_due"] = None if free is None else spans.write_instant(free)
    ahead = "" if free is None else f": without it the next would be due {spans.write_instant(free)}"
    return Contradiction(rule=at_fault, message=f"nothing is due within these bounds{ahead}", figures=figures)


def _of_missing_partners(definition: Definition) -> Iterator[Contradiction]:
    rules, own = definition.rules, definition.own_rules
    partners = (
        ("at_most", "on_missed", "run_all", rules.on_missed),
        ("offer_for", "on_missed", "offer", rules.on_missed),
        ("queue", "overlap", "queue", rules.overlap),
        ("answer_within", "unattended", "park", rules.unattended),
        ("then", "unattended", "park", rules.unattended),
    )
    for name, partner, wanted, found in partners:
        if name in own and found != wanted:
            yield Contradiction(
                rule=name,
                message=f"it counts with {partner} {wanted} only, and here {partner} is {found}",
                hint=f"{partner} {wanted}, or without this rule",
                figures={partner: found, "wanted": wanted},
            )
    for name in ("retry_after", "retry_up_to"):
        if name in own and rules.retries == 0:
            text = "it counts with retries only, and here retries is 0"
            yield Contradiction(rule=name, message=text, hint="retries as well", figures={"retries": 0})


def _of_spans(definition: Definition) -> Iterator[Contradiction]:
    rules, own = definition.rules, definition.own_rules
    if own & {"retry_after", "retry_up_to"} and rules.retry_after > rules.retry_up_to:
        name, other = ("retry_after", "retry_up_to") if "retry_after" in own else ("retry_up_to", "retry_after")
        word = "longer" if name == "retry_after" else "shorter"
        figures = _figures(retry_after=rules.retry_after, retry_up_to=rules.retry_up_to)
        text = f"{figures[name]} is {word} than {other}, which is {figures[other]}"
        yield Contradiction(rule=name, message=text, hint=f"{other} as well", figures=figures)
    if "idle_timeout" in own and rules.idle_timeout is not None:
        timeout = timeout_of(definition)
        if rules.idle_timeout >= timeout:
            figures = _figures(idle_timeout=rules.idle_timeout, timeout=timeout)
            text = f"the timeout, {figures['timeout']}, ends an attempt before it can be silent for so long"
            yield Contradiction(rule="idle_timeout", message=text, hint="a shorter one", figures=figures)


def _of_agents(definition: Definition) -> Iterator[Contradiction]:
    kind = str(definition.action.get("kind"))
    for name in sorted(OF_AGENTS & definition.own_rules):
        if kind != "agent":
            text = f"it means agents alone, and what this task does is a {kind}"
            yield Contradiction(rule=name, message=text, hint="--agent, or without this rule", figures={"kind": kind})
    if definition.rules.on_interrupt == "resume" and kind != "agent" and "on_interrupt" in definition.own_rules:
        text = f"resume goes on in the session of an agent, and what this task does is a {kind}"
        yield Contradiction(rule="on_interrupt", message=text, hint="fail or retry", figures={"kind": kind})
    session = bound_to(definition.action)
    if definition.rules.on_interrupt == "retry" and session is not None and "on_interrupt" in definition.own_rules:
        text = f"retry would send the same prompt into the session {session} once more"
        yield Contradiction(rule="on_interrupt", message=text, hint="resume or fail", figures={"session": session})


def _of_success(definition: Definition) -> Iterator[Contradiction]:
    rule, kind = definition.rules.success_when, str(definition.action.get("kind"))
    if rule is None or "success_when" not in definition.own_rules:
        return
    asked = [part for part in success_to_json(rule) if part not in KINDS.get(kind, ())]
    if asked:
        article = "an" if kind == "agent" else "a"
        text = f"it asks for {' and '.join(asked)}, which {article} {kind} does not leave"
        hint = f"{' or '.join(KINDS[kind])}" if kind in KINDS else "a command, or without this rule"
        yield Contradiction(rule="success_when", message=text, hint=hint, figures={"kind": kind, "asked": asked})


def _figures(**given: timedelta) -> dict[str, object]:
    return {name: spans.write_span(value) for name, value in given.items()}


def _invalid(one: Contradiction) -> Invalid:
    return Invalid(one.message, field=f"rules.{one.rule}", hint=one.hint, details=one.figures)
