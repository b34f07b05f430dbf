"""One calamity at a time: what must hold under each, whatever the moment."""

import contextlib
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from chaos_checks import (
    check_ends,
    check_every_second,
    check_idle,
    check_nothing_left,
    check_records,
    check_verified,
    check_witness,
)
from chaos_scene import KEEPER, NURSERY, Arena, Served, state_of, wait_for

from duly.clock import monotonic_s, now, pause, to_us
from duly.runners import keeping, processes

T = TypeVar("T", bound=Callable[..., None])
WAITING_SHARE = 0.2  # of a core, while somebody else has the write lock
HOLDINGS = "SELECT id, state, outcome, version, attempt, fence, holder, claim_token FROM runs WHERE id = ?"


def calamity(test: T) -> T:
    """Mark a test that takes long and is asked for by DULY_CHAOS_SECONDS, as the long storm is."""
    asked = "DULY_CHAOS_SECONDS" in os.environ
    skipping: T = pytest.mark.skipif(not asked, reason="takes long: asked for by DULY_CHAOS_SECONDS")(test)
    marked: T = pytest.mark.slow(skipping)
    return marked


def begin_long(arena: Arena, *flags: str, tenths: int = 3000) -> tuple[str, int]:
    """Add a work that goes on for long, ask for it, and give its run and its process once it has begun."""
    arena.add("long", *flags, tenths=tenths, when="manual")
    arena.duly("run", "long")
    said = wait_for(lambda: arena.said("B"))[0]
    return said.run, said.pid


def freeze_inside_a_write(arena: Arena, one: Served) -> None:
    """Stop a server while it has the store's write lock."""
    until = monotonic_s() + 60
    while True:
        one.send(signal.SIGSTOP)
        wait_for(lambda: state_of(one.pid) in "Tt")
        if arena.is_locked():
            return
        one.send(signal.SIGCONT)
        assert monotonic_s() < until, "it was never met inside a write"
        pause(0.001)


def end_all(arena: Arena, *, retrying: tuple[str, ...] = (), steady: tuple[str, ...] = ()) -> None:
    """Bring everything to its end and check all that can be checked."""
    arena.stop()
    check_ends(arena)
    check_witness(arena, retrying)
    check_records(arena)
    for task in steady:
        check_every_second(arena, task)
    check_verified(arena)
    check_nothing_left(arena)


@calamity
def test_a_server_frozen_inside_a_write_stops_the_others_for_no_longer_than_its_lease_and_they_live_on(
    arena: Arena,
) -> None:
    for number in range(4):
        arena.add(f"steady{number}")
    frozen = arena.serve()
    wait_for(lambda: arena.said("E"))
    freeze_inside_a_write(arena, frozen)
    began = len(arena.said("B"))
    others = [arena.serve(ready=False) for _ in range(2)]
    wait_for(lambda: len(arena.said("B")) > began + 4, 45, arena.errors)
    assert [one.lives for one in others] == [True, True], arena.errors()
    frozen.killed = True  # who is stopped inside a write, past its lease, is killed by the others
    arena.duly("pause", "--all")
    arena.settle()
    end_all(arena)


@calamity
def test_a_write_lock_held_past_every_trust_ends_the_work_it_must_and_no_server(arena: Arena) -> None:
    arena.add("steady")
    for _ in range(2):
        arena.serve()
    wait_for(lambda: arena.said("E"))
    with arena.locked():
        pause(22)
        assert [one.lives for one in arena.served] == [True, True], arena.errors()
        check_idle(arena, WAITING_SHARE)
    wait_for_more(arena, 2)
    arena.duly("pause", "--all")
    arena.settle()
    end_all(arena, steady=("steady",))


@calamity
def test_servers_started_and_stopped_in_the_same_instant_leave_nothing(arena: Arena) -> None:
    arena.add("steady")
    arena.serve(drain="0s")
    for number in range(16):
        one = arena.serve(ready=False, drain="0s")
        pause(0.25 + 0.06 * number)
        one.send(signal.SIGTERM if number % 3 else signal.SIGKILL)
    for one in arena.served[1:]:
        one.process.wait(60)
    arena.duly("pause", "--all")
    arena.settle()
    wait_for(lambda: len(list((arena.run_folder / "holders").iterdir())) == 1, 20, lambda: left(arena))
    end_all(arena, steady=("steady",))


def left(arena: Arena) -> list[object]:
    return [*(arena.run_folder / "holders").iterdir(), arena.rows("SELECT id, state FROM holders")]


@calamity
def test_with_server_nursery_and_keeper_killed_at_once_the_work_has_ended_before_anything_starts(
    arena: Arena,
) -> None:
    first = arena.serve()
    run, pid = begin_long(arena, "--on-interrupt", "retry")
    first.send(signal.SIGKILL)
    for one in arena.ours(NURSERY, KEEPER):
        processes.send(one, signal.SIGKILL)
    assert state_of(pid)
    arena.serve()
    wait_for(lambda: arena.rows("SELECT 1 FROM runs WHERE id = ? AND state = 'ended'", run), told=arena.errors)
    assert state_of(pid) in ("", "Z")
    assert arena.rows("SELECT outcome, reason FROM runs WHERE id = ?", run) == [("abandoned", "end_not_confirmed")]
    end_all(arena)


@calamity
def test_a_server_frozen_together_with_its_keepers_and_nursery_is_succeeded_and_changes_nothing_when_woken(
    arena: Arena,
) -> None:
    frozen = arena.serve()
    run, pid = begin_long(arena, "--on-interrupt", "retry", tenths=3000)
    stopped = arena.ours(NURSERY, KEEPER)
    frozen.send(signal.SIGSTOP)
    for one in stopped:
        processes.send(one, signal.SIGSTOP)
    arena.serve()
    ended_or_again = "SELECT 1 FROM runs WHERE id = ? AND (state = 'ended' OR attempt = 2)"
    wait_for(lambda: arena.rows(ended_or_again, run), told=arena.errors)
    assert state_of(pid) in ("", "Z")
    wait_for(lambda: arena.rows("SELECT 1 FROM runs WHERE state = 'ended'") or len(arena.said("B")) == 2)
    before = arena.rows(HOLDINGS, run)
    for one in stopped:
        processes.send(one, signal.SIGCONT)
    frozen.send(signal.SIGCONT)
    lost = "SELECT 1 FROM ledger WHERE kind = 'fence_lost' AND holder = ?"
    wait_for(lambda: arena.rows(lost, frozen.holder), told=arena.errors)
    assert arena.rows(HOLDINGS, run) == before
    arena.duly("cancel", run, codes=(0, 3))
    arena.settle()
    end_all(arena, retrying=("long",))


def succeed(arena: Arena, frozen: Served) -> Served:
    """Freeze a server while it has work that was just begun; give its successor, once the frozen one has left."""
    since_us = to_us(now())
    held = "SELECT 1 FROM runs WHERE state = 'held' AND holder = ? AND started_us > ?"
    wait_for(lambda: len(arena.rows(held, frozen.holder, since_us)) >= 2, told=arena.errors)
    wait_for(lambda: len([one for one in arena.said("B") if one.at_ns > since_us * 1000]) >= 2, told=arena.errors)
    frozen.send(signal.SIGSTOP)
    second = arena.serve(ready=False)
    taken = "SELECT 1 FROM ledger WHERE kind = 'taken_over' AND holder = ?"
    wait_for(lambda: second.holder and arena.rows(taken, second.holder), told=arena.errors)
    pause(1)
    frozen.send(signal.SIGCONT)
    frozen.send(signal.SIGTERM)
    frozen.process.wait(60)
    return second


@calamity
def test_a_frozen_server_is_succeeded_while_many_of_its_works_run_and_none_of_them_overlaps(arena: Arena) -> None:
    tasks = tuple(f"long{number}" for number in range(4))
    for name in tasks:
        arena.add(name, "--on-interrupt", "retry", tenths=90)
    frozen = arena.serve()
    for _ in range(2):
        frozen = succeed(arena, frozen)
    arena.duly("pause", "--all")
    arena.settle()
    end_all(arena, retrying=tasks, steady=tasks)


@calamity
@pytest.mark.parametrize("what", ["folder", "attempts", "mark", "lock", "exit-to-be"])
def test_with_its_files_deleted_under_it_no_work_gets_a_second_beside_it(arena: Arena, what: str) -> None:
    first = arena.serve()
    run, pid = begin_long(arena, "--on-interrupt", "retry", tenths=120)
    attempt = next((arena.run_folder / "attempts").iterdir())
    if what == "folder":
        shutil.rmtree(arena.run_folder)
    elif what == "attempts":
        shutil.rmtree(arena.run_folder / "attempts")
    else:
        names = {"mark": ["begun"], "lock": ["lock"], "exit-to-be": ["begun", "lock"]}[what]
        for name in names:
            (attempt / name).unlink()
    first.send(signal.SIGKILL)
    arena.serve()
    gone_or_again = "SELECT 1 FROM runs WHERE id = ? AND (state = 'ended' OR attempt = 2)"
    wait_for(lambda: arena.rows(gone_or_again, run), told=arena.errors)
    arena.duly("cancel", run, codes=(0, 3, 4))
    arena.settle()
    wait_for(lambda: state_of(pid) in ("", "Z"), 30, "the work was left running for ever")
    arena.stop()
    check_witness(arena, ("long",))
    check_verified(arena)
    wait_for(lambda: not arena.ours(), told=arena.ours)


def test_a_run_folder_made_anew_by_a_server_is_as_private_as_the_first(arena: Arena) -> None:
    arena.serve()
    arena.add("steady")
    wait_for(lambda: arena.said("E"))
    assert arena.run_folder.stat().st_mode & 0o777 == 0o700
    shutil.rmtree(arena.run_folder)
    wait_for(arena.run_folder.exists, told=arena.errors)
    assert arena.run_folder.stat().st_mode & 0o777 == 0o700
    assert (arena.run_folder / "attempts").stat().st_mode & 0o777 == 0o700


@calamity
@pytest.mark.skipif(os.geteuid() != 0, reason="a disk of its own is mounted by root only")
def test_a_full_disk_costs_runs_and_no_server_and_what_began_is_on_record_once_there_is_room(arena: Arena) -> None:
    disk = arena.mount(3)
    arena.add("steady")
    loud = "head -c 400000 /dev/zero | tr '\\0' x; exit 0"
    arena.duly("add", "loud", "--when", "* * * * * *", "--shell", loud)
    for _ in range(2):
        arena.serve()
    for _ in range(3):
        wait_for(lambda: len(arena.said("E")) > 2, told=arena.errors)
        fill(disk)
        pause(6)
        assert [one.lives for one in arena.served] == [True, True], arena.errors()
        (disk / "ballast").unlink()
        wait_for_more(arena, 2, lambda: drop_logs(disk))
    pause_all(arena, lambda: drop_logs(disk))
    arena.settle()
    check_idle(arena)
    arena.stop()
    check_ends(arena)
    check_witness(arena, ())
    check_every_second(arena, "steady")
    check_verified(arena)
    wait_for(lambda: not arena.ours(), told=arena.ours)


def wait_for_more(arena: Arena, number: int, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Wait until more works than so many have begun from now on, doing something else meanwhile."""
    began = len(arena.said("B"))

    def have_begun() -> bool:
        meanwhile()
        return len(arena.said("B")) > began + number

    wait_for(have_begun, told=arena.errors)


def pause_all(arena: Arena, meanwhile: Callable[[], object]) -> None:
    """Pause everything, tried again while the store is away."""

    def has_paused() -> bool:
        meanwhile()
        return arena.duly("pause", "--all", codes=(0, 5)).returncode == 0

    wait_for(has_paused, told=arena.errors)
    meanwhile()


def fill(disk: Path) -> None:
    """Write until there is no room, to the last byte."""
    with (disk / "ballast").open("ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue


def drop_logs(disk: Path) -> None:
    """Take away the logs that the loud work has left, for it fills the disk by itself."""
    for log in (disk / "duly.db.run" / "attempts").glob("*/log"):
        with contextlib.suppress(FileNotFoundError):
            if log.stat().st_size > 100_000:
                log.unlink()


@calamity
def test_a_cancel_asked_while_nobody_held_on_is_obeyed_by_who_takes_the_work_over(arena: Arena) -> None:
    first = arena.serve()
    run, pid = begin_long(arena)
    first.send(signal.SIGKILL)
    first.process.wait()
    arena.duly("cancel", run)
    arena.serve(lease="100s")
    wait_for(lambda: state_of(pid) in ("", "Z"), 15, arena.errors)
    arena.settle()
    assert arena.rows("SELECT outcome, reason FROM runs") == [("cancelled", "cancelled_by_hand")]
    end_all(arena)


def test_work_ends_when_its_servers_trust_is_over_even_though_the_store_answers_nobody(arena: Arena) -> None:
    arena.serve()
    run, pid = begin_long(arena)
    with arena.locked():
        began_s = monotonic_s()
        wait_for(lambda: state_of(pid) in ("", "Z"), 12, arena.errors)
        assert monotonic_s() - began_s > 2, "the lease was still trusted"
    arena.settle()
    assert arena.rows("SELECT outcome, reason FROM runs WHERE id = ?", run) == [("abandoned", "lease_lost")]
    end_all(arena)


@calamity
def test_a_start_under_way_when_its_server_froze_is_forbidden_for_ever_and_its_successor_starts_once(
    arena: Arena,
) -> None:
    frozen = arena.serve()
    arena.add("first", when="manual")
    arena.duly("run", "first", "--wait")
    [nursery] = arena.ours(NURSERY)
    idle = arena.ours(KEEPER)
    for one in [nursery, *idle]:
        processes.send(one, signal.SIGSTOP)
    arena.add("late", "--on-interrupt", "retry", tenths=80, when="manual")
    arena.duly("run", "late")
    wait_for(lambda: arena.rows("SELECT 1 FROM runs WHERE state = 'held'"), told=arena.errors)
    pause(0.3)
    frozen.send(signal.SIGSTOP)
    arena.serve()
    wait_for(lambda: [one for one in arena.said("B") if one.task == "late"], told=arena.errors)
    for one in [nursery, *idle]:
        processes.send(one, signal.SIGCONT)
    # Its server still sleeps, and so does its guard: what keeps the start from being made now is the mark alone.
    pause(1)
    frozen.send(signal.SIGCONT)
    arena.settle()
    assert [(one.attempt, one.what) for one in arena.said("B", "O") if one.task == "late"] == [(2, "B")]
    run = arena.rows("SELECT outcome, attempt FROM runs WHERE attempt = 2")
    assert run == [("succeeded", 2)]
    end_all(arena)


@calamity
def test_a_killed_server_that_its_parent_has_not_reaped_is_dead_to_its_siblings_at_once(arena: Arena) -> None:
    first = arena.serve(lease="100s")
    begin_long(arena, tenths=150)
    second = arena.serve(lease="100s")
    first.send(signal.SIGKILL)
    wait_for(lambda: state_of(first.pid) == "Z")
    taken = "SELECT 1 FROM ledger WHERE kind = 'taken_over' AND holder = ?"
    wait_for(lambda: arena.rows(taken, second.holder), 15, arena.errors)
    assert state_of(first.pid) == "Z"
    arena.settle()
    end_all(arena)


@calamity
def test_a_woken_server_that_still_writes_orders_ends_no_work_that_another_has_adopted(arena: Arena) -> None:
    first = arena.serve()
    run, pid = begin_long(arena, tenths=150)
    [attempt] = (arena.run_folder / "attempts").iterdir()
    first.send(signal.SIGKILL)
    second = arena.serve()
    wait_for(lambda: getattr(keeping.look(attempt), "holder", None) == second.holder, told=arena.errors)
    # What the former holder would have written in its last moment, had it only been frozen.
    fence = int(attempt.name.rpartition(".")[2])
    assert keeping.send_end(attempt, holder=str(first.holder), fence=fence, how="kill")
    arena.settle()
    assert arena.rows("SELECT outcome FROM runs WHERE id = ?", run) == [("succeeded",)]
    end_all(arena)
