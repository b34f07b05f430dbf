"""Questions over real processes: asked by one, answered from another, gone on with by a third."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import asking_holder
from process_scene import Place, wait_for

TEXT = asking_holder.MAY_I.text


def serve(place: Place, *flags: str) -> subprocess.Popen[str]:
    return place.program(sys.executable, str(Path(asking_holder.__file__)), str(place.store), *flags)


def asked(place: Place, name: str) -> tuple[Any, Any]:
    """A run of a task by hand, and the question that its work has asked."""
    place.duly("add", name, "--when", "manual", "--", "true")
    run = place.json("run", name)["id"]
    wait_for(lambda: place.rows("SELECT 1 FROM questions WHERE run = ?", run))
    ((question,), _) = place.json("questions", "--open").values()
    return run, question


def run_of(place: Place, run: str) -> Any:
    return place.json("show", run)


def session(place: Place, run: Any) -> list[str]:
    return (place.home / str(run["session"])).read_text().splitlines()


def sound(place: Place) -> None:
    assert place.json("verify")["items"] == []


def test_a_parked_run_outlives_its_server_is_answered_from_another_process_and_goes_on_in_its_session(
    place: Place,
) -> None:
    first = serve(place)
    run, question = asked(place, "ask")
    shown = wait_for(lambda: (found := run_of(place, run))["state"] == "parked" and found)
    assert (shown["question"], shown["holder"], shown["seat"]) == (question["id"], None, 1)
    assert shown["waiting_for"]["what"] == "question"
    assert shown["waiting_for"]["key"] == question["id"]
    first.kill()
    first.wait()
    done = place.json("answer", question["id"][-8:], "allow", "--note", "this once")
    assert (done["state"], done["answer"], done["note"]) == ("answered", "allow", "this once")
    again = place.duly("answer", question["id"], "deny", "--json", check=False)
    assert again.returncode == 3
    assert '"already_answered"' in again.stderr
    assert run_of(place, run)["state"] == "parked"
    serve(place)
    ended = place.ended()
    assert (ended["outcome"], ended["attempt"], ended["session"]) == ("succeeded", 2, shown["session"])
    assert session(place, ended) == ["prompt", f"resumed with allow of {TEXT}"]
    assert place.json("status")["open_questions"] == 0
    sound(place)


def test_an_answer_is_passed_on_within_moments_by_whoever_serves(place: Place) -> None:
    serve(place)
    run, question = asked(place, "ask")
    place.duly("answer", question["id"], "deny")
    ended = place.ended()
    assert (ended["id"], ended["outcome"]) == (run, "succeeded")
    assert session(place, ended)[-1] == f"resumed with deny of {TEXT}"
    sound(place)


def test_who_serves_until_idle_waits_for_what_is_parked_and_leaves_when_that_has_ended(place: Place) -> None:
    place.duly("add", "ask", "--when", "manual", "--", "true")
    run = place.json("run", "ask")["id"]
    server = serve(place, "--until-idle")
    wait_for(lambda: place.rows("SELECT 1 FROM runs WHERE id = ? AND state = 'parked'", run))
    ((question,), _) = place.json("questions").values()
    assert server.poll() is None
    place.duly("answer", question["id"], "allow")
    assert server.wait(timeout=60) == 0
    assert run_of(place, run)["outcome"] == "succeeded"


def test_work_that_lives_while_it_asks_is_running_and_is_told_the_answer_where_it_is(place: Place) -> None:
    serve(place)
    run, question = asked(place, asking_holder.LIVES)
    shown = run_of(place, run)
    assert (shown["state"], shown["waiting_for"]["what"]) == ("running", "question")
    assert question["attached"] is True
    place.duly("answer", question["id"], "allow")
    ended = place.ended()
    assert (ended["outcome"], ended["attempt"]) == ("succeeded", 1)
    assert session(place, ended) == ["prompt", "told allow"]
    sound(place)


def test_the_question_of_work_that_died_with_its_server_is_asked_no_longer(place: Place) -> None:
    first = serve(place)
    run, question = asked(place, asking_holder.LIVES)
    first.kill()
    first.wait()
    serve(place)
    ended = place.ended()
    assert (ended["id"], ended["outcome"], ended["reason"]) == (run, "abandoned", "holder_died")
    late = place.duly("answer", question["id"], "allow", "--json", check=False)
    assert late.returncode == 3
    assert "its run has ended" in late.stderr
    sound(place)
