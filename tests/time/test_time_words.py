"""Triggers in plain English."""

import re
from datetime import datetime

import pytest
from hypothesis import given
from time_asking import read
from time_draws import DRAWS, triggers

from duly.core.triggers import Trigger
from duly.core.words import describe, describe_all
from duly.errors import Invalid


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("daily 9:00,17:30", "every day at 09:00 and 17:30"),
        ("weekly weekdays 09:00", "every weekday at 09:00"),
        ("weekly sun,mon,thu 09:00:30", "every Monday, Thursday and Sunday at 09:00:30"),
        ("weekly mon-sun 09:00", "every day at 09:00"),
        ("once 2026-12-01 09:00", "once on 2026-12-01 at 09:00"),
        ("once 2026-12-01T08:00:00Z", "once at 2026-12-01T08:00:00Z"),
        ("every 15m", "every 15 minutes, counted from 2026-01-01T12:00:00Z"),
        ("every 1h", "every hour, counted from 2026-01-01T12:00:00Z"),
        ("every 2h30m", "every 2 hours and 30 minutes, counted from 2026-01-01T12:00:00Z"),
        ("every 90m", "every 90 minutes, counted from 2026-01-01T12:00:00Z"),
        ("every 3601s", "every 1 hour and 1 second, counted from 2026-01-01T12:00:00Z"),
        ("every 36h", "every 36 hours, counted from 2026-01-01T12:00:00Z"),
        ("every 10d1h", "every 241 hours, counted from 2026-01-01T12:00:00Z"),
        ("every 1d", "every 24 hours, counted from 2026-01-01T12:00:00Z"),
        ("every 2w", "every 14 days of 24 hours, counted from 2026-01-01T12:00:00Z"),
        ("every 10d", "every 10 days of 24 hours, counted from 2026-01-01T12:00:00Z"),
        ("* * * * *", "every minute"),
        ("*/15 * * * *", "every 15 minutes"),
        ("0,15,30,45 * * * *", "every 15 minutes"),
        ("*/40 * * * *", "at minutes 0 and 40 of every hour"),
        ("*/59 * * * *", "at minutes 0 and 59 of every hour"),
        ("0 */7 * * *", "every day at 00:00, 07:00, 14:00 and 21:00, by the running clock"),
        ("0 * * * *", "every hour, on the hour"),
        ("30 * * * *", "every hour, at minute 30"),
        ("0 */2 * * *", "every 2 hours, on the hour"),
        ("30 2 * * *", "every day at 02:30"),
        ("0 9 * * 1-5", "every weekday at 09:00"),
        ("0 9 * * MON-FRI", "every weekday at 09:00"),
        ("*/10 8-18 * * mon-fri", "every 10 minutes from 08:00 to 18:50, on weekdays (Monday to Friday)"),
        ("* 9 * * *", "every minute from 09:00 to 09:59"),
        ("0 9 */10 * *", "at 09:00 on every 10th day from the 1st of the month"),
        ("0 9 */2 * 1", "at 09:00 on every 2nd day from the 1st of the month, but only on Mondays (both must match)"),
        ("30 0 1 * 1", "at 00:30 on the 1st of the month, and also on Mondays (either suffices)"),
        ("0 12 1-31 * 1", "at 12:00 on the 1st to the 31st of the month, and also on Mondays (either suffices)"),
        ("0 9 */100,1-7 * mon", "at 09:00 on the 1st to the 7th of the month, but only on Mondays (both must match)"),
        ("0 14 LW * *", "at 14:00 on the last working day of the month"),
        ("0 9 15W,L * *", "at 09:00 on the last day and the working day nearest the 15th of the month"),
        ("0 17 * * 5L", "at 17:00 on the last Friday of the month"),
        ("0 12 * * 2#3", "at 12:00 on the third Tuesday of the month"),
        ("0 0 1 JAN,jul *", "at 00:00 on the 1st of the month in January and July"),
        ("0 9 * 6-8 *", "every day in June to August at 09:00"),
        ("*/5 * * 1 *", "every 5 minutes, in January"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("30 0 9 * * *", "every day at 09:00:30"),
        ("15 */5 * * * *", "every 5 minutes, at second 15"),
        ("@weekly", "every Sunday at 00:00"),
        ("0 0 * * */2", "every Tuesday, Thursday, Saturday and Sunday at 00:00"),
    ],
)
def test_the_words_of_a_trigger_say_what_it_does(text: str, words: str) -> None:
    (trigger,) = read(text)
    assert describe(trigger) == words


@pytest.mark.parametrize(
    ("running", "fixed"),
    [
        ("*/30 2 * * *", "0,30 2 * * *"),
        ("*/30 * * * *", "0,30 0-23 * * *"),
        ("0 * * * *", "0 0-23 * * *"),
        ("* 2 * * *", "0-59 2 * * *"),
        ("0 */12 * * *", "0 0,12 * * *"),
        ("30 */8 1 * *", "30 0,8,16 1 * *"),
        ("*/10 0-6 * * mon", "0,10,20,30,40,50 0-6 * * mon"),
    ],
)
def test_lines_that_part_ways_when_clocks_change_never_have_the_same_words(running: str, fixed: str) -> None:
    one, other = describe(read(running)[0]), describe(read(fixed)[0])
    assert one != other
    assert "local time" not in one
    assert "running clock" not in other


def test_words_speak_of_changing_clocks_only_where_clocks_change() -> None:
    assert describe(read("*/30 9 * * *")[0]) == describe(read("0,30 9 * * *")[0]) == "every day at 09:00 and 09:30"
    assert describe(read("0 8-18 * * *")[0]) == "on the hour in the hours 8 to 18"


def test_several_triggers_are_said_one_after_another_and_none_is_by_hand() -> None:
    assert describe_all((*read("daily 09:00"), *read("@hourly"))) == "every day at 09:00; every hour, on the hour"
    assert describe_all(()) == "by hand only"


@given(triggers(datetime.fromisoformat("2026-10-25 02:30"), seconds=True))
@DRAWS
def test_every_trigger_has_words_and_an_even_step_is_claimed_only_where_it_is_even(trigger: Trigger) -> None:
    try:
        words = describe(trigger)
    except Invalid:
        return
    assert words
    assert "  " not in words
    for step, unit in re.findall(r"every (\d+) (second|minute|hour)s(?: from| in|,|$)", words):
        if "counted from" not in words:
            assert {"second": 60, "minute": 60, "hour": 24}[unit] % int(step) == 0
