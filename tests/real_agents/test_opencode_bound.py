"""A task that is bound to a session of the real OpenCode server."""

from fake_model import HOLD, say, tool
from opencode_scene import OpenCodeScene

from duly.core.permissions import Permission
from duly.ports import Busy, NothingToResume, Outcome, Resumption


def to(session: str, busy: str = "skip") -> dict[str, object]:
    return {"session": {"use": session, "busy": busy}}


def test_a_bound_session_goes_on_by_the_tasks_own_rules_and_hears_its_knowledge_once(opencode: OpenCodeScene) -> None:
    opencode.perform(say("It is there."))
    anything = [{"permission": "*", "pattern": "*", "action": "allow"}]
    made = opencode.ask("POST", "/session", title="mine", permission=anything, metadata={"mine": 1})
    session, knowledge = made["id"], opencode.work / ".agents" / "knowledge.md"
    knowledge.parent.mkdir(exist_ok=True)
    knowledge.write_text("The moon is far.")
    rules = (Permission(tool="bash", pattern="*", action="deny"),)
    for word in ("one", "two"):
        steps = (tool("bash", command="echo no > denied", description="no"), say(f"{word} is done."))
        outcome = opencode.perform(*steps, action=to(session), permissions=rules)
        assert (outcome.word, outcome.agent["session"]) == ("succeeded", session)
        assert not (opencode.work / "denied").exists(), "the task's rules count, and not the session's"
    knowledge.unlink()
    history = opencode.model.calls(opencode.name)[-1].history
    assert history.count("The moon is far.") == 1
    assert "one is done." in history
    kept = opencode.ask("GET", f"/session/{session}")
    assert opencode.last is not None
    assert (kept["title"], kept["metadata"]["mine"]) == ("mine", 1)
    assert kept["metadata"]["duly"]["run"] == opencode.last.run
    assert len(kept["permission"]) == len(set(map(str, kept["permission"]))), "rules that are there are not put again"


def test_a_bound_session_in_which_somebody_works_is_left_alone_or_waited_for(opencode: OpenCodeScene) -> None:
    session = opencode.perform(say("It is there.")).agent["session"]
    name = opencode.model.writes("a person at work", HOLD)
    part = {"type": "text", "text": name}
    opencode.ask("POST", f"/session/{session}/prompt_async", parts=[part])
    opencode.until(lambda: opencode.model.calls("a person at work"))
    done = opencode.runner().perform(opencode.assign("never", action=to(str(session))), None)
    assert done == Busy(told=f"the session {session} is busy")
    with opencode.performing(say("After you."), action=to(str(session), "wait")) as (_, future):
        assert not opencode.calls
        opencode.model.frees("a person at work")
        outcome = future.result(90)
    assert (outcome.word, outcome.agent["session"]) == ("succeeded", session)
    assert "I have ended." in opencode.model.calls(opencode.name)[0].history


def test_a_bound_session_that_is_gone_is_replaced_and_one_of_another_folder_refused(opencode: OpenCodeScene) -> None:
    gone = opencode.perform(say("A new one."), action=to("ses_000000000000AAAAAAAAAAAAAA"))
    assert gone.word == "succeeded"
    assert opencode.told[-1] == {"session": gone.agent["session"], "instead_of": "ses_000000000000AAAAAAAAAAAAAA"}
    other = opencode.folder / "other"
    other.mkdir(exist_ok=True)
    refused = opencode.perform(say("never"), action={"cwd": str(other), **to(str(gone.agent["session"]))})
    assert (refused.word, refused.reason, refused.side_effect, opencode.calls) == ("failed", "preflight", False, 0)
    assert f"works in {opencode.work}, and the task in {other}" in (refused.error or "")


def test_a_run_that_goes_on_in_a_bound_session_takes_no_other_answer_for_its_own(opencode: OpenCodeScene) -> None:
    session = str(opencode.perform(say("An old answer.")).agent["session"])
    resumes = Resumption(session=session, prompted=True, why="interrupted")
    unsent = opencode.model.writes("unsent and bound", say("At last."))
    late = opencode.runner().perform(opencode.assign(unsent, action=to(session), attempt=2, resumes=resumes), None)
    assert isinstance(late, Outcome)
    assert (late.word, len(opencode.model.calls("unsent and bound"))) == ("succeeded", 1)
    with opencode.performing(HOLD, action=to(session)) as (_, future):
        opencode.until(lambda: opencode.calls)
        opencode.ask("POST", f"/session/{session}/abort")
        future.result(90)
    assert opencode.last is not None
    cut, name = opencode.last.run, opencode.name
    person = {"type": "text", "text": opencode.model.writes("a person since", say("Hello."))}
    opencode.ask("POST", f"/session/{session}/prompt_async", parts=[person])
    opencode.until(lambda: opencode.model.calls("a person since") and not opencode.ask("GET", "/session/status"))
    again = opencode.assign(f"[[{name}]]", action=to(session), attempt=2, run=cut, resumes=resumes)
    done = opencode.runner().perform(again, None)
    assert isinstance(done, NothingToResume)
    assert f"somebody else has gone on in its session {session} since" in done.told
    assert len(opencode.model.calls(name)) == 1
