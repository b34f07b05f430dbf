"""Agents that go on in their sessions: after a kill at any point, after a deploy, and not for ever."""

import sqlite3
from typing import Any

import pytest
from process_scene import alive, wait_for
from prompting_scene import Agents, say, wait_for_turn

HANG = {"do": "hang"}
POINTS: dict[str, dict[str, Any]] = {
    "before its session is known": {"opening": [{"do": "child"}, HANG]},
    "before its prompt": {"session": {"models": {"availableModels": [{"modelId": "m"}]}}, "choosing": [HANG]},
    "in its turn": {},
}


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_holders_agent_goes_on_in_its_session_and_is_never_asked_the_same_twice(
    agents: Agents, point: str
) -> None:
    place = agents.place
    agents.writes([say("I begin."), HANG], [say("Done.")], **POINTS[point])
    agents.add("--model", "m") if point == "before its prompt" else agents.add()
    first = place.serve()
    place.duly("run", "ask")
    where = {"before its session is known": "child", "before its prompt": "model", "in its turn": "prompt"}[point]
    begun = wait_for(lambda: agents.seen(where))[0]
    first.kill()
    first.wait()
    agents.writes([say("Done.")])
    place.serve()
    run = place.ended()
    assert (run["outcome"], run["attempt"]) == ("succeeded", 2)
    assert not alive(begun["pid"])
    prompts = agents.seen("prompt")
    assert [one["text"] for one in prompts].count("Do it.") == 1
    assert len({one["session"] for one in prompts}) == 1
    if point == "in its turn":
        assert "interrupted" in prompts[1]["text"]
        assert [one["session"] for one in agents.seen("load")] == [begun["session"]] == [run["session"]]
    assert agents.ledger(run["id"]).count("swept") == 1
    assert place.duly("verify").returncode == 0


@pytest.mark.file("lock")
def test_a_turn_that_had_ended_when_its_holder_was_killed_is_settled_and_nothing_is_asked(agents: Agents) -> None:
    place = agents.place
    agents.writes([say("All done."), {"do": "wait_for", "path": str(place.home / "go")}])
    agents.add()
    first = place.serve()
    place.duly("run", "ask")
    wait_for_turn(agents)
    connection = sqlite3.connect(place.store, isolation_level=None, timeout=30)
    connection.execute("BEGIN IMMEDIATE")
    (place.home / "go").touch()
    wait_for(lambda: any('"succeeded"' in one.read_text() for one in place.run_folder.glob("attempts/*/turn")))
    first.kill()
    first.wait()
    connection.close()
    place.serve()
    run = place.ended()
    assert (run["outcome"], run["attempt"]) == ("succeeded", 1)
    assert len(agents.seen("prompt")) == 1
    assert place.duly("verify").returncode == 0


def test_a_deploy_leaves_an_agent_to_the_next_holder_which_goes_on_in_its_session(agents: Agents) -> None:
    place = agents.place
    agents.writes([say("I begin."), {"do": "hang_up_to_cancel"}], [say("Done.")])
    agents.add()
    first = place.serve(drain="1s")
    place.duly("run", "ask")
    turn = wait_for_turn(agents)
    first.terminate()
    assert first.wait(60) == 0
    assert not alive(turn["pid"])
    assert place.json("runs")["items"][0]["state"] == "waiting"
    place.serve()
    run = place.ended()
    assert (run["outcome"], run["attempt"], run["session"]) == ("succeeded", 2, turn["session"])
    assert [one["reason"] for one in run["attempts"]] == ["shutdown", None]
    assert [one["text"] for one in agents.seen("prompt")].count("Do it.") == 1
    assert place.duly("verify").returncode == 0


def test_a_session_that_is_gone_ends_its_run_and_is_not_begun_anew(agents: Agents) -> None:
    place = agents.place
    agents.writes([say("I begin."), HANG], [say("Never.")])
    agents.add()
    first = place.serve()
    place.duly("run", "ask")
    turn = wait_for_turn(agents)
    first.kill()
    first.wait()
    agents.writes([say("I begin."), HANG], [say("Never.")], forgets=True)
    place.serve()
    run = place.ended()
    assert (run["outcome"], run["reason"], run["session"]) == ("abandoned", "holder_died", turn["session"])
    assert "does not find its session" in run["error"]
    assert len(agents.seen("prompt")) == 1
    assert place.duly("verify").returncode == 0


def test_an_agent_is_interrupted_three_times_at_most(agents: Agents) -> None:
    place = agents.place
    agents.writes([say("I work."), HANG])
    agents.add()
    place.duly("run", "ask")
    for number in range(1, 4):
        served = place.serve()
        wait_for_turn(agents, number)
        served.kill()
        served.wait()
    place.serve()
    run = place.ended()
    assert (run["outcome"], run["reason"], run["attempt"]) == ("abandoned", "too_many_resumes", 3)
    texts = [one["text"] for one in agents.seen("prompt")]
    assert texts[0] == "Do it."
    assert all("interrupted" in text for text in texts[1:])
    assert place.duly("verify").returncode == 0
