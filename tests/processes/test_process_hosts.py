"""Several hosts over one PostgreSQL server: each a run folder of its own, so that no lock of one is seen by another."""

import contextlib
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Literal

import counting_holder
import psycopg
import pytest
from process_scene import Place, alive, wait_for
from server_scene import Hosts

from duly.clock import monotonic_s
from duly.operations.audit import verify
from duly.operations.runs import run_now
from duly.store import Store

SLOWLY_S = 240.0
SAYS = 'while :; do echo "$DULY_ATTEMPT $(cut -d" " -f1 /proc/uptime)" >> "$WITNESS"; sleep 0.05; done'


def ask_for(hosts: Hosts, place: Place, tasks: int, runs: int) -> None:
    store = Store.open(hosts.address, place.env)
    try:
        for number in range(runs):
            run_now(store, f"t{number % tasks}", by="test", queue=True)
    finally:
        store.close()


def no_fault(hosts: Hosts, place: Place) -> bool:
    store = Store.open(hosts.address, place.env)
    try:
        return verify(store) == []
    finally:
        store.close()


def count(place: Place, text: str) -> int:
    return int(place.rows(text)[0][0])


def says(place: Place, name: str, *rules: str, witness: Path) -> None:
    place.env["WITNESS"] = str(witness)
    place.duly("add", name, "--when", "manual", *rules, "--env", f"WITNESS={witness}", "--shell", SAYS)


def spoken(witness: Path) -> dict[int, list[float]]:
    """When each attempt spoke, in seconds of this machine's boot."""
    said: dict[int, list[float]] = {}
    for line in witness.read_text().splitlines() if witness.exists() else []:
        attempt, at = line.split()
        said.setdefault(int(attempt), []).append(float(at))
    return said


def test_a_command_added_on_one_host_runs_on_another_and_both_tell_the_same(hosts: Hosts) -> None:
    one, two = hosts.host("one"), hosts.host("two")
    one.duly("add", "hello", "--when", "manual", "--", "echo", "hello from there")
    server = two.serve()
    one.duly("run", "hello")
    run = one.ended()
    assert (run["outcome"], run["holder"]) == ("succeeded", two.id_of(server))
    wait_for(lambda: one.duly("log", run["id"]).stdout == "hello from there\n")
    assert "hello from there" in one.duly("show", run["id"]).stdout
    assert one.json("status")["holders_alive"] == two.json("status")["holders_alive"] == 1
    assert one.json("holders")["items"][0]["state"] == "alive"
    assert one.duly("verify").stdout.strip().endswith("hold on this store")
    assert one.duly("doctor", check=False).returncode in (0, 1)
    assert "hello" in one.duly("why", "hello").stdout


def test_a_holder_is_alive_by_the_servers_clock_from_its_first_moment(hosts: Hosts) -> None:
    """Before its first beat too: else the others, who cannot see its lock, would forget it at once."""
    one, two = hosts.host("one"), hosts.host("two")
    one.serve(beat="10s", lease="60s")
    two.serve(beat="10s", lease="60s")
    rows = one.rows(
        "SELECT state, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - least(beat_lease_us, started_us)"
        " FROM holders"
    )
    assert [state for state, _ in rows] == ["alive", "alive"]
    assert all(0 <= ago_us < 60_000_000 for _, ago_us in rows), rows


def test_much_output_is_read_on_another_host_while_it_is_written_and_afterwards_to_the_last_byte(
    hosts: Hosts,
) -> None:
    one, two = hosts.host("one"), hosts.host("two")
    line = "for i in $(seq 200); do head -c 5000 /dev/zero | tr '\\0' x; echo; done; touch written"
    two.duly("add", "loud", "--when", "manual", "--shell", f"{line}; while [ ! -e go ]; do sleep 0.1; done; echo end")
    two.serve()
    one.duly("run", "loud")
    wait_for((two.home / "written").exists)
    wait_for(lambda: len(one.duly("log", "loud").stdout) == 200 * 5001)
    (two.home / "go").touch()
    run = one.ended()
    wait_for(lambda: one.duly("log", run["id"]).stdout.endswith("end\n"))
    assert one.duly("log", run["id"]).stdout == two.duly("log", run["id"]).stdout
    assert max(size for (size,) in one.rows("SELECT length(data) FROM log_pieces")) <= 65_536


def test_a_host_that_dies_whole_is_succeeded_by_another_after_its_lease_and_never_before(
    hosts: Hosts, tmp_path: Path
) -> None:
    one, two = hosts.host("one"), hosts.host("two")
    witness = tmp_path / "witness"
    says(one, "w", "--on-interrupt", "retry", witness=witness)
    first = one.serve(lease="6s")
    one.duly("run", "w")
    wait_for(lambda: len(spoken(witness).get(1, [])) > 5)
    two.serve(lease="6s")
    first.kill()
    first.wait()
    for pid in one.leftovers():
        with contextlib.suppress(ProcessLookupError):  # some end by themselves once others are gone
            os.kill(pid, signal.SIGKILL)  # the power of this host has failed: keeper, nursery and work too
    gone_s = monotonic_s()
    wait_for(lambda: len(spoken(witness).get(2, [])) > 2)
    assert monotonic_s() - gone_s > 3.0, "the lease of who cannot be seen is waited for"
    said = spoken(witness)
    assert max(said[1]) < min(said[2])
    assert two.rows("SELECT kind, reason FROM ledger WHERE kind = 'swept'") == [("swept", "lease_lost")]


def test_a_host_that_is_cut_off_alone_has_ended_its_work_before_another_starts_it(hosts: Hosts, tmp_path: Path) -> None:
    (one, proxy), two = hosts.behind_proxy("one"), hosts.host("two")
    witness = tmp_path / "witness"
    says(two, "w", "--on-interrupt", "retry", witness=witness)
    cut_off = one.serve(lease="6s")
    two.duly("run", "w")
    wait_for(lambda: len(spoken(witness).get(1, [])) > 5)
    two.serve(lease="6s")
    proxy.cut()
    wait_for(lambda: len(spoken(witness).get(2, [])) > 2)
    said = spoken(witness)
    assert max(said[1]) < min(said[2]), "its work had ended before the lease did"
    assert cut_off.poll() is None
    proxy.mend()
    wait_for(lambda: count(two, "SELECT count(*) FROM ledger WHERE kind = 'fence_lost'") == 1)
    assert count(two, "SELECT count(*) FROM runs WHERE state = 'held'") == 1, "and what it tells changes nothing"
    assert no_fault(hosts, two)


def test_a_host_whose_holder_is_frozen_has_its_work_ended_by_its_keeper_before_another_starts_it(
    hosts: Hosts, tmp_path: Path
) -> None:
    one, two = hosts.host("one"), hosts.host("two")
    witness = tmp_path / "witness"
    says(two, "w", "--on-interrupt", "retry", witness=witness)
    frozen = one.serve(lease="6s")
    two.duly("run", "w")
    wait_for(lambda: len(spoken(witness).get(1, [])) > 5)
    two.serve(lease="6s")
    frozen.send_signal(signal.SIGSTOP)
    wait_for(lambda: len(spoken(witness).get(2, [])) > 2)
    said = spoken(witness)
    assert max(said[1]) < min(said[2])
    frozen.send_signal(signal.SIGCONT)
    wait_for(lambda: count(two, "SELECT count(*) FROM ledger WHERE kind = 'fence_lost'") == 1)


@pytest.mark.parametrize("how", ["ended", "deaf", "refused"])
def test_a_holder_that_hears_nothing_finds_what_was_asked_all_the_same(
    hosts: Hosts, how: Literal["ended", "deaf", "refused"]
) -> None:
    one, proxy = hosts.behind_proxy("one")
    asking = hosts.host("two")
    asking.duly("add", "hello", "--when", "manual", "--", "true")
    proxy.ears = "open" if how == "ended" else how
    one.serve()
    if how == "ended":
        hosts.admin("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
    for _ in range(2):
        began_s = monotonic_s()
        asking.duly("run", "hello", "--wait")
        assert monotonic_s() - began_s < 20
    proxy.ears = "open"
    if how != "deaf":
        ears = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
        wait_for(lambda: hosts.admin(ears) == [(1,)])


@pytest.mark.parametrize("skews_s", [(-300, 0, 300), (-90, 0, 90), (0, 3600, -86_400)])
def test_hosts_whose_clocks_differ_start_each_occurrence_once_and_none_before_its_instant(
    hosts: Hosts, skews_s: tuple[int, int, int]
) -> None:
    places = [hosts.host(f"host{number}") for number in range(3)]
    first = places[0]
    for number in range(20):
        words = ["add", f"t{number}", "--when", "every 1s", "--times", "10", "--overlap", "queue", "--queue", "1000"]
        first.duly(*words, "--on-missed", "run_all", "--at-most", "1000", "--", "true")
    for place, skew_s in zip(places, skews_s, strict=True):
        place.env["SKEW_S"] = str(skew_s)
        place.program(sys.executable, str(Path(counting_holder.__file__)), str(place.store), "8")
    wait_for(lambda: count(first, "SELECT count(*) FROM runs WHERE state = 'ended'") == 200, SLOWLY_S)
    starts = Counter(line[1] for place in places for line in place.seen() if line[0] == "+")
    assert (len(starts), set(starts.values())) == (200, {1})
    early = "SELECT count(*) FROM ledger l JOIN runs r ON r.id = l.run WHERE l.kind = 'claimed' AND l.at_us < r.due_us"
    assert count(first, early) == 0
    assert count(first, "SELECT count(*) FROM ledger WHERE kind IN ('swept', 'missed')") == 0
    assert no_fault(hosts, first)


def test_a_server_that_is_stopped_for_less_than_the_trust_costs_no_run_its_life(hosts: Hosts) -> None:
    one = hosts.host("one")
    one.duly("add", "long", "--when", "manual", "--shell", "sleep 4; echo done")
    holder = one.serve(lease="30s")
    one.duly("run", "long")
    wait_for(lambda: count(one, "SELECT count(*) FROM runs WHERE state = 'held'") == 1)
    hosts.server.stop()
    with pytest.raises(psycopg.OperationalError):
        hosts.admin("SELECT 1")
    assert one.duly("list", check=False).returncode == 5
    hosts.server.start()
    run = one.ended()
    assert (run["outcome"], run["attempt"]) == ("succeeded", 1)
    assert holder.poll() is None


@pytest.mark.slow
def test_sixteen_holders_over_a_server_that_is_restarted_twice_run_two_thousand_occurrences_once_each(
    hosts: Hosts,
) -> None:
    places = [hosts.host(f"host{number}") for number in range(4)]
    first = places[0]
    first.duly("init")
    for number in range(10):
        words = ["add", f"t{number}", "--when", "manual", "--seats", "8", "--overlap", "queue", "--queue", "1000"]
        first.duly(*words, "--", "true")
    ask_for(hosts, first, 10, 2_000)
    program = str(Path(counting_holder.__file__))
    for place in places:
        for _ in range(4):
            place.program(sys.executable, program, str(place.store), "4")
    for part in (1, 2):
        wait_for(lambda: count(first, "SELECT count(*) FROM runs WHERE state = 'ended'") > part * 500, SLOWLY_S)  # noqa: B023
        hosts.server.stop(signal.SIGQUIT if part == 2 else signal.SIGINT)
        hosts.server.start()
    wait_for(lambda: count(first, "SELECT count(*) FROM runs WHERE state = 'ended'") == 2_000, SLOWLY_S)
    starts = Counter(line[1] for place in places for line in place.seen() if line[0] == "+")
    outcomes = dict(first.rows("SELECT outcome, count(*) FROM runs GROUP BY outcome"))
    assert outcomes == {"succeeded": 2_000}
    assert set(starts.values()) == {1}
    assert len(starts) == 2_000
    assert len(first.rows("SELECT DISTINCT holder FROM ledger WHERE kind = 'claimed'")) > 4, "it was shared"
    assert no_fault(hosts, first)


def test_work_that_a_stopped_host_left_running_is_adopted_by_the_next_holder_there(hosts: Hosts) -> None:
    one, two = hosts.host("one"), hosts.host("two")
    one.duly(
        "add",
        "long",
        "--when",
        "manual",
        "--shell",
        "echo begun; touch begun; while [ ! -e go ]; do sleep 0.1; done; echo done",
    )
    server = one.serve(drain="0s")
    one.duly("run", "long")
    wait_for((one.home / "begun").exists)
    two.serve()
    server.terminate()
    server.wait()
    assert [pid for pid in one.leftovers() if alive(pid)]
    second = one.serve()
    (one.home / "go").touch()
    run = one.ended()
    assert (run["outcome"], run["attempt"], run["holder"]) == ("succeeded", 1, one.id_of(second))
    assert one.duly("log", run["id"]).stdout == "begun\ndone\n"
