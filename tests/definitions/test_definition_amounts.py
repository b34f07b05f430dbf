"""Budgets and estimates as people write them: read whole, written back as they are, refused by their own field."""

from datetime import UTC, datetime
from typing import Any

import pytest

from duly.core.amounts import Allowance, Amounts
from duly.core.definition_json import definition_from_json, definition_to_json
from duly.definitions import read_definition
from duly.errors import Invalid

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
COMMAND = {"kind": "command", "argv": ["true"], "cwd": "/"}
AGENT = {"kind": "agent", "agent": "claude", "prompt": "Do it.", "cwd": "/"}


def read(action: dict[str, Any], **rules: Any) -> Any:
    whole = {"name": "one", "triggers": ["daily 08:00"], "zone": "UTC", "action": action, "rules": rules}
    return read_definition(whole, now=NOW, default_zone="UTC").definition


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"runs": 3, "per": "day"}, Allowance(per="day", runs=3)),
        ({"tokens": 0, "per": "month"}, Allowance(per="month", tokens=0)),
        ({"usd": 2.5, "per": "day"}, Allowance(per="day", usd_micro=2_500_000)),
        ({"usd": "0.000001", "runs": 1, "per": "day"}, Allowance(per="day", runs=1, usd_micro=1)),
        ({"usd": 0.1, "tokens": 7, "runs": 9, "per": "day"}, Allowance(per="day", runs=9, tokens=7, usd_micro=100_000)),
    ],
)
def test_a_budget_is_read_exactly_and_reads_the_same_when_it_is_written_back(
    written: dict[str, Any], meant: Allowance
) -> None:
    found = read(COMMAND, budget=written)
    assert found.rules.budget == meant
    assert definition_from_json(definition_to_json(found)) == found


def test_an_estimate_is_read_exactly_and_reads_the_same_when_it_is_written_back() -> None:
    found = read(AGENT, estimate={"tokens": 40_000, "usd": 0.2})
    assert found.rules.estimate == Amounts(tokens=40_000, usd_micro=200_000)
    assert definition_from_json(definition_to_json(found)) == found


@pytest.mark.parametrize(
    ("rule", "written", "field"),
    [
        ("budget", "much", "rules.budget"),
        ("budget", 5, "rules.budget"),
        ("budget", [], "rules.budget"),
        ("budget", {}, "rules.budget.per"),
        ("budget", {"runs": 1}, "rules.budget.per"),
        ("budget", {"runs": 1, "per": "week"}, "rules.budget.per"),
        ("budget", {"per": "day"}, "rules.budget"),
        ("budget", {"runs": -1, "per": "day"}, "rules.budget.runs"),
        ("budget", {"runs": 1.5, "per": "day"}, "rules.budget.runs"),
        ("budget", {"runs": True, "per": "day"}, "rules.budget.runs"),
        ("budget", {"tokens": "7", "per": "day"}, "rules.budget.tokens"),
        ("budget", {"tokens": 10**16, "per": "day"}, "rules.budget.tokens"),
        ("budget", {"usd": "much", "per": "day"}, "rules.budget.usd"),
        ("budget", {"usd": float("nan"), "per": "day"}, "rules.budget.usd"),
        ("budget", {"usd": -0.5, "per": "day"}, "rules.budget.usd"),
        ("budget", {"usd": 1e-9, "per": "day"}, "rules.budget.usd"),
        ("budget", {"euro": 1, "per": "day"}, "rules.budget.euro"),
        ("estimate", {"runs": 1}, "rules.estimate.runs"),
        ("estimate", {"usd": None}, "rules.estimate.usd"),
    ],
)
def test_what_is_no_amount_is_refused_by_its_own_field(rule: str, written: Any, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        read(AGENT, **{rule: written})
    assert refused.value.field == field
