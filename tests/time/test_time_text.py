"""Triggers as text and as JSON: what is read, what is refused and how, and the one canonical form."""

import json
import string
import time as clock
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from time_asking import NOW, read
from time_draws import DRAWS, MANY_DRAWS, triggers

from duly import zones
from duly.core import when
from duly.core.triggers import Cron, Daily, Every, Once, Trigger
from duly.errors import Invalid

BERLIN = zones.zone("Europe/Berlin")
FOLD = datetime.fromisoformat("2026-10-25 02:30")
WRITTEN = [
    ("daily 9:00", "daily 09:00"),
    ("DAILY 17:30, 9:00,9:00", "daily 09:00,17:30"),
    ("daily 00:00,23:59:59", "daily 00:00,23:59:59"),
    ("daily 09:00:00", "daily 09:00"),
    ("  daily \t 09:00\n", "daily 09:00"),
    ("weekly weekdays 9:00", "weekly mon-fri 09:00"),
    ("weekly WEEKENDS 9:00", "weekly sat,sun 09:00"),
    ("Weekly Thursday, Monday 18:00, 09:00", "weekly mon,thu 09:00,18:00"),
    ("weekly fri-sun,mon 9:00", "weekly mon,fri-sun 09:00"),
    ("weekly mon-sun 9:00", "weekly mon-sun 09:00"),
    ("weekly sun 9:00", "weekly sun 09:00"),
    ("once 2026-12-01 9:00", "once 2026-12-01 09:00"),
    ("once 2026-12-01T09:00:30", "once 2026-12-01 09:00:30"),
    ("once 2026-12-01T09:00:00+02:00", "once 2026-12-01T07:00:00Z"),
    ("once 2026-12-01t09:00:00.250z", "once 2026-12-01T09:00:00.250000Z"),
    ("Once IN 1h30m", "once 2026-01-01T13:30:00Z"),
    ("every 90m", "every 90m from 2026-01-01T12:00:00Z"),
    ("every 2h30m from 2026-12-01 09:00", "every 150m from 2026-12-01T08:00:00Z"),
    ("every 2w FROM 2026-12-01T08:00:00Z", "every 14d from 2026-12-01T08:00:00Z"),
    ("every 36H", "every 36h from 2026-01-01T12:00:00Z"),
    ("0 9 * * 1-5", "cron 0 9 * * 1-5"),
    ("cron  00  08 * *  MON-FRI", "cron 0 8 * * mon-fri"),
    ("cron 30 15 9 ? JAN,jul ?", "cron 30 15 9 * jan,jul *"),
    ("cron 0 14 lw * *", "cron 0 14 LW * *"),
    ("cron 0 14 15w,l * *", "cron 0 14 L,15W * *"),
    ("cron 0 14 * * FRIl,2#3", "cron 0 14 * * 2#3,friL"),
    ("cron 0 8,11,14,17,20,23,2 * * *", "cron 0 2,8,11,14,17,20,23 * * *"),
    ("cron 0 9, 17 * * *", "cron 0 9,17 * * *"),
    ("cron 0 6 * * 0,7", "cron 0 6 * * 0"),
    ("cron 0 9 1-7,*/100 * mon", "cron 0 9 1-7,*/100 * mon"),
    ("cron 0 9 */100,1-7 * mon", "cron 0 9 */100,1-7 * mon"),
    ("@DAILY", "cron @daily"),
    ("cron @hourly", "cron @hourly"),
]
# text, the column under which the caret stands, what the message says, what the hint says
REFUSED = [
    ("", 0, "nothing", "daily 09:00"),
    ("foo bar", 0, "`foo`", "daily 09:00"),
    ("09:00", 0, "begin", "daily 09:00"),
    ("15 minutes", 0, "begin", "every 15m"),
    ("mondays at 9", 0, "begin", "weekly mon 09:00"),
    ("daily", 5, "missing", "daily 09:00"),
    ("daily 24:00", 6, "24:00", "00:00, on the next day"),
    ("daily 9pm", 6, "9pm", "21:00"),
    ("daily 09:00,9:5", 12, "9:5", "09:05"),
    ("daily 09:60", 6, "09:60", "23:59:59"),
    ("daily 09:00,,10:00", 12, "empty place", "HH:MM"),
    ("daily 09:00 17:30", 12, "too much", "commas"),
    ("daily   09:00   Europe/Berlin", 16, "zone", "--zone Europe/Berlin"),
    ("daily 09:00 UTC", 12, "zone", "--zone UTC"),
    ("daily at 9:00", 6, "`at`", "daily 9:00"),
    ("daily mon 09:00", 6, "every day", "weekly mon 09:00"),
    ("daily ０９:00", 6, "not a time", "HH:MM"),
    ("daily 9:00 , 8:00", 10, "before a comma", "daily 9:00,8:00"),
    ("weekly", 6, "days and times", "weekly mon 09:00"),
    ("weekly mon", 10, "missing", "weekly mon 09:00"),
    ("weekly sat-mon 09:00", 7, "runs backwards", "sat-sun,mon"),
    ("weekly fri-tue 09:00", 7, "runs backwards", "fri-sun,mon-tue"),
    ("weekly mon,tues 09:00", 11, "tues", "tue"),
    ("weekly 1-5 09:00", 7, "not numbers", "mon-fri"),
    ("weekly mon - fri 09:00", 7, "blanks", "weekly mon-fri 09:00"),
    ("weekly mon 09:00 CET", 17, "zone", "--zone CET"),
    ("once", 4, "missing", "once 2026-01-02 09:00"),
    ("once 2026-12-01", 5, "neither", "once 2026-12-01 09:00"),
    ("once 2026-02-30 09:00", 5, "does not exist", "a real date"),
    ("once 2025-01-01 09:00", 5, "past", "a time to come"),
    ("once 2026-01-01T12:00:00Z", 5, "past", "a time to come"),
    ("once 2026-12-01 09:00 Europe/Berlin", 22, "zone", "--zone Europe/Berlin"),
    ("once 2026-12-01 09:00 Z", 22, "zone", "once 2026-12-01T09:00Z"),
    ("once in 20 minutes", 11, "minutes", "once in 20m"),
    ("once in 0s", 8, "longer than nothing", "15m"),
    ("every", 5, "missing", "15m"),
    ("every 15", 8, "unit", "15m for minutes"),
    ("every 1.5h", 7, "fractions", "90m"),
    ("every 0m", 6, "longer than nothing", "15m"),
    ("every 30m2h", 10, "fall", "every 2h30m"),
    ("every 1h1h", 9, "once", "largest unit first"),
    ("every 11y", 8, "`y`", "w, d, h, m, s"),
    ("every 4000d", 6, "ten years", "3653d"),
    ("every 15m from", 14, "missing", "every 15m from 2026-01-02 09:00"),
    ("every 15m Europe/Berlin", 10, "too much", "no zone"),
    ("every monday 9:00", 13, "too much", "weekly mon 09:00"),
    ("every day", 6, "day", "daily 09:00"),
    ("cron", 4, "5 fields", "0 9 * * 1-5"),
    ("0 0 * *", 6, "5 fields", "minute hour"),
    ("cron 0 9 * * * * *", 17, "not 7", "minute hour"),
    ("cron 0 0 1 1 * 2027", 15, "no year", "once 2027-01-31 09:00"),
    ("cron 0 9 * * * Europe/Berlin", 15, "zone", "--zone Europe/Berlin"),
    ("CRON_TZ=Asia/Tokyo 0 9 * * *", 0, "zone", "--zone Asia/Tokyo"),
    ("cron 60 * * * *", 5, "minute", "0 to 59"),
    ("cron * 24 * * *", 7, "hour", "0 to 23"),
    ("cron 0 9 0 * *", 9, "day-of-month", "1 to 31"),
    ("cron 0 9 * 13 *", 11, "month", "1 to 12"),
    ("cron 0 9 * * 8", 13, "weekday", "0 to 7"),
    ("cron */0 * * * *", 7, "0", "*/1"),
    ("cron */61 * * * *", 5, "larger than the minute field", "every 61m"),
    ("cron */90 * * * *", 5, "larger", "every 90m"),
    ("cron * */25 * * *", 7, "larger than the hour field", "every 25h"),
    ("cron 0 0 */32 * *", 9, "larger than the day-of-month field", "1"),
    ("cron 0 0 * */13 *", 11, "larger than the month field", "1"),
    ("cron 0 0 * * */8", 13, "larger than the weekday field", "0"),
    ("cron 5/15 * * * *", 5, "without a range", "5-59/15"),
    ("cron 0 9 * * mon/2", 13, "without a range", "mon-sun/2"),
    ("cron 5,,10 * * * *", 7, "empty place", "comma"),
    ("cron 1_0 9 * * *", 5, "1_0", "0 to 59"),
    ("cron ٠ ٩ * * *", 5, "minute", "0 to 59"),
    ("cron ? 9 * * *", 5, "`?`", "*"),
    ("cron 0 9 *,? * *", 11, "`?`", "*"),
    ("cron 0 22-2 * * *", 7, "backwards", "22-23,0-2"),
    ("cron 0 9 * * fri-mon", 13, "backwards", "fri-sun,mon"),
    ("cron 0 9 * * 5-1", 13, "backwards", "5-7,1"),
    ("cron 0 9 * * 7-2", 13, "backwards", "0-2"),
    ("cron 0 9 * nov-feb *", 11, "backwards", "nov-dec,jan-feb"),
    ("cron 0 9 * * monday", 13, "monday", "mon"),
    ("cron 0 9 * * L", 13, "alone", "5L"),
    ("cron 0 9 * * 5#6", 15, "five", "#5"),
    ("cron 0 9 L-3 * *", 9, "L-3", "LW"),
    ("cron 0 9 1-5W * *", 9, "1-5", "1 to 31"),
    ("cron H * * * *", 5, "minute", "0 to 59"),
    ("H/15 * * * *", 0, "minute", "0 to 59"),
    ("cron 0 0 30 2 *", 9, "never", "L"),
    ("cron 0 0 31 4,6 *", 9, "never", "L"),
    ("cron 0 0 31 4,6 * UTC", 18, "zone", "--zone UTC"),
    ("@reboot", 0, "@reboot", "@daily"),
    ("@every 5m", 0, "@every", "every 5m"),
    ("@fortnightly", 0, "nickname", "@weekly"),
    ("@daily 09:00", 7, "alone", "@daily"),
    ("manual", 0, "alone", "manual"),
    ("onn push where branch=main", 0, "begin", "on deploy"),
]


@pytest.mark.parametrize(("text", "canonical"), WRITTEN)
def test_what_is_read_is_written_in_one_canonical_form_that_writes_itself(text: str, canonical: str) -> None:
    (trigger,) = read(text, "Europe/Berlin")
    assert when.write(trigger) == canonical
    assert read(canonical, "Europe/Berlin") == (trigger,)


@pytest.mark.parametrize(("text", "at", "message", "hint"), REFUSED)
def test_a_bad_text_is_refused_with_its_column_and_with_what_to_write_instead(
    text: str, at: int, message: str, hint: str
) -> None:
    with pytest.raises(Invalid) as refused:
        read(text)
    error = refused.value
    assert (error.field, error.text, error.at) == ("when", text, at)
    assert message in error.message
    assert error.hint is not None
    assert hint in error.hint


@given(st.data())
@DRAWS
def test_any_trigger_writes_a_text_and_a_json_that_read_back_as_itself(data: st.DataObject) -> None:
    drawn: Trigger = data.draw(triggers(FOLD, seconds=data.draw(st.booleans())))
    try:
        trigger = when.read(when.write(drawn), now=NOW, zone=BERLIN, past=True).trigger
    except Invalid:
        assume(False)
    text = when.write(trigger)
    case = data.draw(st.sampled_from(CASES))
    blanks = data.draw(st.sampled_from((" ", "  ", "\t", " \n ")))
    untidy = blanks + case(text).replace(",", "," + blanks).replace(" ", blanks) + blanks
    again = when.read(untidy, now=NOW, zone=BERLIN, past=True).trigger
    assert again == trigger
    assert when.write(again) == text
    assert when.from_json(json.loads(json.dumps(when.to_json(trigger)))) == trigger


CASES: tuple[Callable[[str], str], ...] = (str.strip, str.upper, str.lower, str.title)
PIECES = (
    *("cron", "daily", "weekly", "once", "every", "on", "manual", "from", "in", "@daily", "@reboot", "CRON_TZ="),
    *("*", ",", "-", "/", ":", "#", "L", "W", "LW", "?", "mon", "sun", "jan", "weekdays", "H", "UTC", "Europe/Berlin"),
    *("0", "7", "9", "15", "60", "2026", "2026-12-01", "09:00", "24:00", "09:00:00Z", "T", "Z", "+02:00"),
    *("90m", "1h", "0s", "1w", " ", " ", " ", " ", "\t"),
)
GRAMMAR = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


def outcome(text: str) -> Trigger | Invalid:
    try:
        return when.read(text, now=NOW, zone=BERLIN).trigger
    except Invalid as error:
        return error


@given(st.text(max_size=60) | GRAMMAR | st.text(alphabet=string.digits + " */,-:#LWTZ.+hmd", max_size=40))
@example("9" * 900)
@example("every " + "9" * 900 + "s")
@example("cron " + "1," * 90 + "1 * * * *")
@example("once 0001-01-01T00:00:00+23:59")
@example("once 9999-12-31 23:59:59")
@example("every 10d from 9999-12-31 23:59")
@example("cron " + "*" * 500)
@example("\x00")
@MANY_DRAWS
def test_whatever_the_text_it_is_read_or_refused_as_invalid_and_never_slowly(text: str) -> None:
    start = clock.process_time()
    found = outcome(text)
    if isinstance(found, Invalid):
        assert found.hint
        assert found.at is not None
        assert 0 <= found.at <= len(text)
    else:
        assert read(when.write(found), "Europe/Berlin") == (found,)
    assert clock.process_time() - start < 0.5


KEYS = [
    "kind",
    "expression",
    "times",
    "weekdays",
    "at",
    "local",
    "span",
    "anchor",
    "source",
    "match",
    "throttle",
    "within",
    "by",
    "other",
]


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(max_size=12)
        | st.sampled_from(("cron", "daily", "event", "09:00")),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(KEYS),
                inner,
                max_size=4,
            )
        ),
        max_leaves=8,
    )
)
@DRAWS
def test_whatever_the_json_it_is_read_or_refused_as_invalid(value: object) -> None:
    try:
        assert when.from_json(value) is not None
    except Invalid as error:
        refused = error
    else:
        return
    assert refused.field == "when"
    assert refused.hint


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("cron 0 9 * * MON-FRI", {"kind": "cron", "expression": "0 9 * * mon-fri"}),
        ("daily 17:30,9:00", {"kind": "daily", "times": ["09:00", "17:30"]}),
        ("weekly thu,mon 9:00:30", {"kind": "weekly", "weekdays": ["mon", "thu"], "times": ["09:00:30"]}),
        ("once 2026-12-01T08:00:00Z", {"kind": "once", "at": "2026-12-01T08:00:00Z"}),
        ("once 2026-12-01 09:00", {"kind": "once", "local": "2026-12-01 09:00"}),
        ("every 15m", {"kind": "every", "span": "15m", "anchor": "2026-01-01T12:00:00Z"}),
        ("on push", {"kind": "event", "source": "push", "match": {}, "throttle": None}),
        (
            'on push where repo=duly and a."b c"=1 throttle 10m by repo,branch',
            {
                "kind": "event",
                "source": "push",
                "match": {'a."b c"': "1", "repo": "duly"},
                "throttle": {"within": "10m", "by": ["branch", "repo"]},
            },
        ),
    ],
)
def test_the_json_of_a_trigger_has_the_shape_that_scripts_rely_on(text: str, shape: dict[str, object]) -> None:
    (trigger,) = read(text)
    assert when.to_json(trigger) == shape
    assert when.from_json(shape) == trigger


@pytest.mark.parametrize(
    "shape",
    [
        None,
        [],
        "daily 09:00",
        {},
        {"kind": "event", "match": {}, "throttle": None},
        {"kind": "event", "source": "a push"},
        {"kind": "event", "source": "push", "match": ["branch"]},
        {"kind": "event", "source": "push", "match": {"branch": ["main"]}},
        {"kind": "event", "source": "push", "match": {"no path": "main"}},
        {"kind": "event", "source": "push", "match": {"a.b": "1", 'a."b"': "2"}},
        {"kind": "event", "source": "push", "match": {"branch": "\0"}},
        {"kind": "event", "source": "push", "throttle": "10m"},
        {"kind": "event", "source": "push", "throttle": {"by": []}},
        {"kind": "event", "source": "push", "throttle": {"within": "0s"}},
        {"kind": "event", "source": "push", "throttle": {"within": "10m", "by": "branch"}},
        {"kind": "event", "source": "push", "throttle": {"within": "10m", "per": ["branch"]}},
        {"kind": ["cron"]},
        {"kind": "cron", "expression": "0 0 30 2 *"},
        {"kind": "cron", "expression": "0 9 * * *", "zone": "UTC"},
        {"kind": "daily", "times": []},
        {"kind": "daily", "times": ["24:00"]},
        {"kind": "daily", "times": [9]},
        {"kind": "weekly", "weekdays": ["someday"], "times": ["09:00"]},
        {"kind": "once"},
        {"kind": "once", "at": "2026-12-01T08:00:00Z", "local": "2026-12-01 09:00"},
        {"kind": "once", "at": "2026-12-01 08:00"},
        {"kind": "once", "local": "2026-12-01"},
        {"kind": "every", "span": "15m"},
        {"kind": "every", "span": "0s", "anchor": "2026-12-01T08:00:00Z"},
    ],
)
def test_json_of_another_shape_is_refused_naming_the_field_and_what_would_be_right(shape: object) -> None:
    with pytest.raises(Invalid) as refused:
        when.from_json(shape)
    assert refused.value.field == "when"
    assert refused.value.hint


def test_a_task_has_at_most_twenty_triggers_and_equal_ones_are_one() -> None:
    assert when.read_all(["daily 09:00", "DAILY 9:00"], now=NOW, zone=BERLIN) == read("daily 09:00")
    assert len(when.read_all([f"daily 09:{n:02}" for n in range(20)], now=NOW, zone=BERLIN)) == 20
    with pytest.raises(Invalid, match="at most 20"):
        when.read_all([f"daily 09:{n:02}" for n in range(21)], now=NOW, zone=BERLIN)


def test_manual_stands_alone_and_means_no_trigger() -> None:
    assert when.read_all([" Manual "], now=NOW, zone=BERLIN) == ()
    for texts in (["manual", "daily 09:00"], ["daily 09:00", "manual"], ["manual", "manual"], []):
        with pytest.raises(Invalid):
            when.read_all(texts, now=NOW, zone=BERLIN)


def test_an_every_without_a_beginning_is_anchored_at_the_second_of_its_writing_and_first_due_one_span_later() -> None:
    (trigger,) = read("every 15m")
    assert trigger == Every(span=timedelta(minutes=15), anchor=NOW.replace(microsecond=0))


def test_once_in_a_span_becomes_an_instant_and_is_refused_in_files() -> None:
    (trigger,) = read("once in 20m")
    assert trigger == Once(at=datetime(2026, 1, 1, 12, 20, tzinfo=UTC))
    with pytest.raises(Invalid, match="another instant at each reading") as refused:
        when.read("once in 20m", now=NOW, zone=BERLIN, in_file=True)
    assert refused.value.at == 5


def test_a_once_that_is_over_is_read_where_the_past_is_allowed() -> None:
    with pytest.raises(Invalid, match="past"):
        read("once 2025-01-01 09:00")
    trigger = when.read("once 2025-01-01 09:00", now=NOW, zone=BERLIN, past=True).trigger
    assert trigger == Once(local=datetime.fromisoformat("2025-01-01 09:00"))


def test_steps_that_do_not_divide_their_field_are_taken_with_a_warning_that_says_what_they_mean() -> None:
    assert when.read("*/40 * * * *", now=NOW, zone=BERLIN).warnings == (
        "`*/40` restarts with its field: minute 0, 40; for an even interval write every 40m",
    )
    (hour,) = when.read("0 */24 * * *", now=NOW, zone=BERLIN).warnings
    assert "first value alone: 0" in hour
    assert when.read("*/15 */6 */100,1-7 */3 1", now=NOW, zone=BERLIN).warnings == ()


def test_a_trigger_that_only_ever_falls_into_the_gap_of_its_zone_is_refused() -> None:
    with pytest.raises(Invalid, match="never comes in this zone"):
        read("* 2 * 3 0L", "Europe/Berlin")
    assert read("* 2 * 3 0L", "UTC") == (Cron(expression="* 2 * 3 0L"),)
    assert isinstance(read("daily 02:30", "Europe/Berlin")[0], Daily)
