"""Agents through the real commands and real servers: what a user sees, and what becomes of a turn whose holder dies."""

import json
import os
import signal

from process_scene import alive, wait_for
from prompting_scene import Agents, say, wait_for_turn


def test_a_prompt_is_added_run_and_shown_with_its_session_its_usage_and_its_words(agents: Agents) -> None:
    place = agents.place
    agents.writes([{"do": "env", "name": "KEY"}, say("All is done.")], usage={"inputTokens": 10, "outputTokens": 5})
    agents.add(prompt="Look at {{input}} in {{run}}.")
    place.serve()
    done = place.duly("run", "ask", "--input", "the numbers", "--wait")
    assert "succeeded" in done.stdout
    run = place.json("show", place.json("runs")["items"][0]["id"])
    assert (run["outcome"], run["reason"], run["error"]) == ("succeeded", None, None)
    assert run["session"] == agents.seen("new")[0]["session"]
    assert run["usage"] == {"tokens_in": 10, "tokens_out": 5, "cost_usd": None}
    assert agents.seen("prompt")[0]["text"] == f"Look at the numbers in {run['id']}."
    log = place.duly("log", run["id"]).stdout
    assert "All is done." in log
    assert "KEY=${TOKEN}" in log
    assert agents.ledger(run["id"]) == ["opened", "claimed", "began", "ended"]
    assert place.json("list")["items"][0]["last_run"]["session"] == run["session"]
    shown = place.duly("show", run["id"]).stdout
    assert run["session"] in shown
    assert "10 tokens in, 5 tokens out" in shown
    assert "very-secret-word" not in place.errors() + log + json.dumps(run)
    assert place.duly("verify").returncode == 0


def test_an_agent_that_the_config_does_not_name_is_warned_of_and_refused_at_the_start(agents: Agents) -> None:
    place = agents.place
    added = place.duly("add", "ask", "--when", "manual", "--agent", "claude", "--prompt", "x")
    assert "[agents.claude]" in added.stderr
    place.serve()
    assert place.duly("run", "ask", "--wait", check=False).returncode == 1
    run = place.ended()
    assert (run["outcome"], run["reason"]) == ("failed", "preflight")
    assert "there are scripted" in run["error"]


def test_the_session_of_a_turn_that_goes_on_is_shown(agents: Agents) -> None:
    place = agents.place
    agents.writes([say("I begin."), {"do": "wait_for", "path": str(place.home / "go")}, say("Done.")])
    agents.add()
    place.serve()
    place.duly("run", "ask")
    session = wait_for_turn(agents)["session"]
    wait_for(lambda: place.rows("SELECT 1 FROM runs WHERE agent IS NOT NULL"))
    run = place.json("runs")["items"][0]
    assert (run["state"], run["session"]) == ("running", session)
    (place.home / "go").touch()
    assert place.ended()["outcome"] == "succeeded"


def test_a_cancel_reaches_the_agent_as_a_wish_and_ends_the_run(agents: Agents) -> None:
    place = agents.place
    agents.writes([say("I go on."), {"do": "hang_up_to_cancel"}])
    agents.add()
    place.serve()
    place.duly("run", "ask")
    wait_for_turn(agents)
    place.duly("cancel", place.json("runs")["items"][0]["id"], "--wait")
    run = place.ended()
    assert (run["outcome"], run["reason"]) == ("cancelled", "cancelled_by_hand")
    assert [one["method"] for one in agents.seen("meanwhile")] == ["session/cancel"]


def test_two_agents_of_a_project_run_at_once_and_the_third_waits_for_the_limit(agents: Agents) -> None:
    place = agents.place
    agents.writes([{"do": "wait_for", "path": str(place.home / "go")}, say("Done.")])
    for name in ("a", "b", "c"):
        agents.add(name=name)
    place.serve("--slots", "6")
    for name in ("a", "b", "c"):
        place.duly("run", name)
    wait_for_turn(agents, 2)
    waiting = [one for one in place.json("runs")["items"] if one["state"] == "waiting"]
    assert [one["waiting_for"]["key"] for one in waiting] == ["agents:default"]
    (place.home / "go").touch()
    wait_for(lambda: place.rows("SELECT count(*) FROM runs WHERE outcome = 'succeeded'") == [(3,)])


def test_an_agent_whose_holder_is_killed_is_ended_and_its_run_says_so(agents: Agents) -> None:
    place = agents.place
    agents.writes([say("I begin."), {"do": "child"}, {"do": "hang"}])
    agents.add("--on-interrupt", "fail")
    first = place.serve()
    place.duly("run", "ask")
    turn = wait_for_turn(agents)
    child = int(wait_for(lambda: agents.seen("child"))[0]["child"])
    first.kill()
    first.wait()
    place.serve()
    run = place.ended()
    assert (run["outcome"], run["reason"], run["session"]) == ("abandoned", "holder_died", turn["session"])
    assert not alive(turn["pid"])
    assert not alive(child)
    assert len(agents.seen("prompt")) == 1
    assert place.duly("verify").returncode == 0


def test_an_agent_that_leaves_politely_when_its_holder_is_killed_has_not_succeeded(agents: Agents) -> None:
    place = agents.place
    agents.writes([say("I wait for a word."), {"do": "hang_up_to_cancel"}])
    agents.add("--on-interrupt", "fail")
    first = place.serve()
    place.duly("run", "ask")
    turn = wait_for_turn(agents)
    first.kill()
    first.wait()
    wait_for(lambda: not alive(turn["pid"]))
    assert agents.seen("input closed")
    place.serve()
    run = place.ended()
    assert (run["outcome"], run["reason"]) == ("abandoned", "holder_died")


def test_a_run_that_is_to_be_tried_again_prompts_a_new_session_after_the_old_agent_has_ended(agents: Agents) -> None:
    place = agents.place
    agents.writes([say("I begin."), {"do": "hang"}], [say("Done.")])
    agents.add("--on-interrupt", "retry")
    first = place.serve()
    place.duly("run", "ask")
    turn = wait_for_turn(agents)
    first.kill()
    first.wait()
    place.serve()
    run = place.ended()
    assert (run["outcome"], run["attempt"]) == ("succeeded", 2)
    assert not alive(turn["pid"])
    prompts = agents.seen("prompt")
    assert len(prompts) == len({one["session"] for one in prompts}) == 2
    assert run["session"] == prompts[1]["session"]


def test_a_frozen_holders_agent_is_ended_before_anybody_tries_again(agents: Agents) -> None:
    place = agents.place
    agents.writes([say("I begin."), {"do": "hang"}], [say("Done.")])
    agents.add("--on-interrupt", "retry")
    first = place.serve(lease="8s")
    place.duly("run", "ask")
    turn = wait_for_turn(agents)
    place.freeze(first)
    place.serve(lease="8s")
    wait_for_turn(agents, 2)
    assert not alive(turn["pid"])
    run = place.ended()
    assert (run["outcome"], run["attempt"]) == ("succeeded", 2)
    os.kill(first.pid, signal.SIGCONT)
    wait_for(lambda: place.rows("SELECT 1 FROM ledger WHERE kind = 'fence_lost'"))
    assert place.json("runs")["items"][0]["outcome"] == "succeeded"
    assert place.duly("verify").returncode == 0


def test_a_holder_that_stops_ends_its_agents_and_says_why(agents: Agents) -> None:
    place = agents.place
    agents.writes([say("I begin."), {"do": "hang_up_to_cancel"}])
    agents.add("--on-interrupt", "fail")
    first = place.serve(drain="1s")
    place.duly("run", "ask")
    turn = wait_for_turn(agents)
    first.terminate()
    assert first.wait(60) == 0
    run = place.ended()
    assert (run["outcome"], run["reason"]) == ("cancelled", "shutdown")
    assert not alive(turn["pid"])
