"""The collected cases: triggers, zones, moments and the right instants."""

import json
import warnings
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from time_asking import TICK, instant

from duly import zones
from duly.core import when
from duly.core.triggers import count, is_due_at, last_at_or_before, last_before, occurrences
from duly.errors import Invalid

Case = dict[str, Any]
CASES: list[Case] = json.loads((Path(__file__).parents[1] / "data" / "time-cases.json").read_text(encoding="utf-8"))


def text_of(trigger: Case) -> str:
    kind = trigger["type"]
    if kind == "cron":
        return f"cron {trigger['expr']}"
    if kind == "daily":
        return f"daily {', '.join(trigger['times'])}"
    if kind == "weekly":
        return f"weekly {','.join(trigger['weekdays'])} {', '.join(trigger['times'])}"
    if kind == "once":
        return f"once {trigger['local']}"
    return f"every {trigger['every_seconds']}s from {trigger['anchor_utc']}"


def judge(case: Case) -> None:
    after = instant(case["after_utc"])
    if case["expect"] == "reject":
        with pytest.raises(Invalid) as refused:
            when.read(text_of(case["trigger"]), now=after, zone=zones.zone(case["timezone"]))
        assert refused.value.hint
        return
    zone = zones.zone(case["timezone"])
    triggers = (when.read(text_of(case["trigger"]), now=after, zone=zone).trigger,)
    want = [instant(at) for at in case["expected_next_utc"]]
    assert list(islice(occurrences(triggers, zone, after), len(want))) == want
    back, at = [], want[-1] + TICK
    for _ in want:
        previous = last_before(triggers, zone, at)
        assert previous is not None
        back.append(previous)
        at = previous
    assert back[::-1] == want
    assert count(triggers, zone, after, want[-1]) == len(want)
    for at in want:
        assert is_due_at(triggers, zone, at)
        assert not is_due_at(triggers, zone, at + timedelta(seconds=1))
        assert last_at_or_before(triggers, zone, at) == at


@pytest.mark.parametrize("case", [case for case in CASES if not case.get("contested")], ids=lambda case: case["id"])
def test_every_collected_case_holds_forwards_backwards_and_counted(case: Case) -> None:
    judge(case)


def test_the_contested_cases_are_reported_and_bind_nobody() -> None:
    other = []
    for case in CASES:
        if case.get("contested"):
            try:
                judge(case)
            except (AssertionError, pytest.fail.Exception):
                other.append(case["id"])
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        if other:
            warnings.warn(f"contested cases that are read otherwise here: {', '.join(other)}", stacklevel=1)


def test_the_collection_is_whole() -> None:
    assert len(CASES) == 118
    assert len({case["id"] for case in CASES}) == len(CASES)
