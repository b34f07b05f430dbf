"""A turn at the real OpenCode server: what it is asked with, what it gives, and what is refused before it begins."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fake_model import HOLD, say, shell, tool
from opencode_scene import OpenCodeScene

from duly.core.agent_config import Agent
from duly.core.titles import title
from duly.ports import Outcome
from duly.runners.opencode.preflight import hello


def refused(opencode: OpenCodeScene, outcome: Outcome, reason: str = "preflight") -> str:
    """The attempt failed before the model was asked anything; gives what was said."""
    assert (outcome.word, outcome.reason, outcome.side_effect) == ("failed", reason, False)
    assert opencode.calls == 0
    return outcome.error or ""


def test_a_turn_at_a_real_server_ends_with_text_tokens_cost_and_a_session(opencode: OpenCodeScene) -> None:
    outcome = opencode.perform(say("All is well.", usage=(1234, 56)))
    assert (outcome.word, outcome.reason, outcome.error, outcome.confirmed) == ("succeeded", None, None, True)
    assert outcome.agent["usage"] == {"tokens_in": 1234, "tokens_out": 56, "cost_usd": pytest.approx(0.001346)}
    assert "All is well." in opencode.log
    assert outcome.log_bytes == len(opencode.log.encode())
    assert opencode.calls == 1
    assert opencode.told == [{"session": outcome.agent["session"]}]
    assert opencode.session(outcome)["id"] == outcome.agent["session"]


def test_a_session_is_titled_by_task_and_due_time_and_tells_where_it_came_from(opencode: OpenCodeScene) -> None:
    session = opencode.session(opencode.perform(say("Yes.")))
    assert session["title"] == "ask 2026-12-01 09:00"
    assert opencode.last is not None
    assert session["metadata"]["duly"] == {
        "task": "tsk_one",
        "name": "ask",
        "run": opencode.last.run,
        "attempt": 1,
        "occurrence": "at:2026-12-01T08:00:00Z",
    }
    assert session["directory"] == str(opencode.work)


def test_a_title_has_at_most_120_characters_and_loses_its_name_first() -> None:
    made = title("n" * 300, datetime(2026, 12, 1, 8, 5, tzinfo=UTC))
    assert len(made) == 120
    assert made.endswith("n… 2026-12-01 08:05")
    assert title("by hand", None) == "by hand"


def test_model_profile_and_variant_are_those_of_the_task(opencode: OpenCodeScene) -> None:
    chosen = {"model": "fake/fake-1", "profile": "plan", "variant": "high"}
    outcome = opencode.perform(say("Planned."), action=chosen)
    assert outcome.word == "succeeded"
    asked = opencode.ask("GET", f"/session/{outcome.agent['session']}/message")[0]["info"]
    assert (asked["agent"], asked["model"]["modelID"], asked["model"]["variant"]) == ("plan", "fake-1", "high")


@pytest.mark.parametrize(
    ("action", "told"),
    [
        ({"profile": "nobody"}, "no profile 'nobody'; it has build, "),
        ({"model": "fake/huge"}, "knows no model 'fake/huge'; it knows fake/fake-1"),
        ({"model": "fake-1"}, "knows no model 'fake-1'"),
        ({"variant": "deepest"}, "has no variant 'deepest'; it has high"),
    ],
    ids=["its profile", "its model", "a model without its provider", "its variant"],
)
def test_what_the_agent_does_not_have_is_refused_before_it_is_asked(
    opencode: OpenCodeScene, action: dict[str, Any], told: str
) -> None:
    assert told in refused(opencode, opencode.perform(say("never"), action=action))


def test_a_folder_that_is_missing_is_refused_though_the_server_would_take_it(opencode: OpenCodeScene) -> None:
    gone = str(opencode.folder / "gone")
    assert gone in refused(opencode, opencode.perform(say("never"), action={"cwd": gone}), "no_directory")


def test_session_and_message_are_on_disk_before_the_prompt_is_sent(opencode: OpenCodeScene) -> None:
    with opencode.performing(HOLD) as (_, future):
        opencode.until(lambda: opencode.calls)
        left = opencode.left
        opencode.model.frees(opencode.name)
        outcome = future.result(30)
    assert (left.session, left.prompted) == (outcome.agent["session"], True)
    asked = opencode.ask("GET", f"/session/{left.session}/message/{left.message}")
    assert asked["info"]["role"] == "user"


def test_tools_and_words_are_in_the_log_as_they_come(opencode: OpenCodeScene) -> None:
    with opencode.performing(tool("glob", pattern="*.none"), HOLD) as (_, future):
        opencode.until(lambda: "I begin." in opencode.log)
        assert "[tool] glob" in opencode.log
        opencode.model.frees(opencode.name)
        assert future.result(30).word == "succeeded"
    assert "I have ended." in opencode.log


def test_the_cost_of_sub_agents_counts_and_their_work_is_told(opencode: OpenCodeScene) -> None:
    child = opencode.model.writes("a child of cost", say("I am a child.", usage=(1000, 100)))
    task = tool("task", description="ask", prompt=child, subagent_type="general")
    outcome = opencode.perform(task, say("All said.", usage=(10, 1)))
    assert outcome.word == "succeeded"
    assert outcome.agent["usage"]["tokens_in"] == 100 + 1000 + 10  # type: ignore[index]
    assert "[sub-agent] I am a child." in opencode.log


def test_a_session_is_archived_after_a_success_alone_and_only_where_asked(opencode: OpenCodeScene) -> None:
    action = {"archive": "on_success"}
    assert opencode.session(opencode.perform(say("Done."), action=action))["time"].get("archived")
    assert not opencode.session(opencode.perform(say(" "), action=action))["time"].get("archived")
    assert not opencode.session(opencode.perform(say("Done.")))["time"].get("archived")


def test_a_secret_in_an_answer_is_masked_in_the_log_and_in_the_error(opencode: OpenCodeScene) -> None:
    opencode.secrets.value("TOKEN")
    outcome = opencode.perform(say('{"error": "very-secret-word"}'))
    assert outcome.reason == "agent_error"
    assert "very-secret-word" not in opencode.log + (outcome.error or "")
    assert "${TOKEN}" in opencode.log


def test_a_prompt_of_a_megabyte_arrives_whole(opencode: OpenCodeScene) -> None:
    (opencode.work / "long.md").write_text("quoted \" and \\ and 'so'\n" * 40_000)
    name = opencode.model.writes("long", say("Read."))
    file = opencode.work / "prompt.md"
    file.write_text(name + "\n" + 'a line with "quotes" and a \\ \n' * 400)
    outcome = opencode.perform(name="long", action={"prompt": None, "prompt_file": "prompt.md"})
    assert outcome.word == "succeeded"
    assert opencode.model.calls("long")[-1].text == file.read_text()


def test_greeting_a_server_says_its_version_and_asks_it_nothing(opencode: OpenCodeScene) -> None:
    opencode.perform(say("Here."))
    agents = opencode.agents
    assert hello(opencode.agent, opencode.secrets, opencode.nursery, agents.streams) == ("OpenCode 1.18.33", True)
    assert opencode.perform(say("Still here.")).word == "succeeded"


def elsewhere(opencode: OpenCodeScene, agent: Agent) -> OpenCodeScene:
    """Prompt another agent from now on, at the same model."""
    opencode.agents.known["elsewhere"] = agent  # type: ignore[index]
    return opencode


def test_a_server_that_somebody_else_started_is_used_with_its_password(opencode: OpenCodeScene) -> None:
    opencode.perform(say("It starts."))
    server = opencode.server
    opencode.secrets._named["PASSWORD"] = server.password
    agent = Agent(name="elsewhere", kind="opencode", url=server.url, password="${PASSWORD}")
    elsewhere(opencode, agent)
    assert opencode.perform(say("From outside."), action={"agent": "elsewhere"}).word == "succeeded"
    opencode.secrets._named["PASSWORD"] = "wrong"
    assert "another password" in refused(
        opencode, opencode.perform(say("never"), action={"agent": "elsewhere"}), "agent_error"
    )
    elsewhere(opencode, replace(agent, password="${NOWHERE}"))
    assert "NOWHERE" in refused(opencode, opencode.perform(say("never"), action={"agent": "elsewhere"}))


@pytest.fixture
def nonsense() -> Iterator[str]:
    """A server that answers everything with a page."""

    class Page(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            body = b"<html>Welcome</html>"
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_a_server_that_answers_nonsense_is_prompted_nothing(opencode: OpenCodeScene, nonsense: str) -> None:
    agent = Agent(name="elsewhere", kind="opencode", url=nonsense)
    elsewhere(opencode, agent)
    told = refused(opencode, opencode.perform(say("never"), action={"agent": "elsewhere"}), "agent_error")
    assert "no JSON" in told
    assert "Welcome" in told
    assert "no JSON" in hello(agent, opencode.secrets, opencode.nursery, opencode.agents.streams)[0]


def test_a_server_that_is_not_there_is_prompted_nothing(opencode: OpenCodeScene) -> None:
    elsewhere(opencode, Agent(name="elsewhere", kind="opencode", url="http://127.0.0.1:9"))
    told = refused(opencode, opencode.perform(say("never"), action={"agent": "elsewhere"}), "agent_error")
    assert "does not answer" in told


def test_an_agent_over_acp_takes_no_profile(opencode: OpenCodeScene) -> None:
    elsewhere(opencode, Agent(name="elsewhere", command=("opencode", "acp")))
    outcome = opencode.perform(say("never"), action={"agent": "elsewhere", "profile": "plan"})
    assert "has no profile" in refused(opencode, outcome)
    assert Path(opencode.work).is_dir()


def test_a_line_of_the_shell_that_is_allowed_is_run_in_the_tasks_folder(opencode: OpenCodeScene) -> None:
    outcome = opencode.perform(shell("pwd > where"), say("Done."), unattended="allow")
    assert outcome.word == "succeeded"
    assert (opencode.work / "where").read_text().strip() == str(opencode.work)


def test_a_slash_command_of_the_agent_is_put_into_its_template_and_knowledge_goes_first(
    opencode: OpenCodeScene,
) -> None:
    commands = opencode.work / ".opencode" / "command"
    commands.mkdir(parents=True)
    name = opencode.model.writes("greeted", say("Hello."))
    (commands / "greet.md").write_text(f"---\ndescription: greets\n---\nSay hello to $ARGUMENTS {name}\n")
    knowledge = opencode.work / ".agents"
    knowledge.mkdir(exist_ok=True)
    (knowledge / "knowledge.md").write_text("We say moin.")
    opencode.ask("POST", "/instance/dispose")  # what it knew of the folder
    outcome = opencode.perform(name="greeted", action={"prompt": '/greet "a b" and {{run}}'})
    assert outcome.word == "succeeded"
    assert opencode.last is not None
    asked = opencode.model.calls("greeted")[0]
    assert f'Say hello to "a b" and {opencode.last.run} {name}' in asked.history
    assert asked.history.index("We say moin.") < asked.history.index("Say hello")
    (knowledge / "knowledge.md").unlink()
