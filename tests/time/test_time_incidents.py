"""What went wrong in other schedulers, B01 to B34, B88 and B92: the input of each report and others of its kind."""

import time as clock
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest
from time_asking import TICK, following, instant, read

from duly import zones
from duly.core.triggers import Every, count, is_due_at, last_at_or_before, last_before, next_after, occurrences
from duly.core.words import describe
from duly.errors import Invalid


@pytest.mark.parametrize(
    ("text", "zone", "after", "want"),
    [
        ("0 * * * *", "Australia/Lord_Howe", "2019-10-05T15:13:00Z", ["2019-10-05T16:00:00Z", "2019-10-05T17:00:00Z"]),
        ("30 2 * * *", "Australia/Lord_Howe", "2019-10-05T12:00:00Z", ["2019-10-05T15:30:00Z", "2019-10-06T15:30:00Z"]),
        ("15 2 * * *", "Australia/Lord_Howe", "2019-10-05T12:00:00Z", ["2019-10-05T15:30:00Z", "2019-10-06T15:15:00Z"]),
        ("0 1,2 * * *", "Antarctica/Troll", "2026-03-28T12:00:00Z", ["2026-03-29T01:00:00Z", "2026-03-29T23:00:00Z"]),
        ("*/30 * * * *", "Antarctica/Troll", "2026-03-29T00:45:00Z", ["2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"]),
    ],
)
def test_b01_changes_that_are_not_one_hour_are_met_to_the_minute(
    text: str, zone: str, after: str, want: list[str]
) -> None:
    assert following(text, zone, after, len(want)) == want


def test_b01_next_previous_and_match_agree_at_every_minute_of_a_scan_over_a_half_hour_change() -> None:
    zone, triggers = zones.zone("Australia/Lord_Howe"), read("0,30 * * * *")
    start = instant("2019-10-05T12:00:00Z")
    due = [start + timedelta(minutes=n) for n in range(600) if is_due_at(triggers, zone, start + timedelta(minutes=n))]
    assert due == list(islice(occurrences(triggers, zone, start - TICK), len(due)))
    for minute in range(600):
        moment = start + timedelta(minutes=minute)
        later = [at for at in due if at > moment]
        earlier = [at for at in due if at < moment]
        if later and earlier:
            assert next_after(triggers, zone, moment) == later[0]
            assert last_before(triggers, zone, moment) == earlier[-1]


@pytest.mark.parametrize("seconds", [0, 1, 1740, 1795, 1799])
def test_b02_a_missing_local_time_runs_once_after_the_gap_however_near_the_asking(seconds: int) -> None:
    after = (instant("2026-03-08T06:30:00Z") + timedelta(seconds=seconds)).isoformat()
    assert following("30 2 * * *", "America/New_York", after, 2) == ["2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]


def test_b02_several_missing_times_and_a_genuine_one_meet_in_one_run() -> None:
    want = ["2026-03-08T07:00:00Z", "2026-03-09T06:00:00Z"]
    assert following("0,15,30,45 2 * * *", "America/New_York", "2026-03-08T06:30:00Z", 2) == want
    assert following("daily 02:00,02:30,03:00", "America/New_York", "2026-03-08T06:30:00Z", 2) == want


@pytest.mark.parametrize(
    ("text", "zone", "after", "want"),
    [
        ("30 1 * * *", "America/New_York", "2026-11-01T04:00:00Z", ["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"]),
        ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00Z", ["2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"]),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:45:00Z", ["2026-10-26T01:30:00Z"]),
        ("daily 01:30", "Antarctica/Troll", "2026-10-24T12:00:00Z", ["2026-10-24T23:30:00Z", "2026-10-26T01:30:00Z"]),
    ],
)
def test_b04_a_fixed_time_in_a_repeated_hour_runs_once_forwards_and_backwards(
    text: str, zone: str, after: str, want: list[str]
) -> None:
    assert following(text, zone, after, len(want)) == want


@pytest.mark.parametrize(
    ("line", "zone", "after", "want"),
    [
        ("30 * * * *", "Europe/Helsinki", "2017-10-29T01:45:00Z", ["02:30", "03:30", "04:30"]),
        ("*/15 1 * * *", "America/New_York", "2026-11-01T06:10:00Z", ["06:15", "06:30", "06:45"]),
        ("20 * * * *", "Australia/Lord_Howe", "2026-04-04T15:25:00Z", ["15:50", "16:50", "17:50"]),
        ("* * * * *", "Africa/Casablanca", "2026-02-15T02:00:00Z", ["02:01", "02:02", "02:03"]),
    ],
)
def test_b05_ten_thousand_answers_in_a_row_each_move_on_and_end_in_bounded_time(
    line: str, zone: str, after: str, want: list[str]
) -> None:
    assert [at[11:16] for at in following(line, zone, after, 3)] == want
    start = clock.process_time()
    found = list(islice(occurrences(read(line), zones.zone(zone), instant(after)), 10_000))
    assert all(later > earlier for earlier, later in pairwise(found))
    assert clock.process_time() - start < 2


@pytest.mark.parametrize(
    ("zone", "after", "want"),
    [
        ("America/Santiago", "2025-09-07T03:30:00Z", "2025-09-07T04:00:00Z"),
        ("America/Havana", "2026-03-08T04:30:00Z", "2026-03-08T05:00:00Z"),
        ("Asia/Beirut", "2026-03-28T21:59:59Z", "2026-03-28T22:00:00Z"),
        ("America/Sao_Paulo", "2018-11-04T02:59:59.999999Z", "2018-11-04T03:00:00Z"),
    ],
)
def test_b07_a_missing_midnight_never_resolves_to_a_moment_that_is_not_after_now(
    zone: str, after: str, want: str
) -> None:
    first, second = following("daily 00:00", zone, after, 2)
    assert first == want
    assert timedelta(hours=22) < instant(second) - instant(first) < timedelta(hours=25)


@pytest.mark.parametrize(
    ("line", "zone", "day", "want"),
    [
        ("* * * * *", "Europe/Vienna", "2025-10-26", 1500),
        ("* * * * *", "Europe/Vienna", "2025-03-30", 1380),
        ("*/15 * * * * *", "Europe/Vienna", "2025-10-26", 6000),
        ("*/5 * * * *", "America/New_York", "2026-11-01", 300),
        ("* * * * *", "Australia/Lord_Howe", "2026-04-05", 1470),
        ("*/10 * * * *", "Antarctica/Troll", "2026-10-25", 156),
    ],
)
def test_b09_an_interval_like_line_runs_at_every_real_minute_of_a_day_of_25_or_23_hours(
    line: str, zone: str, day: str, want: int
) -> None:
    place, triggers = zones.zone(zone), read(line)
    first = datetime.fromisoformat(day).replace(tzinfo=place)
    last = (datetime.fromisoformat(day) + timedelta(days=1)).replace(tzinfo=place)
    since, until = first.astimezone(UTC), last.astimezone(UTC)
    assert count(triggers, place, since - TICK, until - TICK) == want
    walked = list(islice(occurrences(triggers, place, since - TICK), want))
    assert walked[-1] < until
    assert len({after - before for before, after in pairwise(walked)}) == 1, "and no pause anywhere in it"


@pytest.mark.parametrize(
    ("line", "zone", "after", "want"),
    [
        ("30 2-23/4 * * *", "Australia/Sydney", "2019-10-05T14:00:00Z", ["05T16:00", "05T19:30", "05T23:30"]),
        ("15 2-22/5 * * *", "Europe/Berlin", "2026-03-28T23:00:00Z", ["29T01:00", "29T05:15", "29T10:15"]),
        ("0 2,9,17 * * *", "America/New_York", "2026-03-08T05:00:00Z", ["08T07:00", "08T13:00", "08T21:00"]),
        ("daily 00:30,12:00", "America/Havana", "2026-03-08T04:00:00Z", ["08T05:00", "08T16:00", "09T04:30"]),
    ],
)
def test_b10_after_a_missing_time_the_day_goes_on(line: str, zone: str, after: str, want: list[str]) -> None:
    assert [at[8:16] for at in following(line, zone, after, len(want))] == want


@pytest.mark.parametrize(
    ("text", "zone", "after", "want"),
    [
        (
            "every 7200s from 2026-03-08T05:00:00Z",
            "America/Toronto",
            "2026-03-08T05:00:00Z",
            ["08T07:00", "08T09:00", "08T11:00"],
        ),
        ("45 1 * * *", "America/Toronto", "2025-11-02T06:15:00Z", ["03T06:45"]),
        ("every 3h from 2026-10-24T22:00:00Z", "Europe/Berlin", "2026-10-24T22:00:00Z", ["25T01:00", "25T04:00"]),
        ("15 2 * * *", "Europe/Berlin", "2026-10-25T01:05:00Z", ["26T01:15"]),
        (
            "every 90m from 2026-04-04T14:00:00Z",
            "Australia/Lord_Howe",
            "2026-04-04T14:00:00Z",
            ["04T15:30", "04T17:00"],
        ),
    ],
)
def test_b12_elapsed_time_and_wall_clock_time_are_not_mixed_up(
    text: str, zone: str, after: str, want: list[str]
) -> None:
    assert [at[8:16] for at in following(text, zone, after, len(want))] == want


@pytest.mark.parametrize(
    ("text", "zone", "after", "across"),
    [
        ("daily 09:00", "Europe/London", "2022-10-25T12:00:00Z", ["2022-10-29T08:00:00Z", "2022-10-30T09:00:00Z"]),
        ("30 8 * * *", "America/New_York", "2026-03-04T14:00:00Z", ["2026-03-07T13:30:00Z", "2026-03-08T12:30:00Z"]),
        ("daily 02:15", "Europe/Berlin", "2026-10-21T12:00:00Z", ["2026-10-24T00:15:00Z", "2026-10-25T00:15:00Z"]),
    ],
)
def test_b13_planning_before_and_after_a_change_of_offset_gives_the_same_instants(
    text: str, zone: str, after: str, across: list[str]
) -> None:
    whole = following(text, zone, after, 10)
    assert [at for at in whole if at in across] == across
    for n, at in enumerate(whole[:-1]):
        assert following(text, zone, at, 1) == [whole[n + 1]]


@pytest.mark.parametrize(
    ("line", "zone", "after", "want"),
    [
        ("0 13 * * *", "Pacific/Auckland", "2026-02-03T10:00:00Z", "2026-02-04T00:00:00Z"),
        ("0 13 * * *", "America/Los_Angeles", "2026-02-03T10:00:00Z", "2026-02-03T21:00:00Z"),
        ("daily 00:00", "Asia/Kolkata", "2026-02-03T10:00:00Z", "2026-02-03T18:30:00Z"),
    ],
)
@pytest.mark.parametrize("host", ["UTC", "Pacific/Auckland", "America/St_Johns"])
def test_b15_a_zone_is_always_given_so_that_the_host_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, host: str, line: str, zone: str, after: str, want: str
) -> None:
    monkeypatch.setenv("TZ", host)
    assert following(line, zone, after, 1) == [want]


@pytest.mark.parametrize(
    ("text", "zone", "after", "want"),
    [
        ("daily 07:00", "America/Chicago", "2026-06-09T08:00:00Z", "2026-06-09T12:00:00Z"),
        ("daily 09:00", "Europe/Vienna", "2026-06-05T07:02:00Z", "2026-06-06T07:00:00Z"),
        ("0 7 * * *", "Asia/Tokyo", "2026-06-05T07:02:00Z", "2026-06-05T22:00:00Z"),
        ("weekly mon 00:05", "Pacific/Kiritimati", "2026-06-05T07:02:00Z", "2026-06-07T10:05:00Z"),
    ],
)
def test_b16_local_times_are_local(text: str, zone: str, after: str, want: str) -> None:
    assert following(text, zone, after, 1) == [want]


@pytest.mark.parametrize("word", ["CST", "IST", "PDT", "CEST"])
def test_b18_an_abbreviation_is_refused(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    with pytest.raises(Invalid, match="abbreviation"):
        zones.zone(word)
    monkeypatch.setenv("TZ", word)
    assert zones.machine_zone() is None


@pytest.mark.parametrize("word", ["EST", "MST", "HST"])
def test_b18_a_name_without_summer_time_is_taken_and_warned_of(word: str) -> None:
    assert zones.zone(word).key == word
    assert zones.warning(word)


@pytest.mark.parametrize(
    ("zone", "after", "want"),
    [
        ("America/Vancouver", "2026-12-01T00:00:00Z", "2026-12-01T16:00:00Z"),
        ("Asia/Almaty", "2024-06-01T00:00:00Z", "2024-06-01T04:00:00Z"),
        ("America/Ciudad_Juarez", "2023-06-01T00:00:00Z", "2023-06-01T15:00:00Z"),
    ],
)
def test_b19_the_newest_zone_data_decide(zone: str, after: str, want: str) -> None:
    assert following("0 9 * * *", zone, after, 1) == [want]
    assert zones.zone_data_version() >= "2026b"


@pytest.mark.parametrize("line", ["0 0 31 2 *", "0 0 31 4,6,9,11 *", "0 0 30 2 */3", "0 0 30-31 feb *"])
def test_b21_an_impossible_date_is_refused_when_it_is_written(line: str) -> None:
    with pytest.raises(Invalid, match="never"):
        read(line)


@pytest.mark.parametrize(
    ("line", "want"),
    [
        ("0 0 30 2 1", ["2026-02-02", "2026-02-09", "2026-02-16"]),
        ("0 0 29 2 *", ["2028-02-29", "2032-02-29"]),
        ("0 0 31 4,5 *", ["2026-05-31", "2027-05-31"]),
    ],
)
def test_b21_a_merely_odd_date_is_taken(line: str, want: list[str]) -> None:
    assert [at[:10] for at in following(line, "UTC", "2026-01-01T00:00:00Z", len(want))] == want


@pytest.mark.parametrize(
    ("line", "after", "days"),
    [
        ("0 12 1-31 * 1", "2026-06-01T00:00:00Z", ["06-01", "06-02", "06-03"]),
        ("0 9 */2 * 1", "2026-05-01T00:00:00Z", ["05-11", "05-25", "06-01", "06-15"]),
        ("0 0 * * */2", "2026-01-02T00:00:00Z", ["01-03", "01-04", "01-06"]),
        ("0 0 */100,1-7 * mon", "2026-01-01T00:00:00Z", ["01-05", "02-02", "03-02"]),
        ("0 0 1-7,*/100 * mon", "2026-01-01T00:00:00Z", ["01-02", "01-03", "01-04"]),
        ("0 0 15 * *,1", "2026-01-01T00:00:00Z", ["01-15", "02-15"]),
    ],
)
def test_b22_day_fields_are_joined_by_or_unless_one_begins_with_an_asterisk(
    line: str, after: str, days: list[str]
) -> None:
    assert [at[5:10] for at in following(line, "UTC", after, len(days))] == days


@pytest.mark.parametrize(
    ("line", "want", "words"),
    [
        ("*/40 * * * *", ["00:40", "01:00", "01:40"], "at minutes 0 and 40 of every hour"),
        ("*/59 * * * *", ["00:59", "01:00", "01:59"], "at minutes 0 and 59 of every hour"),
        (
            "0 */7 * * *",
            ["07:00", "14:00", "21:00", "00:00"],
            "every day at 00:00, 07:00, 14:00 and 21:00, by the running clock",
        ),
    ],
)
def test_b23_a_step_restarts_with_its_field_and_the_words_say_so(line: str, want: list[str], words: str) -> None:
    assert [at[11:16] for at in following(line, "UTC", "2026-01-01T00:00:00Z", len(want))] == want
    assert describe(read(line)[0]) == words


@pytest.mark.parametrize(
    ("line", "zone", "after", "want"),
    [
        ("0 0 31 * *", "UTC", "2025-07-31T00:00:00Z", ["2025-08-31", "2025-10-31", "2025-12-31", "2026-01-31"]),
        ("0 0 L * *", "Europe/Berlin", "2028-02-01T00:00:00Z", ["2028-02-28T23", "2028-03-30T22"]),
        ("0 0 30 * *", "UTC", "2026-01-01T00:00:00Z", ["2026-01-30", "2026-03-30", "2026-04-30"]),
        ("0 0 L * *", "UTC", "2026-01-31T00:00:00Z", ["2026-02-28", "2026-03-31", "2026-04-30"]),
    ],
)
def test_b25_a_day_of_the_month_is_computed_from_the_rule_and_never_drifts(
    line: str, zone: str, after: str, want: list[str]
) -> None:
    assert [at[: len(want[0])] for at in following(line, zone, after, len(want))] == want


@pytest.mark.parametrize(
    ("field", "days"),
    [
        ("fri-sun", [1, 2, 3, 8]),
        ("6-7", [2, 3, 9]),
        ("0,7", [3, 10, 17]),
        ("5-7/2", [1, 3, 8]),
        ("sun-tue", [3, 4, 5, 10]),
        ("0-7", [1, 2, 3, 4]),
        ("MON-SUN", [1, 2, 3]),
        ("sun", [3, 10]),
        ("7-7", [3, 10]),
    ],
)
def test_b26_sunday_is_0_and_7_and_the_end_of_a_range(field: str, days: list[int]) -> None:
    found = following(f"1 0 * * {field}", "UTC", "2026-05-01T00:00:00Z", len(days))
    assert [int(at[8:10]) for at in found] == days


@pytest.mark.parametrize(
    ("text", "after", "want"),
    [
        ("0 4 1 * *", "2026-02-01T04:00:01Z", "2026-03-01T04:00:00Z"),
        ("once 2027-02-01 04:00", "2026-02-01T04:00:01Z", "2027-02-01T04:00:00Z"),
        ("every 400d from 2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2027-02-05T00:00:00Z"),
        ("0 0 29 2 *", "2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"),
    ],
)
def test_b28_waits_longer_than_any_timer_are_plain_instants(text: str, after: str, want: str) -> None:
    assert following(text, "UTC", after, 1) == [want]


def test_b29_an_interval_keeps_its_grid_through_restarts_edits_and_long_runs() -> None:
    for after in ("2026-01-25T21:53:00Z", "2026-01-25T21:54:00Z", "2026-01-25T22:00:00Z", "2026-01-25T22:28:20.999Z"):
        found = following("every 3600s from 2026-01-25T20:28:21Z", "UTC", after, 2)
        assert found == ["2026-01-25T22:28:21Z", "2026-01-25T23:28:21Z"]


def test_b31_and_b32_the_distance_to_the_next_instant_is_always_known_and_positive() -> None:
    zone, triggers = zones.zone("Europe/Berlin"), read("0 * * * *")
    for at in islice(occurrences(triggers, zone, instant("2026-10-24T00:00:00Z")), 1000):
        following_at = next_after(triggers, zone, at)
        assert following_at is not None
        assert following_at - at == timedelta(hours=1)
    once = read("once 2027-01-01 00:00")
    assert next_after(once, zone, instant("2026-12-31T23:00:00Z")) is None


def test_b34_a_clock_that_jumps_forward_costs_a_count_and_the_newest_instant_not_a_walk() -> None:
    zone, triggers = zones.zone("Europe/Berlin"), read("*/5 * * * *")
    before, after = instant("2026-03-10T12:00:00Z"), instant("2026-04-09T12:00:30Z")
    start = clock.process_time()
    assert count(triggers, zone, before, after) == 30 * 288
    assert last_at_or_before(triggers, zone, after) == instant("2026-04-09T12:00:00Z")
    assert clock.process_time() - start < 0.05
    epoch = Every(span=timedelta(seconds=1), anchor=instant("1970-01-01T00:00:00Z"))
    assert count((epoch,), zone, epoch.anchor, after) == int(after.timestamp())


@pytest.mark.parametrize(
    ("line", "zone", "viewer", "after", "want"),
    [
        ("0 0 1 * *", "America/Los_Angeles", "Australia/Adelaide", "2026-05-15T00:00:00Z", ("01 00:00", "01 16:30")),
        ("30 23 * * 5", "Asia/Tokyo", "America/New_York", "2026-06-01T00:00:00Z", ("05 23:30", "05 10:30")),
        ("15 0 * * 1", "Pacific/Auckland", "America/Los_Angeles", "2026-06-02T00:00:00Z", ("08 00:15", "07 05:15")),
    ],
)
def test_b88_an_instant_is_shown_on_both_walls_and_the_rule_in_its_own_zone(
    line: str, zone: str, viewer: str, after: str, want: tuple[str, str]
) -> None:
    (found,) = following(line, zone, after, 1)
    assert tuple(f"{instant(found).astimezone(zones.zone(key)):%d %H:%M}" for key in (zone, viewer)) == want
    named = {"1": "Monday", "5": "Friday"}.get(line.split()[-1])
    assert named is None or named in describe(read(line)[0]), "the day of the rule's own zone"


@pytest.mark.parametrize("text", ["daily 09:00", "*/10 * * * *", "0 0 1 * *", "weekly mon 08:00"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kathmandu"])
def test_b92_another_zone_moves_what_is_to_come_and_owes_nothing_for_the_past(text: str, zone: str) -> None:
    now = instant("2026-06-15T12:00:00Z")
    own, moved = (next_after(read(text), zones.zone(key), now) for key in ("UTC", zone))
    assert own is not None
    assert moved is not None
    assert moved > now
    wall = moved.astimezone(zones.zone(zone))
    assert (wall.minute % 10, wall.second) == (own.minute % 10, own.second), "the same times, on another wall"
