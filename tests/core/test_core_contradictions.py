"""Rules that contradict each other: which, by whose fault, and that what was so before is no reason to refuse."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from duly.core.contradictions import check_defaults, contradictions, refuse_contradictions
from duly.core.defaults import with_defaults
from duly.core.task import Definition, Rules
from duly.core.triggers import Cron, Daily, Every, On, Once, Triggers
from duly.errors import Invalid

NINE = datetime(2026, 3, 2, 9, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
UTC_ZONE = ZoneInfo("UTC")
DAILY: Triggers = (Daily(times=(NINE.time(),)),)
HOURLY: Triggers = (Every(span=HOUR, anchor=NINE),)


def one(triggers: Triggers = DAILY, **rules: Any) -> Definition:
    return Definition(
        name="one",
        triggers=triggers,
        action={"kind": "command", "argv": ("true",)},
        rules=Rules(**rules),
        own_rules=frozenset(rules),
    )


def found(definition: Definition) -> list[str]:
    return [each.rule for each in contradictions(definition, UTC_ZONE, NINE)]


@pytest.mark.parametrize("name", ["start", "until", "times", "spread", "gap", "fold", "remove_when_done"])
@pytest.mark.parametrize("triggers", [(), (On(source="deploy"),)])
def test_a_rule_about_instants_says_nothing_of_a_task_without_any(triggers: Triggers, name: str) -> None:
    values = {"start": NINE, "until": NINE + DAY, "times": 3, "spread": HOUR, "gap": "skip", "fold": "both"}
    assert found(one(triggers, **{name: values.get(name, True)})) == [name]
    assert found(one((*DAILY, *triggers), **{name: values.get(name, True)})) == []


@pytest.mark.parametrize(
    ("triggers", "refused"),
    [
        (HOURLY, True),
        ((Cron(expression="*/5 * * * *"),), True),
        ((Once(at=NINE + HOUR),), True),
        ((*HOURLY, Cron(expression="0 * * * *"), On(source="x")), True),
        (DAILY, False),
        ((*HOURLY, *DAILY), False),
        ((Cron(expression="30 2 * * *"),), False),
        ((Once(local=datetime(2026, 3, 29, 2, 30)),), False),  # noqa: DTZ001
    ],
)
@pytest.mark.parametrize("name", ["gap", "fold"])
def test_gap_and_fold_are_refused_where_no_trigger_stands_on_a_wall(
    name: str, triggers: Triggers, refused: bool
) -> None:
    value = {"gap": "run", "fold": "first"}[name]
    assert found(one(triggers, **{name: value})) == ([name] if refused else [])


@pytest.mark.parametrize(
    ("bounds", "at_fault"),
    [
        ({"start": NINE + DAY, "until": NINE + DAY}, "until"),
        ({"start": NINE + DAY, "until": NINE + HOUR}, "until"),
        ({"until": NINE - HOUR}, "until"),
        ({"until": NINE + DAY - HOUR}, "until"),
        ({"start": NINE + HOUR, "until": NINE + DAY - HOUR}, "until"),
        ({"until": NINE + DAY}, None),
        ({"start": NINE + 400 * DAY}, None),
        ({"start": NINE - 400 * DAY}, None),
    ],
)
def test_bounds_within_which_nothing_is_due_are_refused_with_the_figures(
    bounds: dict[str, Any], at_fault: str | None
) -> None:
    assert found(one(**bounds)) == ([at_fault] if at_fault else [])
    if at_fault is not None:
        with pytest.raises(Invalid) as caught:
            refuse_contradictions(one(**bounds), UTC_ZONE, NINE)
        assert caught.value.field == "rules.until"
        assert "until" in caught.value.details


def test_a_start_after_the_last_instant_is_at_fault_where_there_is_no_end() -> None:
    assert found(one((Once(at=NINE + HOUR),), start=NINE + DAY)) == ["start"]


@pytest.mark.parametrize(
    ("rules", "at_fault"),
    [
        ({"at_most": 3}, "at_most"),
        ({"at_most": 3, "on_missed": "offer"}, "at_most"),
        ({"at_most": 3, "on_missed": "run_all"}, None),
        ({"offer_for": DAY}, "offer_for"),
        ({"offer_for": DAY, "on_missed": "offer"}, None),
        ({"queue": 3}, "queue"),
        ({"queue": 3, "overlap": "cancel_running"}, "queue"),
        ({"queue": 3, "overlap": "queue"}, None),
        ({"retry_after": HOUR}, "retry_after"),
        ({"retry_up_to": HOUR}, "retry_up_to"),
        ({"retry_up_to": HOUR, "retry_after": HOUR, "retries": 1}, None),
        ({"retry_up_to": HOUR, "retry_after": HOUR + DAY, "retries": 1}, "retry_after"),
        ({"retry_after": 2 * HOUR, "retries": 1}, "retry_after"),
        ({"retry_up_to": timedelta(seconds=29), "retries": 1}, "retry_up_to"),
        ({"retry_up_to": timedelta(seconds=30), "retries": 1}, None),
        ({"idle_timeout": HOUR}, None),
        ({"idle_timeout": DAY}, "idle_timeout"),
        ({"idle_timeout": HOUR, "timeout": HOUR}, "idle_timeout"),
        ({"idle_timeout": HOUR, "timeout": HOUR + timedelta(seconds=1)}, None),
        ({"seats": 3, "overlap": "cancel_running"}, None),
    ],
)
def test_a_rule_that_cannot_count_beside_another_is_refused(rules: dict[str, Any], at_fault: str | None) -> None:
    assert found(one(**rules)) == ([at_fault] if at_fault else [])


def test_rules_are_judged_by_all_that_are_in_force_and_a_default_alone_is_never_at_fault() -> None:
    bare = one(at_most=3, queue=2, retry_after=HOUR)
    filled = with_defaults(bare, store={"on_missed": "run_all", "overlap": "queue", "retries": 2})
    assert found(bare) == ["at_most", "queue", "retry_after"]
    assert found(filled) == []
    assert found(with_defaults(one(timeout=HOUR), store={"idle_timeout": DAY, "at_most": 3, "retry_after": DAY})) == []
    assert found(with_defaults(one(idle_timeout=HOUR), project={"timeout": HOUR})) == ["idle_timeout"]


def test_what_was_so_before_is_no_reason_to_refuse_a_change_of_something_else() -> None:
    before = one(until=NINE - HOUR, queue=3)
    refuse_contradictions(one(until=NINE - HOUR, queue=3, max_age=HOUR), UTC_ZONE, NINE, before=before)
    with pytest.raises(Invalid) as caught:
        refuse_contradictions(one(until=NINE - 2 * HOUR, queue=3), UTC_ZONE, NINE, before=before)
    assert caught.value.field == "rules.until"
    with pytest.raises(Invalid) as caught:
        refuse_contradictions(one(until=NINE - HOUR, queue=3, at_most=1), UTC_ZONE, NINE, before=before)
    assert caught.value.field == "rules.at_most"
    other: Triggers = (Daily(times=((NINE + HOUR).time(),)),)
    with pytest.raises(Invalid):
        refuse_contradictions(one(other, until=NINE - HOUR, queue=3), UTC_ZONE, NINE, before=before)


def test_defaults_are_at_fault_only_where_they_cannot_hold_together() -> None:
    check_defaults({"at_most": 3, "queue": 2, "offer_for": DAY, "retry_after": HOUR})
    with pytest.raises(Invalid):
        check_defaults({"retry_after": HOUR, "retry_up_to": timedelta(minutes=1)})
    with pytest.raises(Invalid):
        check_defaults({"timeout": HOUR, "idle_timeout": DAY})
