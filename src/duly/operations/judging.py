"""Judging a definition before it is written: whether it can ever run, and whether its rules can hold together."""

from datetime import datetime

from duly import zones
from duly.core.contradictions import refuse_contradictions
from duly.core.events import OURS
from duly.core.own_events import SOURCES
from duly.core.reading import nearest
from duly.core.task import Definition
from duly.core.triggers import On, Once, Trigger, next_after
from duly.errors import DulyError, Invalid
from duly.operations.channels import check_named
from duly.operations.limits import check_fits
from duly.store import Session


def judge(definition: Definition, now: datetime, *, before: Definition | None = None) -> None:
    """Raise Invalid for a trigger that never comes (again) or for rules that contradict each other.

    The definition has its defaults filled in. What was so `before` is no reason to refuse a change of something else.
    """
    for trigger in definition.triggers:
        if not _comes(trigger, definition, now) and (before is None or not _was_over(trigger, before, now)):
            raise _never(trigger)
        if before is None or trigger not in before.triggers:
            _check_source(trigger)
    refuse_contradictions(definition, zones.zone(definition.zone), now, before=before)


def judge_in_store(session: Session, definition: Definition, *, before: Definition | None = None) -> tuple[str, ...]:
    """Judge a definition by the store's defaults and limits too; gives what its author should know."""
    filled = session.defaults.fill_in(definition)
    judge(filled, session.now, before=before)
    return (*check_fits(session, filled), *check_named(session, filled))


def _comes(trigger: Trigger, definition: Definition, now: datetime) -> bool:
    return isinstance(trigger, On) or next_after((trigger,), zones.zone(definition.zone), now) is not None


def _check_source(trigger: Trigger) -> None:
    """Refuse a source of Duly's own that it never emits."""
    if not isinstance(trigger, On) or trigger.source.partition(".")[0] != OURS or trigger.source in SOURCES:
        return
    near = nearest(trigger.source, SOURCES)
    raise Invalid(
        f"Duly itself has no event {trigger.source}",
        field="triggers",
        hint=f"on {near}" if near else None,
        details={"allowed": list(SOURCES)},
    )


def _was_over(trigger: Trigger, before: Definition, now: datetime) -> bool:
    try:
        return trigger in before.triggers and not _comes(trigger, before, now)
    except DulyError:  # its zone is gone; then nothing of it came any more
        return True


def _never(trigger: Trigger) -> Invalid:
    if isinstance(trigger, Once):
        return Invalid(
            "its time is in the past, so it would never run",
            field="when",
            hint="an instant ahead, such as once in 20m",
        )
    return Invalid("it never occurs", field="when")
