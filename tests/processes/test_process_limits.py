"""Limits over real processes: what the work itself counts is never more than was allowed."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import counting_holder
from process_scene import Place, wait_for

from duly.operations.audit import verify
from duly.operations.runs import run_now
from duly.store import Store

LIMIT = 3
HOLDERS = 4
TASKS = 10
RUNS = 1_000
DEATHS = 3
SLOWLY_S = 240.0


def ask_for_runs(place: Place) -> None:
    store = Store.open(place.address, place.env)
    try:
        for number in range(RUNS):
            run_now(store, f"t{number % TASKS}", by="test", queue=True)
    finally:
        store.close()


def ended(place: Place) -> int:
    return int(place.rows("SELECT count(*) FROM runs WHERE state = 'ended'")[0][0])


def serve(place: Place) -> subprocess.Popen[str]:
    return place.program(sys.executable, str(Path(counting_holder.__file__)), str(place.store), "4")


def test_a_limit_of_three_over_four_holders_is_reached_and_never_exceeded_and_does_not_leak_when_holders_die(
    place: Place,
) -> None:
    place.duly("init")
    place.duly("limit", "set", "gpu", str(LIMIT))
    for number in range(TASKS):
        words = ["add", f"t{number}", "--when", "manual", "--limit", "gpu", "--seats", "4"]
        place.duly(*words, "--overlap", "queue", "--queue", "1000", "--", "true")
    ask_for_runs(place)
    serving = [serve(place) for _ in range(HOLDERS)]
    for death in range(1, DEATHS + 1):
        wait_for(lambda: ended(place) > death * RUNS // (DEATHS + 2), within_s=SLOWLY_S)  # noqa: B023 - asked at once
        held = wait_for(lambda: place.rows("SELECT holder FROM runs WHERE state = 'held' LIMIT 1"))[0][0]
        [victim] = [one for one in serving if place.id_of(one) == held]
        victim.kill()
        victim.wait()
        with place.witness.open("a") as witness:
            witness.write(f"dead - {victim.pid}\n")
        serving[serving.index(victim)] = serve(place)
    wait_for(lambda: ended(place) == RUNS, within_s=SLOWLY_S)
    live: dict[str, str] = {}
    most = 0
    for sign, run, pid in place.seen():
        if sign == "dead":
            # What a killed process worked on ended with it, and could not say so.
            live = {run: of for run, of in live.items() if of != pid}
        elif sign == "-":
            del live[run]
        else:
            assert run not in live, f"{run} ran beside itself"
            live[run] = pid
            most = max(most, len(live))
    assert most == LIMIT
    outcomes = Counter(row[0] for row in place.rows("SELECT outcome FROM runs"))
    assert outcomes["succeeded"] + outcomes["abandoned"] == RUNS
    assert outcomes["abandoned"] <= DEATHS * LIMIT
    assert place.rows("SELECT used, most FROM limits WHERE key = 'gpu'") == [(0, LIMIT)]
    assert len(place.rows("SELECT DISTINCT holder FROM ledger WHERE kind = 'claimed'")) >= HOLDERS
    store = Store.open(place.address, place.env)
    try:
        assert verify(store) == []
    finally:
        store.close()


def test_a_newer_occurrence_ends_the_running_command_and_takes_its_place(place: Place) -> None:
    place.duly("add", "a", "--when", "every 2s", "--overlap", "cancel_running", "--shell", "sleep 60")
    place.serve()
    wait_for(lambda: len(place.rows("SELECT 1 FROM runs WHERE reason = 'overlap' AND outcome = 'cancelled'")) >= 2)
    assert place.rows("SELECT 1 FROM runs WHERE outcome = 'skipped' AND reason = 'already_running'") == []
    place.duly("remove", "a", "--yes")
    wait_for(lambda: not place.rows("SELECT 1 FROM runs WHERE state != 'ended'"))
    assert place.duly("verify").stdout.strip().endswith("hold on this store")


def test_work_deaf_to_term_is_killed_at_once_where_the_task_says_so(place: Place) -> None:
    deaf = "trap '' TERM; echo deaf >> \"$HOME/witness\"; while :; do sleep 0.2; done"
    place.duly("add", "a", "--when", "every 3s", "--overlap", "kill_running", "--shell", deaf)
    place.serve()
    wait_for(lambda: len(place.seen()) >= 2)
    first = place.rows("SELECT outcome, reason FROM runs ORDER BY id LIMIT 1")
    assert first == [("cancelled", "overlap")]
    asked, end = place.rows(
        "SELECT a.at_us, e.at_us FROM ledger a JOIN ledger e ON e.run = a.run AND e.kind = 'ended'"
        " WHERE a.kind = 'cancel_asked' ORDER BY a.seq LIMIT 1"
    )[0]
    assert end - asked < 8_000_000, "KILL did not wait for the ten seconds that TERM gives"
    place.duly("remove", "a", "--yes")
    wait_for(lambda: not place.rows("SELECT 1 FROM runs WHERE state != 'ended'"))


def test_a_task_that_needs_a_label_runs_on_the_process_that_has_it(place: Place) -> None:
    place.duly("add", "a", "--when", "manual", "--needs", "gpu", "--", "echo", "here")
    place.serve()
    place.duly("run", "a")
    [waiting] = place.json("runs")["items"]
    assert waiting["waiting_for"]["what"] == "label"
    assert waiting["waiting_for"]["key"] == "gpu"
    able = place.serve("--label", "gpu", "--label", "big")
    run = place.ended()
    assert (run["outcome"], run["holder"]) == ("succeeded", place.id_of(able))
