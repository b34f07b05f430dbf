"""Duly's own events as values: what they tell, what they came through, and the cycles that definitions alone show."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from event_values import NOW, event, task
from hypothesis import given, settings
from hypothesis import strategies as st

from duly.core import events, own_events
from duly.core.own_events import Listener
from duly.core.run import Entry, Run
from duly.core.triggers import On


def listener(name: str, *wheres: dict[str, str], source: str = "duly.run.ended", project: str = "default") -> Listener:
    triggers = tuple(On(source=source, match=tuple(sorted(where.items()))) for where in wheres)
    return Listener(id=f"tsk_{name}", name=name, project=project, triggers=triggers)


def after(name: str, *before: str) -> Listener:
    return listener(name, *({"task": one} for one in before))


@pytest.mark.parametrize(
    ("of", "others", "found"),
    [
        (after("a", "a"), [], ("a", "a")),
        (after("a", "A"), [], ("a", "a")),
        (after("a", "b"), [after("b", "a")], ("a", "b", "a")),
        (after("a", "c"), [after("b", "a"), after("c", "b")], ("a", "b", "c", "a")),
        (after("a", "x", "c"), [after("b", "a"), after("c", "b")], ("a", "b", "c", "a")),
        (after("a", "b"), [after("b", "c"), after("c")], None),
        (after("a", "b"), [after("b", "b2")], None),
        (after("c", "a", "b"), [after("b", "a"), after("a")], None),
        (listener("a", {"task_id": "tsk_a"}), [], ("a", "a")),
        (listener("a", {"task": "a", "outcome": "failed"}), [], ("a", "a")),
        (listener("a", {"task": "a"}, source="duly.run.abandoned"), [], ("a", "a")),
        (listener("a", {"task": "a", "project": "other"}), [], None),
        (listener("a", {"task": "a", "project": "default"}), [], ("a", "a")),
        (listener("a", {"task": "a"}, source="duly.missed"), [], None),
        (listener("a", {"project": "default"}), [], None),
        (listener("a", {"outcome": "failed"}), [], None),
        (listener("a", {}), [listener("b", {})], None),
    ],
)
def test_a_cycle_is_found_where_tasks_name_each_other_and_not_where_they_listen_to_all(
    of: Listener, others: list[Listener], found: tuple[str, ...] | None
) -> None:
    assert own_events.cycle(of, others) == found


@given(st.integers(2, 6), st.data())
@settings(max_examples=200, deadline=None)
def test_a_cycle_is_found_if_and_only_if_following_the_ends_comes_back(count: int, data: st.DataObject) -> None:
    names = [f"t{n}" for n in range(count)]
    edges = data.draw(st.sets(st.tuples(st.sampled_from(names), st.sampled_from(names))))
    # As in a store: all but the one that is written were without a cycle when they were written.
    others = [after(name, *(one for one, other in edges if other == name)) for name in names[1:]]
    of = after(names[0], *(one for one, other in edges if other == names[0]))
    reached, left = set[str](), [names[0]]
    while left:
        here = left.pop()
        fresh = {other for one, other in edges if one == here} - reached
        reached |= fresh
        left += fresh
    found = own_events.cycle(of, others)
    assert (found is not None) == (names[0] in reached)
    if found is not None:
        assert found[0] == found[-1] == names[0]
        assert all(pair in edges for pair in pairwise(found))


def ended(outcome: str = "failed", **changes: object) -> Run:
    run = Run(
        id="run_1",
        task="tsk_1",
        occurrence="at:x",
        due_at=NOW,
        opened_at=NOW,
        opened_by="schedule",
        state="ended",
        outcome=outcome,  # type: ignore[arg-type]
        reason="exit_status",
        not_before=NOW,
        definition_version=1,
        started_at=NOW + timedelta(seconds=1),
        ended_at=NOW + timedelta(seconds=3),
        exit_code=3,
    )
    return replace(run, **changes)  # type: ignore[arg-type]


def test_the_end_of_a_run_is_told_with_what_one_asks_of_it_and_came_through_its_task() -> None:
    (own,) = own_events.of_run(ended(), task("manual", name="backup"), ())
    assert (own.source, own.key, own.through) == ("duly.run.ended", "run_1", ("tsk_1",))
    told = {"task": "backup", "task_id": "tsk_1", "project": "default", "run": "run_1", "outcome": "failed"}
    told |= {"reason": "exit_status", "due_at": "2026-12-01T08:00:00Z", "ended_at": "2026-12-01T08:00:03Z"}
    assert own.body.items() >= {**told, "exit_code": 3, "opened_by": "schedule"}.items()


def test_an_abandoned_run_is_told_twice_and_each_came_through_all_before_it() -> None:
    owns = own_events.of_run(ended("abandoned"), None, ("tsk_0",))
    assert [own.source for own in owns] == ["duly.run.ended", "duly.run.abandoned"]
    assert {own.through for own in owns} == {("tsk_0", "tsk_1")}
    assert own_events.of_run(ended(), None, ("tsk_1", "tsk_0"))[0].through == ("tsk_1", "tsk_0")


@pytest.mark.parametrize(
    ("entry", "source", "told"),
    [
        (
            Entry(kind="missed", at=NOW, task="tsk_1", reason="stale", count=3, details={"missed": "mis_1"}),
            "duly.missed",
            {"task": "t", "reason": "stale", "count": 3, "missed": "mis_1"},
        ),
        (
            Entry(kind="paused", at=NOW, task="tsk_1", by="me", details={"scope": "task", "note": "why"}),
            "duly.task.paused",
            {"task": "t", "by": "me", "note": "why"},
        ),
        (
            Entry(kind="unpaused", at=NOW, by="me", details={"scope": "project", "target": "ops"}),
            "duly.project.unpaused",
            {"task": None, "project": "ops"},
        ),
        (Entry(kind="paused", at=NOW, details={"scope": "store"}), "duly.store.paused", {"task": None}),
        (Entry(kind="removed", at=NOW, task="tsk_1", by="me"), "duly.task.removed", {"task": "t"}),
        (Entry(kind="holder_ended", at=NOW, holder="hld_1"), "duly.holder.ended", {"holder": "hld_1"}),
    ],
)
def test_what_the_ledger_is_told_of_a_task_is_told_to_listeners(
    entry: Entry, source: str, told: dict[str, object]
) -> None:
    assert own_events.may_tell(entry)
    own = own_events.of_entry(entry, task("manual") if entry.task else None)
    assert own.source == source
    assert own.source in own_events.SOURCES
    assert own.body.items() >= told.items()
    assert own.through == ()


def test_what_is_no_end_of_a_run_and_no_change_tells_nothing() -> None:
    for kind in ("opened", "claimed", "stretch", "returned", "taken_over", "swept", "cancel_asked"):
        assert not own_events.may_tell(Entry(kind=kind, at=NOW, task="tsk_1", run="run_1"))
    assert not own_events.may_tell(Entry(kind="skipped", at=NOW, task="tsk_1", reason="suppressed"))


def test_a_chain_of_ends_goes_through_ten_tasks_and_no_further() -> None:
    through: tuple[str, ...] = ()
    started = 0
    for number in range(20):
        own = own_events.of_run(ended(task=f"tsk_{number}"), None, through)[0]
        through = own.through
        following = task("on duly.run.ended", id_=f"tsk_{number + 1}")
        heard = event("duly.run.ended", through=through)
        verdict = events.judge(following, heard, {}, paused=False, until_of=lambda _: None)
        if not isinstance(verdict, events.Opens):
            break
        started += 1
    assert started == events.CHAIN_MOST - 1
    assert isinstance(verdict, events.PassedOver)
    assert verdict.details["most"] == events.CHAIN_MOST
