"""Stress: very many short commands, a server that stands still inside C, a disk that is full at a bad moment."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from chaos_checks import check_ends, check_nothing_left, check_verified
from chaos_scene import Arena, Served, descriptors, threads, wait_for
from test_chaos_promises import begin_long, calamity, end_all, fill, pause_all

from duly.clock import monotonic_s, pause
from duly.operations import filling
from duly.runners import processes
from duly.store import Store

COMMANDS = int(os.environ.get("DULY_STRESS_COMMANDS", "250"))
FIRST = 60
"""After so many a server has all that it keeps."""
SECOND = timedelta(seconds=1)
SLACK = 3
STUCK_S = 14.0  # past the lease of 6 s, and past what a beat's patience makes of it


def fill_past(arena: Arena, task: str, number: int) -> None:
    """Ask for so many runs of the past at once, without a process for each."""
    last = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    store = Store.open(arena.place, arena.env)
    try:
        filled = filling.backfill(store, task, filling.Ask(first=last - (number - 1) * SECOND, last=last), by="test")
        assert len(filled.runs) == number
    finally:
        store.close()


def ended(arena: Arena) -> int:
    return int(arena.rows("SELECT count(*) FROM runs WHERE state = 'ended' AND opened_by = 'backfill'")[0][0])


def family(one: Served) -> list[processes.Process]:
    """A server, its nursery and all below them, zombies among them."""
    table = processes.table()
    found, layer = [], {one.pid}
    while layer:
        children = [each for each in table.values() if each.parent in layer]
        found += children
        layer = {each.pid for each in children}
    return found


def sizes(one: Served) -> tuple[int, int, int]:
    """Descriptors and threads of a server, and the processes below it."""
    return descriptors(one.pid), threads(one.pid), len(family(one))


def memory_kb(pid: int) -> int:
    return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0])


def test_very_many_short_commands_leave_no_descriptor_thread_zombie_or_file(arena: Arena) -> None:
    arena.duly("add", "short", "--when", "* * * * * *", "--seats", "6", "--", "true")
    arena.duly("disable", "short")
    one = arena.serve("--slots", "6")
    fill_past(arena, "short", FIRST)
    wait_for(lambda: ended(arena) >= FIRST, told=arena.errors)
    pause(1)
    before, kept_kb = sizes(one), memory_kb(one.pid)
    arena.duly("add", "again", "--when", "* * * * * *", "--seats", "6", "--", "true")
    arena.duly("disable", "again")
    fill_past(arena, "again", COMMANDS)
    wait_for(lambda: ended(arena) >= FIRST + COMMANDS, within_s=60 + COMMANDS / 5, told=arena.errors)
    most = [number + SLACK for number in before]
    wait_for(lambda: all(now <= wanted for now, wanted in zip(sizes(one), most, strict=True)), told=lambda: sizes(one))
    assert not [each for each in family(one) if each.state in processes.DEAD]
    assert memory_kb(one.pid) <= kept_kb + 16_384, "16 MB more at most, however many"
    filled = arena.rows("SELECT DISTINCT outcome, exit_code FROM runs WHERE opened_by = 'backfill'")
    assert filled == [("succeeded", 0)]
    arena.settle()
    assert len(list((arena.run_folder / "attempts").iterdir())) == 0
    arena.stop()
    check_ends(arena)
    check_verified(arena)
    check_nothing_left(arena)


STUCK = f"""
import ctypes, os, pathlib
def stuck():
    home = pathlib.Path(os.environ["HOME"])
    (home / "stuck").touch()
    ctypes.PyDLL(None).usleep({int(STUCK_S * 1e6)})  # a PyDLL keeps the lock of the interpreter
    (home / "free").touch()
"""


@calamity
def test_a_server_that_a_call_into_c_holds_past_its_lease_is_succeeded_and_changes_nothing_when_it_is_free(
    arena: Arena,
) -> None:
    (arena.home / "stucking.py").write_text(STUCK)
    arena.env["PYTHONPATH"] = os.pathsep.join(filter(None, (str(arena.home), arena.env["PYTHONPATH"])))
    first = arena.serve()
    run, pid = begin_long(arena, "--on-interrupt", "fail")
    arena.duly("add", "stuck", "--when", "manual", "--call", "stucking:stuck", "--in", "thread")
    arena.duly("run", "stuck")
    wait_for((arena.home / "stuck").exists)
    began_s = monotonic_s()
    second = arena.serve()
    wait_for(lambda: arena.rows("SELECT 1 FROM runs WHERE id = ? AND holder = ?", run, second.holder), within_s=STUCK_S)
    assert not (arena.home / "free").exists(), "it is taken over while the other stands still"
    wait_for(lambda: (found := processes.read(pid)) is None or found.state in processes.DEAD, told=arena.errors)
    wait_for((arena.home / "free").exists)
    assert monotonic_s() - began_s >= STUCK_S - 2
    wait_for(lambda: not arena.unended(), told=arena.unended)
    [(outcome, reason)] = arena.rows("SELECT outcome, reason FROM runs WHERE id = ?", run)
    assert (outcome, reason) == ("abandoned", "lease_lost")
    assert first.lives or first.process.returncode == 0 or "forgotten" in first.log.read_text()
    if not first.lives:
        first.killed = True  # others took it for over; a supervisor starts the next
    end_all(arena, retrying=())


@calamity
@pytest.mark.skipif(os.geteuid() != 0, reason="a disk of its own is mounted by root only")
@pytest.mark.parametrize("moment", ["before a claim", "during output", "before completion"])
def test_a_disk_that_is_full_at_any_moment_of_a_run_costs_no_server_and_no_outcome(arena: Arena, moment: str) -> None:
    disk = arena.mount(4)
    go = arena.home / "go"
    line = {
        "before a claim": "echo out",
        "during output": f"echo out; touch {arena.home}/at; until test -e {go}; do sleep 0.1; echo more; done",
        "before completion": f"echo out; touch {arena.home}/at; until test -e {go}; do sleep 0.1; done; exit 0",
    }[moment]
    arena.duly("add", "one", "--when", "manual", "--shell", line)
    server = arena.serve()
    if moment == "before a claim":
        arena.duly("run", "one")
        fill(disk)
    else:
        arena.duly("run", "one")
        wait_for((arena.home / "at").exists, told=arena.errors)
        fill(disk)
        go.touch()
    pause(4)
    assert server.lives, arena.errors()
    (disk / "ballast").unlink()
    arena.settle()
    assert arena.rows("SELECT DISTINCT state, outcome FROM runs") == [("ended", "succeeded")], arena.errors()
    pause_all(arena, lambda: None)
    arena.stop()
    check_ends(arena)
    check_verified(arena)
    wait_for(lambda: not arena.ours(), told=arena.ours)
