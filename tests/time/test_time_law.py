"""The enumerator against a walk over real minutes, against CronSim, and against itself."""

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile

import time_walker
from cronsim import CronSim, CronSimError
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st
from time_draws import DRAWS, FEW_DRAWS, MANY_DRAWS, Scene, cron_lines, local, scenes, times, triggers

from duly import zones
from duly.core.triggers import (
    Cron,
    Daily,
    Trigger,
    Triggers,
    count,
    is_due_at,
    last_at_or_before,
    last_before,
    next_after,
    occurrences,
)
from duly.core.wallclock import Fold, Gap
from duly.errors import Invalid

TICK = timedelta(microseconds=1)
CORE = timedelta(hours=30)
GAPS: tuple[Gap, ...] = ("run", "run", "skip")
FOLDS: tuple[Fold, ...] = ("first", "first", "second", "both")
MOST = 20_000


def readable(line: str) -> Cron:
    """A drawn line as a trigger; impossible dates and steps that never repeat are not what is asked here."""
    trigger = Cron(expression=line)
    try:
        is_due_at((trigger,), zones.zone("UTC"), datetime(2000, 1, 1, tzinfo=UTC))
    except Invalid:
        assume(False)
    return trigger


def forwards(
    given_triggers: Triggers, scene: Scene, start: datetime, end: datetime, gap: Gap, fold: Fold
) -> list[datetime]:
    stream = occurrences(given_triggers, scene.zone, start - TICK, gap=gap, fold=fold)
    return list(islice(takewhile(lambda at: at <= end, stream), MOST))


def backwards(
    given_triggers: Triggers, scene: Scene, start: datetime, end: datetime, gap: Gap, fold: Fold
) -> list[datetime]:
    found: list[datetime] = []
    at = last_before(given_triggers, scene.zone, end + TICK, gap=gap, fold=fold)
    while at is not None and at >= start:
        found.append(at)
        at = last_before(given_triggers, scene.zone, at, gap=gap, fold=fold)
    return found[::-1]


@MANY_DRAWS
@given(st.data())
def test_a_cron_line_is_due_at_exactly_the_minutes_that_a_walk_over_the_clock_finds(data: st.DataObject) -> None:
    scene = data.draw(scenes())
    trigger = readable(data.draw(cron_lines(local(scene))))
    gap, fold = data.draw(st.sampled_from(GAPS)), data.draw(st.sampled_from(FOLDS))
    wants, real = time_walker.cron(trigger.expression)
    start, end = scene.change - CORE, scene.change + CORE
    due = time_walker.due(wants, real, scene.zone, start, end, gap=gap, fold=fold)
    assert forwards((trigger,), scene, start, end, gap, fold) == due
    assert backwards((trigger,), scene, start, end, gap, fold) == due
    assert count((trigger,), scene.zone, start - TICK, end, gap=gap, fold=fold) == len(due)
    moment = scene.moment
    after, before = [at for at in due if at > moment], [at for at in due if at < moment]
    if after:
        assert next_after((trigger,), scene.zone, moment, gap=gap, fold=fold) == after[0]
    if before:
        assert last_before((trigger,), scene.zone, moment, gap=gap, fold=fold) == before[-1]
    assert is_due_at((trigger,), scene.zone, moment, gap=gap, fold=fold) == (moment in due)


@FEW_DRAWS
@given(st.data())
def test_a_line_with_seconds_is_due_at_exactly_the_seconds_that_a_walk_finds(data: st.DataObject) -> None:
    scene = data.draw(scenes(reach=timedelta(hours=1)))
    before, after = (at.astimezone(scene.zone).utcoffset() for at in (scene.change - TICK, scene.change))
    assert before is not None
    assert after is not None
    assume(abs(before - after) <= timedelta(hours=3))
    trigger = readable(data.draw(cron_lines(local(scene), seconds=True)))
    gap, fold = data.draw(st.sampled_from(GAPS)), data.draw(st.sampled_from(FOLDS))
    wants, real = time_walker.cron(trigger.expression)
    start, end = scene.change - timedelta(minutes=70), scene.change + timedelta(minutes=70)
    due = time_walker.due(wants, real, scene.zone, start, end, gap=gap, fold=fold, step=1)
    assert forwards((trigger,), scene, start, end, gap, fold) == due
    assert count((trigger,), scene.zone, start - TICK, end, gap=gap, fold=fold) == len(due)
    assert backwards((trigger,), scene, start, end, gap, fold) == due


@DRAWS
@given(st.data())
def test_daily_times_are_due_at_exactly_the_minutes_that_a_walk_finds(data: st.DataObject) -> None:
    scene = data.draw(scenes())
    at = data.draw(times(local(scene)))
    gap, fold = data.draw(st.sampled_from(GAPS)), data.draw(st.sampled_from(FOLDS))
    start, end = scene.change - CORE, scene.change + CORE
    due = time_walker.due(lambda shown: shown.time() in at, False, scene.zone, start, end, gap=gap, fold=fold)
    trigger = Daily(times=at)
    assert forwards((trigger,), scene, start, end, gap, fold) == due
    assert backwards((trigger,), scene, start, end, gap, fold) == due
    assert count((trigger,), scene.zone, start - TICK, end, gap=gap, fold=fold) == len(due)


@settings(DRAWS, derandomize=True)  # the other has faults of its own, and they shall not come by chance
@given(st.data())
def test_next_agrees_with_cronsim_on_every_line_it_can_read(data: st.DataObject) -> None:
    scene = data.draw(scenes(reach=timedelta(days=20)))
    line = data.draw(cron_lines(local(scene)))
    trigger = readable(line)
    there = scene.moment.astimezone(scene.zone)
    assume(there.fold == 0)  # it is known to return a past instant from within a repeated hour
    assume(_whole_hours(scene))  # it moves by whole hours of real time, and so misses minutes after other changes
    simulated = _cronsim(line, there)
    assume(simulated is not None)
    assert simulated is not None
    ours = next_after((trigger,), scene.zone, scene.moment)
    note(f"{line} {scene} ours {ours} cronsim {simulated}")
    assert ours == simulated


def _whole_hours(scene: Scene) -> bool:
    offsets = [at.astimezone(scene.zone).utcoffset() for at in (scene.change - TICK, scene.change)]
    assert offsets[0] is not None
    assert offsets[1] is not None
    return (offsets[1] - offsets[0]) % timedelta(hours=1) == timedelta(0)


def _cronsim(line: str, there: datetime) -> datetime | None:
    try:
        found = next(CronSim(line, there))
    except (CronSimError, StopIteration, AssertionError):  # what it cannot read or find is not compared
        return None
    # It is known to start a day at midnight even where the clock shows none, and then names a time that is not.
    real = found.astimezone(UTC).astimezone(there.tzinfo)
    return found.astimezone(UTC) if real.replace(tzinfo=None) == found.replace(tzinfo=None) else None


@DRAWS
@given(st.data())
def test_several_triggers_are_one_row_of_distinct_instants_that_count_knows(data: st.DataObject) -> None:
    scene = data.draw(scenes())
    several = tuple(data.draw(st.lists(triggers(local(scene)), min_size=1, max_size=5)))
    for trigger in several:
        if isinstance(trigger, Cron):
            readable(trigger.expression)
    gap, fold = data.draw(st.sampled_from(GAPS)), data.draw(st.sampled_from(FOLDS))
    start, end = scene.moment - timedelta(hours=40), scene.moment + timedelta(hours=40)
    walked = forwards(several, scene, start, end, gap, fold)
    apart: set[datetime] = set()
    for trigger in several:
        apart.update(forwards((trigger,), scene, start, end, gap, fold))
    assert walked == sorted(apart)
    assert backwards(several, scene, start, end, gap, fold) == walked
    assert count(several, scene.zone, start - TICK, end, gap=gap, fold=fold) == len(walked)


@DRAWS
@given(st.data())
def test_next_then_last_comes_back_and_the_two_never_disagree(data: st.DataObject) -> None:
    scene = data.draw(scenes())
    trigger: Trigger = data.draw(triggers(local(scene), seconds=data.draw(st.booleans())))
    if isinstance(trigger, Cron):
        readable(trigger.expression)
    following = next_after((trigger,), scene.zone, scene.moment)
    if following is None:
        return
    assert following > scene.moment
    assert is_due_at((trigger,), scene.zone, following)
    assert last_at_or_before((trigger,), scene.zone, following) == following
    previous = last_before((trigger,), scene.zone, following)
    at_or_before = last_at_or_before((trigger,), scene.zone, scene.moment)
    assert previous == at_or_before
    if previous is not None:
        assert next_after((trigger,), scene.zone, previous) == following


@DRAWS
@given(scenes(), st.integers(1, 9999), st.data())
def test_no_moment_of_the_calendar_raises(scene: Scene, year: int, data: st.DataObject) -> None:
    trigger = data.draw(triggers(local(scene)))
    if isinstance(trigger, Cron):
        readable(trigger.expression)
    ends = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC), datetime(year, 1, 1, tzinfo=UTC))
    for moment in ends:
        following = next_after((trigger,), scene.zone, moment)
        previous = last_before((trigger,), scene.zone, moment)
        assert following is None or following > moment
        assert previous is None or previous < moment
        is_due_at((trigger,), scene.zone, moment)
        count((trigger,), scene.zone, moment, min(moment, ends[1] - timedelta(days=9)) + timedelta(days=8))
