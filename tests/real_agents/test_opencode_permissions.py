"""What the real OpenCode is answered that asks while nobody is there, for its sessions and those of its sub-agents."""

from datetime import UTC, datetime

from fake_model import Step, say, shell, tool
from opencode_scene import OpenCodeScene

from duly.core.permissions import Permission
from duly.core.questions import Answered
from duly.core.values import changed
from duly.ports import Outcome, Parked, Resumption


def rule(tool: str, pattern: str, action: str) -> Permission:
    return Permission(tool=tool, pattern=pattern, action=action)  # type: ignore[arg-type]


def test_what_nobody_allows_is_denied_with_words_and_not_done(opencode: OpenCodeScene) -> None:
    outcome = opencode.perform(shell("touch denied"), say("Then not."))
    assert outcome.word == "succeeded"
    assert not (opencode.work / "denied").exists()
    assert "[asked] bash: touch denied: deny" in opencode.log
    assert "Nobody is there" in opencode.model.calls(opencode.name)[-1].history


def test_unattended_allow_allows_what_is_asked_for_this_once(opencode: OpenCodeScene) -> None:
    assert opencode.perform(shell("touch allowed"), say("Done."), unattended="allow").word == "succeeded"
    assert (opencode.work / "allowed").exists()


def test_unattended_fail_ends_the_turn_with_the_question(opencode: OpenCodeScene) -> None:
    outcome = opencode.perform(shell("touch failed"), say("never"), unattended="fail")
    assert (outcome.word, outcome.reason, outcome.confirmed) == ("failed", "question_denied", True)
    assert "touch failed" in (outcome.error or "")
    assert (opencode.calls, (opencode.work / "failed").exists()) == (1, False)


def test_of_the_rules_that_fit_the_last_decides_by_the_kind_or_the_tools_own_name(opencode: OpenCodeScene) -> None:
    rules = (rule("execute", "touch *", "allow"), rule("bash", "touch not*", "deny"))
    opencode.perform(shell("touch ruled"), shell("touch not-ruled"), say("Done."), permissions=rules)
    assert (opencode.work / "ruled").exists()
    assert not (opencode.work / "not-ruled").exists()


def test_a_rule_holds_also_for_what_the_agents_settings_allow(opencode: OpenCodeScene) -> None:
    (opencode.work / "private").write_text("a word that is private")
    private = tool("read", filePath=str(opencode.work / "private"))
    opencode.perform(private, say("Read."))
    assert "a word that is private" in opencode.model.calls(opencode.name)[-1].history
    outcome = opencode.perform(private, say("Not read."), permissions=(rule("read", "*private*", "deny"),))
    assert outcome.word == "succeeded"
    assert "a word that is private" not in opencode.model.calls(opencode.name)[-1].history


def test_leave_for_one_line_is_none_for_two_that_are_joined(opencode: OpenCodeScene) -> None:
    rules = (rule("execute", "echo *", "allow"),)
    opencode.perform(shell("echo a; touch joined"), say("Done."), permissions=rules)
    assert not (opencode.work / "joined").exists()


def test_a_sub_agent_is_answered_as_its_session_is(opencode: OpenCodeScene) -> None:
    child = opencode.model.writes("a child that asks", shell("touch by-child"), say("I am a child."))
    task = tool("task", description="ask", prompt=child, subagent_type="general")
    assert opencode.perform(task, say("All said."), unattended="allow").word == "succeeded"
    assert (opencode.work / "by-child").exists()
    child = opencode.model.writes("a child denied", shell("touch by-denied"), say("I am a child."))
    task = tool("task", description="ask", prompt=child, subagent_type="general")
    outcome = opencode.perform(task, say("All said."))
    assert outcome.word == "succeeded"
    assert not (opencode.work / "by-denied").exists()


def test_where_a_rule_denies_there_are_no_sub_agents_as_they_would_not_have_it(opencode: OpenCodeScene) -> None:
    denied = rule("read", "*hidden*", "deny")
    opencode.perform(say("Alone."), permissions=(denied,))
    assert "task" not in opencode.model.calls(opencode.name)[0].tools
    opencode.perform(say("With others."), permissions=(denied, rule("task", "*", "allow")))
    assert "task" in opencode.model.calls(opencode.name)[0].tools


def test_a_question_to_a_person_is_not_offered_to_the_model(opencode: OpenCodeScene) -> None:
    assert opencode.perform(say("I ask nobody.")).word == "succeeded"
    assert "bash" in opencode.model.calls(opencode.name)[0].tools
    assert "question" not in opencode.model.calls(opencode.name)[0].tools


def test_a_sub_agents_question_to_a_person_never_hangs(opencode: OpenCodeScene) -> None:
    options = [{"label": "yes", "description": "do"}, {"label": "no", "description": "leave"}]
    asked = [{"question": "Shall I?", "header": "h", "options": options}]
    child = opencode.model.writes("a child with a question", tool("question", questions=asked), say("Then not."))
    task = tool("task", description="ask", prompt=child, subagent_type="general")
    outcome = opencode.perform(task, say("All said."))
    assert outcome.confirmed
    assert outcome.word in ("succeeded", "failed")


def parked(opencode: OpenCodeScene, *steps: Step) -> Parked:
    """Perform an attempt that asks, and is left to a person."""
    opencode.name = f"asks {opencode.runs}"
    prompt = opencode.model.writes(opencode.name, *steps)
    done = opencode.runner().perform(opencode.assign(prompt, unattended="park"), None)
    assert isinstance(done, Parked)
    assert opencode.ask("GET", "/session/status") == {}
    return done


def answered(opencode: OpenCodeScene, was: Parked, answer: str, **more: str) -> Outcome:
    """Go on in the session with a person's answer."""
    given = Answered(asked=was.asked, answer=answer, by="me", at=datetime(2026, 12, 1, 9, tzinfo=UTC))  # type: ignore[arg-type]
    given = changed(given, **more)
    resumes = Resumption(session=str(was.agent["session"]), prompted=True, why="answered", answer=given)
    assignment = opencode.assign(f"[[{opencode.name}]]", unattended="park", attempt=2, resumes=resumes)
    done = opencode.runner().perform(assignment, None)
    assert isinstance(done, Outcome)
    assert done.agent["session"] == was.agent["session"]
    return done


def test_a_question_that_waits_for_a_person_ends_the_turn_and_its_session_goes_on_with_the_answer(
    opencode: OpenCodeScene,
) -> None:
    line = shell("touch parked")
    was = parked(opencode, line, line, say("Done, as you said."))
    assert (was.asked.kind, was.asked.text) == ("permission", "bash: touch parked")
    assert not (opencode.work / "parked").exists()
    done = answered(opencode, was, "allow")
    assert (done.word, (opencode.work / "parked").exists()) == ("succeeded", True)
    assert "A person has allowed it" in opencode.model.calls(opencode.name)[-1].history


def test_what_a_person_denied_is_not_done_when_it_is_asked_again(opencode: OpenCodeScene) -> None:
    line = shell("touch refused")
    was = parked(opencode, line, line, say("Then not."))
    done = answered(opencode, was, "deny", note="not today")
    assert (done.word, (opencode.work / "refused").exists()) == ("succeeded", False)
    assert "not today" in opencode.model.calls(opencode.name)[-1].history


def test_a_question_in_words_waits_for_a_person_with_its_choices(opencode: OpenCodeScene) -> None:
    options = [{"label": "red", "description": "r"}, {"label": "blue", "description": "b"}]
    asked = tool("question", questions=[{"question": "Which colour?", "header": "h", "options": options}])
    was = parked(opencode, asked, say("Blue it is."))
    assert (was.asked.kind, was.asked.text, was.asked.options) == ("question", "Which colour?", ("red", "blue"))
    done = answered(opencode, was, "text", said="blue")
    assert done.word == "succeeded"
    assert "The answer is: blue" in opencode.model.calls(opencode.name)[-1].history
