"""What servers tell of the time in which nobody served, and of lives that others took for over; by real processes."""

import os
import signal
import sqlite3
from datetime import datetime
from typing import Any

import pytest
from process_scene import Place, alive, wait_for
from test_process_crashes import let_go, start_slow, wait_for_entry

from duly.clock import now, to_us


def outages(place: Place) -> list[dict[str, Any]]:
    """The outages that have an end, the newest first."""
    found: list[dict[str, Any]] = place.json("outages")["items"]
    return [one for one in found if one["until"] is not None]


def wait_for_outage(place: Place, cause: str) -> None:
    wait_for(lambda: place.rows("SELECT 1 FROM ledger WHERE kind = 'outage' AND reason = ?", cause))


def wait_past(at_us: int, span_us: int) -> None:
    """Wait until so long after an instant."""
    wait_for(lambda: to_us(now()) > at_us + span_us)


def wait_a_second_after_the_last_beat(place: Place) -> None:
    [(last,)] = place.rows("SELECT max(last_beat_us) FROM holders")
    wait_past(last, 1_200_000)


def test_a_stop_a_kill_and_a_freeze_are_told_apart_each_with_what_was_missed_by_it(place: Place) -> None:
    place.duly("add", "tick", "--when", "every 1s", "--on-missed", "skip", "--grace", "1s", "--", "true")
    first = place.serve()
    wait_for(lambda: place.rows("SELECT 1 FROM runs WHERE state = 'ended'"))
    first.terminate()
    assert first.wait(30) == 0
    wait_a_second_after_the_last_beat(place)
    (going_on,) = place.json("outages")["items"]
    assert (going_on["cause"], going_on["until"]) == ("stopped", None)
    second = place.serve(lease="6s")
    wait_for_outage(place, "stopped")
    second.kill()
    second.wait()
    wait_a_second_after_the_last_beat(place)
    third = place.serve(lease="6s")
    wait_for_outage(place, "died")
    place.freeze(third)
    frozen = place.rows("SELECT last_beat_us FROM holders WHERE id = ?", place.id_of(third))[0][0]
    wait_past(frozen, 9_000_000)
    os.kill(third.pid, signal.SIGCONT)
    wait_for_outage(place, "frozen")
    wait_for(lambda: all(one["missed"] for one in outages(place)))
    found = {str(one["cause"]): one for one in outages(place)}
    assert found.keys() >= {"frozen", "died", "stopped"}
    assert found["frozen"]["holder"] == place.id_of(third)
    assert found["frozen"]["for_s"] >= 6
    assert found["stopped"]["details"]["last"] == place.id_of(first)
    assert found["died"]["details"]["last"] == place.id_of(second)
    assert all({task["task_name"] for task in one["tasks"]} == {"tick"} for one in found.values())
    since, until = (datetime.fromisoformat(found["frozen"][name]) for name in ("since", "until"))
    amid = (since + (until - since) / 2).replace(microsecond=0)
    assert place.json("why", "tick", "--at", amid.isoformat())["outage"]["reason"] == "frozen"
    assert place.duly("verify").returncode == 0


@pytest.mark.file("lock")
def test_a_store_that_was_locked_for_seconds_is_told_when_it_is_back(place: Place) -> None:
    place.serve()
    connection = sqlite3.connect(place.store, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    place.duly("list")
    wait_for(lambda: "store away" in place.errors() or "unanswered" in place.errors())
    connection.execute("ROLLBACK")
    connection.close()
    place.duly("add", "after", "--when", "manual", "--", "true")
    assert place.duly("run", "after", "--wait").returncode == 0


def test_a_server_whose_row_was_taken_away_leaves_with_1_and_the_next_one_goes_on_with_its_work(place: Place) -> None:
    first = place.serve(drain="1h")
    pid = start_slow(place)
    place.write("DELETE FROM holders WHERE id = ?", place.id_of(first))
    assert first.wait(30) == 1
    assert alive(pid)
    place.serve()
    wait_for_entry(place, "adopted")
    let_go(place)
    run = place.ended()
    assert (run["exit_code"], run["attempt"]) == (7, 1)
    assert len(place.seen()) == 1


KILLER = """
import os
from pathlib import Path

def kills():
    with (Path(__file__).parent / "witness").open("a") as file:
        file.write(f"{os.getpid()}\\n")
    os.kill(os.getpid(), 9)
"""


def test_a_task_that_kills_whoever_runs_it_is_repeated_once_and_no_more(place: Place) -> None:
    (place.home / "killer.py").write_text(KILLER)
    place.env["PYTHONPATH"] = f"{place.home}:{place.env['PYTHONPATH']}"
    words = ["--call", "killer:kills", "--in", "thread", "--on-interrupt", "retry"]
    place.duly("add", "killer", "--when", "manual", *words)
    place.duly("run", "killer")
    for number in (1, 2):
        assert place.serve().wait(60) == -signal.SIGKILL
        assert len(place.seen()) == number
    last = place.serve()
    run = place.ended()
    assert (run["outcome"], run["reason"], run["attempt"]) == ("abandoned", "holder_died", 2)
    assert last.poll() is None
    assert len(place.seen()) == 2
    assert place.duly("verify").returncode == 0
