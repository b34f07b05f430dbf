"""A task's triggers read together, in files and where they are over; and texts at the edges of the calendar."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from core_values import HOUR, MINUTE, NINE, every

from duly import zones
from duly.core import when
from duly.core.triggers import Daily, Every, Once
from duly.errors import Invalid

BERLIN = zones.zone("Europe/Berlin")
APIA = zones.zone("Pacific/Apia")
EXAMPLES = "`daily 09:00`, `weekly mon-fri 09:00`, `every 15m`, `once in 2h`, `cron 0 9 * * 1-5` or `on deploy`"


def read(*texts: str, now: datetime = NINE, **more: Any) -> Any:
    asked: dict[str, Any] = {"now": now, "zone": BERLIN} | more
    return when.read_all(texts, **asked)


def refused(*texts: str, **more: Any) -> tuple[Any, ...]:
    with pytest.raises(Invalid) as caught:
        read(*texts, **more)
    told = caught.value
    return told.message, told.field, told.text, told.at, told.hint


def test_manual_alone_is_no_trigger_and_beside_another_it_is_refused() -> None:
    assert read("manual") == read(" MANUAL\n") == ()
    assert refused("manual", "daily 09:00")[0].startswith("`manual` stands alone")
    assert refused("\u00a0manual")[1] == "when"


def test_a_task_needs_a_time_and_has_not_too_many() -> None:
    assert refused() == ("a task needs a time, or `manual`", "when", "", 0, EXAMPLES)
    texts = [f"every {minutes}m" for minutes in range(1, 22)]
    too_many = ("a task has at most 20 triggers", "when", None, None, "one trigger with several times")
    assert refused(*texts) == too_many
    assert len(read(*texts[:20])) == 20


def test_equal_triggers_are_one_and_the_others_keep_their_order() -> None:
    first, second = read("every 1h from 2026-03-02T09:00:00Z", "daily 9:00", "DAILY 09:00")
    assert first == every(HOUR)
    assert isinstance(second, Daily)


def test_a_text_is_not_longer_than_its_limit() -> None:
    long = "x" * (when.MAX_TEXT + 1)
    most = when.MAX_TEXT
    assert refused(long) == ("the text is too long", "when", long, most, f"{most} characters")
    assert refused("x" * most)[0] != "the text is too long"


def test_once_in_a_while_is_no_trigger_of_a_file_and_of_an_ask_counts_from_the_second() -> None:
    now = NINE + timedelta(microseconds=5)
    assert read("once in 20m", now=now) == (Once(at=NINE + 20 * MINUTE),)
    told = refused("once in 20m", now=now, in_file=True)
    assert told[0] == "`once in` means another instant at each reading of a file"
    assert told[1:] == ("when", "once in 20m", 5, "once 2026-03-02 09:00")
    assert read("every 20m", now=now) == (Every(span=20 * MINUTE, anchor=NINE),)


def test_now_is_told_apart_from_its_zone() -> None:
    there = NINE.astimezone(timezone(timedelta(hours=5)))
    assert read("once in 20m", now=there) == (Once(at=NINE + 20 * MINUTE),)
    assert refused("once in 20m", now=there, in_file=True)[4] == "once 2026-03-02 09:00"


def test_what_is_over_is_refused_but_where_the_past_is_asked() -> None:
    assert refused("once 2026-03-01 09:00")[:2] == ("2026-03-01 09:00 is past", "when")
    assert read("once 2026-03-01 09:00", past=True) == (Once(local=datetime(2026, 3, 1, 9)),)  # noqa: DTZ001
    assert refused("once 2026-03-02T09:00:00Z")[3:] == (5, "a time to come")
    assert read("once 2026-03-02T09:00:01Z") == (Once(at=NINE + timedelta(seconds=1)),)


def test_beyond_the_calendar_nothing_is_read() -> None:
    late = datetime(9999, 12, 31, 12, tzinfo=UTC)
    assert refused("once in 20d", now=late) == (
        "the instant is outside the calendar",
        "when",
        "once in 20d",
        5,
        "a nearer one",
    )
    assert refused("once", now=late)[4] == "once 9999-12-31 09:00"
    never = refused("daily 09:00", now=datetime(9999, 12, 31, 23, tzinfo=UTC))
    assert never[:2] == ("it never comes in this zone", "when")
    assert never[3:] == (0, "a time that its clock shows")


def test_a_local_time_is_read_in_the_zone_that_is_asked() -> None:
    (berlin,) = read("every 1h from 2026-03-02 09:00")
    (apia,) = read("every 1h from 2026-03-02 09:00", zone=APIA)
    assert berlin.anchor - apia.anchor == 12 * HOUR


def test_a_day_after_on_is_answered_with_the_trigger_that_it_means() -> None:
    assert refused("on mondays at 9")[4] == "weekly mon 09:00"
    assert refused("on")[4] == "on deploy where branch=main throttle 10m by branch"
