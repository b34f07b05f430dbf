"""How servers leave: by a signal, by `duly drain`, as the first process of a container; and what stays behind."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from process_scene import Place, alive, wait_for
from test_process_crashes import let_go, start_slow, wait_for_entry

CHATTY = (
    'echo "$$ $DULY_RUN $DULY_ATTEMPT" >> "$HOME/witness"; n=0; '
    'while [ ! -e "$HOME/go" ]; do n=$((n+1)); echo line $n; sleep 0.05; done; echo last $n; exit 7'
)
KINDS = "SELECT kind FROM ledger WHERE run = ? ORDER BY seq"


def test_a_command_survives_three_restarts_of_its_server_with_one_start_all_its_output_and_its_exit_status(
    place: Place,
) -> None:
    server = place.serve(drain="0s")
    place.duly("add", "long", "--when", "manual", "--shell", CHATTY)
    place.duly("run", "long")
    pid = int(wait_for(place.seen)[0][0])
    for number in range(1, 4):
        server.terminate()
        assert server.wait(30) == 0
        assert alive(pid)
        server = place.serve(drain="0s")
        wait_for_adoptions(place, number)
    let_go(place)
    run = place.ended()
    assert (run["outcome"], run["reason"], run["exit_code"], run["attempt"]) == ("failed", "exit_status", 7, 1)
    assert run["holder"] == place.id_of(server)
    *lines, last = place.duly("log", run["id"]).stdout.splitlines()
    assert lines == [f"line {n}" for n in range(1, len(lines) + 1)]
    assert last == f"last {len(lines)}"
    assert len(place.seen()) == 1
    handed = ["handed_over", "taken_over", "adopted"]
    assert [row[0] for row in place.rows(KINDS, run["id"])] == ["opened", "claimed", *handed * 3, "ended"]
    assert place.duly("verify").returncode == 0


def wait_for_adoptions(place: Place, number: int) -> None:
    wait_for(lambda: len(place.rows("SELECT 1 FROM ledger WHERE kind = 'adopted'")) == number)


def test_what_was_handed_over_is_taken_over_however_late_somebody_comes(place: Place) -> None:
    server = place.serve(drain="0s")
    start_slow(place)
    server.terminate()
    assert server.wait(30) == 0
    [(ends,)] = place.rows("SELECT lease_end_us FROM runs")
    assert place.duly("run", "slow", check=False).returncode == 3
    # As if ten minutes had passed: the lease it was handed over with is over.
    place.write("UPDATE runs SET lease_end_us = 1")
    assert ends > 1
    place.serve()
    wait_for_entry(place, "adopted")
    let_go(place)
    assert place.ended()["exit_code"] == 7
    assert len(place.seen()) == 1


def test_with_on_stop_cancel_what_runs_is_ended_and_settled_before_the_server_is_gone(place: Place) -> None:
    server = place.serve("--on-stop", "cancel", drain="0s")
    pid = start_slow(place)
    server.terminate()
    assert server.wait(30) == 0
    assert not alive(pid)
    (run,) = place.json("runs")["items"]
    assert (run["state"], run["outcome"], run["reason"]) == ("ended", "cancelled", "shutdown")
    assert not place.rows("SELECT 1 FROM ledger WHERE kind = 'handed_over'")


def test_on_stop_is_a_setting_of_the_host_and_another_word_is_refused(place: Place) -> None:
    place.env["DULY_SERVE_ON_STOP"] = "cancel"
    server = place.serve(drain="0s")
    pid = start_slow(place)
    server.terminate()
    assert server.wait(30) == 0
    assert not alive(pid)
    refused = place.duly("serve", "--on-stop", "handover", check=False)
    assert refused.returncode == 2
    assert "hand-over" in refused.stderr


def test_a_drained_server_takes_nothing_more_and_leaves_when_its_last_run_has_ended(place: Place) -> None:
    server = place.serve()
    pid = start_slow(place)
    place.duly("add", "other", "--when", "manual", "--shell", "true")
    asked = place.json("drain")
    assert [(one["id"], one["state"], one["running"]) for one in asked["items"]] == [
        (place.id_of(server), "draining", 1)
    ]
    wait_for(lambda: "draining" in place.errors())
    place.duly("run", "other")
    waits = subprocess.Popen(
        [sys.executable, "-m", "duly", "--store", str(place.store), "drain", "--wait"],
        env=place.env,
        cwd=place.home,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert waits.stdout is not None
    assert "drains: 1 run to end" in waits.stdout.readline()
    assert alive(pid)
    assert server.poll() is None
    assert waits.poll() is None
    let_go(place)
    assert server.wait(30) == 0
    assert waits.communicate(timeout=30)[0].endswith("has left\n")
    outcomes = {one["task_name"]: (one["state"], one["exit_code"]) for one in place.json("runs")["items"]}
    assert outcomes == {"slow": ("ended", 7), "other": ("waiting", None)}
    assert place.json("drain", place.id_of(server))["items"][0]["state"] == "gone"
    assert not place.rows("SELECT 1 FROM ledger WHERE kind = 'handed_over'")


def test_of_two_servers_the_one_that_is_not_drained_goes_on(place: Place) -> None:
    first, second = place.serve(), place.serve()
    place.duly("add", "tick", "--when", "manual", "--overlap", "queue", "--shell", 'echo $$ >> "$HOME/witness"')
    assert place.duly("drain", place.id_of(first)[-8:], "--wait").returncode == 0
    assert first.wait(30) == 0
    assert second.poll() is None
    assert place.duly("run", "tick", "--wait").returncode == 0
    states = {one["id"]: one["state"] for one in place.json("holders")["items"]}
    assert states == {place.id_of(first): "gone", place.id_of(second): "alive"}


def test_a_draining_server_obeys_a_signal_and_hands_over_what_still_runs(place: Place) -> None:
    server = place.serve(drain="0s")
    pid = start_slow(place)
    place.duly("drain")
    wait_for(lambda: "draining" in place.errors())
    server.terminate()
    assert server.wait(30) == 0
    assert alive(pid)
    wait_for_entry(place, "handed_over")


def test_nobody_to_drain_is_no_error_and_an_unknown_holder_is(place: Place) -> None:
    assert place.json("drain")["items"] == []
    assert place.duly("drain", "hld_nobody", check=False).returncode == 4
    place.duly("init")
    assert place.json("drain", "--wait")["items"] == []
    assert place.duly("drain", "hld_nobody", check=False).returncode == 4


def test_a_passive_server_starts_nothing_and_looks_after_what_others_leave(place: Place) -> None:
    passive = place.serve("--passive")
    first = place.serve(drain="0s")
    start_slow(place)
    first.terminate()
    assert first.wait(30) == 0
    wait_for_entry(place, "adopted")
    place.duly("add", "due", "--when", "every 1s", "--shell", "true")
    place.duly("add", "asked", "--when", "manual", "--shell", "true")
    place.duly("run", "asked")
    let_go(place)
    run = place.ended()
    assert (run["task_name"], run["exit_code"], run["holder"]) == ("slow", 7, place.id_of(passive))
    wait_for(lambda: beats(place, place.id_of(passive)) >= 3)
    assert {one["task_name"] for one in place.json("runs")["items"]} == {"slow", "asked"}
    assert "nobody who starts anything (1 passive)" in place.duly("status").stdout
    (row,) = place.json("holders", "--state", "alive")["items"]
    assert (row["passive"], row["slots"]) == (True, 0)
    place.serve()
    wait_for(lambda: place.rows("SELECT 1 FROM runs WHERE outcome = 'succeeded'"))


def beats(place: Place, holder: str) -> int:
    [(started, last)] = place.rows("SELECT started_us, last_beat_us FROM holders WHERE id = ?", holder)
    return int((last - started) / 1_000_000)


@pytest.mark.parametrize("other", [("--until-idle",), ("--slots", "3")])
def test_passive_excludes_what_makes_no_sense_beside_it(place: Place, other: tuple[str, ...]) -> None:
    refused = place.duly("serve", "--passive", *other, check=False)
    assert refused.returncode == 2
    assert other[0] in refused.stderr


def may_unshare() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], check=False).returncode == 0


def children(pid: int) -> list[tuple[int, str]]:
    """The children of a process with their states, zombies too."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            try:
                fields = (path / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append((int(path.name), fields[0]))
    return found


@pytest.mark.skipif(not may_unshare(), reason="new pid namespaces are not allowed here")
def test_as_first_process_a_server_takes_in_orphans_knows_each_true_exit_status_and_ends_all_when_stopped(
    place: Place,
) -> None:
    words = ["--beat", "1s", "--lease", "8s", "--drain", "0s"]
    front = place.program(
        *("unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-m", "duly"),
        *("--store", str(place.store), "serve", *words),
    )
    ((first, _),) = children(front.pid)
    # Orphans of all kinds: a work's child that its keeper is told to leave, and that keeper killed beside it.
    leaves = 'setsid sh -c "sleep 0.4; exit 3" & for n in 1 2 3; do (sleep 0.2 &); done; exit 7'
    place.duly("add", "leaves", "--when", "manual", "--shell", leaves)
    place.duly("add", "seven", "--when", "manual", "--overlap", "queue", "--shell", "exit 7")
    for _ in range(3):
        place.duly("run", "seven", "--queue")
    assert place.duly("run", "leaves", "--wait", check=False).returncode == 1
    wait_for(lambda: place.rows("SELECT count(*) FROM runs WHERE state = 'ended'") == [(4,)])
    assert place.rows("SELECT DISTINCT outcome, reason, exit_code FROM runs") == [("failed", "exit_status", 7)]
    # Something that lost its parent inside: it falls to the first process, which takes in its end.
    inside = ["nsenter", "-t", str(first), "-p", "-m", "sh", "-c", "(sleep 0.3 & sleep 0.3 & exit 0) & exit 0"]
    subprocess.run(inside, check=True, env=place.env, stdout=subprocess.DEVNULL)
    wait_for(lambda: [state for _, state in children(first)] == ["S"])
    pid = start_slow(place)
    assert pid > 0
    os.kill(first, signal.SIGTERM)
    assert front.wait(30) == 0
    run = next(one for one in place.json("runs")["items"] if one["task_name"] == "slow")
    assert (run["state"], run["outcome"], run["reason"]) == ("ended", "cancelled", "shutdown")
    assert place.leftovers() == []


@pytest.mark.skipif(not may_unshare(), reason="new pid namespaces are not allowed here")
def test_a_server_behind_the_first_process_that_cannot_serve_ends_with_its_own_status(place: Place) -> None:
    ended = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-m", "duly", "--store", "/", "serve"],
        env=place.env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ended.returncode, "directory" in ended.stderr) == (5, True), ended.stderr
