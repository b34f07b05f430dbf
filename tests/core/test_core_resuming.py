"""What becomes of an interrupted run whose agent could go on in its session."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest
from core_values import HOUR, MINUTE, NINE, SECOND, held

from duly.core import spoken
from duly.core.edges import entry_of
from duly.core.interrupting import interrupted, not_resumed
from duly.core.run import Run, Step
from duly.core.task import Rules, on_interrupt_of

LATER = NINE + MINUTE
RESUME = Rules(on_interrupt="resume")


def interrupt(run: Run, rules: Rules = RESUME, **agent: object) -> Step:
    return interrupted(
        run, rules, why="holder_died", now=LATER, ended_at=LATER, following=None, by="hld_b", agent=agent
    )


def kept(step: Step) -> Mapping[str, object]:
    assert (step.after.state, step.after.tried, step.after.tried_reason) == ("waiting", "abandoned", "holder_died")
    assert (step.after.seat, step.after.holder, step.after.lease_end_us) == (None, None, None)
    (swept,) = step.entries
    assert (swept.kind, swept.details["next"]) == ("swept", "resume")
    return step.after.agent


def test_a_run_whose_session_was_prompted_waits_to_go_on_in_it() -> None:
    step = interrupt(held(), session="s1", prompted=True)
    assert kept(step) == {
        "session": "s1",
        "attempt": 1,
        "prompted": True,
        "resumes": "holder_died",
        "under_way": True,
    }
    assert step.after.interruptions == 1


def test_a_session_without_its_prompt_is_gone_on_with_and_may_be_asked() -> None:
    assert kept(interrupt(held(), session="s1", untouched=True)) == {
        "session": "s1",
        "attempt": 1,
        "resumes": "holder_died",
    }


def test_where_nothing_was_asked_and_no_session_is_known_the_next_attempt_begins_anew() -> None:
    assert "resumes" not in kept(interrupt(held(), untouched=True))


def test_where_nobody_knows_whether_anything_was_asked_nothing_is_asked_again() -> None:
    step = interrupt(held())
    assert (step.after.state, step.after.outcome, step.after.reason) == ("ended", "abandoned", "holder_died")
    assert "in which session of its agent is not known" in str(step.after.error)


def test_a_session_that_was_told_while_its_turn_went_on_is_known_without_the_traces_of_its_attempt() -> None:
    run = spoken.spoken_to(held(), agent={"session": "s1"}).after
    assert kept(interrupt(run)) == {"session": "s1", "attempt": 1, "resumes": "holder_died", "under_way": True}


def test_the_session_of_an_earlier_attempt_is_none_of_this_one() -> None:
    run = spoken.spoken_to(held(), agent={"session": "s1"}).after
    assert interrupt(replace(run, attempt=2)).after.state == "ended"
    assert "resumes" not in kept(interrupt(replace(run, attempt=2), untouched=True))


def test_an_attempt_that_was_to_go_on_and_left_nothing_leaves_that_to_the_next() -> None:
    run = replace(held(), agent=kept(interrupt(held(), session="s1", prompted=True)), attempt=2)
    for step in (interrupt(run), interrupt(run, untouched=True)):
        after = kept(step)
        assert (after["session"], after["under_way"]) == ("s1", True)


def test_an_attempt_that_went_on_and_was_interrupted_again_is_still_under_way() -> None:
    run = replace(held(), agent=kept(interrupt(held(), session="s1", prompted=True)), attempt=2)
    after = kept(interrupt(run, session="s1", under_way=True))
    assert (after["session"], after["under_way"], after.get("prompted")) == ("s1", True, None)


def test_an_answer_that_was_not_passed_on_before_an_interruption_is_passed_on_by_the_next_attempt() -> None:
    parked = {"session": "s1", "attempt": 1, "resumes": "answered", "under_way": True}
    before = interrupt(replace(held(attempt=2), agent=parked), session="s1", under_way=True)
    assert before.after.agent["resumes"] == "answered"
    passed = interrupt(replace(held(attempt=2), agent=parked), session="s1", under_way=True, prompted=True)
    assert passed.after.agent["resumes"] == "holder_died"


def test_the_third_interruption_ends_a_run_that_had_gone_on_twice() -> None:
    step = interrupt(held(interruptions=2), session="s1", prompted=True)
    assert (step.after.state, step.after.reason) == ("ended", "too_many_resumes")
    assert "it had gone on 2 times before" in str(step.after.error)
    assert step.after.agent["session"] == "s1"


def test_what_is_asked_to_end_does_not_go_on() -> None:
    step = interrupt(held(cancel_asked_at=NINE), session="s1", prompted=True)
    assert (step.after.state, step.after.outcome) == ("ended", "abandoned")


def test_what_is_too_late_does_not_go_on() -> None:
    run = held(due_at=NINE - 9 * HOUR)
    step = interrupt(run, session="s1", prompted=True)
    assert (step.after.state, step.after.reason) == ("ended", "stale")


def test_a_run_that_is_tried_again_from_the_start_keeps_no_session_to_go_on_in() -> None:
    step = interrupt(held(), Rules(on_interrupt="retry"), session="s1", prompted=True)
    assert (step.after.state, step.after.agent) == ("waiting", {"session": "s1", "attempt": 1, "prompted": True})
    assert step.entries[0].details["next"] == "retry"


def test_a_run_that_could_not_go_on_ends_with_the_reason_of_its_interruption() -> None:
    run = held(tried="abandoned", tried_reason="lease_lost")
    step = not_resumed(run, now=LATER, told="its session is gone", agent={"session": "s1"})
    assert (step.after.outcome, step.after.reason, step.after.error) == (
        "abandoned",
        "lease_lost",
        "its session is gone",
    )
    assert step.entries == (
        entry_of(
            run,
            "ended",
            LATER,
            reason="lease_lost",
            holder=run.holder,
            details={"outcome": "abandoned", "fence": run.fence},
        ),
    )


def test_money_that_a_session_tells_as_its_sum_is_counted_once_when_the_session_goes_on() -> None:
    first = interrupt(held(), session="s1", prompted=True, usage={"tokens_in": 10, "cost_usd": 0.5}).after
    run = replace(held(attempt=2), agent=first.agent)
    assert spoken.after_attempt(run, {"session": "s1", "usage": {"tokens_in": 4, "cost_usd": 0.7}})["usage"] == {
        "tokens_in": 14,
        "cost_usd": 0.7,
    }
    assert spoken.after_attempt(run, {"session": "s2", "usage": {"tokens_in": 4, "cost_usd": 0.7}})["usage"] == {
        "tokens_in": 14,
        "cost_usd": pytest.approx(1.2),
    }


@pytest.mark.parametrize(
    ("kind", "written", "holds"),
    [
        ("agent", None, "resume"),
        ("command", None, "fail"),
        ("call", None, "fail"),
        ("agent", "fail", "fail"),
        ("command", "retry", "retry"),
    ],
)
def test_agents_go_on_and_all_else_fails_where_nobody_said_so(kind: str, written: str | None, holds: str) -> None:
    assert on_interrupt_of(Rules(on_interrupt=written), {"kind": kind}) == holds  # type: ignore[arg-type]


def test_work_before_an_interruption_is_no_lateness() -> None:
    run = held(started_at=LATER - 20 * SECOND)
    assert interrupt(run, session="s1", prompted=True).after.worked_for == timedelta(seconds=20)


def test_a_run_that_is_bound_to_a_session_goes_on_there_also_where_a_default_is_to_retry() -> None:
    rules = Rules(on_interrupt="retry")
    bound = {"kind": "agent", "session": {"use": "s1", "busy": "skip"}}
    free: dict[str, object] = {"kind": "agent"}
    assert [on_interrupt_of(rules, action) for action in (bound, free)] == ["resume", "retry"]
    step = interrupted(
        held(),
        rules,
        choice=on_interrupt_of(rules, bound),
        why="holder_died",
        now=LATER,
        ended_at=LATER,
        following=None,
        by="hld_b",
        agent={"session": "s1", "prompted": True},
    )
    assert kept(step)["resumes"] == "holder_died", "its prompt is not sent there once more"
