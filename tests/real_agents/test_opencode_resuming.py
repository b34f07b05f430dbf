"""Going on in a session of the real OpenCode server in which an earlier attempt was cut off."""

import os
import signal
import threading

import pytest
from fake_model import HOLD, say, shell
from opencode_scene import OpenCodeScene, lives, pid_of
from real_scene import scrub

from duly.ports import NothingToResume, Outcome
from duly.prompts import goals
from duly.prompts.resuming import INTERRUPTED


def cut_off(opencode: OpenCodeScene, *steps: object) -> str:
    """Begin a turn, and stop it in the middle; gives its session."""
    with opencode.performing(*steps, unattended="allow") as (_, future):  # type: ignore[arg-type]
        opencode.until(lambda: opencode.calls == len(steps))
        session = str(opencode.left.session)
        opencode.ask("POST", f"/session/{session}/abort")
        assert future.result(90).word == "failed", "nobody here had stopped it"
    return session


def asked(opencode: OpenCodeScene, session: str) -> list[str]:
    """What the session was asked so far."""
    messages = opencode.ask("GET", f"/session/{session}/message")
    return [one["parts"][0]["text"] for one in messages if one["info"]["role"] == "user"]


def test_a_turn_that_was_cut_off_goes_on_in_its_session_and_never_has_its_prompt_twice(
    opencode: OpenCodeScene,
) -> None:
    session = cut_off(opencode, shell("echo once >> effects"), HOLD)
    opencode.model.writes(opencode.name, say("I went on."))
    outcome = opencode.resume(session)
    assert isinstance(outcome, Outcome)
    assert (outcome.word, outcome.agent["session"]) == ("succeeded", session)
    prompts = asked(opencode, session)
    assert len(prompts) == 2
    assert prompts[1] == INTERRUPTED
    assert (opencode.work / "effects").read_text() == "once\n"
    assert opencode.left.under_way


def test_a_turn_that_is_still_under_way_is_only_heard_to_its_end(opencode: OpenCodeScene) -> None:
    with opencode.performing(HOLD, say("never")) as (_, future):
        opencode.until(lambda: opencode.calls)
        session, name = str(opencode.left.session), opencode.name
        freeing = threading.Timer(3, lambda: opencode.model.frees(name))
        freeing.start()
        outcome = opencode.resume(session)
        assert future.result(90).word == "succeeded"
        freeing.join()
    assert isinstance(outcome, Outcome)
    assert outcome.word == "succeeded"
    assert "still under way" in opencode.log
    assert (opencode.calls, len(asked(opencode, session))) == (1, 1)


def test_a_turn_that_had_ended_before_anybody_settled_it_is_not_asked_again(opencode: OpenCodeScene) -> None:
    first = opencode.perform(say("All done."))
    outcome = opencode.resume(str(first.agent["session"]))
    assert isinstance(outcome, Outcome)
    assert (outcome.word, outcome.agent["usage"]) == ("succeeded", first.agent["usage"])
    assert (opencode.calls, len(asked(opencode, str(first.agent["session"])))) == (1, 1)


def test_a_session_that_was_opened_and_never_prompted_is_prompted_now(opencode: OpenCodeScene) -> None:
    opencode.perform(say("It is there."))
    for prompted in (False, True):
        session = opencode.ask("POST", "/session", title="opened")["id"]
        name = opencode.model.writes(f"never prompted {prompted}", say("At last."))
        outcome = opencode.resume(session, prompted=prompted, name=name.strip("[]"))
        assert isinstance(outcome, Outcome)
        assert (outcome.word, asked(opencode, session)) == ("succeeded", [name])


def test_a_session_that_is_gone_is_told_so_and_nothing_is_asked_anew(opencode: OpenCodeScene) -> None:
    opencode.perform(say("It is there."))
    done = opencode.resume("ses_000000000000AAAAAAAAAAAAAA")
    assert isinstance(done, NothingToResume)
    assert "does not find its session" in done.told
    assert opencode.calls == 1


def test_at_whichever_point_the_server_was_killed_the_model_is_asked_each_thing_once(
    alone: OpenCodeScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the session was known, before its prompt, in its turn and after it: one server is killed for all four.

    The next one is killed between two turns of a goal, which is an interruption as well.
    """
    first = alone.perform(say("All done."))
    ended, asked_before = str(first.agent["session"]), alone.name
    opened = alone.ask("POST", "/session", title="opened")["id"]
    with alone.performing(HOLD) as (_, future):
        alone.until(lambda: alone.calls)
        session, cut = str(alone.left.session), alone.name
        alone.model.writes(cut, say("I went on."))
        os.kill(pid_of(alone.server), signal.SIGKILL)
        future.result(90)
    again = alone.resume(ended, name=asked_before)
    assert isinstance(again, Outcome)
    assert (again.word, len(alone.model.calls(asked_before))) == ("succeeded", 1), "it had ended"
    unsent = alone.model.writes("unsent", say("At last.")).strip("[]")
    late = alone.resume(opened, prompted=False, name=unsent)
    assert isinstance(late, Outcome)
    assert (late.word, late.agent["session"], len(alone.model.calls(unsent))) == ("succeeded", opened, 1)
    fresh = alone.perform(say("From the start."), name="unknown before")
    assert (fresh.word, len(alone.model.calls("unknown before"))) == ("succeeded", 1)
    on = alone.resume(session, name=cut)
    assert isinstance(on, Outcome)
    assert (on.word, on.agent["session"]) == ("succeeded", session)
    assert asked(alone, session) == [f"[[{cut}]]", INTERRUPTED]

    def dies(*_: object, **__: object) -> str:
        os.kill(pid_of(alone.server), signal.SIGKILL)
        return "Go on."

    monkeypatch.setattr(goals, "after", dies)
    half = alone.perform(say("Half."), action={"goal": {"tokens": 50_000}})
    assert (half.word, half.interrupted, alone.left.word) == ("failed", True, None)


def test_what_the_cut_off_turn_had_started_is_ended_before_it_goes_on(
    alone: OpenCodeScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = alone.work / "pids"
    line = f"setsid sh -c 'echo $$ > {pids}; exec sleep 300' >/dev/null 2>&1 & sleep 300"
    session = ""
    with alone.performing(shell(line), unattended="allow") as (_, future):
        alone.until(lambda: pids.exists() and pids.read_text().strip())
        pid = int(pids.read_text())
        session = str(alone.left.session)
        monkeypatch.setattr("duly.runners.opencode.servers._alone", lambda _descriptor: False)
        alone.ask("POST", f"/session/{session}/abort")
        future.result(90)
    assert lives(pid), "so it is left by who is not alone there"
    monkeypatch.undo()
    scrub(monkeypatch)
    alone.model.writes(alone.name, say("I went on."))
    outcome = alone.resume(session)
    assert isinstance(outcome, Outcome)
    assert outcome.word == "succeeded"
    assert not lives(pid)
