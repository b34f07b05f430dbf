"""The real OpenCode behind `duly serve`: what a user sees, and what becomes of a turn when processes are killed."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fake_model import HOLD, FakeModel, Step, say, shell
from opencode_scene import pid_of
from real_scene import real_opencode, settings, surroundings

sys.path.append(str(Path(__file__).parents[1] / "processes"))
from process_scene import Place, wait_for

from duly.runners.opencode import servers

pytestmark = pytest.mark.xdist_group("opencode serving")


class Served:
    """A place whose config names the real OpenCode with our model, and one task that prompts it."""

    def __init__(self, home: Path, model: FakeModel) -> None:
        self.place = Place(home)
        self.model = model
        self.name = home.name
        env = surroundings(home / "opencode", settings(model))
        self.record = Path(env["OPENCODE_DB"])
        config = home / ".config" / "duly" / "config.toml"
        config.parent.mkdir(parents=True)
        lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in env.items())
        command = json.dumps([str(real_opencode()), "serve"])
        config.write_text(
            f'[agents.opencode]\nkind = "opencode"\ncommand = {command}\n[agents.opencode.env]\n{lines}\n'
        )

    def begins(self, *words: str, steps: tuple[Step, ...]) -> str:
        """Add the task and run it; gives the run."""
        prompt = self.model.writes(self.name, *steps)
        place = self.place
        place.duly("add", "ask", "--when", "manual", "--agent", "opencode", "--prompt", prompt, *words)
        run: str = place.json("run", "ask")["id"]
        return run

    @property
    def calls(self) -> int:
        """How often the model was asked."""
        return len(self.model.calls(self.name))

    def server(self) -> servers.Server:
        """The server that has been started for this place."""
        found = servers._read(Path(f"{self.record}{servers.SUFFIX}"))
        assert found is not None
        return found[0]

    def under_way(self) -> dict[str, Any]:
        """The sessions whose turns the server has not ended."""
        server = self.server()
        asked = {"directory": str(self.place.home)}
        auth = ("opencode", server.password or "")
        answer = httpx2.get(f"{server.url}/session/status", params=asked, auth=auth, timeout=20, trust_env=False)
        found: dict[str, Any] = json.loads(answer.text)
        return found


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
