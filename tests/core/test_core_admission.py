"""Whether a waiting run may start: a table of cases, then the edges of age."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from core_values import HOUR, MINUTE, NINE, TICK, every, held, task_of, waiting

from duly.core.admission import Admitted, Skipped, Waits, admit
from duly.core.lateness import grace_for, refused_after_interruption, waited_too_long
from duly.core.task import Broken, Rules

SOON = NINE + MINUTE
LATE = NINE + 7 * HOUR
BROKEN = Broken(field="zone", message="gone")


def verdict(run: dict[str, Any], task: dict[str, Any], *, paused: bool, kinds: set[str], late: bool) -> str:
    definition = task_of(every(HOUR), enabled=task.get("enabled", True))
    made = replace(
        definition, removed_at=NINE if task.get("removed") else None, broken=BROKEN if task.get("broken") else None
    )
    rules = None if task.get("broken") else made.definition.rules
    found = admit(waiting(**run), made, rules, paused=paused, kinds=kinds, now=LATE if late else SOON)
    match found:
        case Admitted():
            return "admitted"
        case Skipped():
            return f"skipped {found.reason}"
        case Waits():
            return f"waits {found.what}"


TIME, CATCH_UP, EVENT = {"opened_by": "schedule"}, {"opened_by": "catch_up"}, {"opened_by": "event"}
HAND, OFFER, BACKFILL = {"opened_by": "manual"}, {"opened_by": "offer"}, {"opened_by": "backfill"}
ANYWAY = {"opened_by": "manual", "anyway": True}
PLAIN: dict[str, Any] = {}
OFF, GONE, BAD = {"enabled": False}, {"removed": True}, {"broken": True}
KNOWN, NONE = {"command"}, set[str]()
CASES: list[tuple[dict[str, Any], dict[str, Any], bool, set[str], bool, str]] = [
    # run, task, paused, kinds, late → verdict
    (TIME, PLAIN, False, KNOWN, False, "admitted"),
    (CATCH_UP, PLAIN, False, KNOWN, False, "admitted"),
    (EVENT, PLAIN, False, KNOWN, False, "admitted"),
    (HAND, PLAIN, False, KNOWN, False, "admitted"),
    (TIME, PLAIN, False, KNOWN, True, "skipped stale"),
    (CATCH_UP, PLAIN, False, KNOWN, True, "skipped stale"),
    (EVENT, PLAIN, False, KNOWN, True, "skipped stale"),
    (HAND, PLAIN, False, KNOWN, True, "admitted"),
    (OFFER, PLAIN, False, KNOWN, True, "admitted"),
    (BACKFILL, PLAIN, False, KNOWN, True, "admitted"),
    (TIME, OFF, False, KNOWN, False, "skipped disabled"),
    (EVENT, OFF, False, KNOWN, False, "skipped disabled"),
    (HAND, OFF, False, KNOWN, False, "admitted"),
    (OFFER, OFF, False, KNOWN, False, "admitted"),
    (BACKFILL, OFF, False, KNOWN, False, "admitted"),
    (TIME, PLAIN, True, KNOWN, False, "skipped paused"),
    (EVENT, PLAIN, True, KNOWN, False, "skipped paused"),
    (HAND, PLAIN, True, KNOWN, False, "waits pause"),
    (ANYWAY, PLAIN, True, KNOWN, False, "admitted"),
    (ANYWAY, OFF, True, KNOWN, True, "admitted"),
    (TIME, GONE, False, KNOWN, False, "skipped task_removed"),
    (HAND, GONE, False, KNOWN, False, "skipped task_removed"),
    (ANYWAY, GONE, True, KNOWN, False, "skipped task_removed"),
    (TIME, BAD, False, KNOWN, False, "waits definition"),
    (HAND, BAD, False, KNOWN, False, "waits definition"),
    (TIME, PLAIN, False, NONE, False, "waits runner"),
    (HAND, PLAIN, False, NONE, False, "waits runner"),
    (TIME, PLAIN, False, NONE, True, "skipped stale"),
]


@pytest.mark.parametrize(("run", "task", "paused", "kinds", "late", "expected"), CASES)
def test_admission_follows_the_table(
    run: dict[str, Any], task: dict[str, Any], paused: bool, kinds: set[str], late: bool, expected: str
) -> None:
    assert verdict(run, task, paused=paused, kinds=kinds, late=late) == expected


def test_a_run_that_waited_exactly_max_age_starts_and_a_microsecond_more_is_stale_with_its_figures() -> None:
    task, rules = task_of(every(HOUR)), Rules(max_age=HOUR)
    run = waiting()
    assert isinstance(admit(run, task, rules, paused=False, kinds={"command"}, now=NINE + HOUR), Admitted), (
        "exactly max_age runs"
    )
    found = admit(run, task, rules, paused=False, kinds={"command"}, now=NINE + HOUR + TICK)
    assert isinstance(found, Skipped)
    assert found.reason == "stale"
    assert found.details == {"late_by_s": 3600.000001, "max_age_s": 3600.0}


def test_no_policy_is_asked_of_a_run_that_waited() -> None:
    rules = Rules(on_missed="skip", grace=timedelta(0))
    now = NINE + HOUR
    assert isinstance(
        admit(waiting(), task_of(every(MINUTE)), rules, paused=False, kinds={"command"}, now=now), Admitted
    )


def test_a_retry_after_an_interruption_is_not_stale_by_the_time_it_worked() -> None:
    rules = Rules(max_age=6 * HOUR, on_interrupt="retry")
    retry = waiting(attempt=1, fence=1, interruptions=1, worked_for=7 * HOUR, not_before=NINE + 7 * HOUR)
    now = NINE + 7 * HOUR + 2 * MINUTE
    assert refused_after_interruption(retry, rules, worked_for=7 * HOUR, following=None, now=now) is None
    assert not waited_too_long(retry, rules, now), "the same figures must not end what was just allowed"
    found = admit(retry, task_of(every(HOUR)), rules, paused=False, kinds={"command"}, now=now)
    assert isinstance(found, Admitted)


def test_a_retry_that_waited_idle_longer_than_max_age_is_stale() -> None:
    rules = Rules(max_age=6 * HOUR, on_interrupt="retry")
    retry = waiting(attempt=1, fence=1, interruptions=1, worked_for=7 * HOUR)
    assert not waited_too_long(retry, rules, NINE + 13 * HOUR)
    assert waited_too_long(retry, rules, NINE + 13 * HOUR + TICK)


@pytest.mark.parametrize("opened_by", ["manual", "offer", "backfill"])
@pytest.mark.parametrize("policy", ["run", "skip"])
def test_what_a_person_asked_for_is_never_judged_late(opened_by: str, policy: str) -> None:
    rules = Rules(max_age=timedelta(0), grace=timedelta(0), on_missed="run" if policy == "run" else "skip")
    now = NINE + 1000 * HOUR
    assert not waited_too_long(waiting(opened_by=opened_by), rules, now)
    run = held(opened_by=opened_by)
    assert refused_after_interruption(run, rules, worked_for=timedelta(0), following=None, now=now) is None


@pytest.mark.parametrize(
    ("policy", "idle", "expected"),
    [
        ("run", timedelta(0), None),
        ("run", 6 * HOUR, None),
        ("run", 6 * HOUR + TICK, "stale"),
        ("skip", 30 * MINUTE, None),
        ("skip", 30 * MINUTE + TICK, "missed_skip"),
        ("skip", 6 * HOUR, "missed_skip"),
        ("skip", 6 * HOUR + TICK, "stale"),
    ],
)
@pytest.mark.parametrize("worked", [timedelta(0), 3 * HOUR, 20 * HOUR])
def test_after_an_interruption_only_idle_time_counts_as_lateness(
    policy: str, idle: timedelta, expected: str | None, worked: timedelta
) -> None:
    rules = Rules(on_missed="run" if policy == "run" else "skip", grace=30 * MINUTE)
    now = NINE + worked + idle
    assert refused_after_interruption(held(), rules, worked_for=worked, following=None, now=now) == expected


def test_the_default_grace_is_half_the_distance_and_at_most_a_minute() -> None:
    rules = Rules()
    assert grace_for(rules, NINE, NINE + 10 * MINUTE) == MINUTE
    assert grace_for(rules, NINE, NINE + MINUTE) == MINUTE / 2
    assert grace_for(rules, NINE, None) == MINUTE
    assert grace_for(Rules(grace=timedelta(0)), NINE, None) == timedelta(0)
    assert grace_for(Rules(grace=5 * HOUR), NINE, NINE + MINUTE) == 5 * HOUR


def test_a_run_is_judged_by_the_kind_of_its_own_action_whatever_its_task_does_now() -> None:
    task = task_of(every(MINUTE))
    found = admit(waiting(), task, task.definition.rules, paused=False, kind="fax", kinds={"command"}, now=SOON)
    assert found == Waits(what="runner", key="fax")
    assert isinstance(
        admit(waiting(), task, task.definition.rules, paused=False, kinds={"command"}, now=SOON), Admitted
    )
