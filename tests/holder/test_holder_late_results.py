"""Outcomes that were found too late are judged as in time: by the task's own rule of success, by the agent's turn."""

import pytest
from holder_scene import Stage
from test_holder_poison import given_up, late, start_another, write_exit

from duly.core.successes import Success
from duly.runners import turn_file

AGENT = {"kind": "agent", "agent": "scripted", "prompt": "Do it."}


@pytest.mark.parametrize(
    ("rule", "status", "outcome"),
    [
        (Success(exit=(3,)), 3, "succeeded"),
        (Success(exit=(3,)), 0, "failed"),
        (Success(file="report.md"), 0, "failed"),
        (Success(matches="green"), 0, "succeeded"),
        (Success(matches="red"), 0, "failed"),
    ],
    ids=["a status", "another status", "a file that is missing", "words", "other words"],
)
def test_an_outcome_that_came_late_is_judged_by_the_tasks_own_success(
    stage: Stage, rule: Success, status: int, outcome: str
) -> None:
    action = {"kind": "command", "argv": ["scripted"], "cwd": str(stage.folder)}
    _, folder = given_up(stage, action=action, success_when=rule)
    (folder / "log").write_text("all is green\n")
    write_exit(folder, exit_code=status, log_bytes=13)
    start_another(stage, folder)
    (one,) = late(stage)
    assert (one.details["outcome"], one.details["exit_code"]) == (outcome, status)


@pytest.mark.parametrize("word", ["failed", None], ids=["a turn that ended", "a turn without an end"])
def test_of_an_agent_its_turn_is_the_outcome_that_came_late_and_not_its_process(stage: Stage, word: str | None) -> None:
    _, folder = given_up(stage, action=AGENT, on_interrupt="fail")
    left = turn_file.Left(session="ses-1", prompted=True, word=word, reason=word and "agent_empty")  # type: ignore[arg-type]
    turn_file.write(folder, left)
    write_exit(folder)
    start_another(stage, folder)
    assert [one.details["outcome"] for one in late(stage)] == [word] * (word is not None)
