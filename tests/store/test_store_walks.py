"""Random walks of several holders and people over one file, with every guard and without."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from store_scene import (
    Scene,
    scene,
    without,
)
from store_walk import Walk, failures_told, tasks_of_all_kinds

from duly.core.reasons import ENDED, NO_START
from duly.errors import DulyError
from duly.store import steps, switches, tasks


@pytest.mark.parametrize("seed", range(10))
def test_whatever_several_holders_and_people_do_between_one_another_every_promise_is_kept(
    tmp_path: Path, seed: int
) -> None:
    with scene(tmp_path) as s:
        made = tasks_of_all_kinds(s)
        walk = Walk(s, seed)
        for _ in range(8):
            walk.take(15)
            assert s.faults() == [], (seed, walk.steps)
            for run in s.runs():
                assert (run.outcome is not None) == (run.ended_at is not None) == (run.state == "ended"), run
                known = {"skipped": NO_START, "succeeded": {None}}.get(run.outcome or "", ENDED)
                assert run.state != "ended" or run.reason in known, (seed, run)
        live = [(run.task, run.seat) for run in s.runs() if run.state in {"held", "parked"}]
        assert len(set(live)) == len(live)
        with s.store.read() as session:
            assert {task.definition.name for task in session.tasks.page()} == {"one", "two", "three"}
            for task in made:
                assert session.tasks.by_id(task.id) is not None, "a removed one keeps its row and its story"
                assert session.versions.read(task.id, 1) is not None
        for task in made:
            assert s.task(task.id).failures_in_a_row == failures_told(s, task.id), (seed, walk.steps)
        assert s.store.quick_check() == "ok"


def weaken(s: Scene, guard: str, stack: ExitStack, patched: pytest.MonkeyPatch) -> None:
    """Take one guard away for a while."""
    match guard:
        case "cursor":
            s.sql("DROP INDEX runs_occurrence")
            stack.enter_context(without(tasks.PLANNED, "tasks.planned_until_us = v.was_planned_until_us"))
            stack.enter_context(without(tasks.PLANNED, "tasks.planned_until_us <= v.planned_until_us"))
        case "version, holder and fence":
            for condition in (
                "runs.version = v.was_version",
                "runs.state = v.was_state",
                "runs.holder IS v.was_holder",
                "runs.fence = v.was_fence",
            ):
                for batch in (steps.STEP, steps.END):
                    stack.enter_context(without(batch, condition))
        case "fence":
            stack.enter_context(without(tasks.RAISE_FENCE, '(tasks.fence + v."by")', 'v."by"'))
        case "plan first":
            patched.setattr(switches, "bring_up_to_now", lambda _session, task: task)
            patched.setattr(switches, "owed", lambda *_given: None)
        case _:
            raise AssertionError(guard)


@pytest.mark.parametrize("guard", ["cursor", "version, holder and fence", "fence", "plan first"])
def test_the_same_walks_find_each_guard_that_is_taken_away(
    tmp_path: Path, guard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(20):
        (tmp_path / str(seed)).mkdir()
        with scene(tmp_path / str(seed)) as s, ExitStack() as stack, monkeypatch.context() as patched:
            tasks_of_all_kinds(s)
            weaken(s, guard, stack, patched)
            walk = Walk(s, seed)
            try:
                walk.take(60)
            except (DulyError, AssertionError):
                return
            if s.faults():
                return
    raise AssertionError(f"no walk noticed that {guard} was missing")
