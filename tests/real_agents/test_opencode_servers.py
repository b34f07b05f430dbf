"""The server itself: one for a database, started and ended by who uses it, and nothing of a turn outlives its end."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from fake_model import HOLD, FakeModel, say, shell
from opencode_scene import OpenCodeScene, lives, pid_of

from duly.runners import keeping
from duly.runners.agents import Agents
from duly.runners.opencode import servers


def written(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def test_what_tools_left_running_is_ended_with_the_turn_whatever_session_it_is_in(opencode: OpenCodeScene) -> None:
    pids = opencode.work / "pids"
    line = (
        f"setsid sh -c 'trap \"\" TERM; echo $$ >> {pids}; while :; do sleep 1; done' & "
        f"sh -c 'echo $$ >> {pids}; exec sleep 300' & echo $$ >> {pids}; exec sleep 300"
    )
    with opencode.performing(shell(line), unattended="allow") as (runner, future):
        opencode.until(lambda: len(written(pids)) == 3)
        assert all(lives(pid) for pid in written(pids))
        runner.stop("term")
        outcome = future.result(90)
    assert (outcome.word, outcome.confirmed) == ("cancelled", True)
    assert [pid for pid in written(pids) if lives(pid)] == []
    assert opencode.perform(say("The server is still there.")).word == "succeeded"


def test_what_a_success_leaves_running_is_ended_and_told(opencode: OpenCodeScene) -> None:
    pids = opencode.work / "left"
    line = f"setsid sh -c 'echo $$ > {pids}; exec sleep 300' >/dev/null 2>&1 & sleep 0.2"
    outcome = opencode.perform(shell(line), say("Started."), unattended="allow")
    assert outcome.word == "succeeded"
    assert outcome.details["leftovers"] == ["sleep"]
    assert [pid for pid in written(pids) if lives(pid)] == []


def test_two_holders_share_the_server_of_a_database_and_the_last_ends_it(alone: OpenCodeScene) -> None:
    assert alone.perform(say("One.")).word == "succeeded"
    first, pid = alone.server, pid_of(alone.server)
    mine = alone.agents
    alone.agents = Agents(known=mine.known, secrets=alone.secrets)
    assert alone.perform(say("Two.")).word == "succeeded"
    assert alone.server == first
    alone.agents.servers.close()
    alone.agents.streams.close()
    assert lives(pid), "the other holder uses it"
    mine.servers.close()
    assert not lives(pid)
    mine.streams.close()
    changed = replace(alone.agent, env={**alone.env, "OTHER": "variable"})
    alone.agents = Agents(known={"opencode": changed}, secrets=alone.secrets)
    third = alone.perform(say("Three."))
    assert third.word == "succeeded", f"who comes later starts it anew: {third.error}"
    assert alone.server != first


def test_a_server_with_other_variables_on_a_database_in_use_is_refused(alone: OpenCodeScene) -> None:
    with alone.performing(HOLD) as (_, future):
        alone.until(lambda: alone.calls)
        name = alone.name
        other = Agents(known={"opencode": replace(alone.agent, env={**alone.env, "OTHER": "x"})}, secrets=alone.secrets)
        mine, alone.agents = alone.agents, other
        outcome = alone.perform(say("never"))
        other.servers.close()
        other.streams.close()
        alone.agents, alone.name = mine, name
        assert (outcome.word, outcome.reason, outcome.side_effect) == ("failed", "preflight", False)
        assert "OPENCODE_DB" in (outcome.error or "")
        alone.model.frees(name)
        assert future.result(30).word == "succeeded"


def test_a_server_killed_in_a_turn_fails_it_and_the_next_that_ignores_a_cancel_is_ended_with_all_that_works_there(
    alone: OpenCodeScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    with alone.performing(HOLD) as (_, future):
        alone.until(lambda: alone.calls)
        os.kill(pid_of(alone.server), signal.SIGKILL)
        outcome = future.result(90)
    assert (outcome.word, outcome.reason, outcome.confirmed) == ("failed", "agent_error", True)
    assert "went away in the middle" in (outcome.error or ""), alone.log
    assert not outcome.unseen, "what it had done cannot be known"
    assert outcome.agent["session"]
    again = alone.perform(say("Here again."))
    assert again.word == "succeeded", again.error
    monkeypatch.setattr("duly.runners.opencode.turn.CANCELLED_WITHIN_S", 2.0)
    with alone.performing(HOLD) as (runner, future):
        alone.until(lambda: alone.calls)
        pid = pid_of(alone.server)
        os.kill(pid, signal.SIGSTOP)
        runner.stop("term")
        outcome = future.result(90)
    assert (outcome.word, outcome.reason, outcome.confirmed) == ("cancelled", "cancelled_by_hand", True)
    assert not lives(pid)


def test_a_server_that_cannot_be_started_is_tried_again_and_its_last_words_are_told(
    alone: OpenCodeScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "AGAIN_AFTER_S", (0.0, 0.0))
    tries = alone.folder / "tries"
    program = alone.folder / "broken"
    program.write_text(f"#!/bin/sh\necho try >> {tries}\necho no such module >&2\nexit 3\n")
    program.chmod(0o755)
    alone.agents.known["opencode"] = replace(alone.agent, command=(str(program), "serve"))  # type: ignore[index]
    outcome = alone.perform(say("never"))
    assert (outcome.word, outcome.reason, outcome.side_effect) == ("failed", "preflight", False)
    assert "no such module" in (outcome.error or "")
    assert tries.read_text() == "try\n" * 3
    alone.agents.known["opencode"] = replace(alone.agent, command=("no-such-opencode",))  # type: ignore[index]
    assert "no-such-opencode was not found" in (alone.perform(say("never")).error or "")


HOLDER = """
import json, sys
from pathlib import Path
sys.path[:0] = json.loads(sys.argv[1])
from opencode_scene import pid_of, OpenCodeScene
from duly.core.agent_config import Agent
from duly.runners.agents import Agents, Prompted
from duly.runners.nurseries import Nursery
import pickle
agent, assignment = pickle.loads(Path(sys.argv[2]).read_bytes())
Prompted(Nursery(), Agents(known={"opencode": agent})).perform(assignment, None)
"""


def test_the_turn_of_a_holder_that_was_killed_is_stopped_and_its_server_ends_later(
    alone: OpenCodeScene, model: FakeModel
) -> None:
    import pickle

    given = alone.folder / "given"
    name = model.writes("held", HOLD)
    assignment = alone.assign(name)
    env = {**alone.env, "A_PART": "of it"}
    given.write_bytes(pickle.dumps((replace(alone.agent, env=env), assignment)))
    here = json.dumps([str(Path(__file__).parent)])
    code = HOLDER.replace(
        "import pickle\n", "import pickle\nfrom duly.runners.opencode import servers\nservers.LINGER_S = 1\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, here, str(given)])
    try:
        alone.until(lambda: model.calls("held"))
        pid = pid_of(alone.server)
        session = alone.left.session
        assert session in alone.ask("GET", "/session/status")
        holder.kill()
        holder.wait()
        alone.until(lambda: isinstance(keeping.look(assignment.folder), keeping.Ended))
        alone.until(lambda: not lives(pid))
    finally:
        holder.kill()
        holder.wait()
        model.frees("held")


def test_an_idle_timeout_counts_from_the_last_word_of_the_agent(opencode: OpenCodeScene) -> None:
    outcome = opencode.perform(
        shell("sleep 1"),
        shell("sleep 1"),
        shell("sleep 1"),
        say("Slow."),
        unattended="allow",
        idle_timeout=timedelta(seconds=20),
    )
    assert outcome.word == "succeeded"
