"""A definition's schedule: its triggers in its zone, with the rules that bound and bend them.

Every question about when a *task* is due is answered here; `triggers` knows nothing of rules. `start` and `until`
belong to the schedule, both included.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from duly.core import triggers, walking
from duly.core.task import Definition

TICK = timedelta(microseconds=1)


def next_due(definition: Definition, zone: ZoneInfo, after: datetime) -> datetime | None:
    """Give the first instant strictly after `after` at which the task is due."""
    rules = definition.rules
    if rules.start is not None and after < rules.start:
        after = rules.start - TICK
    found = triggers.next_after(definition.triggers, zone, after, gap=rules.gap, fold=rules.fold)
    return None if found is None or (rules.until is not None and found > rules.until) else found


def is_over(definition: Definition, following: datetime | None) -> bool:
    """Tell whether nothing starts the task by itself any more, given its next due instant."""
    return following is None and triggers.yields_instants(definition.triggers) and not takes_events(definition)


def takes_events(definition: Definition) -> bool:
    """Tell whether an event can start the task."""
    return triggers.takes_events(definition.triggers)


def last_due(definition: Definition, zone: ZoneInfo, moment: datetime) -> datetime | None:
    """Give the last instant not after `moment` at which the task was due."""
    rules = definition.rules
    if rules.until is not None and moment > rules.until:
        moment = rules.until
    found = triggers.last_at_or_before(definition.triggers, zone, moment, gap=rules.gap, fold=rules.fold)
    return None if found is None or (rules.start is not None and found < rules.start) else found


def last_due_before(definition: Definition, zone: ZoneInfo, moment: datetime) -> datetime | None:
    """Give the last instant strictly before `moment` at which the task was due."""
    return last_due(definition, zone, moment - TICK)


def is_due(definition: Definition, zone: ZoneInfo, moment: datetime) -> bool:
    """Tell whether the task is due at exactly this moment."""
    return last_due(definition, zone, moment) == moment


def count_due(definition: Definition, zone: ZoneInfo, after: datetime, until: datetime) -> int:
    """Count the distinct instants in (after, until] at which the task is due, exactly and without walking them."""
    rules = definition.rules
    if rules.start is not None:
        after = max(after, rules.start - TICK)
    if rules.until is not None:
        until = min(until, rules.until)
    return triggers.count(definition.triggers, zone, after, until, gap=rules.gap, fold=rules.fold)


def fixed_of(all_: triggers.Triggers) -> triggers.Triggers:
    """Give the triggers that mean people's local times: the only ones of which the rules `gap` and `fold` speak."""
    return tuple(trigger for trigger in all_ if _is_fixed(trigger))


def asks_the_wall(all_: triggers.Triggers) -> bool:
    """Tell whether any of these means what the wall of a zone shows, so that it depends on the zone's data."""
    return any(isinstance(trigger, triggers.Cron) for trigger in all_) or bool(fixed_of(all_))


def walk(definition: Definition, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """Yield what `dues` does, made for very many in a row."""
    rules = definition.rules
    if rules.start is not None and after < rules.start:
        after = rules.start - TICK
    for found in walking.instants(definition.triggers, zone, after, gap=rules.gap, fold=rules.fold):
        if rules.until is not None and found > rules.until:
            return
        yield found


def dues(definition: Definition, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """Yield the instants strictly after `after` at which the task is due, in order; perhaps without end."""
    found = next_due(definition, zone, after)
    while found is not None:
        yield found
        found = next_due(definition, zone, found)


def _is_fixed(trigger: triggers.Trigger) -> bool:
    if isinstance(trigger, triggers.Once):
        return trigger.local is not None
    return not triggers.is_interval_like(trigger)
