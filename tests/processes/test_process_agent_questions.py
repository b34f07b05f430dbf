"""What an agent asks while nobody is there, through the real commands, a real server and a real conversation."""

from typing import Any

from process_scene import Place, wait_for
from prompting_scene import Agents, say

ASK = {"do": "ask", "command": "npm publish", "title": "bash"}


HANG = {"do": "hang"}


def question_of(place: Place) -> dict[str, Any]:
    """The question that is open; waits for it without a process a look."""
    wait_for(lambda: place.rows("SELECT 1 FROM questions WHERE state = 'open'"))
    (one,) = place.json("questions")["items"]
    return dict(one)


def asked(agents: Agents, *words: str) -> tuple[Any, Any]:
    """A run whose agent has asked, and its question."""
    place = agents.place
    agents.add("--unattended", "park", *words)
    run = place.json("run", "ask")["id"]
    wait_for(lambda: place.rows("SELECT 1 FROM questions WHERE run = ?", run))
    ((question,), _) = place.json("questions").values()
    return run, question


def test_a_question_outlives_a_restart_and_its_run_succeeds_in_the_same_session(agents: Agents) -> None:
    place = agents.place
    agents.writes([say("I publish."), ASK, {"do": "hang_up_to_cancel"}], [ASK, say("Published.")])
    server = place.serve()
    run, question = asked(agents)
    assert (question["kind"], question["text"], question["attached"]) == ("permission", "bash: npm publish", False)
    session = agents.seen("new")[0]["session"]
    shown = wait_for(lambda: (found := place.json("show", run))["state"] == "parked" and found)
    assert (shown["session"], shown["question"]) == (session, question["id"])
    server.kill()
    server.wait()
    place.duly("answer", question["id"][-8:], "allow", "--note", "this once")
    place.serve()
    ended = place.ended()
    assert (ended["outcome"], ended["session"], ended["attempt"]) == ("succeeded", session, 2)
    assert agents.seen("prompt")[0]["text"] == "Do it."
    assert "A person has allowed it, with the note: this once" in agents.seen("prompt")[1]["text"]
    assert len(agents.seen("prompt")) == 2
    assert [one["chosen"] for one in agents.seen("answer")] == ["cancelled", "id-allow_once"]
    kinds = [kind for kind in agents.ledger(run) if kind != "began"]
    assert kinds == ["opened", "claimed", "parked", "answered", "claimed", "ended"]
    assert place.duly("verify").returncode == 0


def test_an_agent_whose_question_nobody_answers_fails_at_its_deadline(agents: Agents) -> None:
    place = agents.place
    agents.writes([ASK, {"do": "hang_up_to_cancel"}])
    place.serve()
    run, _ = asked(agents, "--answer-within", "2s")
    ended = place.ended()
    assert (ended["id"], ended["outcome"], ended["reason"]) == (run, "failed", "question_unanswered")
    assert place.duly("verify").returncode == 0


def test_an_agent_whose_question_nobody_answers_may_go_on_with_a_no(agents: Agents) -> None:
    place = agents.place
    agents.writes([ASK, {"do": "hang_up_to_cancel"}], [say("I leave it.")])
    place.serve()
    run, _ = asked(agents, "--answer-within", "2s", "--then", "deny")
    ended = place.ended()
    assert (ended["id"], ended["outcome"]) == (run, "succeeded")
    assert "It was not allowed." in agents.seen("prompt")[1]["text"]
    (question,) = place.json("questions")["items"]
    assert (question["answer"], question["answered_by"]) == ("deny", "duly")


def test_an_agent_that_cannot_go_on_later_keeps_its_run_while_a_person_is_asked(agents: Agents) -> None:
    place = agents.place
    agents.writes([ASK, say("Published.")], loads=False)
    agents.add("--unattended", "park")
    place.serve("--slots", "1")
    place.duly("run", "ask")
    one = question_of(place)
    (run,) = place.json("runs")["items"]
    assert (run["state"], run["waiting_for"]["what"]) == ("running", "question")
    place.duly("add", "other", "--when", "manual", "--", "true")
    assert "succeeded" in place.duly("run", "other", "--wait").stdout
    place.duly("answer", one["id"], "deny")
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
    one = question_of(place)
    wait_for(lambda: place.rows("SELECT 1 FROM runs WHERE state = 'parked'"))
    agents.writes([ASK, {"do": "hang_up_to_cancel"}], [ASK, say("Published.")], start=[{"do": "child"}, HANG])
    place.duly("answer", one["id"], "allow")
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
