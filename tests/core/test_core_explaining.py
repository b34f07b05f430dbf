"""Why a moment is due or not under a definition: which field, which weekday, which bound, which bend of the clock."""

from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.explaining import judge
from duly.core.reasons import NOT_DUE
from duly.core.schedule import is_due, next_due
from duly.core.sentences import sentence
from duly.core.task import Definition, Rules
from duly.core.triggers import Cron, Daily, Every, On, Once, Trigger, Weekly
from duly.core.when import read
from duly.zones import zone

BERLIN = zone("Europe/Berlin")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def definition(*when: str, **rules: object) -> Definition:
    triggers = tuple(read(text, now=NOW, zone=BERLIN, past=True).trigger for text in when)
    return Definition(name="x", triggers=triggers, zone="Europe/Berlin", rules=Rules(**rules))  # type: ignore[arg-type]


def told(one: Definition, at: str) -> tuple[str | None, str]:
    judged = judge(one, BERLIN, datetime.fromisoformat(at).astimezone(UTC))
    return judged.reason, sentence("not_due", judged.reason, judged.figures) if judged.reason else ""


@pytest.mark.parametrize(
    ("when", "at", "says"),
    [
        ("0 9 * * mon-fri", "2026-12-05T09:00:00+01:00", "the weekday is Saturday, and it runs on weekdays"),
        ("0 9 * * mon-fri", "2026-12-04T10:00:00+01:00", "the hour is 10, and it runs in the hour 9"),
        ("0 9 * * mon-fri", "2026-12-04T08:59:59+01:00", "the time is 08:59:59, and it runs at 09:00"),
        ("0 9 * jan,jul *", "2026-12-04T09:00:00+01:00", "the month is December, and it runs in January and July"),
        ("0 9 L * *", "2026-12-30T09:00:00+01:00", "the day is the 30th, and it runs on the last day of the month"),
        ("0 9 15W * *", "2026-11-15T09:00:00+01:00", "it runs on the working day nearest the 15th of the month"),
        ("0 9 * * 5#2", "2026-12-04T09:00:00+01:00", "the weekday is Friday, the first of the month, and it runs on"),
        ("0 9 * * 5L", "2026-12-18T09:00:00+01:00", "it runs on the last Friday of the month"),
        ("0 9 1,15 * mon", "2026-12-03T09:00:00+01:00", "the day is Thursday the 3rd, and it runs on the 1st and 15th"),
        ("0 9 1,15 * mon", "2026-12-03T09:00:00+01:00", "either suffices"),
        ("0 9 */2 * mon", "2026-12-02T09:00:00+01:00", "the weekday is Wednesday, and it runs on Mondays"),
        (
            "*/15 8-18 * * *",
            "2026-12-03T09:10:00+01:00",
            "the minute is 10, and it runs at the minutes 0, 15, 30 and 45",
        ),
        ("*/15 8-18 * * *", "2026-12-03T07:15:00+01:00", "the hour is 7, and it runs in the hours 8 to 18"),
        (
            "cron */20 * * * * *",
            "2026-12-03T07:15:10+01:00",
            "the second is 10, and it runs at the seconds 0, 20 and 40",
        ),
        ("daily 09:00, 17:00", "2026-12-03T12:00:00+01:00", "the time is 12:00, and it runs at 09:00 and 17:00"),
        (
            "weekly mon,thu 09:00",
            "2026-12-04T09:00:00+01:00",
            "the weekday is Friday, and it runs every Monday and Thursday",
        ),
        (
            "every 15m from 2026-12-01T00:00:00Z",
            "2026-12-01T00:18:00+00:00",
            "lies 3m after one and 12m before the next",
        ),
        ("every 15m from 2026-12-01T00:00:00Z", "2026-11-30T00:00:00+00:00", "its first instant is Tue 2026-12-01"),
        ("once 2026-12-01 09:00", "2026-12-02T09:00:00+01:00", "it runs once, at Tue 2026-12-01 08:00:00"),
    ],
)
def test_a_moment_that_is_not_due_is_told_what_the_trigger_wants(when: str, at: str, says: str) -> None:
    _, sentence_ = told(definition(when), at)
    assert says in sentence_


@pytest.mark.parametrize(
    ("when", "rules", "at", "reason", "says"),
    [
        ("daily 02:30", {"gap": "skip"}, "2026-03-29T03:00:00+02:00", "gap", "2026-03-29 02:30 does not come"),
        ("once 2026-03-29 02:30", {"gap": "skip"}, "2026-03-29T03:00:00+02:00", "gap", "gap is skip"),
        ("*/30 2 * * *", {}, "2026-03-29T03:00:00+02:00", "gap", "the line follows the real clock"),
        ("daily 02:30", {}, "2026-10-25T02:30:00+01:00", "fold", "this is its second pass, and fold is first"),
        ("daily 02:30", {"fold": "second"}, "2026-10-25T02:30:00+02:00", "fold", "this is its first pass"),
        ("once 2026-10-25 02:30", {}, "2026-10-25T02:30:00+01:00", "fold", "comes twice"),
        (
            "daily 09:00",
            {"start": datetime(2027, 1, 1, tzinfo=UTC)},
            "2026-12-01T09:00:00+01:00",
            "before_start",
            "30d",
        ),
        ("daily 09:00", {"until": datetime(2026, 11, 1, tzinfo=UTC)}, "2026-11-03T09:00:00+01:00", "after_until", "2d"),
        ("daily 09:00", {}, "2026-12-01T09:00:00.250000+01:00", "fraction", "0.2s after one"),
    ],
)
def test_bounds_gaps_and_folds_are_named_with_their_rule(
    when: str, rules: dict[str, object], at: str, reason: str, says: str
) -> None:
    found, sentence_ = told(definition(when, **rules), at)
    assert found == reason
    assert says in sentence_


def test_an_instant_that_stands_for_a_missing_time_is_due_and_says_for_which() -> None:
    judged = judge(definition("daily 02:30"), BERLIN, datetime(2026, 3, 29, 1, tzinfo=UTC))
    assert judged.due
    assert (judged.answers[0].mark, judged.figures["missing"]) == ("gap", "2026-03-29 02:30")


def test_a_task_without_times_or_with_events_only_says_so() -> None:
    assert told(definition(), "2026-12-01T09:00:00+01:00")[0] == "by_hand"
    on = Definition(name="x", triggers=(On(source="push"),), zone="Europe/Berlin")
    assert told(on, "2026-12-01T09:00:00+01:00") == ("event", "it takes events of push, which come when they come")


def test_of_several_triggers_the_nearest_instant_is_named_and_each_answers_for_itself() -> None:
    one = definition("0 9 * * mon-fri", "daily 18:00")
    judged = judge(one, BERLIN, datetime(2026, 12, 5, 16, tzinfo=UTC))
    assert (judged.figures["nearest_s"], judged.figures["side"]) == (3600.0, "later")
    assert [answer.reason for answer in judged.answers] == ["fields", "fields"]


times = st.builds(time, st.integers(0, 23), st.sampled_from((0, 1, 15, 30, 59)), st.sampled_from((0, 0, 30)))
field = st.sampled_from(("*", "*/2", "0", "1-3", "2", "*/5", "1,2,3"))
dates = st.sampled_from(("*", "1", "L", "15W", "29", "*/2", "LW"))
weekdays = st.sampled_from(("*", "mon-fri", "sun", "5#2", "1L", "*/2"))
triggers: st.SearchStrategy[Trigger] = st.one_of(
    st.builds(lambda m, h, d, w: Cron(expression=f"{m} {h} {d} * {w}"), field, field, dates, weekdays),
    st.builds(lambda found: Daily(times=tuple(sorted(set(found)))), st.lists(times, min_size=1, max_size=3)),
    st.builds(
        lambda days, found: Weekly(weekdays=tuple(sorted(days)), times=tuple(sorted(set(found)))),
        st.sets(st.integers(0, 6), min_size=1),
        st.lists(times, min_size=1, max_size=2),
    ),
    st.builds(
        lambda day, at: Once(local=datetime.combine(day, at)),
        st.dates(
            min_value=datetime(2026, 3, 27, tzinfo=UTC).date(), max_value=datetime(2026, 3, 31, tzinfo=UTC).date()
        ),
        times,
    ),
    st.builds(
        lambda m: Every(span=timedelta(minutes=m), anchor=datetime(2026, 3, 28, tzinfo=UTC)), st.integers(1, 500)
    ),
)
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC", "Asia/Kolkata")
CHANGES = (
    "2026-03-29T01:00:00",
    "2026-10-25T01:00:00",
    "2026-03-08T07:00:00",
    "2026-11-01T06:00:00",
    "2026-04-04T15:00:00",
)


@given(
    drawn=st.lists(triggers, min_size=1, max_size=3),
    zone_name=st.sampled_from(ZONES),
    change=st.sampled_from(CHANGES),
    beside=st.integers(-4 * 3600, 4 * 3600),
    gap=st.sampled_from(("run", "skip")),
    fold=st.sampled_from(("first", "second", "both")),
    onto=st.booleans(),
)
def test_why_says_due_of_exactly_the_moments_that_are_and_a_reason_of_all_others(
    drawn: list[Trigger], zone_name: str, change: str, beside: int, gap: str, fold: str, onto: bool
) -> None:
    place = zone(zone_name)
    one = Definition(name="x", triggers=tuple(drawn), zone=zone_name, rules=Rules(gap=gap, fold=fold))  # type: ignore[arg-type]
    at = datetime.fromisoformat(change).replace(tzinfo=UTC) + timedelta(seconds=beside)
    if onto:
        at = next_due(one, place, at) or at
    judged = judge(one, place, at)
    assert judged.due == is_due(one, place, at)
    assert (judged.reason is None) == judged.due
    assert judged.due or judged.reason in NOT_DUE
    assert judged.before is None or judged.before < at
    assert judged.after is None or judged.after > at
    if not judged.due:
        assert all(answer.reason is not None for answer in judged.answers)
        assert all(answer.unmet for answer in judged.answers if answer.reason == "fields"), "a no without a reason"
        assert "{" not in sentence("not_due", judged.reason or "", judged.figures)
