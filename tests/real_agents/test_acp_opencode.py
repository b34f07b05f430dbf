"""`opencode acp` as a real agent over the Agent Client Protocol, by the same runner as all agents that speak it."""

import os
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from fake_model import HOLD, FakeModel, say, shell, status
from opencode_scene import OpenCodeScene, lives
from real_scene import real_opencode, scrub

from duly.core.agent_config import Agent
from duly.runners import processes


@pytest.fixture(scope="module")
def one(model: FakeModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenCodeScene]:
    real_opencode()
    with pytest.MonkeyPatch.context() as patch:
        scrub(patch)
        scene = OpenCodeScene(tmp_path_factory.mktemp("acp"), model)
        agent = Agent(name="opencode", command=(str(real_opencode()), "acp"), env=scene.env)
        scene.agents.known["opencode"] = agent  # type: ignore[index]
        yield scene
        scene.close()


def agents_of(scene: OpenCodeScene) -> list[int]:
    assert scene.last is not None
    found = processes.of_run(scene.last.run, scene.last.fence, processes.table().values())
    return [one.pid for one in found if b"acp" in Path(f"/proc/{one.pid}/cmdline").read_bytes().split(b"\0")]


def test_a_real_agent_over_acp_ends_with_text_tokens_and_a_session(one: OpenCodeScene) -> None:
    outcome = one.perform(say("All is well.", usage=(1234, 56)))
    assert (outcome.word, outcome.error, outcome.confirmed) == ("succeeded", None, True)
    assert outcome.agent["usage"]["tokens_in"] == 1234  # type: ignore[index]
    assert str(outcome.agent["session"]).startswith("ses_")
    assert "All is well." in one.log


def test_a_real_agent_over_acp_that_is_denied_a_permission_does_not_do_it(one: OpenCodeScene) -> None:
    outcome = one.perform(shell("touch denied"), say("Then not."))
    assert not (one.work / "denied").exists()
    assert (outcome.word, outcome.reason) == ("failed", "question_denied"), "it gives up by itself"
    assert "touch denied" in (outcome.error or "")


def test_a_real_agent_over_acp_that_is_allowed_does_it(one: OpenCodeScene) -> None:
    assert one.perform(shell("touch allowed"), say("Done."), unattended="allow").word == "succeeded"
    assert (one.work / "allowed").exists()


def test_a_real_agent_over_acp_whose_provider_wants_a_key_has_failed_with_its_words(one: OpenCodeScene) -> None:
    outcome = one.perform(status(401))
    assert (outcome.word, outcome.reason, outcome.confirmed) == ("failed", "agent_error", True)
    assert "fake error 401" in (outcome.error or "")


def test_a_real_agent_over_acp_is_cancelled_and_ends_its_turn_in_time(one: OpenCodeScene) -> None:
    with one.performing(HOLD) as (runner, future):
        one.until(lambda: "I begin." in one.log)
        runner.stop("term")
        outcome = future.result(90)
    assert (outcome.word, outcome.reason, outcome.confirmed) == ("cancelled", "cancelled_by_hand", True)


def test_a_real_agent_over_acp_that_is_killed_has_failed_with_the_signal(one: OpenCodeScene) -> None:
    with one.performing(HOLD) as (_, future):
        one.until(lambda: "I begin." in one.log)
        for pid in agents_of(one):
            os.kill(pid, signal.SIGKILL)
        outcome = future.result(90)
    assert (outcome.word, outcome.reason, outcome.confirmed) == ("failed", "agent_error", True)
    assert "signal 9" in (outcome.error or "")


def test_a_real_agent_over_acp_that_takes_too_long_is_timed_out_with_all_it_started(one: OpenCodeScene) -> None:
    pids = one.work / "pids"
    line = f"setsid sh -c 'echo $$ > {pids}; exec sleep 300' >/dev/null 2>&1 & sleep 300"
    outcome = one.perform(shell(line), unattended="allow", timeout=timedelta(seconds=60))
    assert (outcome.word, outcome.reason, outcome.confirmed) == ("timed_out", "timeout", True)
    assert [int(pid) for pid in pids.read_text().split() if lives(int(pid))] == []
