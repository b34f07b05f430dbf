"""Several processes on one file: nothing twice, nothing lost, nothing stuck, by the work's own witness."""

import random
from collections import Counter

from process_scene import Place, wait_for

from duly.clock import monotonic_s, pause

LENGTH_S = 24
EVERY_S = 2.0
TASKS = 4
WORK = 'echo "$DULY_TASK $DULY_OCCURRENCE $DULY_ATTEMPT $DULY_RUN" >> "$HOME/witness"; sleep {seconds}'


def test_four_processes_on_one_file_with_one_killed_every_two_seconds_run_each_second_once_or_say_why(
    place: Place,
) -> None:
    chance = random.Random(20261129)
    for number in range(TASKS):
        overlap = "queue" if number % 2 else "skip"
        words = ["add", f"t{number}", "--when", "* * * * * *", "--overlap", overlap]
        place.duly(*words, "--shell", WORK.format(seconds=0.1))
    place.duly("add", "long", "--when", "* * * * * *", "--shell", WORK.format(seconds=7))
    serving = [place.serve() for _ in range(4)]
    until = monotonic_s() + LENGTH_S
    while monotonic_s() < until:
        pause(EVERY_S)
        # Whoever holds the long one, so that living work has to be adopted; else anybody.
        held = place.rows(
            "SELECT r.holder FROM runs r JOIN tasks t ON t.id = r.task WHERE t.name = 'long' AND state = 'held'"
        )
        ids = [place.id_of(process) for process in serving]
        index = ids.index(held[0][0]) if held and held[0][0] in ids else chance.randrange(4)
        serving[index].kill()
        serving[index].wait()
        serving[index] = place.serve()
    place.duly("pause", "--all")
    wait_for(lambda: not place.rows("SELECT 1 FROM runs WHERE state != 'ended'"))
    for process in serving:
        process.terminate()
    assert [process.wait(30) for process in serving] == [0, 0, 0, 0], place.errors()
    starts = Counter((task, occurrence) for task, occurrence, *_ in place.seen())
    assert [key for key, number in starts.items() if number > 1] == []
    succeeded = place.rows("SELECT count(*) FROM runs WHERE outcome = 'succeeded'")[0][0]
    assert succeeded >= len(starts) - LENGTH_S  # the others died with a keeper's holder before they were on record
    assert place.rows("SELECT count(*) FROM ledger WHERE kind = 'adopted'")[0][0] > 0
    assert place.duly("verify").stdout.strip().endswith("hold on this store")


def test_a_run_by_hand_from_another_process_is_started_by_the_one_that_serves(place: Place) -> None:
    place.duly("add", "a", "--when", "manual", "--", "echo", "hello")
    place.serve()
    done = place.duly("run", "a", "--wait")
    assert "succeeded" in done.stdout
    assert place.duly("log", "a").stdout == "hello\n"


def test_the_exit_code_of_run_wait_tells_whether_it_succeeded(place: Place) -> None:
    place.duly("add", "bad", "--when", "manual", "--", "false")
    place.serve()
    assert place.duly("run", "bad", "--wait", check=False).returncode == 1


def test_until_idle_serves_what_is_due_and_waiting_and_then_stops(place: Place) -> None:
    place.duly("add", "a", "--when", "every 1h", "--", "true")
    place.duly("run", "a")
    process = place.serve("--until-idle")
    assert process.wait(60) == 0
    assert place.json("runs")["items"][0]["outcome"] == "succeeded"


def test_a_disabled_task_opens_nothing_and_a_removed_one_ends_its_run(place: Place) -> None:
    place.serve()
    place.duly("add", "a", "--when", "* * * * * *", "--shell", WORK.format(seconds=60))
    wait_for(place.seen)
    place.duly("disable", "a")
    [live] = place.json("runs", "--state", "running")["items"]
    assert live["outcome"] is None
    place.duly("remove", "a", "--yes")
    wait_for(lambda: not place.rows("SELECT 1 FROM runs WHERE state != 'ended'"))
    assert place.rows("SELECT outcome FROM runs WHERE id = ?", live["id"]) == [("cancelled",)]
    assert place.duly("verify").returncode == 0
