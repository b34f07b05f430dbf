"""Retries, gates and pauses after failures with real servers: killed, frozen and started again at every point."""

import json
import os
import random
import signal
from pathlib import Path

from process_scene import Place, alive, wait_for

from duly.clock import pause

FAILING = 'echo "$$ $DULY_RUN $DULY_ATTEMPT" >> "$HOME/witness"; echo "try $DULY_ATTEMPT"; exit 3'
SLOW = (
    'echo "$$ $DULY_RUN $DULY_ATTEMPT" >> "$HOME/witness"; '
    'while [ ! -e "$HOME/go$DULY_ATTEMPT" ]; do sleep 0.05; done; echo broken; exit 4'
)
GATE = 'echo "$$ $DULY_ATTEMPT" >> "$HOME/gate"; trap "" TERM; while [ ! -e "$HOME/open" ]; do sleep 0.05; done'
SOON = ("--retry-after", "1s", "--retry-up-to", "1s")


def go(place: Place, attempt: int) -> None:
    """Let a slow attempt come to its end."""
    (place.home / f"go{attempt}").touch()


def told(place: Place) -> list[str]:
    return [row[0] for row in place.rows("SELECT kind FROM ledger WHERE run IS NOT NULL ORDER BY seq")]


def outcomes(place: Place) -> list[tuple[int, str, str]]:
    [one] = place.json("runs")["items"]
    return [(item["attempt"], item["outcome"], item["reason"]) for item in one["attempts"]]


def test_a_command_that_fails_is_tried_again_as_often_as_its_rule_says_and_tells_of_each(place: Place) -> None:
    place.serve()
    place.duly("add", "flaky", "--when", "manual", "--retries", "2", *SOON, "--shell", FAILING)
    done = place.duly("run", "flaky", "--wait", check=False)
    assert done.returncode == 1
    assert "exit 3: try 3" in done.stdout
    assert [line[2] for line in place.seen()] == ["1", "2", "3"]
    assert outcomes(place) == [(number, "failed", "exit_status") for number in (1, 2, 3)]
    [one] = place.json("runs")["items"]
    assert (one["retries"], one["attempt"], one["exit_code"]) == (2, 3, 3)
    for number in (1, 2, 3):
        assert place.duly("log", one["id"], "--attempt", str(number)).stdout == f"try {number}\n"
    assert place.json("list")["items"][0]["counts"]["failures_in_a_row"] == 1
    assert place.duly("verify").returncode == 0


def test_a_waiting_retry_survives_that_everybody_who_serves_is_killed(place: Place) -> None:
    first = place.serve()
    place.duly("add", "flaky", "--when", "manual", "--retries", "1", "--retry-after", "3s", "--shell", FAILING)
    place.duly("run", "flaky")
    wait_for(lambda: "returned" in told(place))
    first.kill()
    first.wait()
    assert place.rows("SELECT state, tried, tried_reason, error, exit_code, retries, attempt FROM runs") == [
        ("waiting", "failed", "exit_status", "try 1", 3, 1, 1)
    ]
    place.serve()
    ended = place.ended()
    assert (ended["outcome"], ended["attempt"]) == ("failed", 2)
    assert len(place.seen()) == 2
    assert place.duly("verify").returncode == 0


def test_a_failure_that_nobody_saw_is_tried_again_by_who_finds_its_exit_file(place: Place) -> None:
    first = place.serve()
    place.duly("add", "flaky", "--when", "manual", "--retries", "1", *SOON, "--shell", SLOW)
    place.duly("run", "flaky")
    [pid] = [int(line[0]) for line in wait_for(place.seen)]
    first.kill()
    first.wait()
    go(place, 1)
    wait_for(lambda: not alive(pid))
    place.serve()
    wait_for(lambda: len(place.seen()) == 2)
    go(place, 2)
    ended = place.ended()
    assert (ended["outcome"], ended["attempt"], ended["retries"]) == ("failed", 2, 1)
    assert [outcome for _, outcome, _ in outcomes(place)] == ["failed", "failed"]
    assert place.duly("verify").returncode == 0


def test_a_failure_of_adopted_work_is_tried_again(place: Place) -> None:
    first = place.serve()
    place.duly("add", "flaky", "--when", "manual", "--retries", "1", *SOON, "--shell", SLOW)
    place.duly("run", "flaky")
    wait_for(place.seen)
    place.serve()
    first.kill()
    first.wait()
    wait_for(lambda: "adopted" in told(place))
    go(place, 1)
    wait_for(lambda: len(place.seen()) == 2)
    go(place, 2)
    assert place.ended()["attempt"] == 2
    assert place.duly("verify").returncode == 0


def test_an_attempt_that_was_cancelled_is_not_tried_again(place: Place) -> None:
    place.serve()
    place.duly("add", "flaky", "--when", "manual", "--retries", "3", *SOON, "--shell", SLOW)
    place.duly("run", "flaky")
    wait_for(place.seen)
    place.duly("cancel", place.json("runs")["items"][0]["id"], "--wait")
    [one] = place.json("runs")["items"]
    assert (one["state"], one["outcome"], one["attempt"]) == ("ended", "cancelled", 1)


def test_however_often_its_servers_are_killed_a_failing_run_is_tried_exactly_as_often_as_it_may_be(
    place: Place,
) -> None:
    draw = random.Random(7)
    for name in ("a", "b"):
        line = f'echo "$$ $DULY_TASK $DULY_ATTEMPT" >> "$HOME/witness"; sleep 0.{draw.randrange(1, 9)}; exit 3'
        place.duly("add", name, "--when", "manual", "--retries", "3", *SOON, "--shell", line)
        place.duly("run", name)
    for _ in range(4):
        server = place.serve()
        pause(draw.random() * 2.5)  # the moment is the draw
        server.kill()
        server.wait()
    place.serve()
    wait_for(lambda: place.rows("SELECT count(*) FROM runs WHERE state = 'ended'") == [(2,)])
    for name in ("a", "b"):
        assert len([line for line in place.seen() if line[1] == name]) == 4, (name, place.seen())
    assert place.rows("SELECT DISTINCT outcome, retries, interruptions FROM runs") == [("failed", 3, 0)]
    assert place.rows("SELECT DISTINCT failures_in_a_row FROM tasks") == [(1,)]
    assert place.duly("verify").returncode == 0


# Gates


def asked(place: Place, number: int) -> int:
    """Wait until the gate was asked so often, and give its newest process."""
    path = place.home / "gate"
    wait_for(lambda: path.exists() and path.read_text().count("\n") >= number)
    return int(path.read_text().splitlines()[number - 1].split()[0])


def test_a_run_whose_server_is_killed_while_its_gate_is_asked_begins_once_under_the_next(place: Place) -> None:
    first = place.serve()
    place.duly("add", "gated", "--when", "manual", "--gate", GATE, "--shell", FAILING)
    place.duly("run", "gated")
    pid = asked(place, 1)
    [one] = place.json("runs")["items"]
    assert (one["state"], one["waiting_for"]["what"]) == ("running", "gate")
    first.kill()
    first.wait()
    assert alive(pid)
    place.serve()
    asked(place, 2)
    assert not alive(pid), "it was ended before anybody asked again"
    (place.home / "open").touch()
    ended = place.ended()
    assert (ended["outcome"], ended["attempt"]) == ("failed", 2)
    assert [line[2] for line in place.seen()] == ["2"]
    assert told(place) == ["opened", "claimed", "taken_over", "returned", "claimed", "began", "ended"]
    assert place.duly("verify").returncode == 0


def test_a_server_frozen_while_its_gate_is_asked_begins_nothing_when_it_wakes(place: Place) -> None:
    frozen = place.serve(lease="6s")
    place.duly("add", "gated", "--when", "manual", "--gate", GATE, "--shell", FAILING)
    place.duly("run", "gated")
    pid = asked(place, 1)
    place.freeze(frozen)
    second = place.serve(lease="6s")
    asked(place, 2)
    assert not alive(pid)
    (place.home / "open").touch()
    os.kill(frozen.pid, signal.SIGCONT)
    ended = place.ended()
    assert (ended["holder"], ended["attempt"]) == (place.id_of(second), 2)
    wait_for(lambda: place.rows("SELECT 1 FROM ledger WHERE kind = 'fence_lost' AND holder = ?", place.id_of(frozen)))
    assert [line[2] for line in place.seen()] == ["2"]
    assert place.duly("verify").returncode == 0


def test_a_closed_gate_skips_and_says_what_it_said(place: Place) -> None:
    place.serve()
    place.duly("add", "gated", "--when", "manual", "--gate", "echo no ticket; exit 75", "--shell", FAILING)
    done = place.duly("run", "gated", "--wait", check=False)
    assert done.returncode == 1
    assert "the gate said not now (exit status 75): no ticket" in done.stdout
    [one] = place.json("runs")["items"]
    assert (one["outcome"], one["reason"], one["started_at"], one["log_bytes"]) == ("skipped", "gate_closed", None, 0)
    assert place.duly("run", "gated", "--wait", "--anyway", check=False).returncode == 1
    assert len(place.seen()) == 1
    assert not list((place.run_folder / "attempts").glob("*/gate"))
    assert place.duly("verify").returncode == 0


def test_a_gate_that_takes_too_long_is_ended_with_all_that_it_started(place: Place) -> None:
    place.serve()
    deaf = json_gate('trap "" TERM; (trap "" TERM; setsid sleep 300) & sleep 301')
    place.duly("add", "gated", "--when", "manual", "--gate", deaf, "--shell", FAILING)
    done = place.duly("run", "gated", "--wait", check=False)
    assert "the gate could not be asked: it took longer than 1s" in done.stdout
    assert place.json("runs")["items"][0]["reason"] == "gate_failed"
    assert place.seen() == []
    sleepers = [pid for pid in place.leftovers() if b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert sleepers == []


def json_gate(line: str) -> str:
    return json.dumps({"argv": ["sh", "-c", line], "timeout": "1s"})


def test_a_task_that_fails_too_often_is_paused_and_says_why_on_every_screen(place: Place) -> None:
    place.serve()
    place.duly("add", "flaky", "--when", "every 1s", "--pause-after", "2", "--shell", FAILING)
    wait_for(lambda: place.rows("SELECT 1 FROM pauses"))
    shown = place.duly("show", "flaky").stdout
    assert "2 failures in a row" in shown
    assert "task by duly since" in shown
    assert "paused" in place.duly("list").stdout
    assert "2 failures in a row" in place.duly("status").stdout
    [task] = place.json("list")["items"]
    assert (task["paused"][0]["by"], task["paused"][0]["note"]) == ("duly", "2 failures in a row")
    assert task["counts"]["failures_in_a_row"] == 2
    starts = len(place.seen())
    refused = place.duly("run", "flaky", check=False)
    assert refused.returncode == 3
    assert "2 failures in a row" in refused.stderr
    place.duly("unpause", "flaky")
    wait_for(lambda: len(place.rows("SELECT 1 FROM pauses")) == 1 and len(place.seen()) == starts + 2)
    assert place.duly("verify").returncode == 0
