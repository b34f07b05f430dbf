"""What the tests of planning draw: triggers, zones and moments around changes of offset, and all rules of lateness."""

from datetime import UTC, datetime, time, timedelta

from core_values import DAY
from hypothesis import strategies as st

from duly.core.triggers import Cron, Daily, Every, Once, Trigger, Weekly

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
graces = st.sampled_from([None, None, timedelta(0), timedelta(seconds=30), timedelta(hours=2), timedelta(days=2)])
ages = st.sampled_from([timedelta(0), timedelta(seconds=90), timedelta(minutes=10), timedelta(hours=6), 30 * DAY])
spreads = st.sampled_from([timedelta(0), timedelta(0), *(timedelta(seconds=n) for n in (1, 30, 600, 7200, 200_000))])
rules = st.fixed_dictionaries(
    {
        "on_missed": st.sampled_from(["run", "run_all", "skip", "offer"]),
        "grace": graces,
        "max_age": ages,
        "at_most": st.sampled_from([1, 2, 3, 10, 1000]),
        "spread": spreads,
        "gap": st.sampled_from(["run", "skip"]),
        "fold": st.sampled_from(["first", "second", "both"]),
        "times": st.sampled_from([None, None, None, 1, 2, 5, 40]),
    }
)
bounds = st.tuples(st.none() | offsets, st.none() | offsets)
hands = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 5), st.sampled_from(["ann", "bob"])), max_size=3)
aims = st.tuples(
    st.integers(0, 3) | st.integers(0, 15),
    st.sampled_from(["grace", "max_age", "due", "half a minute"]),
    st.sampled_from([-1, 0, 0, 1]),
)
"""At which occurrence, how late, and how many microseconds beside that."""
moves_or_aims = st.lists(st.one_of(steps, aims), min_size=1, max_size=6)
