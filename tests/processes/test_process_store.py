"""A store that is locked, gone, newer or full under processes that serve it.

What is about a file: that it is gone (a server says itself whether a database is there), and who stands inside a write
and blocks all (a server ends such a transaction after ten seconds).
"""

import signal
import subprocess
import sys

import pytest
from process_scene import Place, wait_for

from by_hand import locked
from duly.clock import pause


def test_a_write_lock_held_for_six_seconds_by_another_program_loses_nothing(place: Place) -> None:
    place.serve()
    place.duly("add", "a", "--when", "* * * * * *", "--", "true")
    wait_for(lambda: place.rows("SELECT 1 FROM runs WHERE outcome = 'succeeded'"))
    with locked(place.address):
        pause(6)
        before = place.rows("SELECT count(*) FROM runs")[0][0]
    wait_for(lambda: place.rows("SELECT count(*) FROM runs WHERE outcome = 'succeeded'")[0][0] > before + 2)
    assert not place.rows("SELECT 1 FROM runs WHERE outcome NOT IN ('succeeded', 'skipped')")
    place.duly("pause", "--all")
    assert place.duly("verify").returncode == 0


@pytest.mark.file("vanished")
def test_a_store_that_vanishes_is_an_error_and_never_comes_back_empty(place: Place) -> None:
    process = place.serve(lease="5s")
    for name in ("duly.db", "duly.db-wal", "duly.db-shm"):
        (place.home / name).unlink(missing_ok=True)
    assert process.wait(60) == 5
    assert not place.store.exists()
    listed = place.duly("list", check=False)
    assert listed.returncode == 5
    assert "gone" in listed.stderr
    assert place.duly("add", "a", "--when", "every 1h", "--", "true", check=False).returncode == 5
    assert not place.store.exists()
    place.duly("init")
    place.duly("add", "a", "--when", "every 1h", "--", "true")


def test_a_store_taken_over_by_a_newer_version_stops_a_running_holder_and_every_command(place: Place) -> None:
    process = place.serve()
    place.write("UPDATE meta SET value = '99.0' WHERE key = 'lowest_version'")
    assert process.wait(60) == 5
    for words in (["list"], ["status"], ["add", "a", "--when", "every 1h", "--", "true"]):
        done = place.duly(*words, check=False)
        assert done.returncode == 5
        assert "99.0" in done.stderr


FROZEN_WRITER = """
import os, signal, sys
from duly.app import service
from duly.store import Store
from duly.store.address import Address
from pathlib import Path

path = Path(sys.argv[1])
whole = Store.write

def write(self, **more):
    made = whole(self, **more)

    class Frozen:
        def __enter__(self):
            session = made.__enter__()
            if Path(sys.argv[2]).exists():
                os.kill(os.getpid(), signal.SIGSTOP)
            return session

        def __exit__(self, *error):
            return made.__exit__(*error)

    return Frozen()

Store.write = write
from datetime import timedelta
sys.exit(service.serve(Address(path=path), beat=timedelta(seconds=1), lease=timedelta(seconds=6)))
"""


@pytest.mark.file("lock")
def test_a_holder_stopped_inside_a_write_past_its_lease_is_killed_by_another_and_the_ledger_says_so(
    place: Place,
) -> None:
    place.duly("init")
    frozen = subprocess.Popen(
        [sys.executable, "-c", FROZEN_WRITER, str(place.store), str(place.home / "freeze")],
        env=place.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    place.served.append(frozen)
    assert frozen.stdout is not None
    holder = frozen.stdout.readline().split()[4]
    place.serve(lease="6s")
    (place.home / "freeze").touch()
    assert frozen.wait(60) == -signal.SIGKILL
    wait_for(lambda: place.rows("SELECT 1 FROM ledger WHERE kind = 'holder_ended' AND holder = ?", holder))
    [(details,)] = place.rows("SELECT details FROM ledger WHERE kind = 'holder_ended' AND holder = ?", holder)
    assert "stopped inside a write" in details
    place.duly("add", "a", "--when", "every 1h", "--", "true")


@pytest.mark.file("lock")
def test_a_program_that_only_holds_the_lock_is_named_and_never_killed(place: Place) -> None:
    place.serve()
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDS_THE_LOCK, str(place.store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    place.served.append(other)
    assert other.stdout is not None
    assert other.stdin is not None
    other.stdout.readline()
    other.send_signal(signal.SIGSTOP)
    wait_for(lambda: f'"pid": {other.pid}' in place.errors() or f"pid={other.pid}" in place.errors())
    other.send_signal(signal.SIGCONT)
    other.stdin.close()
    assert other.wait(30) == 0


HOLDS_THE_LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
connection.execute("ROLLBACK")
"""
