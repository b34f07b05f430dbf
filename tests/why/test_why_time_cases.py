"""The list of time cases, asked one by one: due at each right instant, and beside it not, with a reason."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from why_scene import Stage

from duly.core.reasons import NOT_DUE
from duly.core.task import Definition
from duly.core.when import read
from duly.operations import tasks
from duly.operations.why import why
from duly.zones import zone

CASES = [
    case
    for case in json.loads((Path(__file__).parents[1] / "data" / "time-cases.json").read_text())
    if not case.get("contested") and case["expect"] == "instants"
]
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
SECOND = timedelta(seconds=1)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with pytest.MonkeyPatch.context() as patch:
        made = Stage(tmp_path_factory.mktemp("cases"), patch)
        yield made
        made.close()


def written(trigger: dict[str, Any]) -> str:
    match trigger["type"]:
        case "cron":
            return f"cron {trigger['expr']}"
        case "daily":
            return f"daily {', '.join(trigger['times'])}"
        case "weekly":
            days = (day if isinstance(day, str) else DAYS[day] for day in trigger["weekdays"])
            return f"weekly {','.join(days)} {', '.join(trigger['times'])}"
        case "once":
            return f"once {trigger['local']}"
        case kind:
            assert kind == "interval"
            return f"every {trigger['every_seconds']}s from {trigger['anchor_utc']}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_each_right_instant_of_a_case_is_due_and_a_second_beside_it_is_not(stage: Stage, case: dict[str, Any]) -> None:
    wanted = [datetime.fromisoformat(text) for text in case.get("expected_next_utc") or []]
    stage.now = datetime.fromisoformat(case["after_utc"])
    place = zone(case["timezone"])
    trigger = read(written(case["trigger"]), now=stage.now, zone=place, past=True).trigger
    definition = Definition(
        name=case["id"],
        triggers=(trigger,),
        zone=case["timezone"],
        action={"kind": "command", "argv": ["true"]},
    )
    if not wanted:
        pytest.skip("a case of an instant that never comes")
    task = tasks.add(stage.store, definition, by="anna", source={"kind": "cli"})
    with stage.store.read() as session:
        for at in wanted:
            assert why(session, task.id, at, alive=()).due is True, at
            for beside in (at - SECOND, at + SECOND):
                found = why(session, task.id, beside, alive=())
                if beside > stage.now and beside not in wanted and not _every_second(case):
                    assert found.due is False, beside
                    assert found.fate.reason in NOT_DUE
                    assert found.before is None or found.before.due_at < beside
                    assert found.after is None or found.after.due_at > beside
        for earlier, later in pairwise(wanted):
            between = why(session, task.id, earlier + (later - earlier) / 2, alive=())
            if between.due is False and between.before is not None and between.after is not None:
                assert (between.before.due_at, between.after.due_at) == (earlier, later)


def _every_second(case: dict[str, Any]) -> bool:
    """A line with seconds may name the second beside too."""
    return case["trigger"]["type"] == "cron" and len(case["trigger"]["expr"].split()) == 6


def test_the_cases_are_more_than_a_few() -> None:
    assert len(CASES) > 70
