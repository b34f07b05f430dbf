"""A process killed around its commit: what was answered stands, what was not is whole or was never there."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from store_disk import snapshot
from store_scene import HOUR, MINUTE, NINE, Scene, hourly, minutely, scene

from databases import given
from duly.store import Store
from duly.store.address import Address

DIE = """
import os, sys
from datetime import datetime
from duly.clock import Clock
from duly.holder.dispatcher import Dispatcher
from duly.holder.planner import Planner
from duly.store import Store
from duly.store.address import resolve

class SetClock(Clock):
    def now(self):
        return datetime.fromisoformat(sys.argv[3])
    def lease_us(self):
        return 1_000_000_000
    def boot_id(self):
        return "boot-one"

store = Store.open(resolve(sys.argv[1], {}), {"HOME": sys.argv[2]}, clock=SetClock())
raw, when = store._line.raw, sys.argv[4]
kinds = frozenset({"command"})

def die():
    os.kill(os.getpid(), 9)

class Dying:
    # Dies before, or after, the statement that the test names.
    def __init__(self):
        self.sent = 0
    def execute(self, text, *values):
        self.sent += 1
        commits = str(text).endswith("COMMIT")
        if when == f"before {self.sent}" or (when == "before the commit" and commits):
            die()
        found = raw.execute(text, *values)
        if when == "after the commit" and commits:
            die()
        return found
    def __getattr__(self, name):
        return getattr(raw, name)

store._line.raw = Dying()
with store.write() as session:
    Planner("hld_a").step(session)
    won = Dispatcher("hld_a", "boot-one", 100_000_000, lambda: kinds).step(session, 8).won
    assert won
print("lived through", store._line.raw.sent, "statements", flush=True)
"""


def planned_by_a_process_that_dies(s: Scene, when: str) -> subprocess.CompletedProcess[str]:
    """A turn of a holder, planning and claiming in one transaction, killed at this point."""
    words = [given(s.address), s.environ["HOME"], s.clock.now().isoformat(), when]
    return subprocess.run([sys.executable, "-c", DIE, *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("when", ["before 4", "before 10", "before the commit", "after the commit"])
def test_a_turn_that_was_killed_is_whole_or_was_never_there_and_is_not_made_twice(tmp_path: Path, when: str) -> None:
    with scene(tmp_path) as s:
        s.add("one", minutely())
        s.add("two", hourly(), on_missed="skip")
        s.at(NINE + 3 * HOUR + MINUTE / 3)
        before = (s.runs(), s.entries())
        done = planned_by_a_process_that_dies(s, when)
        assert done.returncode == -signal.SIGKILL, done
        if when == "after the commit":
            assert {run.state for run in s.runs()} == {"held"}
            assert {run.holder for run in s.runs()} == {"hld_a"}
            assert s.plan(holder="hld_b") == []
            assert s.claim(holder="hld_b") == [], "held by the dead until it is swept"
        else:
            assert (s.runs(), s.entries()) == before
            s.plan(holder="hld_b")
            assert len(s.claim(holder="hld_b")) == len(s.runs()) > 0
        assert s.store.quick_check() == "ok"
        assert s.faults() == []


def test_a_reader_sees_what_a_killed_writer_had_committed_and_changes_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", minutely())
        s.at(NINE + 3 * HOUR)
        s.close()
        planned_by_a_process_that_dies(s, "after the commit")
        left = snapshot(s)
        if isinstance(s.address, Address):
            assert (tmp_path / "duly.db-wal").stat().st_size, "the commit is in the log alone"
        reader = Store.find(s.address, s.environ)
        assert reader is not None
        with reader.read() as session:
            assert session.runs.counts() == {"held": 1}
        reader.close()
        assert snapshot(s) == left
        assert s.connect().quick_check() == "ok"
