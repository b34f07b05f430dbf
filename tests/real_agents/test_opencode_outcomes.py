"""How turns at the real OpenCode server end, row by row: what it tells is believed as far as its messages bear out."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from fake_model import CUT, DROP, HOLD, Step, say, shell, status, tool
from opencode_scene import OpenCodeScene

Row = tuple[str, Sequence[Step], str, str | None, str]
ROWS: Sequence[Row] = (
    ("a normal end", [say("Fine.")], "succeeded", None, ""),
    ("a tool was used", [tool("glob", pattern="*.x"), say("Found none.")], "succeeded", None, ""),
    ("a tool failed before a good answer", [tool("read", filePath="none"), say("So be it.")], "succeeded", None, ""),
    ("denied, and another way found", [shell("echo x"), say("I did without.")], "succeeded", None, ""),
    ("denied, and given up", [shell("echo x"), say(" ")], "failed", "question_denied", "echo x"),
    ("nothing is said", [say(" ")], "failed", "agent_empty", "without a word"),
    ("its tokens are used up", [CUT], "failed", "cut_off", "cut off"),
    ("the answer is a web page", [say("<!DOCTYPE html><html>502")], "failed", "agent_error", "web page"),
    ("the answer is an error", [say('{"error": {"code": 500}}')], "failed", "agent_error", "500"),
    ("the provider wants a key", [status(401)], "failed", "agent_error", "fake error 401"),
    ("the provider fails once", [status(500), say("At last.")], "succeeded", None, ""),
    ("the provider is busy once", [status(429, retry_after=1), say("At last.")], "succeeded", None, ""),
    ("the context is too long", [status(400)], "failed", "agent_error", "exceeds model limit"),
)
NAMES = ("steps", "word", "reason", "error")


@pytest.mark.parametrize(NAMES, [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_turn_at_a_real_server_has_the_outcome_that_is_true(
    opencode: OpenCodeScene, steps: Sequence[Step], word: str, reason: str | None, error: str
) -> None:
    outcome = opencode.perform(*steps)
    assert (outcome.word, outcome.reason, outcome.confirmed) == (word, reason, True)
    assert error in (outcome.error or "")
    assert outcome.agent["session"], "a failed run keeps its link"
    assert opencode.ask("GET", "/session/status") == {}


def test_a_provider_that_fails_without_end_is_silence_and_told(opencode: OpenCodeScene) -> None:
    outcome = opencode.perform(status(500), idle_timeout=timedelta(seconds=4))
    assert (outcome.word, outcome.reason, outcome.confirmed) == ("timed_out", "idle", True)
    assert "fake error 500" in (outcome.error or "")
    assert opencode.ask("GET", "/session/status") == {}


def test_an_agent_that_asks_its_model_without_end_is_stopped(
    opencode: OpenCodeScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duly.runners.opencode.hearing.MAX_STEPS", 5)
    outcome = opencode.perform(tool("glob", pattern="*.x"))
    assert (outcome.word, outcome.reason, outcome.confirmed) == ("failed", "max_steps", True)
    calls = opencode.calls
    assert 5 <= calls < 20
    assert opencode.ask("GET", "/session/status") == {}


def test_a_stream_that_the_provider_cuts_again_and_again_is_stopped_as_too_many_steps(
    opencode: OpenCodeScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duly.runners.opencode.hearing.MAX_STEPS", 3)
    outcome = opencode.perform(DROP)
    assert (outcome.word, outcome.reason) == ("failed", "max_steps")


def test_a_turn_without_end_ends_at_its_timeout_and_the_server_stops_it(opencode: OpenCodeScene) -> None:
    outcome = opencode.perform(HOLD, timeout=timedelta(seconds=3))
    opencode.model.frees(opencode.name)
    assert (outcome.word, outcome.reason, outcome.confirmed) == ("timed_out", "timeout", True)
    assert opencode.ask("GET", "/session/status") == {}


def test_a_turn_in_silence_ends_at_its_idle_timeout(opencode: OpenCodeScene) -> None:
    outcome = opencode.perform(HOLD, idle_timeout=timedelta(seconds=2))
    opencode.model.frees(opencode.name)
    assert (outcome.word, outcome.reason, outcome.confirmed) == ("timed_out", "idle", True)


def test_a_cancel_stops_the_turn_and_the_tokens_so_far_are_told(opencode: OpenCodeScene) -> None:
    with opencode.performing(tool("glob", pattern="*.x"), HOLD) as (runner, future):
        opencode.until(lambda: "I begin." in opencode.log)
        runner.stop("term")
        outcome = future.result(30)
    assert (outcome.word, outcome.reason, outcome.confirmed) == ("cancelled", "cancelled_by_hand", True)
    assert outcome.agent["usage"]["tokens_in"] == 100
    assert opencode.ask("GET", "/session/status") == {}


def test_a_cancel_while_the_provider_is_asked_again_is_a_cancel(opencode: OpenCodeScene) -> None:
    with opencode.performing(status(500)) as (runner, future):
        opencode.until(lambda: "[waits]" in opencode.log)
        runner.stop("term")
        outcome = future.result(30)
    assert (outcome.word, outcome.reason, outcome.confirmed) == ("cancelled", "cancelled_by_hand", True)


def test_a_cancel_that_comes_after_the_success_leaves_it_a_success(
    opencode: OpenCodeScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    from duly.runners.opencode.turn import Speaking

    end = Speaking.end
    waiting: list[Any] = []
    followed = Speaking._followed

    async def late(self: Speaking, api: Any, heard: Any) -> Any:
        opencode_is_idle = False
        while not opencode_is_idle:
            messages = await api.objects(f"/session/{heard.session}/message")
            opencode_is_idle = any(one["info"].get("finish") == "stop" for one in messages)
        end(self, "cancel")
        waiting.append(1)
        return await followed(self, api, heard)

    monkeypatch.setattr(Speaking, "_followed", late)
    outcome = opencode.perform(say("Done in time."))
    assert waiting
    assert (outcome.word, outcome.reason, outcome.error) == ("succeeded", None, None)


def test_a_cancel_before_the_start_asks_nothing(opencode: OpenCodeScene) -> None:
    runner = opencode.runner()
    runner.stop("term")
    name = opencode.model.writes("before", say("never"))
    outcome = runner.perform(opencode.assign(name), None)
    assert (outcome.word, outcome.side_effect) == ("cancelled", False)  # type: ignore[union-attr]
    assert opencode.model.calls("before") == []


def test_a_server_that_takes_the_prompt_and_does_nothing_has_failed(
    opencode: OpenCodeScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fits(*_: Any) -> None:
        pass

    monkeypatch.setattr("duly.runners.opencode.fitting.check", fits)
    outcome = opencode.perform(say("never"), action={"profile": "nobody"})
    assert (outcome.word, outcome.reason) == ("failed", "agent_error")
    assert 'Agent not found: "nobody"' in (outcome.error or "")
    outcome = opencode.perform(say("never"), action={"model": "fake/none"})
    assert (outcome.word, outcome.reason) == ("failed", "agent_error")
    assert "none" in (outcome.error or "")
