"""Pruning takes logs with their runs, a batch at a time, and whatever comes between."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from store_pruned import WEEK, prune, ran
from store_scene import DAY, HOUR, MINUTE, NINE, Scene, hourly, minutely, scene
from store_walk import Walk, tasks_of_all_kinds

from by_hand import statements, takes_the_lock
from duly.core.task import Task
from duly.holder.settling import Interrupted
from duly.operations import pruning
from duly.runners.folders import make_folder
from duly.store import pruning as rows


@pytest.fixture
def s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """A scene whose ids are made by its own clock, as on a machine that has lived through all of it."""
    with scene(tmp_path) as made:
        monkeypatch.setattr("duly.clock.now", lambda: made.clock.moment)
        yield made


def attempts(s: Scene) -> Path:
    s.store.run_folder.mkdir(exist_ok=True)
    return s.store.run_folder / "attempts"


def log(s: Scene, run: str, fence: int, *, aged: bool = True) -> Path:
    folder = attempts(s) / f"{run}.{fence}"
    make_folder(folder)
    (folder / "log").write_bytes(b"x" * 1000)
    if aged:
        os.utime(folder, (0, 0))
    return folder


def test_the_logs_of_pruned_runs_go_and_those_of_others_stay(s: Scene) -> None:
    s.add("one", hourly())
    ran(s, 3)
    old, older, newest = s.runs()
    gone = [log(s, old.id, 1, aged=False), log(s, old.id, 2), log(s, older.id, 3)]
    kept = [log(s, newest.id, 4), log(s, "run_of_a_store_to_come", 1, aged=False)]
    other = attempts(s) / "a-folder-of-somebody"
    other.mkdir()
    s.at(NINE + 10 * WEEK)
    counted = prune(s, take=False)
    done = prune(s)
    assert done == counted
    assert (done["logs"], done["log_bytes"]) == (3, 3000)
    assert not any(folder.exists() for folder in gone)
    assert all(folder.exists() for folder in [*kept, other])


def test_what_a_gate_left_in_a_folder_of_its_own_goes_with_its_run_and_is_counted(s: Scene) -> None:
    s.add("one", hourly())
    ran(s, 2)
    old, _ = s.runs()
    folder = log(s, old.id, 1)
    make_folder(folder / "gate")
    (folder / "gate" / "begun").write_bytes(b"y" * 50)
    (folder / "gate" / "log").write_bytes(b"z" * 7)
    os.utime(folder, (0, 0))
    s.at(NINE + 10 * WEEK)
    done = prune(s)
    assert (done["logs"], done["log_bytes"]) == (1, 1057)
    assert not folder.exists()


def test_a_log_that_an_interrupted_prune_left_goes_with_the_next_one(s: Scene) -> None:
    s.add("one", hourly())
    left = log(s, "run_pruned_before", 1)
    s.at(NINE + 10 * WEEK)
    assert prune(s)["logs"] == 1
    assert not left.exists()


def test_a_log_that_work_still_writes_stays(s: Scene) -> None:
    import fcntl

    left = log(s, "run_pruned_before", 1)
    with (left / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.utime(left, (0, 0))
        assert prune(s)["logs"] == 0
    os.utime(left, (0, 0))
    assert prune(s)["logs"] == 1


def test_many_rows_go_a_batch_at_a_time_so_that_nobody_waits_long(s: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "BATCH", 10)
    s.add("one", minutely())
    ran(s, 100, each=MINUTE)
    s.at(NINE + 10 * WEEK)
    with statements(s.store._line) as sent:
        counted = prune(s, take=False)
        assert not any(map(takes_the_lock, sent)), "counting takes no lock"
        assert prune(s) == counted
    assert counted["runs"] == 99
    assert sum(map(takes_the_lock, sent)) >= 10
    assert s.faults() == []


def test_a_prune_that_is_interrupted_leaves_every_promise_and_the_next_one_goes_on(
    s: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "BATCH", 10)
    s.add("one", minutely(), on_missed="skip")
    ran(s, 50, each=MINUTE)
    ran(s, 10, each=HOUR)
    s.at(NINE + 10 * WEEK)
    whole = rows.Pruning.delete_runs
    done: list[int] = []

    def breaks(self: rows.Pruning, ids_: list[str]) -> None:
        if len(done) == 2:
            raise OSError("the disk went away")
        whole(self, ids_)
        done.append(len(ids_))

    with monkeypatch.context() as patched:
        patched.setattr(rows.Pruning, "delete_runs", breaks)
        with pytest.raises(OSError, match="went away"):
            prune(s)
    assert len(s.runs()) == 60 - 20
    assert s.faults() == []
    prune(s)
    assert len(s.runs()) == 1
    assert s.faults() == []


class Pruned(Walk):
    """A walk in which somebody prunes now and then, and days may pass."""

    def do_pass_time(self, holder: str, store: object) -> None:
        super().do_pass_time(holder, self.s.store)
        if self.draw.random() < 0.2:
            self.s.clock.moment += self.draw.choice([DAY, 3 * DAY, 40 * DAY])

    def do_prune(self, _holder: str, _store: object) -> None:
        keep = self.draw.choice([HOUR, 12 * HOUR, 2 * DAY, 30 * DAY])
        counted = prune(self.s, keep, take=False)
        cutoff = self.s.clock.moment - max(keep, *(task.definition.rules.max_age for task in living(self.s)))
        young = {run.id for run in self.s.runs() if run.ended_at is None or run.ended_at >= cutoff}
        newest = {task.last_run for task in living(self.s)}
        assert prune(self.s, keep) == counted, self.steps
        left = {run.id for run in self.s.runs()}
        assert young <= left, self.steps
        assert {run for run in newest if run is not None} <= left, self.steps


def living(s: Scene) -> list[Task]:
    with s.store.read() as session:
        return session.tasks.page()


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_pruned_between_the_steps_of_holders_and_people_every_promise_is_kept(s: Scene, seed: int) -> None:
    tasks_of_all_kinds(s)
    s.add("four", hourly(), on_missed="offer", offer_for=DAY)
    walk = Pruned(s, seed)
    opened: set[tuple[str, str]] = set()
    for _ in range(10):
        walk.take(15)
        walk.do_prune("hld_0", s.store)
        assert s.faults() == [], (seed, walk.steps)
        known = {(run.task, run.occurrence) for run in s.runs() if run.opened_by != "manual"}
        again = {key for key in opened - walk_known(walk) if key in known}
        assert not again, (seed, again)
        walk.known = known  # type: ignore[attr-defined]
        opened |= known


def walk_known(walk: Walk) -> set[tuple[str, str]]:
    return getattr(walk, "known", set())


def test_what_a_holder_that_had_lost_a_run_says_after_the_run_was_pruned_is_no_fault(s: Scene) -> None:
    won = s.held("one")
    s.sql("UPDATE runs SET holder = 'hld_b'")
    taken = replace(won, run=replace(won.run, holder="hld_b"))
    s.settle(taken, Interrupted(why="holder_died", ended_at=s.clock.now()), holder="hld_b")
    ran(s, 2)
    s.at(NINE + 10 * WEEK)
    prune(s)
    assert won.run.id not in {run.id for run in s.runs()}
    s.settle(won)
    assert s.kinds()[-1] == "fence_lost"
    assert s.faults() == []
    s.at(NINE + 20 * WEEK)
    prune(s)
    assert "fence_lost" not in s.kinds()


def test_a_run_of_which_the_ledger_tells_more_than_that_is_a_fault_where_it_is_missing(s: Scene) -> None:
    s.add("one", hourly())
    ran(s, 24)
    s.at(s.clock.moment + WEEK - 12 * HOUR)
    prune(s)
    s.sql("DELETE FROM runs WHERE id = ?", s.runs()[3].id)
    assert "the ledger tells of a run that is not there" in {text for _, text in s.faults()}
