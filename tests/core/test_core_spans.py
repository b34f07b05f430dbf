"""Spans and instants as people write them: what a refusal says, where it points, and what it tells to write instead."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly import zones
from duly.core.spans import (
    exact_instant,
    local_reading,
    read_instant,
    read_span,
    resolve,
    write_instant,
    write_local,
    write_span,
)
from duly.errors import Invalid

NOW = datetime(2026, 1, 1, 12, 0, 0, 500_000, tzinfo=UTC)
BERLIN = zones.zone("Europe/Berlin")
HOW = "a number and a unit (w, d, h, m, s), such as 90s, 15m or 2h30m"
FORMS = "2026-12-01T08:00:00Z, 2026-12-01 09:00, now, or a distance such as 7d or +2h"
LAST = "a real date and time; the day's last second is 23:59:59"
# text, message, the column under which the caret stands, hint
SPANS = [
    ("", "a span is missing", 0, HOW),
    ("0s", "a span is longer than nothing", 0, HOW),
    ("0h0m", "a span is longer than nothing", 0, HOW),
    ("m", "`m` is not a span", 0, HOW),
    ("-5m", "`-5m` is not a span", 0, HOW),
    ("1h 30m", "`1h 30m` is not a span", 2, HOW),
    ("15", "a span needs a unit", 2, "15s for seconds, 15m for minutes"),
    ("2h15", "a span needs a unit", 4, "15s for seconds, 15m for minutes"),
    ("1.5h", "a span has no fractions", 1, "a smaller unit, such as 90m for one hour and a half"),
    ("1,5h", "a span has no fractions", 1, "a smaller unit, such as 90m for one hour and a half"),
    ("1h2.5m", "a span has no fractions", 3, "a smaller unit, such as 90m for one hour and a half"),
    ("5m5m", "units fall, each once", 3, "the largest unit first, such as 2h30m"),
    ("3m5h", "units fall, each once", 3, "the largest unit first, such as 2h30m"),
    ("5y", "`y` is not a unit", 1, HOW),
    ("5X", "`X` is not a unit", 1, HOW),
    ("1234567890", "a span needs a unit", 10, "1234567890s for seconds, 1234567890m for minutes"),
    ("2 da", "`da` is not a unit", 2, "2d"),
    ("2 xs", "`xs` is not a unit", 2, HOW),
    ("2 dayX", "`dayX` is not a unit", 2, HOW),
    ("7 foo", "`foo` is not a unit", 2, HOW),
    ("7 m", "`m` is not a unit", 2, HOW),
    ("15 min", "`min` is not a unit", 3, "15m"),
    ("15 MINUTES ", "`MINUTES` is not a unit", 3, "15m"),
    ("2h15 mins", "`mins` is not a unit", 5, "2h15m"),
    ("2 hours", "`hours` is not a unit", 2, "2h"),
    ("2 hou", "`hou` is not a unit", 2, "2h"),
    ("3 weeks", "`weeks` is not a unit", 2, "3w"),
    ("3 days", "`days` is not a unit", 2, "3d"),
    ("30 secs", "`secs` is not a unit", 3, "30s"),
    ("3654d", "a span is at most ten years", 0, "at most 3653d"),
    ("315619201s", "a span is at most ten years", 0, "at most 3653d"),
    ("9999999999s", "a span is at most ten years", 0, "at most 3653d"),
    ("99999999999s", "a span is at most ten years", 0, "at most 3653d"),
    ("2h99999999999m", "a span is at most ten years", 2, "at most 3653d"),
    ("x" * 100, f"`{'x' * 100}` is not a span", 0, HOW),
]
INSTANTS = [
    ("", "`` is not an instant", FORMS),
    ("soon", "`soon` is not an instant", FORMS),
    ("2026-12-01", "`2026-12-01` is not an instant", "2026-12-01 00:00"),
    ("7", "`7` is not an instant", FORMS),
    ("2026", "`2026` is not an instant", FORMS),
    ("2026/12/01", "`2026/12/01` is not an instant", FORMS),
    ("٢026-12-01", "`٢026-12-01` is not an instant", FORMS),
    ("\u00a02d", "`\u00a02d` is not an instant", FORMS),
    ("XnowX", "`XnowX` is not an instant", FORMS),
    ("X7d", "`X7d` is not an instant", FORMS),
    ("٢026-12-01T08:00:00Z", "`٢026-12-01T08:00:00Z` is not an instant", FORMS),
    ("٢026-12-01 08:00", "`٢026-12-01 08:00` is not an instant", FORMS),
    ("2026-02-30 09:00", "`2026-02-30 09:00` does not exist", LAST),
    ("2026-12-01 24:00", "`2026-12-01 24:00` does not exist", LAST),
    ("2026-12-01T08:00:60Z", "`2026-12-01T08:00:60Z` does not exist", "a real date and time"),
    ("2026-12-01T08:00:00+23:60", "`2026-12-01T08:00:00+23:60` does not exist", "a real date and time"),
    ("2026-12-01T08:00:00+24:00", "`2026-12-01T08:00:00+24:00` does not exist", "a real date and time"),
    ("0001-01-01T00:00:00+01:00", "`0001-01-01T00:00:00+01:00` does not exist", "a real date and time"),
]
READ = {
    "2026-12-01T08:00:00Z": "2026-12-01T08:00:00Z",
    "2026-12-01t08:00z": "2026-12-01T08:00:00Z",
    "2026-12-01 08:07:09.5Z": "2026-12-01T08:07:09.500000Z",
    "2026-12-01T08:00:00.123456789Z": "2026-12-01T08:00:00.123456Z",
    "2026-12-01T08:00:00.000012Z": "2026-12-01T08:00:00.000012Z",
    "2026-12-01T08:00:00+23:59": "2026-11-30T08:01:00Z",
    "2026-12-01T08:00:00-05:30": "2026-12-01T13:30:00Z",
    "2026-12-01 9:05:07": "2026-12-01T08:05:07Z",
    "2026-12-01t9:05": "2026-12-01T08:05:00Z",
    "NOW": "2026-01-01T12:00:00.500000Z",
    " \t2d\r\n": "2025-12-30T12:00:00.500000Z",
    "1440m": "2025-12-31T12:00:00.500000Z",
    "86400s": "2025-12-31T12:00:00.500000Z",
    "0s": "2026-01-01T12:00:00.500000Z",
    "+3653d": "2036-01-02T12:00:00.500000Z",
    "-3653d": "2016-01-01T12:00:00.500000Z",
}


@pytest.mark.parametrize(("text", "message", "at", "hint"), SPANS)
def test_a_span_that_does_not_read_is_refused_with_what_is_wrong_where_and_what_to_write(
    text: str, message: str, at: int, hint: str
) -> None:
    with pytest.raises(Invalid) as refused:
        read_span(text, field="timeout")
    told = refused.value
    assert (told.message, told.at, told.hint, told.field, told.text) == (message, at, hint, "timeout", text)


def test_of_a_text_far_too_long_for_a_span_only_the_beginning_is_told() -> None:
    with pytest.raises(Invalid) as refused:
        read_span("x" * 101)
    told = refused.value
    assert (told.message, told.field, told.text, told.at, told.hint) == ("a span is short", "span", "x" * 100, 0, HOW)


def test_the_longest_span_is_ten_years_to_the_second() -> None:
    assert read_span("315619200s") == timedelta(days=3653)
    assert read_span("0000000060s") == timedelta(minutes=1)


@pytest.mark.parametrize("text", READ)
def test_an_instant_is_read_in_any_of_its_forms(text: str) -> None:
    assert write_instant(read_instant(text, now=NOW, zone=BERLIN)) == READ[text]


@pytest.mark.parametrize(("text", "message", "hint"), INSTANTS)
def test_an_instant_that_does_not_read_is_refused_with_what_to_write_instead(
    text: str, message: str, hint: str
) -> None:
    with pytest.raises(Invalid) as refused:
        read_instant(text, now=NOW, zone=BERLIN, field="since")
    told = refused.value
    assert (told.message, told.hint, told.field, told.text, told.at) == (message, hint, "since", text, 0)


@pytest.mark.parametrize("text", ["soon", "2026-02-30 09:00", "2026-02-30T09:00:00Z"])
def test_an_instant_that_is_no_field_of_anything_is_called_an_instant(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_instant(text, now=NOW, zone=BERLIN)
    assert refused.value.field == "instant"
    assert (refused.value.text, refused.value.at) == (text, 0)


@pytest.mark.parametrize(
    ("read", "text"), [(exact_instant, "2026-02-30T09:00:00Z"), (local_reading, "2026-02-30 09:00")]
)
def test_a_moment_that_does_not_exist_is_called_an_instant_where_it_is_no_field(read: Any, text: str) -> None:
    with pytest.raises(Invalid) as refused:
        read(text)
    assert (refused.value.field, refused.value.text, refused.value.at) == ("instant", text, 0)


def test_a_distance_that_is_no_span_is_refused_as_a_span_of_that_field() -> None:
    with pytest.raises(Invalid) as refused:
        read_instant("-20x", now=NOW, zone=BERLIN, field="since")
    assert (refused.value.message, refused.value.field) == ("`x` is not a unit", "since")


def test_of_a_very_long_text_a_hundred_characters_are_told() -> None:
    with pytest.raises(Invalid) as refused:
        read_instant("x" * 200, now=NOW, zone=BERLIN)
    assert refused.value.message == f"`{'x' * 100}` is not an instant"


@pytest.mark.parametrize(("text", "year"), [("+20d", 9999), ("20d", 1)])
def test_a_distance_beyond_the_calendar_is_refused(text: str, year: int) -> None:
    now = datetime(year, 12 if year > 1 else 1, 15, tzinfo=UTC)
    with pytest.raises(Invalid) as refused:
        read_instant(text, now=now, zone=BERLIN, field="until")
    told = refused.value
    assert (told.message, told.field, told.text) == ("the instant is outside the calendar", "until", text)
    assert (told.at, told.hint) == (0, FORMS)


def test_a_local_time_before_the_first_instant_of_all_is_refused() -> None:
    with pytest.raises(Invalid) as refused:
        resolve(datetime(1, 1, 1), BERLIN)  # noqa: DTZ001
    told = refused.value
    assert (told.message, told.text) == ("the instant is outside the calendar", "0001-01-01 00:00:00")
    assert (told.at, told.hint) == (0, FORMS)


@pytest.mark.parametrize(
    ("seconds", "printed"),
    [
        (0, "0s"),
        (0.25, "0.25s"),
        (1.5, "1.5s"),
        (61, "61s"),
        (3540, "59m"),
        (3600, "1h"),
        (129_600, "36h"),
        (1_209_600, "14d"),
        (1_209_601, "1209601s"),
    ],
)
def test_a_span_is_printed_in_the_largest_unit_that_divides_it(seconds: float, printed: str) -> None:
    assert write_span(timedelta(seconds=seconds)) == printed


@given(st.datetimes(min_value=datetime(1000, 1, 1)).map(lambda one: one.replace(microsecond=0)))  # noqa: DTZ001
def test_a_local_time_reads_back_from_its_printed_form_which_has_seconds_only_where_there_are_any(
    local: datetime,
) -> None:
    printed = write_local(local)
    assert local_reading(printed) == local
    assert len(printed) == (19 if local.second else 16)
    assert printed[10] == " "
