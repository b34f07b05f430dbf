"""What a task calls a success, asked of an agent's answer and of the file it was to write."""

import os
from pathlib import Path

from agent_scene import Scene, say

from duly.core.successes import Success
from duly.runners import turn_file


def test_an_answer_that_has_the_wanted_words_has_succeeded(scene: Scene) -> None:
    scene.writes([say("I looked.\nVERDICT: green\n")])
    assert scene.perform(success_when=Success(matches="^VERDICT: (green|amber)$")).word == "succeeded"


def test_an_answer_without_them_has_failed_and_who_takes_it_over_knows_it(scene: Scene) -> None:
    scene.writes([say("VERDICT: green"), {"do": "tool"}, say("I looked again: red.")])
    outcome = scene.perform(success_when=Success(matches="VERDICT: green"))
    assert (outcome.word, outcome.reason) == ("failed", "success_rule")
    assert outcome.error == "nothing in its answer matches VERDICT: green (all 20 characters were asked)"
    assert scene.last is not None
    left = turn_file.read(scene.last.folder)
    assert left is not None
    assert (left.word, left.reason) == ("failed", "success_rule")


def test_the_file_that_an_agent_was_to_write_must_be_new(scene: Scene) -> None:
    report = scene.folder / "report.md"
    report.touch()
    scene.writes([say("Done.")], [{"do": "write", "path": str(report)}, say("Done.")])
    os.utime(report, (1_700_000_000, 1_700_000_000))
    outcome = scene.perform(success_when=Success(file="report.md"))
    assert (outcome.reason, "is old" in (outcome.error or "")) == ("success_rule", True)
    assert scene.perform(success_when=Success(file="report.md")).word == "succeeded"
    assert Path(report).read_text() == "done"


def test_a_turn_that_is_no_success_keeps_its_own_reason(scene: Scene) -> None:
    scene.writes([say("ok")], stop="refusal")
    assert scene.perform(success_when=Success(matches="ok")).reason == "agent_refused"
