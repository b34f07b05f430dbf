"""Area B of the behaviour, B1 to B10: each test is titled by its sentence."""

import json
import subprocess
import sys
import time as clock
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_time_cases import CASES, text_of
from time_asking import NOW, TICK, following, instant, read, shown
from time_draws import AIMED, FEW_DRAWS
from time_walker import changes

from duly import zones
from duly.core import when
from duly.core.triggers import (
    Daily,
    Every,
    count,
    is_due_at,
    is_interval_like,
    last_at_or_before,
    last_before,
    next_after,
    occurrences,
)
from duly.core.wallclock import Fold
from duly.core.words import describe
from duly.errors import Invalid

BERLIN = zones.zone("Europe/Berlin")
FOLDS: tuple[Fold, ...] = ("first", "second", "both")


@FEW_DRAWS
@given(st.sampled_from(AIMED), st.sampled_from(["30 2 * * *", "*/20 1 * * *", "daily 00:00,01:30,02:30", "0 * * * *"]))
def test_b1_one_enumerator_serves_all_and_forwards_and_backwards_agree_around_every_change_of_offset(
    aimed: tuple[str, int], text: str
) -> None:
    zone, triggers = zones.zone(aimed[0]), read(text)
    for change in changes(zone, aimed[1]):
        start, end = change - timedelta(hours=26), change + timedelta(hours=26)
        forwards = []
        for at in occurrences(triggers, zone, start):
            if at > end:
                break
            forwards.append(at)
        backwards = []
        at_last = last_before(triggers, zone, end + TICK)
        while at_last is not None and at_last > start:
            backwards.append(at_last)
            at_last = last_before(triggers, zone, at_last)
        assert backwards[::-1] == forwards
        assert count(triggers, zone, start, end) == len(forwards)
        assert all(is_due_at(triggers, zone, at) for at in forwards)


def test_b2_an_occurrence_is_the_same_whichever_process_moment_or_host_zone_computes_it() -> None:
    program = (
        "from datetime import UTC, datetime\n"
        "from duly import zones\n"
        "from duly.core.triggers import Cron, next_after\n"
        "at = datetime(2026, 3, 28, 12, tzinfo=UTC)\n"
        "print(next_after((Cron(expression='30 2 * * *'),), zones.zone('Europe/Berlin'), at).isoformat())\n"
    )
    answers = set()
    for host in ("UTC", "Pacific/Auckland", "CST", "America/Los_Angeles"):
        run = subprocess.run(
            [sys.executable, "-c", program], env={"TZ": host}, capture_output=True, text=True, check=True
        )
        answers.add(run.stdout.strip())
    assert answers == {"2026-03-29T01:00:00+00:00"}
    triggers = read("30 2 * * *", "Europe/Berlin")
    for minutes in range(0, 23 * 60, 7):
        moment = datetime(2026, 3, 28, 1, 30, tzinfo=UTC) + timedelta(minutes=minutes)
        found = next_after(triggers, BERLIN, moment)
        assert found == next_after(triggers, BERLIN, moment.astimezone(zones.zone("Asia/Tokyo")))
        assert shown([found or NOW]) == ["2026-03-29T01:00:00Z"]


def test_b3_the_collected_cases_are_read_from_the_text_form_that_their_tool_writes() -> None:
    for case in CASES:
        if case["expect"] != "reject":
            (trigger,) = read(text_of(case["trigger"]), case["timezone"], instant(case["after_utc"]))
            assert when.from_json(json.loads(json.dumps(when.to_json(trigger)))) == trigger


def test_b4_zones_come_from_the_package_and_unknown_names_and_meaningless_abbreviations_are_refused() -> None:
    with pytest.raises(Invalid, match="abbreviation") as refused:
        zones.zone("CST")
    assert refused.value.hint == "Asia/Shanghai or America/Chicago or America/Havana"
    assert following("daily 09:00", "EST", "2026-07-01T00:00:00Z", 1) == ["2026-07-01T14:00:00Z"]
    assert zones.warning("EST") is not None
    assert zones.warning("Etc/UTC") is None


@pytest.mark.parametrize(
    "line",
    [
        "0 0 30 2 *",
        "0 0 31 4,6 *",
        "*/61 * * * *",
        "0 0 * *",
        "0 ? * * *",
        "0 22-2 * * *",
        "H * * * *",
        "@reboot",
        "0 0 1 1 * 2027",
        "1_0 9 * * *",
        "٠ ٩ * * *",
    ],
)
def test_b5_lines_that_mean_nothing_are_refused_naming_the_field_and_what_to_write_instead(line: str) -> None:
    with pytest.raises(Invalid) as refused:
        read(f"cron {line}")
    assert refused.value.hint


@pytest.mark.parametrize(
    ("line", "after", "want"),
    [
        ("0 0 L * *", "2028-02-01T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("0 0 LW * *", "2026-02-01T00:00:00Z", "2026-02-27T00:00:00Z"),
        ("0 0 15W * *", "2026-02-01T00:00:00Z", "2026-02-16T00:00:00Z"),
        ("0 0 1W * *", "2026-07-15T00:00:00Z", "2026-08-03T00:00:00Z"),
        ("0 0 31W * *", "2026-02-01T00:00:00Z", "2026-03-31T00:00:00Z"),
        ("0 0 * * 5L", "2026-02-01T00:00:00Z", "2026-02-27T00:00:00Z"),
        ("0 0 * * 5#2", "2026-02-01T00:00:00Z", "2026-02-13T00:00:00Z"),
        ("0 0 * * 5#5", "2026-02-01T00:00:00Z", "2026-05-29T00:00:00Z"),
        ("0 0 * * MON-SUN", "2026-02-01T00:00:00Z", "2026-02-02T00:00:00Z"),
        ("0 0 * * 7", "2026-02-01T00:00:00Z", "2026-02-08T00:00:00Z"),
        ("@monthly", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"),
        ("@midnight", "2026-02-01T00:00:00Z", "2026-02-02T00:00:00Z"),
        ("@annually", "2026-02-01T00:00:00Z", "2027-01-01T00:00:00Z"),
    ],
)
def test_b5_special_days_and_nicknames_mean_what_cron_means(line: str, after: str, want: str) -> None:
    assert following(f"cron {line}", "UTC", after, 1) == [want]


def test_b6_a_far_off_instant_is_found_in_under_fifty_milliseconds() -> None:
    triggers = read("0 0 29 2 */7")
    start = clock.process_time()
    found = next_after(triggers, zones.zone("America/New_York"), instant("2096-03-01T00:00:00Z"))
    assert clock.process_time() - start < 0.05
    assert found == instant("2128-02-29T05:00:00Z")
    start = clock.process_time()
    found = next_after(read("* * 29 2 */7"), zones.zone("America/New_York"), instant("2096-03-01T00:00:00Z"))
    assert clock.process_time() - start < 0.05
    assert found == instant("2128-02-29T05:00:00Z")


def test_b6_never_means_none_within_400_years_and_is_refused_when_written() -> None:
    for text in ("0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 31W 2 *"):
        start = clock.process_time()
        with pytest.raises(Invalid, match="400 years"):
            read(text)
        assert clock.process_time() - start < 0.05
    assert read("0 0 30 2 1")
    assert read("0 0 29 2 *")


def test_b7_waits_of_any_length_and_moments_of_any_order_give_the_same_instants() -> None:
    assert following("0 4 1 * *", "UTC", "2026-02-01T04:00:01Z", 1) == ["2026-03-01T04:00:00Z"]
    assert following("every 400d from 2026-01-01T00:00:00Z", "UTC", "2026-01-01T00:00:00Z", 1) == [
        "2027-02-05T00:00:00Z"
    ]
    moments = ["2026-02-01T04:00:01Z", "2026-02-01T03:59:59Z", "2026-02-01T04:00:01Z"]
    assert [following("0 4 1 * *", "UTC", moment, 1)[0] for moment in moments] == [
        "2026-03-01T04:00:00Z",
        "2026-02-01T04:00:00Z",
        "2026-03-01T04:00:00Z",
    ]


def test_b8_intervals_are_anchored_whatever_the_moment_of_asking() -> None:
    every = Every(span=timedelta(hours=1), anchor=instant("2026-01-25T20:28:21Z"))
    zone = zones.zone("UTC")
    for minutes in range(0, 600, 11):
        moment = every.anchor + timedelta(minutes=minutes, microseconds=5)
        found = next_after((every,), zone, moment)
        assert found is not None
        assert (found - every.anchor) % every.span == timedelta(0)
        assert timedelta(0) < found - moment <= every.span
    assert last_before((every,), zone, every.anchor) is None
    assert next_after((every,), zone, every.anchor - timedelta(days=999)) == every.anchor


def test_b9_slots_one_second_apart_are_distinct() -> None:
    assert following("* * * * * *", "Europe/Berlin", "2026-10-25T00:59:58.500000Z", 4) == [
        "2026-10-25T00:59:59Z",
        "2026-10-25T01:00:00Z",
        "2026-10-25T01:00:01Z",
        "2026-10-25T01:00:02Z",
    ]
    two = (*read("30 0 9 * * *"), *read("31 0 9 * * *"))
    found = list(islice(occurrences(two, zones.zone("UTC"), NOW), 2))
    assert found[1] - found[0] == timedelta(seconds=1)


def test_b10_a_preview_can_say_words_local_time_and_offset_of_a_gap_and_a_fold() -> None:
    (trigger,) = read("daily 02:30", "Europe/Berlin")
    assert describe(trigger) == "every day at 02:30"
    gap = next_after((trigger,), BERLIN, instant("2026-03-28T12:00:00Z"))
    fold = next_after((trigger,), BERLIN, instant("2026-10-24T12:00:00Z"))
    assert gap is not None
    assert fold is not None
    assert gap.astimezone(BERLIN).isoformat() == "2026-03-29T03:00:00+02:00"
    assert fold.astimezone(BERLIN).isoformat() == "2026-10-25T02:30:00+02:00"


def test_the_rules_gap_and_fold_change_fixed_triggers_and_leave_interval_like_ones_alone() -> None:
    daily = Daily(times=(datetime.fromisoformat("2026-01-01 02:30").time(),))
    spring, autumn = instant("2026-03-28T12:00:00Z"), instant("2026-10-24T12:00:00Z")
    assert next_after((daily,), BERLIN, spring, gap="skip") == instant("2026-03-30T00:30:00Z")
    assert next_after((daily,), BERLIN, autumn, fold="second") == instant("2026-10-25T01:30:00Z")
    both = list(islice(occurrences((daily,), BERLIN, autumn, fold="both"), 3))
    assert shown(both) == ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"]
    assert last_at_or_before((daily,), BERLIN, both[1], fold="both") == both[1]
    half_hours = read("*/30 * * * *")
    assert is_interval_like(half_hours[0])
    for fold in FOLDS:
        found = list(islice(occurrences(half_hours, BERLIN, autumn, fold=fold), 99))
        assert {b - a for a, b in pairwise(found)} == {timedelta(minutes=30)}
    for text in ("0 * * * *", "*/15 2 * * *", "5 */2 * * *", "every 1h", "@hourly", "*/5 * * * * *"):
        assert is_interval_like(read(text)[0]), text
    for text in ("0-59/15 2 * * *", "30 1-9 * * *", "@daily", "*/5 30 2 * * *", "daily 02:30", "0 1,*/2 * * *"):
        assert not is_interval_like(read(text)[0]), text


def test_counting_takes_milliseconds_where_walking_would_take_minutes() -> None:
    june, may = instant("2026-06-01T00:00:00Z"), instant("2026-05-02T00:00:00Z")
    start = clock.process_time()
    assert count(read("* * * * *"), BERLIN, may, june) == 43_200
    assert clock.process_time() - start < 0.02
    start = clock.process_time()
    assert count(read("* * * * * *"), BERLIN, june, instant("2029-06-01T00:00:00Z")) == 1096 * 86_400
    assert clock.process_time() - start < 0.1
    start = clock.process_time()
    several = (*read("* * * * *"), *read("every 90s from 2020-01-01T00:00:00Z"), *read("daily 09:00,09:00:30"))
    # Every other beat of 90 s falls on a minute, and so does 09:00; 09:00:30 falls on neither grid.
    assert count(several, BERLIN, may, june) == 43_200 + 14_400 + 30
    assert clock.process_time() - start < 0.1
    assert count((Every(span=timedelta(minutes=5), anchor=instant("2000-01-01T00:00:00Z")),), BERLIN, may, june) == 8640
