"""Agents that ask a person, through real servers: parked or waiting, answered from another process, gone on with."""

from typing import Any

from process_scene import Place, alive, wait_for
from prompting_scene import Agents, say

HANG = {"do": "hang"}
ASK = {"do": "ask", "command": "npm publish"}


def question(place: Place) -> dict[str, Any]:
    """The question that is open; waits for it without a process a look."""
    wait_for(lambda: place.rows("SELECT 1 FROM questions WHERE state = 'open'"))
    (one,) = place.json("questions")["items"]
    return dict(one)


def test_a_question_parks_its_run_and_is_answered_from_another_process_after_a_restart(agents: Agents) -> None:
    place = agents.place
    agents.writes([say("I begin."), ASK, {"do": "hang_up_to_cancel"}], [ASK, say("Published.")])
    agents.add("--unattended", "park")
    first = place.serve()
    place.duly("run", "ask")
    asked = question(place)
    assert asked["text"] == "bash: npm publish"
    wait_for(lambda: place.rows("SELECT 1 FROM runs WHERE state = 'parked'"))
    turn = agents.seen("prompt")[0]
    assert not alive(turn["pid"])
    first.kill()
    first.wait()
    place.serve()
    place.duly("answer", asked["id"], "allow", "--note", "go ahead")
    run = place.ended()
    assert (run["outcome"], run["attempt"], run["session"]) == ("succeeded", 2, turn["session"])
    prompts = agents.seen("prompt")
    assert [one["session"] for one in prompts] == [turn["session"]] * 2
    assert prompts[0]["text"] == "Do it."
    assert "A person has allowed it, with the note: go ahead" in prompts[1]["text"]
    assert [one["chosen"] for one in agents.seen("answer")] == ["cancelled", "id-allow_once"]
    assert place.duly("verify").returncode == 0


def test_an_agent_that_cannot_go_on_later_keeps_its_run_while_a_person_is_asked(agents: Agents) -> None:
    place = agents.place
    agents.writes([ASK, say("Published.")], loads=False)
    agents.add("--unattended", "park")
    place.serve("--slots", "1")
    place.duly("run", "ask")
    asked = question(place)
    (run,) = place.json("runs")["items"]
    assert (run["state"], run["waiting_for"]["what"]) == ("running", "question")
    place.duly("add", "other", "--when", "manual", "--", "true")
    assert "succeeded" in place.duly("run", "other", "--wait").stdout
    place.duly("answer", asked["id"], "deny")
    wait_for(lambda: not place.rows("SELECT 1 FROM runs WHERE state != 'ended'"))
    assert place.json("show", run["id"])["outcome"] == "succeeded"
    assert [one["chosen"] for one in agents.seen("answer")] == ["id-reject_once"]
    assert len(agents.seen("prompt")) == 1
    assert place.duly("verify").returncode == 0


def test_an_answer_survives_a_holder_that_is_killed_before_it_was_passed_on(agents: Agents) -> None:
    place = agents.place
    agents.writes([ASK, {"do": "hang_up_to_cancel"}], [ASK, say("Published.")])
    agents.add("--unattended", "park")
    first = place.serve()
    place.duly("run", "ask")
    asked = question(place)
    wait_for(lambda: place.rows("SELECT 1 FROM runs WHERE state = 'parked'"))
    agents.writes([ASK, {"do": "hang_up_to_cancel"}], [ASK, say("Published.")], start=[{"do": "child"}, HANG])
    place.duly("answer", asked["id"], "allow")
    wait_for(lambda: agents.seen("child"))
    first.kill()
    first.wait()
    agents.writes([ASK, {"do": "hang_up_to_cancel"}], [ASK, say("Published.")])
    place.serve()
    run = place.ended()
    assert (run["outcome"], run["attempt"]) == ("succeeded", 3)
    prompts = agents.seen("prompt")
    assert len(prompts) == 2
    assert "A person has allowed it" in prompts[1]["text"]
    assert place.duly("verify").returncode == 0
