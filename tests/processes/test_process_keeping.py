"""Backup, restore and fences among real processes."""

import json
import signal
import subprocess
import sys

import pytest
from process_scene import Place, wait_for

import databases
from duly.store.address import Address

WRITES = """
import sys
from duly.clock import pause
from duly.operations import runs
from duly.store import Store
from duly.store.address import resolve
from pathlib import Path
store = Store.open(resolve(sys.argv[1], {}))
print("ready", flush=True)
number = 0
while not Path(sys.argv[2]).exists():
    pause(0.01)  # so that what is copied stays small however slow the machine is
    run = runs.run_now(store, sys.argv[3], by="writer", key=str(number), queue=True)
    runs.cancel(store, run.id, by="writer")
    number += 1
store.close()
print(number, flush=True)
"""


def stopped(place: Place) -> None:
    """Stop all servers and wait until they are gone."""
    for process in place.served:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
    for process in place.served:
        process.wait(60)


def copied(place: Place, number: int) -> Place:
    """Back a store up while it is used: a file by ours, a database by its server's own tools, restored elsewhere."""
    if isinstance(place.address, Address):
        place.duly("backup", str(place.home / f"copy{number}.db"))
        copy = Place(place.home)
        copy.store = place.home / f"copy{number}.db"
        return copy
    into = databases.empty(place.home / f"copy{number}")
    databases.copy_by_dump(place.address, into)
    return Place(place.home, into)


def test_backups_taken_while_four_processes_write_are_whole_and_keep_every_promise(place: Place) -> None:
    place.duly("init")
    for number in range(4):
        place.duly("add", f"t{number}", "--when", "manual", "--overlap", "queue", "--", "true")
    words = [[sys.executable, "-c", WRITES, str(place.store), str(place.home / "stop"), f"t{n}"] for n in range(4)]
    writers = [subprocess.Popen(one, env=place.env, stdout=subprocess.PIPE, text=True) for one in words]
    for writer in writers:
        place.served.append(writer)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    copies = [copied(place, number) for number in range(5)]
    (place.home / "stop").touch()
    wrote = [int(writer.stdout.readline()) for writer in writers if writer.stdout is not None]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    assert min(wrote) > 0
    entries = [copy.rows("SELECT max(seq) FROM ledger")[0][0] for copy in copies]
    assert sorted(set(entries)) == entries, "they wrote between any two of them"
    for copy in copies:
        assert copy.json("verify")["ok"]
        if isinstance(copy.address, Address):
            assert copy.rows("PRAGMA integrity_check") == [("ok",)]
        assert copy.json("status")["tasks"]["total"] == 4


@pytest.mark.file("copies")
def test_after_a_restore_a_server_runs_nothing_that_is_overdue_and_goes_on_from_the_unpause(place: Place) -> None:
    place.serve()
    line = f"echo $DULY_DUE_AT $DULY_FENCE >> {place.witness}"
    place.duly("add", "each", "--when", "* * * * * *", "--max-age", "1d", "--shell", line)
    place.duly("add", "ahead", "--when", "once in 2s", "--max-age", "1d", "--shell", line)
    place.duly("add", "long", "--when", "manual", "--", "sleep", "600")
    long = place.json("run", "long")["id"]
    wait_for(lambda: len(place.seen()) >= 2 and place.rows("SELECT 1 FROM runs WHERE id = ? AND state = 'held'", long))
    place.duly("backup", "copy.db")
    refused = place.duly("restore", "copy.db", "--yes", check=False)
    assert (refused.returncode, refused.stdout) == (3, "")
    assert "serves the store" in refused.stderr
    wait_for(lambda: len(place.seen()) >= 6)
    stopped(place)
    refused = place.duly("restore", "copy.db", "--yes", check=False)
    assert refused.returncode == 3, "the long one lives on under its keeper"
    assert "is alive" in refused.stderr
    place.duly("cancel", long)
    place.serve("--until-idle").wait(60)
    stopped(place)
    before = place.seen()
    done = place.json("restore", "copy.db", "--yes")
    assert {one["task_name"] for one in done["due"]} >= {"each"}
    assert done["ended"] == [one for one in done["ended"] if one["reason"] in {"paused", "end_not_confirmed"}]
    place.serve()
    place.duly("run", "each", "--anyway", "--wait")
    assert len(place.seen()) == len(before) + 1, "only what was asked for by hand"
    place.duly("unpause", "--all")
    unpaused = place.rows("SELECT max(at_us) FROM ledger WHERE kind = 'unpaused'")[0][0]
    wait_for(lambda: len(place.seen()) >= len(before) + 4)
    stopped(place)
    late = place.rows(
        "SELECT due_us FROM runs WHERE opened_by != 'manual' AND opened_us > ? AND due_us <= ?", unpaused, unpaused
    )
    assert late == []
    fences = [int(words[-1]) for words in place.seen()]
    assert max(fences[: len(before)]) < min(fences[len(before) :])
    assert place.json("verify")["ok"]
    assert place.json("show", long)["outcome"] == "abandoned"


KILLED = """
import os, sys
from pathlib import Path
from duly.store import copies
from duly.operations import restoring
from duly.store.address import Address
name, here = sys.argv[3], {"copies": copies, "restoring": restoring}
module, function = name.split(".")
whole = getattr(here[module], function)
def last(*words, **more):
    if sys.argv[4] == "after":
        whole(*words, **more)
    os.kill(os.getpid(), 9)
setattr(here[module], function, last)
restoring.restore(Address(path=Path(sys.argv[1])), Path(sys.argv[2]), os.environ, by="ann")
"""


@pytest.mark.file("copies")
def test_a_restore_that_is_killed_leaves_the_old_store_or_the_restored_one_and_can_be_done_again(place: Place) -> None:
    place.duly("add", "old", "--when", "manual", "--", "true")
    place.duly("backup", "copy.db")
    place.duly("add", "new", "--when", "manual", "--", "true")
    for function, when, tasks in (
        ("copies.finish", "before", ["new", "old"]),
        ("copies.keep_beside", "before", ["new", "old"]),
        ("copies.keep_beside", "after", ["new", "old"]),
        ("copies.overwrite", "before", ["new", "old"]),
        ("copies.overwrite", "after", ["old"]),
        ("restoring.remember", "before", ["old"]),
    ):
        words = [sys.executable, "-c", KILLED, str(place.store), str(place.home / "copy.db"), function, when]
        done = subprocess.run(words, env=place.env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert [task["name"] for task in place.json("list")["items"]] == tasks, (function, when)
        assert place.json("verify")["ok"]
    place.store.unlink()
    for function, when in (("copies.put_in_place", "before"), ("copies.put_in_place", "after")):
        words = [sys.executable, "-c", KILLED, str(place.store), str(place.home / "copy.db"), function, when]
        subprocess.run(words, env=place.env, capture_output=True, timeout=60, check=False)
    assert [task["name"] for task in place.json("list")["items"]] == ["old"]
    place.duly("restore", "copy.db", "--yes")
    assert place.json("verify")["ok"]


def test_a_command_that_waits_for_a_run_meanwhile_is_told_that_it_is_gone(place: Place) -> None:
    place.duly("add", "old", "--when", "manual", "--", "true")
    if isinstance(place.address, Address):
        place.duly("backup", "copy.db")
    waits = subprocess.Popen(
        [sys.executable, "-m", "duly", "--store", str(place.store), "run", "old", "--wait"],
        env=place.env,
        stderr=subprocess.PIPE,
        text=True,
    )
    place.served.append(waits)
    wait_for(lambda: place.rows("SELECT 1 FROM runs"))
    if isinstance(place.address, Address):
        place.duly("restore", "copy.db", "--yes")
    else:
        place.write("DELETE FROM runs")  # as pg_restore would
    assert waits.wait(30) == 4
    assert waits.stderr is not None
    assert "is gone" in waits.stderr.read()
    waits.stderr.close()
    place.duly("add", "more", "--when", "manual", "--", "true")
    if isinstance(place.address, Address):
        assert place.rows("PRAGMA integrity_check") == [("ok",)]
    assert len(place.json("list")["items"]) == 2


def test_a_prune_while_the_store_is_served_takes_logs_too_and_nothing_that_went_runs_again(place: Place) -> None:
    line = f"echo $DULY_DUE_AT | tee -a {place.witness}"
    words = ("--when", "* * * * * *", "--max-age", "1s", "--grace", "0s", "--shell", line)
    place.duly("add", "each", *words)
    place.serve()
    wait_for(lambda: len(place.rows("SELECT 1 FROM runs WHERE state = 'ended'")) >= 6)
    attempts = place.run_folder / "attempts"
    before = len(list(attempts.iterdir()))
    first = place.rows("SELECT id FROM runs ORDER BY id LIMIT 1")[0][0]
    done = place.json("prune", "--keep", "2s", "--yes")
    assert done["runs"] >= 2
    assert done["logs"] >= 2
    assert place.rows("SELECT 1 FROM runs WHERE id = ?", first) == []
    assert not list(attempts.glob(f"{first}.*"))
    assert len(list(attempts.iterdir())) < before + 20
    wait_for(lambda: len(place.rows("SELECT 1 FROM runs WHERE state = 'ended'")) >= 6)
    stopped(place)
    assert place.json("verify")["ok"]
    seen = [words[0] for words in place.seen()]
    assert len(set(seen)) == len(seen), "no occurrence ran twice"
    place.serve()
    wait_for(lambda: len(place.seen()) > len(seen))
    stopped(place)
    again = [words[0] for words in place.seen()]
    assert len(set(again)) == len(again)
    assert place.json("verify")["ok"]


def test_a_work_learns_that_its_fence_is_current_and_who_asks_later_that_it_is_over(place: Place) -> None:
    place.serve()
    line = f"{sys.executable} -m duly --store {place.store} fence; echo $? $DULY_FENCE >> {place.witness}"
    place.duly("add", "x", "--when", "manual", "--shell", line)
    place.duly("run", "x", "--wait")
    place.duly("run", "x", "--wait")
    first, second = place.seen()
    assert (first[0], second[0]) == ("0", "0"), "each asked while it ran"
    assert int(first[1]) < int(second[1])
    for fence in (first[1], second[1]):
        asked = place.duly("fence", "x", fence, "--json", check=False)
        assert asked.returncode == 3
        assert json.loads(asked.stdout)["reason"] == "already_ended"
