"""What a person may have meant by a text that cannot be read: the guess is what the refusal tells them to write."""

from datetime import UTC, datetime, time

import pytest

from duly import zones
from duly.core import when
from duly.core.meant import guess, looks_like_zone, moment_meant, read_time, time_meant

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
GUESSED = {
    "in 5 minutes": "once in 5m",
    "once in 2 hours": "once in 2h",
    "in 2h30m": "once in 2h30m",
    "in 1 week": "once in 1w",
    "once in 90m": "once in 90m",
    "24:00 sharp": "daily 00:00",
    "mondays at noon at 9": "weekly mon 09:00",
    "tue at 10": "weekly tue 10:00",
    "1 week 2 days": "every 1w2d",
    "every 3 h": "every 3h",
    "every day": "daily 09:00",
    "every day at 7:15": "daily 07:15",
    "every day at 9": "daily 09:00",
    "Every Day AT 7:15": "daily 07:15",
    "every morning": "daily 08:00",
    "every night": "daily 22:00",
    "every evening": "daily 18:00",
    "every noon": "daily 12:00",
    "every noon 12:30": "daily 12:30",
    "every monday": "weekly mon 09:00",
    "every fri at 18:00": "weekly fri 18:00",
    "every weekday": "weekly weekdays 09:00",
    "every weekend at 10am": "weekly weekends 10:00",
    "every weekdays 9:30": "weekly weekdays 09:30",
    "every month": "cron @monthly",
    "every year": "cron @yearly",
    "every hour": "every 1h",
    "every minute": "every 1m",
    "every second": "every 1s",
    "every week": "every 7d",
    "every hourly": "every 1h",
    "every other day": "every 2d",
    "every second day": "every 2d",
    "every second hour": "every 2h",
    "every two hours": "every 2h",
    "every three minutes": "every 3m",
    "every five seconds": "every 5s",
    "every ten days": "every 10d",
    "every 15 minutes": "every 15m",
    "every 15minutes": "every 15m",
    "every 15 minutes please": "every 15m",
    "every 2 weeks": "every 2w",
    "hourly": "cron @hourly",
    "weekly": "cron @weekly",
    "monthly": "cron @monthly",
    "yearly": "cron @yearly",
    "annually": "cron @annually",
    "midnight": "cron @midnight",
    "at midnight": "cron @midnight",
    "monday": "weekly mon 09:00",
    "mondays at 9": "weekly mon 09:00",
    "mon 9:00": "weekly mon 09:00",
    "sun at 17:30": "weekly sun 17:30",
    "sat,sun 8:00": "weekly sat,sun 08:00",
    "tuesday,thursday 8:00": "weekly tue,thu 08:00",
    "fri-sun 9:00": "weekly fri-sun 09:00",
    "weekdays": "weekly weekdays 09:00",
    "weekends 10:30": "weekly weekends 10:30",
    "weekend at 8pm": "weekly weekends 20:00",
    "9:00": "daily 09:00",
    "at 9:00": "daily 09:00",
    "AT 9:00": "daily 09:00",
    "9am": "daily 09:00",
    "9.30": "daily 09:30",
    "24:00": "daily 00:00",
    "9:00 sharp": "daily 09:00",
    "2026-12-01": "once 2026-12-01 09:00",
    "2026-12-01 9:00": "once 2026-12-01 9:00",
    "2026-12-01 9:00:30": "once 2026-12-01 9:00:30",
    "2026-12-01 9am": "once 2026-12-01 09:00",
    "2026-12-01 soon": "once 2026-12-01 09:00",
    "2026-12-01T08:00:00Z": "once 2026-12-01T08:00:00Z",
    "15 minutes": "every 15m",
    "15minutes": "every 15m",
    "2 hours 30 min": "every 2h30m",
    "1h": "every 1h",
    "90 secs": "every 90s",
    "2hrs": "every 2h",
    "1 w": "every 1w",
    "1 day": "every 1d",
    "1 second": "every 1s",
    "2 days 3 hours 4 minutes 5 seconds": "every 2d3h4m5s",
}
NOTHING_PLAIN = (
    *("", "at", "once in", "in", "in soon", "in 5 parsecs", "every", "every other", "every blue moon", "noon"),
    *("every 0 minutes", "daily 9", "9:00 sharp now", "3 ins", "1 hour 1 hour", "0 minutes", "1 fortnight"),
    *("1234567 minutes", "9:61", "8:30 on mondays", "one two 90m", "٩ hours"),
)
TIMES = {
    "9am": "09:00",
    "9 am": "09:00",
    "9pm": "21:00",
    "9:30 PM": "21:30",
    "12am": "00:00",
    "12pm": "12:00",
    "12:30am": "00:30",
    "12:30pm": "12:30",
    "1am": "01:00",
    "1pm": "13:00",
    "0pm": "00:00",
    "13am": "13:00",
    "13pm": "13:00",
    "0": "00:00",
    "9": "09:00",
    "23": "23:00",
    "24": "00:00, on the next day",
    "24:00": "00:00, on the next day",
    "9.30": "09:30",
    "9h30": "09:30",
    "9:5": "09:05",
    "9:59": "09:59",
    "23:59": "23:59",
}
NO_TIMES = ("24:01", "25", "9h", "9:60", "9:60pm", "123", "9:000", "x9", "9x", "٩", "9  am")
ZONES = (
    *("Europe/Berlin", "America/Argentina/Buenos_Aires", "America/Port-au-Prince", "Etc/GMT+5", "europe/berlin"),
    *("UTC", "GMT", "CET", "Z", "ABCDE", "+02:00", "-0530", "+2", "UTC+2", "GMT-03:00"),
)
NO_ZONES = (
    *("mon", "MON", "SUN", "utc", "x", "A1", "ABCDEF", "EST5EDT", "9:00", "+02:0"),
    *("Europe/", "/Berlin", "Europe/1", "Port-au-Prince"),
)


@pytest.mark.parametrize("text", GUESSED)
def test_plain_english_is_answered_with_the_trigger_that_it_means(text: str) -> None:
    assert guess(text) == GUESSED[text]


@pytest.mark.parametrize("text", GUESSED)
def test_what_is_suggested_can_be_read(text: str) -> None:
    assert when.read(GUESSED[text], now=NOW, zone=zones.zone("UTC")).trigger is not None


@pytest.mark.parametrize("text", NOTHING_PLAIN)
def test_a_text_that_means_nothing_plain_is_not_guessed_at(text: str) -> None:
    assert guess(text) is None


def test_only_a_short_text_is_guessed_at() -> None:
    padding = " " * (100 - len("everyhour"))
    assert guess(f"every{padding}hour") is not None
    assert guess(f"every{padding} hour") is None


@pytest.mark.parametrize("text", TIMES)
def test_a_time_written_in_another_way_is_known(text: str) -> None:
    assert time_meant(text) == TIMES[text]


@pytest.mark.parametrize("text", NO_TIMES)
def test_what_is_no_time_in_any_way_stays_unknown(text: str) -> None:
    assert time_meant(text) is None


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("9:00", time(9)),
        ("0:00", time(0)),
        ("09:00:30", time(9, 0, 30)),
        ("23:59", time(23, 59)),
        ("23:59:59", time(23, 59, 59)),
        *((text, None) for text in ("24:00", "23:60", "23:59:60", "9", "9:0", "009:00", "9:00:", "9:00 ", "٩:00")),
    ],
)
def test_a_time_of_a_day_has_hours_and_two_digits_of_minutes_and_maybe_seconds(text: str, read: time | None) -> None:
    assert read_time(text) == read


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2026-12-01", "2026-12-01 09:00"),
        ("9:00", "2026-01-02 9:00"),
        ("09:00:30", "2026-01-02 09:00:30"),
        *((text, None) for text in ("24:00", "soon", "2026-12-01 ", "x2026-12-01", "٢026-12-01")),
    ],
)
def test_a_bare_date_means_its_morning_and_a_bare_time_the_coming_day(text: str, meant: str | None) -> None:
    assert moment_meant(text, "2026-01-02") == meant


@pytest.mark.parametrize("word", ZONES)
def test_a_word_that_is_too_much_and_looks_like_a_zone_is_taken_for_one(word: str) -> None:
    assert looks_like_zone(word)


@pytest.mark.parametrize("word", NO_ZONES)
def test_days_numbers_and_other_words_are_no_zones(word: str) -> None:
    assert not looks_like_zone(word)
