"""Real processes with different zone data on one store."""

import signal
from datetime import timedelta
from pathlib import Path

from process_scene import Place, wait_for

from duly import clock
from zone_maker import TOWN, write

LATER = timedelta(seconds=12)
"""How much later every local time comes by the newer data."""


def data(place: Place, version: str, ahead: timedelta) -> None:
    """Let processes that start from now on have these zone data."""
    place.env["PYTHONTZPATH"] = str(write(place.home / version, version, ahead))


def opened(place: Place) -> list[str]:
    return [row[0] for row in place.rows("SELECT holder FROM ledger WHERE kind = 'opened' ORDER BY seq")]


def test_a_local_time_that_ran_does_not_run_again_after_an_upgrade_of_the_zone_data(place: Place) -> None:
    ahead = timedelta(hours=3)
    data(place, "2098a", ahead)
    due = clock.now().replace(microsecond=0) + timedelta(seconds=8)
    wall = due + ahead
    place.duly("add", "one", "--when", f"daily {wall:%H:%M:%S}", "--zone", TOWN, "--", "true")
    first = place.serve()
    wait_for(lambda: place.rows("SELECT 1 FROM runs WHERE state = 'ended'"))
    first.send_signal(signal.SIGTERM)
    first.wait(30)
    data(place, "2099a", ahead - LATER)
    place.serve()
    wait_for(lambda: place.rows("SELECT 1 FROM tasks WHERE zone_data = '2099a'"))
    (told,) = place.json("list")["items"]
    again = due + LATER
    assert told["next_due_at"] == (again + timedelta(days=1)).isoformat().replace("+00:00", "Z")
    wait_for(lambda: clock.now() > again + timedelta(seconds=3))
    assert len(place.json("runs")["items"]) == 1
    assert place.duly("verify").returncode == 0


def test_of_two_servers_only_the_one_with_the_newer_zone_data_plans(place: Place) -> None:
    data(place, "2098a", timedelta(hours=3))
    place.duly("add", "tick", "--when", "every 1s", "--zone", TOWN, "--", "true")
    older = place.serve()
    wait_for(lambda: opened(place))
    data(place, "2099a", timedelta(hours=2))
    newer = place.serve()
    before = len(opened(place))
    wait_for(lambda: len(opened(place)) >= before + 4)
    # One turn of the older may have been under way when the newer came.
    assert set(opened(place)[before + 1 :]) == {place.id_of(newer)}
    newer.kill()
    newer.wait()
    number = len(opened(place))
    wait_for(lambda: len(opened(place)) >= number + 2)
    assert set(opened(place)[number:]) == {place.id_of(older)}
    assert place.duly("verify").returncode == 0


def test_the_data_of_the_test_are_those_that_a_process_finds(place: Place) -> None:
    data(place, "2099a", timedelta(hours=2, seconds=5))
    told = place.json("preview", "daily 09:00", "--zone", TOWN, "--after", "2026-12-01T00:00:00Z", "-n", "1")
    assert told["items"][0]["due_at"] == "2026-12-01T06:59:55Z"
    assert Path(place.env["PYTHONTZPATH"]).is_dir()
