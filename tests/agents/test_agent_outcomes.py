"""The truth of an outcome (G9): what an agent calls an end is believed only as far as its turn bears it out."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from agent_scene import Scene, Step, lives, say

SHORT = timedelta(seconds=1)


def test_a_turn_that_the_agent_ends_with_something_said_has_succeeded(scene: Scene) -> None:
    scene.writes([say("All is well.")], usage={"inputTokens": 10, "outputTokens": 5, "totalTokens": 15})
    outcome = scene.perform("How is it?")
    assert (outcome.word, outcome.reason, outcome.error, outcome.confirmed) == ("succeeded", None, None, True)
    assert outcome.agent["usage"] == {"tokens_in": 10, "tokens_out": 5}
    assert outcome.agent["session"] == scene.seen("new")[0]["session"]
    assert [one["text"] for one in scene.seen("prompt")] == ["How is it?"]
    assert "All is well." in scene.log
    assert outcome.log_bytes == len(scene.log.encode())


ROWS: Sequence[tuple[str, Sequence[Step], dict[str, Any], str, str, str]] = (
    ("it ends without a word", [], {}, "failed", "agent_empty", "without a word"),
    ("it ends without a word after a tool", [{"do": "tool"}], {}, "failed", "agent_empty", "after one use of a tool"),
    ("it refuses", [say("I will not.")], {"stop": "refusal"}, "failed", "agent_refused", "I will not."),
    ("its tokens are used up", [say("half of")], {"stop": "max_tokens"}, "failed", "cut_off", "cut off"),
    ("its requests are used up", [say("so far")], {"stop": "max_turn_requests"}, "failed", "max_steps", "requests"),
    ("it was cancelled, and by nobody", [say("x")], {"stop": "cancelled"}, "failed", "agent_error", "nobody here did"),
    ("it ends with a word of its own", [say("x")], {"stop": "done"}, "failed", "agent_error", "done"),
    (
        "its provider tells an error",
        [{"do": "error", "message": "Internal error", "data": {"message": "status 401: no key"}}],
        {},
        "failed",
        "agent_error",
        "status 401: no key",
    ),
    (
        "an error comes after its text",
        [say("Well,"), {"do": "error", "message": "429"}],
        {},
        "failed",
        "agent_error",
        "429",
    ),
    ("its answer is a web page", [say("<!DOCTYPE html><html>502")], {}, "failed", "agent_error", "web page"),
    ("its answer is an API's error", [say('{"error": {"code": 500}}')], {}, "failed", "agent_error", "500"),
    ("its answer is an error in words", [say("API Error: 529 overloaded")], {}, "failed", "agent_error", "529"),
    ("it answers no object", [{"do": "answer", "result": [1, 2]}], {}, "failed", "agent_error", "no object"),
    ("it answers nothing", [{"do": "answer", "result": {}}], {}, "failed", "agent_error", "None"),
    (
        "it exits in the middle",
        [say("I begin"), {"do": "exit", "status": 9, "last": "out of memory\n"}],
        {},
        "failed",
        "agent_error",
        "exit status 9; its last line: out of memory",
    ),
    (
        "it leaves as if all were done",
        [say("so"), {"do": "exit", "status": 0}],
        {},
        "failed",
        "agent_error",
        "status 0",
    ),
    ("it is killed", [say("so"), {"do": "kill"}], {}, "failed", "agent_error", "signal 9"),
    (
        "its line is too long",
        [{"do": "long", "bytes": 17_000_000}],
        {},
        "failed",
        "agent_error",
        "one line of more than",
    ),
    ("it closes its output and lives", [say("so"), {"do": "close"}], {}, "failed", "agent_error", "middle of its turn"),
)


NAMES = ("steps", "more", "word", "reason", "error")


@pytest.mark.parametrize(NAMES, [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_turn_that_is_no_success_fails_with_its_reason_and_a_text(
    scene: Scene,
    monkeypatch: pytest.MonkeyPatch,
    steps: Sequence[Step],
    more: dict[str, Any],
    word: str,
    reason: str,
    error: str,
) -> None:
    monkeypatch.setattr("duly.runners.acp.conversation.QUICK_AFTER_S", (0.01, 0.02))
    scene.writes(steps, **more)
    outcome = scene.perform()
    assert (outcome.word, outcome.reason, outcome.confirmed) == (word, reason, True)
    assert error in (outcome.error or "")
    assert outcome.agent["session"], "a failed run keeps its link"
    sessions = [one["session"] for one in scene.seen("prompt")]
    unseen = bool(steps) and steps[0]["do"] == "error"
    assert len(sessions) == len(set(sessions)) == (3 if unseen else 1), "what was seen is never asked again"


def test_a_tool_that_failed_before_a_good_answer_is_no_failure(scene: Scene) -> None:
    scene.writes([{"do": "tool", "status": "failed"}, say("I found another way, and it is done.")])
    assert scene.perform().word == "succeeded"


def test_polite_words_that_it_could_not_are_not_judged(scene: Scene) -> None:
    scene.writes([say("I could not: it failed with an error.")])
    assert scene.perform().word == "succeeded"


def test_lines_that_are_no_message_are_logged_and_passed_over(scene: Scene) -> None:
    junk = 'Welcome!\n{"not": "a message"}\n[1, 2]\n{"id": [3], "result": {}}\n\xff\n'
    scene.writes(
        [{"do": "junk", "text": junk}, {"do": "wrong_id"}, say("Done.")], start=[{"do": "junk", "text": "hi\n"}]
    )
    outcome = scene.perform()
    assert outcome.word == "succeeded"
    assert "[not of the protocol] Welcome!" in scene.log


def test_an_agent_that_floods_its_error_stream_is_never_blocked_by_it(scene: Scene) -> None:
    scene.writes([{"do": "noise", "text": "noise in the machine\n" * 100_000}, say("Done.")])
    outcome = scene.perform()
    assert outcome.word == "succeeded"
    assert "[stderr] noise in the machine" in scene.log


def test_silence_beyond_the_idle_timeout_cancels_the_turn(scene: Scene) -> None:
    scene.writes([say("I wait"), {"do": "hang_up_to_cancel"}])
    outcome = scene.perform(idle_timeout=SHORT)
    assert (outcome.word, outcome.reason, outcome.confirmed) == ("timed_out", "idle", True)
    assert [one["method"] for one in scene.seen("meanwhile")] == ["session/cancel"]


def test_an_agent_that_says_something_is_not_idle_and_ends_at_its_timeout(scene: Scene) -> None:
    scene.writes(
        [step for _ in range(6) for step in (say("more "), {"do": "noise", "text": "."})]
        + [{"do": "hang_up_to_cancel"}]
    )
    outcome = scene.perform(idle_timeout=timedelta(seconds=30), timeout=SHORT)
    assert (outcome.word, outcome.reason) == ("timed_out", "timeout")


def test_an_agent_that_ignores_the_wish_is_ended_with_its_children(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duly.runners.acp.conversation.CANCELLED_WITHIN_S", 0.3)
    scene.writes([{"do": "child"}, {"do": "hang"}])
    outcome = scene.perform(timeout=SHORT)
    assert (outcome.word, outcome.reason, outcome.confirmed) == ("timed_out", "timeout", True)
    child = scene.seen("child")[0]["child"]
    assert not lives(child)


def test_an_agent_that_never_answers_the_first_call_fails_and_was_asked_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duly.runners.acp.greeting.GREETED_WITHIN_S", 0.5)
    scene.writes([], start=[{"do": "hang"}])
    outcome = scene.perform()
    assert (outcome.word, outcome.reason, outcome.side_effect) == ("failed", "agent_error", False)
    assert "did not answer" in (outcome.error or "")


def test_an_agent_of_another_protocol_is_asked_nothing(scene: Scene) -> None:
    scene.writes([say("hello")], protocol=9)
    outcome = scene.perform()
    assert (outcome.word, outcome.reason, outcome.side_effect) == ("failed", "agent_error", False)
    assert scene.seen("prompt") == []


def test_an_agent_that_is_no_agent_fails_with_what_it_said(scene: Scene) -> None:
    scene.command = ("/bin/sh", "-c", "echo wrong key >&2; exit 3")
    outcome = scene.perform()
    assert (outcome.word, outcome.reason, outcome.exit_code) == ("failed", "agent_error", 3)
    assert "wrong key" in (outcome.error or "")


def test_a_cancel_ends_the_turn_whatever_the_agent_calls_it(scene: Scene) -> None:
    scene.writes([say("I go on"), {"do": "hang_up_to_cancel", "stop": "end_turn"}])
    with scene.performing() as (runner, future):
        scene.until(lambda: scene.seen("prompt"))
        runner.stop("term")
        outcome = future.result(20)
    assert (outcome.word, outcome.reason, outcome.confirmed) == ("cancelled", "cancelled_by_hand", True)


def test_a_success_that_came_first_stays_a_success(scene: Scene) -> None:
    scene.writes([say("Done.")])
    with scene.performing() as (runner, future):
        outcome = future.result(20)
        runner.stop("term")
    assert outcome.word == "succeeded"


def test_a_cancel_before_the_start_starts_nothing(scene: Scene) -> None:
    scene.writes([say("Done.")])
    runner = scene.runner()
    runner.stop("term")
    outcome = runner.perform(scene.assign(), None)
    assert (outcome.word, scene.seen("start")) == ("cancelled", [])  # type: ignore[union-attr]


def test_a_kill_ends_an_agent_that_hears_nothing(scene: Scene) -> None:
    scene.writes([{"do": "hang"}])
    with scene.performing() as (runner, future):
        scene.until(lambda: scene.seen("prompt"))
        runner.stop("kill")
        outcome = future.result(20)
    assert (outcome.word, outcome.confirmed) == ("cancelled", True)
