"""All there is to know of one task or one run, in one answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import cast

from duly import zones
from duly.core.events import Event, sources_of
from duly.core.questions import Question
from duly.core.run import Run
from duly.core.skips import Range, covering
from duly.core.task import Task
from duly.operations import event_shapes, listing, previewing, shapes
from duly.store.rows import Written
from duly.store.store import Session

UPCOMING = 3
RECENT_RUNS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskShown:
    """A task, its next instants, its newest runs."""

    listed: listing.Listed
    shape: Mapping[str, object]
    coming: tuple[previewing.Coming, ...]
    skipped: tuple[Range | None, ...]
    """What a person said of each of them, where they skipped it."""
    recent: tuple[Mapping[str, object], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunShown:
    """A run, its task, the event that it was opened for, its story."""

    run: Run
    task: Task | None
    event: Event | None
    shape: Mapping[str, object]
    story: tuple[Written, ...]
    question: Question | None = None
    """The last that its work asked."""


def task(session: Session, task: Task) -> TaskShown:
    """Show a task with its schedule in words, its next instants and its newest runs."""
    one = listing.one(session, task)
    definition = task.definition
    shape = listing.shape(one)
    coming: tuple[previewing.Coming, ...] = ()
    skipped: tuple[Range | None, ...] = ()
    items: list[dict[str, object]] = []
    if task.broken is None:
        zone = zones.zone(definition.zone)
        coming = tuple(islice(previewing.upcoming(task, session.now), UPCOMING))
        ranges = session.skips.of(task.id, after=task.planned_until)
        skipped = tuple(covering(ranges, one.due_at) for one in coming)
        items = [
            previewing.item_of(task, zone, one) | {"skipped": shapes.skipped(range_)}
            for one, range_ in zip(coming, skipped, strict=True)
        ]
    heard = sources_of(definition)
    recent = session.runs.listed(task=task.id, most=RECENT_RUNS)
    shape |= {
        "words": previewing.say(definition.triggers),
        "canonical": previewing.canonical(definition.triggers),
        "upcoming": items,
        "sources": [event_shapes.source(one) for one in session.events.known() if one.name in heard],
    }
    return TaskShown(
        listed=one,
        shape=shape,
        coming=coming,
        skipped=skipped,
        recent=tuple(listing.run_shape(session, run, task) for run in recent),
    )


def run(session: Session, run: Run) -> RunShown:
    """Show a run with its task and its story."""
    of = session.tasks.by_id(run.task)
    shape = cast(Mapping[str, object], listing.run_shape(session, run, of))
    event = None if run.event is None else session.events.by_id(run.event)
    asked = None if run.question is None else session.questions.by_id(run.question)
    if event is not None:
        shape = {**shape, "event": event_shapes.event(event)}
    return RunShown(
        run=run,
        task=of,
        event=event,
        shape=shape,
        story=tuple(session.ledger.of_run(run.id)),
        question=asked,
    )
