import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli_scene import Scene

TESTS = Path(__file__).parents[1]
TOOL = TESTS / "tools" / "time_cases.py"
FILE = TESTS / "data" / "time-cases.json"


@dataclass(frozen=True, slots=True)
class Answer:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(TOOL.parent))
    import time_cases

    return time_cases


def test_all_time_cases_hold_through_preview(scene: Scene, tool: Any) -> None:
    def call(args: list[str]) -> Answer:
        called = scene.call(*args)
        return Answer(called.code, called.out, called.err)

    cases = tool.cases_in(FILE)
    assert len(cases) > 100
    answers = {case["id"]: tool.check(case, call) for case in cases}
    assert {case: told for case, (holds, told) in answers.items() if not holds} == {}


def test_the_list_of_time_cases_is_asked_of_the_command_itself_and_one_that_fails_is_named(
    scene: Scene, tool: Any
) -> None:
    case = tool.cases_in(FILE)[0]
    wrong = case | {"id": "wrong", "expected_next_utc": ["1999-01-01T00:00:00Z"]}
    few = scene.home / "few.json"
    few.write_text(json.dumps([case, wrong]))
    done = subprocess.run(
        [sys.executable, TOOL, few], env=scene.env, check=False, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 1
    assert done.stdout.splitlines()[0].startswith("wrong ")
    assert done.stdout.splitlines()[-1] == "1 of 2 time cases hold"
