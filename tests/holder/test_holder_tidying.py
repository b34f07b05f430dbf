"""What those who died left in the run folder: cleared at a life's start, after each death, and every hour."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from holder_scene import Stage, until_idle

from duly.clock import monotonic_s, pause
from duly.holder.holder import Holder
from duly.holder.presence import Presence
from duly.holder.tidying import Tidier

TRACES = ("begun", "lock", "exit", "log")


def traces(stage: Stage, run: str, fence: int) -> Path:
    """Leave what an attempt leaves in the run folder."""
    folder = stage.store.run_folder / "attempts" / f"{run}.{fence}"
    folder.mkdir(parents=True)
    for name in TRACES:
        (folder / name).touch()
    return folder


def one_that_ended(stage: Stage) -> tuple[Holder, str]:
    """A holder at work, and a run of its that has ended."""
    holder = stage.holder()
    stage.add("a", "once in 1m")
    stage.script.over.set()
    stage.clock.pass_(timedelta(minutes=1))
    until_idle(holder)
    until(holder, lambda: [run.state for run in stage.read().runs] == ["ended"])
    [run] = stage.read().runs
    return holder, run.id


def until(holder: Holder, is_so: Callable[[], bool]) -> None:
    """Let the holder step until it is so."""
    end_s = monotonic_s() + 20
    while not is_so():
        assert monotonic_s() < end_s
        holder.step()
        pause(0.01)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_what_a_holder_that_died_after_its_last_commit_left_in_the_run_folder_is_cleared(stage: Stage) -> None:
    _, run = one_that_ended(stage)
    over, lives = traces(stage, run, 1), traces(stage, run, 2)
    assert Tidier(stage.store).step() == 1
    assert names(over) == {"log"}
    assert names(lives) == set(TRACES)


def test_what_another_host_ended_is_cleared_within_the_hour_by_a_holder_that_lives_on(stage: Stage) -> None:
    holder, run = one_that_ended(stage)
    over = traces(stage, run, 1)
    died = Presence(stage.store.run_folder, "hld_died_before_it_entered")
    died.release()
    stage.clock.pass_(timedelta(hours=1))
    until(holder, lambda: names(over) == {"log"})
    assert not died.path.exists()


def test_a_holder_looks_at_its_start_after_each_death_and_every_hour(stage: Stage) -> None:
    tidier = Tidier(stage.store)
    assert [tidier.is_due(0), tidier.is_due(0)] == [True, False]
    assert [tidier.is_due(1), tidier.is_due(1)] == [True, False]
    stage.clock.pass_(timedelta(minutes=59))
    assert not tidier.is_due(1)
    stage.clock.pass_(timedelta(minutes=1))
    assert [tidier.is_due(1), tidier.is_due(1)] == [True, False]
