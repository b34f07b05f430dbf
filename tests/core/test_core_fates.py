"""Whatever the trigger, the zone and the moments: successive plans give each occurrence exactly one fate."""

from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from core_values import task_of
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from duly.core.planning import OPENINGS_MOST, plan
from duly.core.triggers import Cron, Daily, Every, Once, Trigger, Weekly, occurrences

WALKED_MOST = 1_500
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kathmandu")
CHANGES = (
    datetime(2026, 3, 29, 1, tzinfo=UTC),
    datetime(2026, 10, 25, 1, tzinfo=UTC),
    datetime(2026, 3, 8, 7, tzinfo=UTC),
    datetime(2026, 11, 1, 6, tzinfo=UTC),
    datetime(2026, 4, 4, 15, tzinfo=UTC),
    datetime(2026, 6, 15, 12, tzinfo=UTC),
)
seconds = st.integers(min_value=0, max_value=86_399)
times = st.builds(lambda s: time(s // 3600, s // 60 % 60, s % 60), seconds)
offsets = st.integers(min_value=-48 * 3600, max_value=48 * 3600).map(lambda s: timedelta(seconds=s))
lines = st.sampled_from(
    [
        "* * * * *",
        "*/7 * * * *",
        "30 2 * * *",
        "0 0 * * *",
        "15,45 1-3 * * *",
        "0 */2 * * *",
        "*/20 30 2 * * *",
        "0 9 * * 1-5",
        "0 9 L * *",
    ]
)


@st.composite
def scenes(draw: st.DrawFn) -> tuple[tuple[Trigger, ...], str, datetime]:
    around = draw(st.sampled_from(CHANGES)) + draw(offsets)
    trigger: st.SearchStrategy[Trigger] = st.one_of(
        st.builds(Cron, expression=lines),
        st.builds(Daily, times=st.lists(times, min_size=1, max_size=3, unique=True).map(lambda t: tuple(sorted(t)))),
        st.builds(
            Weekly,
            weekdays=st.sets(st.integers(0, 6), min_size=1).map(lambda d: tuple(sorted(d))),
            times=times.map(lambda t: (t,)),
        ),
        st.builds(
            Every,
            span=st.sampled_from([60, 61, 600, 3600, 5400, 86_400]).map(lambda s: timedelta(seconds=s)),
            anchor=offsets.map(lambda o: around + o),
        ),
        st.builds(Once, at=offsets.map(lambda o: around + o)),
    )
    triggers = tuple(draw(st.lists(trigger, min_size=1, max_size=3)))
    return triggers, draw(st.sampled_from(ZONES)), around


steps = st.one_of(
    st.integers(min_value=-7200, max_value=7200),  # a clock may go back
    st.integers(min_value=0, max_value=300),
    st.integers(min_value=0, max_value=100_000),
).map(lambda s: timedelta(seconds=s))
spans = st.sampled_from([None, timedelta(0), timedelta(seconds=30), timedelta(hours=2), timedelta(days=2)])
rules = st.fixed_dictionaries(
    {
        "on_missed": st.sampled_from(["run", "skip"]),
        "grace": spans,
        "max_age": st.sampled_from([timedelta(0), timedelta(minutes=10), timedelta(hours=6), timedelta(days=30)]),
    }
)


@settings(max_examples=100, deadline=None)
@given(scene=scenes(), moves=st.lists(steps, min_size=1, max_size=8), told=rules)
@example(
    scene=((Once(at=CHANGES[0]), Daily(times=(time(3),))), "Europe/Berlin", CHANGES[0] - timedelta(hours=1)),
    moves=[timedelta(hours=1), timedelta(hours=-1), timedelta(hours=2)],
    told={"on_missed": "run", "grace": timedelta(hours=2), "max_age": timedelta(0)},
)
def test_successive_plans_cover_every_occurrence_between_the_cursors_exactly_once(
    scene: tuple[tuple[Trigger, ...], str, datetime],
    moves: list[timedelta],
    told: dict[str, Any],
) -> None:
    triggers, name, start = scene
    zone = ZoneInfo(name)
    cursor, now = start, start
    spans_seen: list[tuple[datetime, datetime, int]] = []
    for move in moves:
        now = now + move
        made = plan(task_of(*triggers, zone=name, cursor=cursor, **told), zone, now)
        assert made.planned_until >= cursor, "the cursor never moves back"
        assert len(made.openings) <= OPENINGS_MOST
        assert all(cursor < one.due_at <= now for one in made.openings)
        assert all(one.late_by == now - one.due_at for one in made.openings)
        if made.stretch is not None:
            assert cursor < made.stretch.first <= made.stretch.last <= now
            assert (made.stretch.count == 1) == (made.stretch.first == made.stretch.last)
            spans_seen.append((made.stretch.first, made.stretch.last, made.stretch.count))
        spans_seen += [(one.due_at, one.due_at, 1) for one in made.openings]
        assert made.next_due_at is None or made.next_due_at > made.planned_until
        assert made.done == (made.next_due_at is None)
        if made.next_due_at is not None and made.next_due_at <= now:
            assert len(made.openings) >= OPENINGS_MOST, "nothing due is left over but what one plan may not open"
        cursor = made.planned_until

    walked = []
    for due in occurrences(triggers, zone, start):
        if due > cursor:
            break
        walked.append(due)
        assume(len(walked) < WALKED_MOST)
    spans_seen.sort()
    covered: list[datetime] = []
    for first, last, count in spans_seen:
        within = [due for due in walked if first <= due <= last]
        assert within[0] == first
        assert within[-1] == last
        assert len(within) == count
        covered += within
    assert covered == walked, "each occurrence has exactly one fate, in order, without overlap"
