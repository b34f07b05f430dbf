"""Spans and instants as text."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from time_asking import NOW
from time_draws import DRAWS

from duly import zones
from duly.core.spans import MAX_SPAN, read_instant, read_span, write_instant, write_span
from duly.errors import Invalid

BERLIN = zones.zone("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "seconds", "printed"),
    [
        ("90s", 90, "90s"),
        ("2h30m", 9000, "150m"),
        ("36h", 129_600, "36h"),
        ("2w", 1_209_600, "14d"),
        ("1w2d3h4m5s", 788_645, "788645s"),
        ("1D", 86_400, "1d"),
        ("0060s", 60, "1m"),
        ("3653d", 315_619_200, "3653d"),
    ],
)
def test_a_span_is_numbers_and_falling_units_and_is_printed_in_the_one_largest_that_divides_it(
    text: str, seconds: int, printed: str
) -> None:
    assert read_span(text) == timedelta(seconds=seconds)
    assert write_span(timedelta(seconds=seconds)) == printed


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("", 0),
        ("15", 2),
        ("m", 0),
        ("1.5h", 1),
        ("1,5h", 1),
        ("0s", 0),
        ("0h0m", 0),
        ("-5m", 0),
        ("5m5m", 3),
        ("5m1h", 3),
        ("1h 30m", 2),
        ("15min", 3),
        ("5y", 1),
        ("3654d", 0),
        ("99999999999s", 0),
        ("１５m", 0),
        ("1" * 5000, 0),
    ],
)
def test_a_span_without_unit_of_nothing_or_with_a_fraction_is_refused_at_its_column(text: str, at: int) -> None:
    with pytest.raises(Invalid) as refused:
        read_span(text, field="timeout")
    assert refused.value.field == "timeout"
    assert refused.value.hint
    if text != "15min":
        assert refused.value.at == at


def test_a_span_of_nothing_is_read_where_it_makes_sense() -> None:
    assert read_span("0s", zero=True) == timedelta(0)
    assert write_span(timedelta(0)) == "0s"
    with pytest.raises(Invalid):
        read_span("", zero=True)


@given(st.integers(1, int(MAX_SPAN.total_seconds())))
@DRAWS
def test_every_whole_span_reads_back_from_its_printed_form(seconds: int) -> None:
    assert read_span(write_span(timedelta(seconds=seconds))) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-12-01T08:00:00Z", "2026-12-01T08:00:00Z"),
        ("2026-12-01t08:00:00z", "2026-12-01T08:00:00Z"),
        ("2026-12-01T08:00:00.5+02:00", "2026-12-01T06:00:00.500000Z"),
        ("2026-12-01 09:00", "2026-12-01T08:00:00Z"),
        ("2026-07-01T09:00:30", "2026-07-01T07:00:30Z"),
        ("2026-03-29 02:30", "2026-03-29T01:00:00Z"),
        ("2026-10-25 02:30", "2026-10-25T00:30:00Z"),
        ("now", "2026-01-01T12:00:00.500000Z"),
        ("7d", "2025-12-25T12:00:00.500000Z"),
        ("-20m", "2026-01-01T11:40:00.500000Z"),
        ("+2h", "2026-01-01T14:00:00.500000Z"),
    ],
)
def test_an_instant_is_read_in_every_form_of_the_contract_and_printed_in_one(text: str, instant: str) -> None:
    found = read_instant(text, now=NOW, zone=BERLIN)
    assert found.tzinfo is UTC
    assert write_instant(found) == instant


def test_a_distance_without_sign_goes_the_way_the_option_says() -> None:
    assert read_instant("2h", now=NOW, zone=BERLIN, bare="ahead") == NOW + timedelta(hours=2)
    assert read_instant("2h", now=NOW, zone=BERLIN) == NOW - timedelta(hours=2)
    assert read_instant("-2h", now=NOW, zone=BERLIN, bare="ahead") == NOW - timedelta(hours=2)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "2026-12-01",
        "2026-13-01 09:00",
        "2026-02-29 09:00",
        "2026-12-01 24:00",
        "2026-12-01T08:00:60Z",
        "2026-12-01T08:00:00+24:00",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "-",
        "7",
        "+-7d",
        "1.5h",
        "٧d",
    ],
)
def test_what_is_no_instant_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_instant(text, now=NOW, zone=BERLIN, field="since")
    assert refused.value.field == "since"
    assert refused.value.hint


@given(st.text(max_size=40) | st.text(alphabet="0123456789-: TZ+.dhm", max_size=30))
@DRAWS
def test_whatever_the_text_of_an_instant_only_invalid_is_raised(text: str) -> None:
    try:
        assert read_instant(text, now=NOW, zone=BERLIN).tzinfo is UTC
    except Invalid as error:
        refused = error
    else:
        return
    assert refused.hint


@given(st.datetimes(timezones=st.sampled_from((UTC, timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))))))
@DRAWS
def test_every_instant_reads_back_from_its_printed_form(instant: datetime) -> None:
    try:
        printed = write_instant(instant)
    except OverflowError:
        return
    assert read_instant(printed, now=NOW, zone=BERLIN) == instant
