"""Rules that an author left open, keys of occurrences, notes, and a schedule's bounds."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from core_values import DAY, HOUR, MINUTE, NINE, SECOND, TICK, every
from hypothesis import given
from hypothesis import strategies as st

from duly.core import occurrences, schedule
from duly.core.defaults import read_defaults, readable_defaults, with_defaults, without_defaults
from duly.core.fields import NOTE_MOST
from duly.core.notes import check_note
from duly.core.task import Definition, Rules
from duly.core.triggers import Cron, Daily, Every, On, Once, Trigger, Weekly
from duly.errors import Invalid

UTC_ZONE = ZoneInfo("UTC")
NOON = datetime(2026, 3, 2, 12).time()  # noqa: DTZ001


def definition(own: dict[str, Any] | None = None, **action: Any) -> Definition:
    rules = own or {}
    made = {"kind": "command", "argv": ("true",)} | action
    return Definition(name="one", action=made, rules=Rules(**rules), own_rules=frozenset(rules))


def test_defaults_are_read_as_the_rules_of_a_task_are() -> None:
    assert read_defaults({"queue": 3, "on_missed": "skip", "max_age": "2h"}) == {
        "queue": 3,
        "on_missed": "skip",
        "max_age": 2 * HOUR,
    }
    assert read_defaults({}) == {}


@pytest.mark.parametrize(
    ("given", "field", "hint"),
    [
        ({"start": "2026-01-01T00:00:00Z"}, "rules.start", "duly edit TASK --start …"),
        ({"remove_when_done": True}, "rules.remove_when_done", "duly edit TASK --remove-when-done …"),
        ({"gate": "true", "queue": 3}, "rules.gate", "duly edit TASK --gate …"),
    ],
)
def test_what_means_one_task_alone_is_no_default_and_the_refusal_says_which_are(
    given: dict[str, Any], field: str, hint: str
) -> None:
    with pytest.raises(Invalid) as refused:
        read_defaults(given)
    told = refused.value
    assert told.message == "it means one task's own schedule or work, and has no default for many"
    assert (told.field, told.hint) == (field, hint)
    allowed = told.details["allowed"]
    assert isinstance(allowed, list)
    assert {"queue", "max_age", "timeout"} <= set(allowed)
    assert not {"start", "until", "gate", "remove_when_done"} & set(allowed)


def test_a_default_of_no_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(Invalid) as refused:
        read_defaults({"queu": 3})
    assert (refused.value.field, refused.value.hint) == ("rules.queu", "rules.queue")


def test_of_stored_defaults_those_that_read_count_and_the_others_do_not() -> None:
    stored = {"of_newer": 1, "queue": 3, "gate": "true", "max_age": 7, "retries": 2}
    assert readable_defaults(stored) == {"queue": 3, "retries": 2}


def test_what_was_left_open_is_filled_in_by_the_project_before_the_store_and_says_from_where() -> None:
    one = definition({"queue": 7}, cwd=None)
    filled = with_defaults(
        one,
        store={"queue": 1, "retries": 1, "max_age": HOUR},
        project={"queue": 2, "max_age": MINUTE},
        folder="/srv",
    )
    assert filled.rules == Rules(queue=7, retries=1, max_age=MINUTE)
    assert filled.inherited == {"retries": "store", "max_age": "project", "cwd": "project"}
    assert filled.action == {"kind": "command", "argv": ("true",), "cwd": "/srv"}
    assert without_defaults(filled) == definition({"queue": 7})


def test_a_definition_that_leaves_nothing_open_is_itself() -> None:
    one = definition({"queue": 7})
    assert with_defaults(one) is one
    assert with_defaults(one, store={"queue": 1}) is one
    assert without_defaults(one) is one


@pytest.mark.parametrize(
    ("action", "inherits"),
    [
        ({}, True),
        ({"cwd": "/own"}, False),
        ({"kind": "agent"}, True),
        ({"kind": "call"}, True),
        ({"kind": "call", "in": "child"}, True),
        ({"kind": "call", "in": "thread"}, False),
        ({"kind": "webhook"}, False),
    ],
)
def test_the_projects_folder_is_where_work_is_done_that_has_a_folder_and_none_of_its_own(
    action: dict[str, Any], inherits: bool
) -> None:
    one = definition(**action)
    filled = with_defaults(one, folder="/srv")
    assert (filled.action.get("cwd") == "/srv") is inherits
    assert without_defaults(filled) == one


def test_taking_defaults_away_leaves_a_folder_that_the_author_wrote() -> None:
    filled = with_defaults(definition(cwd="/own"), store={"retries": 1}, folder="/srv")
    assert without_defaults(filled) == definition(cwd="/own")


@given(
    own=st.fixed_dictionaries({}, optional={"queue": st.integers(1, 9), "retries": st.integers(0, 9)}),
    store=st.fixed_dictionaries({}, optional={"queue": st.integers(1, 9), "seats": st.integers(1, 9)}),
    project=st.fixed_dictionaries({}, optional={"retries": st.integers(0, 9), "seats": st.integers(1, 9)}),
)
def test_whatever_is_filled_in_can_be_taken_away_again(
    own: dict[str, int], store: dict[str, int], project: dict[str, int]
) -> None:
    one = definition(own)
    assert without_defaults(with_defaults(one, store=store, project=project)) == one


@given(st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1)))  # noqa: DTZ001
def test_the_key_of_an_instant_is_of_time_and_gives_the_instant_back(local: datetime) -> None:
    at = local.replace(tzinfo=UTC)
    key = occurrences.at_key(at)
    assert key.startswith("at:2")
    assert occurrences.is_of_time(key)
    assert occurrences.instant_of(key) == at


def test_keys_of_asks_and_events_are_told_apart_from_those_of_time() -> None:
    assert occurrences.at_key(NINE) == "at:2026-03-02T09:00:00Z"
    assert occurrences.manual_key("k") == "manual:k"
    assert occurrences.event_key("deploy", "7") == "event:deploy:7"
    assert not occurrences.is_of_time("manual:at:x")
    assert not occurrences.is_of_time("event:deploy:7")


def test_a_note_is_one_line_of_plain_text_of_limited_length() -> None:
    for note in (None, "", "so it is", "x" * NOTE_MOST):
        check_note(note)
    for note, message in (
        ("a\nb", '"a\\nb" is not one line of plain text'),
        ("x" * (NOTE_MOST + 1), f"it has {NOTE_MOST + 1:,} characters, and {NOTE_MOST} are allowed"),
    ):
        with pytest.raises(Invalid) as refused:
            check_note(note)
        assert (refused.value.message, refused.value.field) == (message, "--note")


def bounded(*triggers: Trigger, start: datetime | None = None, until: datetime | None = None) -> Definition:
    return Definition(name="one", triggers=triggers or (every(HOUR),), rules=Rules(start=start, until=until))


BOUNDS = bounded(start=NINE + HOUR, until=NINE + 4 * HOUR)


def test_start_and_until_are_both_of_the_schedule() -> None:
    hours = [NINE + number * HOUR for number in (1, 2, 3, 4)]
    assert list(schedule.dues(BOUNDS, UTC_ZONE, NINE - DAY)) == hours
    assert list(schedule.walk(BOUNDS, UTC_ZONE, NINE - DAY)) == hours
    assert list(schedule.dues(BOUNDS, UTC_ZONE, NINE + HOUR)) == hours[1:]
    assert list(schedule.walk(BOUNDS, UTC_ZONE, NINE + HOUR)) == hours[1:]
    assert schedule.count_due(BOUNDS, UTC_ZONE, NINE - DAY, NINE + DAY) == 4
    assert schedule.count_due(BOUNDS, UTC_ZONE, NINE + HOUR, NINE + 3 * HOUR) == 2
    assert schedule.next_due(BOUNDS, UTC_ZONE, NINE + 4 * HOUR) is None


def test_looking_back_stops_at_the_start_and_begins_at_until() -> None:
    assert schedule.last_due(BOUNDS, UTC_ZONE, NINE + DAY) == NINE + 4 * HOUR
    assert schedule.last_due(BOUNDS, UTC_ZONE, NINE + 4 * HOUR) == NINE + 4 * HOUR
    assert schedule.last_due_before(BOUNDS, UTC_ZONE, NINE + 4 * HOUR) == NINE + 3 * HOUR
    assert schedule.last_due(BOUNDS, UTC_ZONE, NINE + HOUR) == NINE + HOUR
    assert schedule.last_due(BOUNDS, UTC_ZONE, NINE + HOUR - TICK) is None
    assert schedule.is_due(BOUNDS, UTC_ZONE, NINE + HOUR)
    assert not schedule.is_due(BOUNDS, UTC_ZONE, NINE)
    assert not schedule.is_due(BOUNDS, UTC_ZONE, NINE + HOUR + SECOND)
    assert not schedule.is_due(BOUNDS, UTC_ZONE, NINE + 5 * HOUR)


@given(
    low=st.integers(-6, 6),
    high=st.integers(-6, 6),
    start=st.none() | st.integers(-6, 6),
    until=st.none() | st.integers(-6, 6),
)
def test_counting_is_the_same_as_walking_whatever_the_bounds(
    low: int, high: int, start: int | None, until: int | None
) -> None:
    one = bounded(
        start=None if start is None else NINE + start * 30 * MINUTE,
        until=None if until is None else NINE + until * 30 * MINUTE,
    )
    one = replace(one, triggers=(Every(span=30 * MINUTE, anchor=NINE - DAY),))
    after, last = NINE + low * 30 * MINUTE, NINE + high * 30 * MINUTE
    walked = [at for at in islice(schedule.walk(one, UTC_ZONE, after), 100) if at <= last]
    assert schedule.count_due(one, UTC_ZONE, after, last) == len(walked)
    assert walked == [at for at in islice(schedule.dues(one, UTC_ZONE, after), 100) if at <= last]


def test_gap_and_fold_are_obeyed_by_every_question() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    half = replace(bounded(Daily(times=(datetime(2026, 1, 1, 2, 30).time(),))), zone="Europe/Berlin")  # noqa: DTZ001
    odd = replace(half, rules=Rules(gap="skip", fold="second"))
    spring, autumn = datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC)
    for ask in (schedule.dues, schedule.walk):
        assert next(ask(half, berlin, spring)) == spring + HOUR
        assert next(ask(odd, berlin, spring)) == spring + DAY + 30 * MINUTE
        assert next(ask(half, berlin, autumn)) == autumn + 30 * MINUTE
        assert next(ask(odd, berlin, autumn)) == autumn + 90 * MINUTE
    assert schedule.last_due(half, berlin, spring + 2 * HOUR) == spring + HOUR
    assert schedule.last_due(odd, berlin, spring + 2 * HOUR) == spring - DAY + 90 * MINUTE
    assert schedule.last_due(half, berlin, autumn + 2 * HOUR) == autumn + 30 * MINUTE
    assert schedule.last_due(odd, berlin, autumn + 2 * HOUR) == autumn + 90 * MINUTE
    assert schedule.count_due(half, berlin, spring, spring + 2 * HOUR) == 1
    assert schedule.count_due(odd, berlin, spring, spring + 2 * HOUR) == 0
    assert schedule.count_due(odd, berlin, autumn, autumn + HOUR) == 0
    both = replace(half, rules=Rules(fold="both"))
    assert schedule.count_due(both, berlin, autumn, autumn + 2 * HOUR) == 2


KINDS: dict[str, tuple[Trigger, bool, bool]] = {
    "a fixed cron line": (Cron(expression="0 9 * * *"), True, True),
    "a cron line that follows the clock": (Cron(expression="*/5 * * * *"), False, True),
    "daily": (Daily(times=(NOON,)), True, True),
    "weekly": (Weekly(weekdays=(0,), times=(NOON,)), True, True),
    "once at a local time": (Once(local=datetime(2026, 3, 2, 12)), True, True),  # noqa: DTZ001
    "once at an instant": (Once(at=NINE), False, False),
    "every": (every(HOUR), False, False),
    "an event": (On(source="deploy"), False, False),
}


@pytest.mark.parametrize("name", KINDS)
def test_it_is_known_which_triggers_mean_local_times_and_which_ask_what_the_wall_shows(name: str) -> None:
    trigger, fixed, wall = KINDS[name]
    assert schedule.fixed_of((every(MINUTE), trigger)) == ((trigger,) if fixed else ())
    assert schedule.asks_the_wall((every(MINUTE), trigger)) is wall


def test_a_task_is_over_when_no_instant_follows_and_no_event_can_start_it() -> None:
    assert schedule.is_over(bounded(), None)
    assert not schedule.is_over(bounded(), NINE)
    assert not schedule.is_over(bounded(every(HOUR), On(source="x")), None)
    assert not schedule.is_over(bounded(On(source="x")), None)
    assert not schedule.is_over(replace(bounded(), triggers=()), None)
    assert schedule.takes_events(bounded(every(HOUR), On(source="x")))
    assert not schedule.takes_events(bounded())
