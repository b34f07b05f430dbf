"""Several processes and threads at one store at once: nobody doubles, nobody is turned away for a moment's lock."""

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from store_scene import NINE, SECOND, SUCCEEDED, Scene, hourly, scene

from databases import given
from duly import clock
from duly.core.triggers import Every
from duly.store import Store

COME_AND_GO = """
import sys, threading
from duly.store import Store
from duly.store.address import resolve
address, environ = resolve(sys.argv[1], {}), {"HOME": sys.argv[2]}
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
print("going", flush=True)
turns = 0
while not ended.is_set():
    store = Store.open(address, environ)
    with store.write() as session:
        session.projects.ensure(f"{sys.argv[3]} {turns}", "p", session.now)
    store.close()
    turns += 1
print(turns, flush=True)
"""


@contextmanager
def coming_and_going(s: Scene, count: int) -> Iterator[list[int]]:
    """Processes that open the store, write, and close it, again and again, as commands do; how many turns each made."""
    turns: list[int] = []
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", COME_AND_GO, given(s.address), s.environ["HOME"], str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "going\n"
        yield turns
        for process in processes:
            printed, errors = process.communicate(timeout=30)
            assert process.returncode == 0, errors
            turns.append(int(printed))
    finally:
        for process in processes:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                assert pipe is not None
                pipe.close()


def test_reading_and_opening_are_never_refused_because_another_command_ends_at_that_moment(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        s.close()  # so that the others are the last to leave, and clean up after themselves
        with coming_and_going(s, 2) as turns:
            until = clock.monotonic_s() + 1.5
            while clock.monotonic_s() < until:
                reader = Store.find(s.address, s.environ)
                assert reader is not None
                with reader.read() as session:
                    assert session.tasks.counts()[0] == 1
                reader.close()
                Store.open(s.address, s.environ).close()
        assert min(turns) > 0
        found = Store.find(s.address, s.environ)
        assert found is not None
        with found.read() as session:
            assert len(session.projects.names()) == 1 + sum(turns), "every write that was answered stands"
        found.close()


def test_holders_that_plan_claim_and_settle_at_once_run_every_occurrence_once(tmp_path: Path) -> None:
    """Three threads with a connection each turn as fast as they can while the clock moves on second by second."""
    with scene(tmp_path) as s:
        made = [s.add(f"task {n}", Every(span=SECOND, anchor=NINE), grace=timedelta(hours=1)) for n in range(3)]
        seconds, errors = 25, list[BaseException]()
        ended = threading.Event()
        won_by: Counter[str] = Counter()

        def turn(holder: str, store: Store) -> None:
            try:
                while not ended.is_set():
                    s.plan(store, holder)
                    for won in s.claim(store, holder):
                        won_by[holder] += 1
                        s.settle(won, SUCCEEDED, store, holder)
            except BaseException as error:  # noqa: BLE001 - told by the test's thread
                errors.append(error)

        threads = [threading.Thread(target=turn, args=(f"hld_{n}", s.connect()), name=f"holder {n}") for n in range(3)]
        for thread in threads:
            thread.start()
        watch = s.connect()
        try:
            for second in range(1, seconds + 1):
                s.at(NINE + second * SECOND)
                wanted = second * len(made)
                patience = clock.monotonic_s() + 20
                while not errors and clock.monotonic_s() < patience:
                    with watch.read() as session:
                        counts = session.runs.counts()
                        if not counts and len(session.runs.listed(most=1000)) >= wanted:
                            break
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        assert errors == []
        runs = s.runs()
        assert len(runs) == seconds * len(made)
        assert len({(run.task, run.occurrence) for run in runs}) == len(runs)
        assert all(run.attempt == 1 or run.outcome == "skipped" for run in runs)
        assert sum(won_by.values()) == sum(run.attempt for run in runs)
        for task in made:
            fences = sorted(run.fence for run in runs if run.task == task.id and run.attempt)
            assert fences == list(range(1, len(fences) + 1)), "no fence twice, none left out"
        assert s.faults() == []
