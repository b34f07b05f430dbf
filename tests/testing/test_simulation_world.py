"""The simulated world as users have it: what its page shows is run, and what its verbs say happens."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from duly.errors import Invalid
from duly.testing import BrokenPromise, Troubles, World
from duly.testing import __main__ as command

PAGE = Path(__file__).resolve().parents[2] / "docs" / "simulation.md"
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_what_the_page_of_the_simulation_shows_is_so(example: str) -> None:
    exec(compile(example, str(PAGE), "exec"), {"__name__": "example"})


def test_the_page_has_examples_to_run() -> None:
    assert len(EXAMPLES) == 2


def test_time_passes_only_by_the_worlds_verbs_and_work_ends_when_it_is_said_to() -> None:
    with World() as world:
        world.add("one", "every 10s")
        world.work("one", lasts=3 * SECOND, code=7)
        world.serve()
        began = world.now
        world.let_pass(25 * SECOND)
        assert world.now - began == 25 * SECOND
        assert [(run.outcome, run.exit_code) for run in world.runs("one")] == [("failed", 7), ("failed", 7)]
        spans = [(child.ended_us or 0) - child.begun_us for child in world.children()]
        assert spans == [3_000_000, 3_000_000]


def test_a_stopped_process_past_its_lease_loses_its_work_to_another_and_changes_nothing_when_it_wakes() -> None:
    with World() as world:
        world.add("one", "every 10s", on_interrupt="retry", overlap="queue")
        world.work("one", lasts=8 * SECOND)
        frozen = world.serve()
        assert frozen is not None
        world.let_pass(11 * SECOND)
        world.freeze(frozen, 60 * SECOND)
        other = world.serve()
        assert other is not None
        world.let_pass(75 * SECOND)
        first = world.runs("one")[0]
        assert (first.outcome, first.attempt) == ("succeeded", 1), "its work had ended, and its exit file says how"
        assert {child.holder for child in world.children()[1:3]} == {other.id}
        assert "taken_over" in [entry.kind for entry in world.entries()]
        assert [entry.kind for entry in world.entries()].count("fence_lost") == 1
        world.come_to_rest()


def test_a_process_that_is_asked_to_stop_hands_its_work_over_to_the_next() -> None:
    with World() as world:
        world.add("one", "every 30s")
        world.work("one", lasts=20 * SECOND)
        first = world.serve()
        assert first is not None
        world.let_pass(32 * SECOND)
        world.stop(first)
        world.let_pass(10 * SECOND)
        assert world.lives == ()
        assert world.runs("one")[0].handed_to is not None
        world.serve()
        world.let_pass(15 * SECOND)
        assert [(run.outcome, run.attempt) for run in world.runs("one")] == [("succeeded", 1)]


def test_the_same_seed_is_the_same_history_and_another_is_another() -> None:
    def story(seed: int) -> list[str]:
        with World(seed=seed, troubles=Troubles(between=0.2, lost=0.05, freeze=0.01)) as world:
            world.add("one", "every 5s")
            world.serve()
            world.serve()
            world.let_pass(MINUTE)
            return world.flow.story

    assert story(3) == story(3)
    assert story(3) != story(4)


def test_a_rule_that_means_nothing_is_refused_as_anywhere_else() -> None:
    with World() as world, pytest.raises(Invalid):
        world.add("one", "every 5s", overlap="sometimes")


def test_a_broken_promise_names_promise_seed_and_step_and_how_to_replay_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duly.testing.keepers.Keepers.forbid_start", lambda _self, _folder: True)
    with World(seed=9) as world:
        world.add("one", "every 10s")
        world.work("one", lasts=3 * SECOND)
        first = world.serve()
        assert first is not None
        world.let_pass(11 * SECOND)
        world.kill(first)
        world.let_pass(5 * SECOND)
        world.serve()
        with pytest.raises(BrokenPromise, match=r"P4: .*had begun\nseed 9, step \d+: make sim SEED=9") as told:
            world.let_pass(15 * SECOND)
        assert told.value.seed == 9
        assert "is killed" in str(told.value), "and the story up to it"


def test_a_world_in_memory_leaves_nothing_behind() -> None:
    with World() as world:
        folder = world.folder
        assert folder.exists()
    assert not folder.exists()


def test_the_command_plays_seeds_and_says_what_they_came_to(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seeds", "2", "--steps", "60", "--processes", "1"]) == 0
    assert re.search(r"2 seeds, \d+ turns, \d+ faults, \d+ runs in \d+ s: 0 broke a promise", capsys.readouterr().out)
    assert command.main(["--seed", "4", "--steps", "60"]) == 0
    assert "seed 4: every promise was kept" in capsys.readouterr().out
