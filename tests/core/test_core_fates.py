"""Whatever the trigger, the zone and the moments: successive plans give each occurrence exactly one fate."""

from dataclasses import replace
from datetime import datetime, time, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from core_draws import CHANGES, bounds, hands, moves_or_aims, rules, scenes, steps
from core_values import TICK, task_of
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from late_walker import TooMany, is_whole, judged, told, walk

from duly.core.lateness import grace_for
from duly.core.planning import OPENINGS_MOST, Plan, plan
from duly.core.schedule import dues as dues_of
from duly.core.skips import Range
from duly.core.spreading import share_of
from duly.core.task import Task
from duly.core.triggers import Daily, Once, Trigger, occurrences

WALKED_MOST = 1_500


@settings(max_examples=300, deadline=None)
@given(scene=scenes(), moves=moves_or_aims, told_rules=rules, bound=bounds, skips=hands)
@example(
    scene=((Once(at=CHANGES[0]), Daily(times=(time(3),))), "Europe/Berlin", CHANGES[0] - timedelta(hours=1)),
    moves=[timedelta(hours=1), timedelta(hours=-1), timedelta(hours=2)],
    told_rules={"on_missed": "run", "grace": timedelta(hours=2), "max_age": timedelta(0)},
    bound=(None, None),
    skips=[],
)
def test_every_occurrence_has_the_one_fate_that_the_table_gives_it_when_it_is_judged_by_itself(
    scene: tuple[tuple[Trigger, ...], str, datetime],
    moves: list[timedelta | tuple[int, str, int]],
    told_rules: dict[str, Any],
    bound: tuple[timedelta | None, timedelta | None],
    skips: list[tuple[int, int, str]],
) -> None:
    triggers, name, start = scene
    zone = ZoneInfo(name)
    low, high = (None if offset is None else start + offset for offset in bound)
    task = task_of(*triggers, zone=name, cursor=start, start=low, until=high, **told_rules)
    ahead = list(islice(dues_of(task.definition, zone, start), 18))
    skipped = [
        Range(first=ahead[first], last=ahead[min(first + length, len(ahead) - 1)], by=by, note=None)
        for first, length, by in skips
        if first < len(ahead)
    ]
    now = start
    for move in moves:
        now = now + move if isinstance(move, timedelta) else aimed(task, zone, move, now)
        try:
            dues = walk(task, zone, now, skipped, WALKED_MOST)
        except TooMany:
            assume(False)
        expected = judged(task, dues)
        punctual = sum(fate == "schedule" for _, fate in expected)
        made = plan(task, zone, now, skipped)
        assert made.planned_until >= task.planned_until, "the cursor never moves back"
        assert made.next_due_at is None or made.next_due_at > made.planned_until
        assert (made.next_due_at is None) == (made.next_start_at is None) == made.done
        if punctual > OPENINGS_MOST:
            assert [one.opened_by for one in made.openings].count("schedule") == OPENINGS_MOST
            assert made.next_due_at is not None
            assert made.next_due_at <= now, "the rest is due now, so that the planner comes back at once"
            task = moved(task, made)
            continue
        assert told(made, dues) == expected
        assert is_whole(made)
        assert all(one.late_by == max(timedelta(0), now - one.start_at) for one in made.openings)
        assert made.next_due_at is None or made.next_due_at > now
        task = moved(task, made)


def aimed(task: Task, zone: ZoneInfo, aim: tuple[int, str, int], now: datetime) -> datetime:
    """The moment at which one of the next occurrences is exactly so late, give or take a microsecond."""
    place, what, ticks = aim
    ahead = list(islice(dues_of(task.definition, zone, task.planned_until), place + 1))
    if not ahead:
        return now
    due = ahead[-1]
    rules = task.definition.rules
    following = next(iter(dues_of(task.definition, zone, due)), None)
    late_by = {
        "due": timedelta(0),
        "max_age": rules.max_age,
        "grace": grace_for(rules, due, following),
        "half a minute": timedelta(seconds=30),
    }[what]
    return due + share_of(task.id, due, spread=rules.spread, following=following) + late_by + ticks * TICK


def moved(task: Task, made: Plan) -> Task:
    """The task as the write of this plan leaves it."""
    opened = task.scheduled_runs + len(made.openings)
    return replace(task, planned_until=made.planned_until, scheduled_runs=opened, done=made.done)


@settings(max_examples=50, deadline=None)
@given(scene=scenes(), moves=st.lists(steps, min_size=1, max_size=8), told_rules=rules)
def test_successive_plans_cover_every_occurrence_between_the_cursors_exactly_once(
    scene: tuple[tuple[Trigger, ...], str, datetime],
    moves: list[timedelta],
    told_rules: dict[str, Any],
) -> None:
    triggers, name, start = scene
    zone = ZoneInfo(name)
    task = task_of(*triggers, zone=name, cursor=start, **told_rules)
    now = start
    spans: list[tuple[datetime, datetime, int]] = []
    for move in moves:
        now = now + move
        made = plan(task, zone, now)
        spans += [(one.due_at, one.due_at, 1) for one in made.openings]
        spans += [(one.first, one.last, one.count) for one in made.stretches]
        task = moved(task, made)
    walked = []
    for due in occurrences(
        triggers, zone, start, gap=told_rules.get("gap", "run"), fold=told_rules.get("fold", "first")
    ):
        if due > task.planned_until:
            break
        walked.append(due)
        assume(len(walked) < WALKED_MOST)
    spans.sort()
    covered: list[datetime] = []
    for first, last, count in spans:
        within = [due for due in walked if first <= due <= last]
        assert (within[0], within[-1], len(within)) == (first, last, count)
        covered += within
    assert covered == walked, "each occurrence has exactly one fate, in order, without overlap"
