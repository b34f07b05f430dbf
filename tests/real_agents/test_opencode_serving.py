"""The real OpenCode behind `duly serve`: what a user sees, and what becomes of a turn when processes are killed."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_model import HOLD, FakeModel, say, shell
from opencode_scene import pid_of
from real_scene import real_opencode
from served_scene import Served, wait_for


@pytest.fixture
def served(model: FakeModel, tmp_path: Path) -> Iterator[Served]:
    real_opencode()
    one = Served(tmp_path, model)
    yield one
    one.place.close()


def test_a_prompt_ends_with_its_text_its_tokens_and_its_session(served: Served) -> None:
    place = served.place
    place.serve()
    run = served.begins(steps=(say("All is done."),))
    ended = place.ended()
    assert (ended["id"], ended["outcome"], ended["error"]) == (run, "succeeded", None)
    assert str(ended["session"]).startswith("ses_")
    assert ended["usage"]["tokens_in"] > 0
    assert ended["usage"]["tokens_out"] > 0
    assert "All is done." in place.duly("log", run).stdout
    assert place.duly("verify").returncode == 0


@pytest.mark.parametrize("killed", ["duly", "server", "both"])
def test_a_turn_goes_on_in_its_session_whatever_is_killed_in_it(served: Served, killed: str) -> None:
    place = served.place
    first = place.serve()
    run = served.begins("--unattended", "allow", steps=(shell("echo once >> effects"), HOLD, say("I went on.")))
    wait_for(lambda: served.calls == 2)
    session = wait_for(lambda: place.rows("SELECT agent FROM runs WHERE agent LIKE '%session%'"))
    if killed in ("server", "both"):
        os.kill(pid_of(served.server()), signal.SIGKILL)
    if killed in ("duly", "both"):
        first.kill()
        first.wait()
        place.serve()
    ended = place.ended()
    assert (ended["id"], ended["outcome"], ended["attempt"]) == (run, "succeeded", 2)
    assert json.loads(session[0][0])["session"] == ended["session"]
    assert (place.home / "effects").read_text() == "once\n"
    assert served.calls == 3
    history = served.model.calls(served.name)[-1].history
    assert history.count(f"[[{served.name}]]") == 1, "the prompt itself was sent once"
    assert "You were interrupted" in history
    assert place.duly("verify").returncode == 0


def test_a_question_is_answered_from_another_process_after_a_restart_and_its_session_goes_on(served: Served) -> None:
    place = served.place
    first = place.serve()
    line = shell("echo published > made")
    run = served.begins("--unattended", "park", steps=(line, line, say("Published.")))
    wait_for(lambda: place.rows("SELECT 1 FROM runs WHERE state = 'parked'"))
    first.kill()
    first.wait()
    (question,) = place.json("questions")["items"]
    assert not (place.home / "made").exists()
    place.serve()
    place.duly("answer", question["id"], "allow")
    ended = place.ended()
    assert (ended["id"], ended["outcome"], ended["attempt"]) == (run, "succeeded", 2)
    assert (place.home / "made").read_text() == "published\n"
    shown: dict[str, Any] = place.json("show", run)
    assert shown["session"] == ended["session"]
    assert place.duly("verify").returncode == 0


def test_the_turn_of_a_frozen_holder_is_ended_at_its_server_before_its_run_is(served: Served) -> None:
    place = served.place
    first = place.serve(lease="8s")
    work = shell("sleep 1; echo more >> effects")
    run = served.begins("--unattended", "allow", "--on-interrupt", "fail", steps=(work,))
    wait_for((place.home / "effects").exists)
    assert served.under_way()
    place.freeze(first)
    place.serve(lease="8s")
    wait_for(lambda: place.rows("SELECT 1 FROM runs WHERE state = 'ended'"))
    assert served.under_way() == {}
    ended = place.ended()
    assert (ended["id"], ended["outcome"], ended["reason"]) == (run, "abandoned", "lease_lost")
    os.kill(first.pid, signal.SIGCONT)
    wait_for(lambda: place.rows("SELECT 1 FROM ledger WHERE kind = 'fence_lost'"))
    assert place.duly("verify").returncode == 0
