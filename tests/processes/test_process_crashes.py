"""Holders that die, freeze, stop and start again, with real commands under real keepers."""

import os
import signal
from pathlib import Path

from process_scene import Place, alive, wait_for

STANDS = "SELECT id, state, outcome, version, attempt, fence, holder, claim_token, cancel_asked_us FROM runs"
SLOW = (
    'echo "$$ $DULY_RUN $DULY_ATTEMPT" >> "$HOME/witness"; echo begun; '
    'while [ ! -e "$HOME/go" ]; do sleep 0.05; done; echo ended; exit 7'
)


def start_slow(place: Place, *flags: str) -> int:
    """Add a command that goes on until `let_go`, ask for it, and give the pid of its shell once that runs."""
    place.duly("add", "slow", "--when", "manual", *flags, "--shell", SLOW)
    place.duly("run", "slow")
    return int(wait_for(place.seen)[0][0])


def let_go(place: Place) -> None:
    """Let the slow command come to its end."""
    (place.home / "go").touch()


def wait_for_entry(place: Place, kind: str) -> None:
    """Wait until the ledger tells of something."""
    wait_for(lambda: place.rows("SELECT 1 FROM ledger WHERE kind = ?", kind))


def test_a_command_outlives_its_killed_holder_with_one_start_its_whole_output_and_its_true_exit_status(
    place: Place,
) -> None:
    first = place.serve()
    pid = start_slow(place)
    first.kill()
    first.wait()
    assert alive(pid)
    second = place.serve()
    wait_for_entry(place, "adopted")
    let_go(place)
    run = place.ended()
    assert (run["outcome"], run["reason"], run["exit_code"], run["attempt"]) == ("failed", "exit_status", 7, 1)
    assert run["holder"] == place.id_of(second)
    assert place.duly("log", run["id"]).stdout == "begun\nended\n"
    assert len(place.seen()) == 1
    kinds = [row[0] for row in place.rows("SELECT kind FROM ledger WHERE run = ? ORDER BY seq", run["id"])]
    assert kinds == ["opened", "claimed", "taken_over", "adopted", "ended"]
    assert place.duly("verify").returncode == 0


def test_a_sibling_adopts_what_a_killed_holder_ran_without_waiting_for_its_lease(place: Place) -> None:
    first = place.serve(lease="100s")
    start_slow(place)
    second = place.serve(lease="100s")
    first.kill()
    wait_for(lambda: place.rows("SELECT 1 FROM ledger WHERE kind = 'adopted' AND holder = ?", place.id_of(second)))
    assert len(place.seen()) == 1


def test_what_ended_while_nobody_served_is_settled_from_its_exit_file(place: Place) -> None:
    first = place.serve()
    pid = start_slow(place)
    first.kill()
    first.wait()
    let_go(place)
    wait_for(lambda: not alive(pid))
    place.serve()
    run = place.ended()
    assert (run["outcome"], run["exit_code"]) == ("failed", 7)
    assert place.duly("log", run["id"]).stdout == "begun\nended\n"


def test_a_frozen_holders_child_has_ended_before_its_successor_starts_and_the_woken_one_changes_nothing(
    place: Place,
) -> None:
    frozen = place.serve(lease="6s")
    pid = start_slow(place, "--on-interrupt", "retry")
    place.freeze(frozen)
    second = place.serve(lease="6s")
    wait_for(lambda: len(place.seen()) == 2)
    assert not alive(pid)
    before = place.rows(STANDS)
    assert place.rows("SELECT holder, attempt FROM runs") == [(place.id_of(second), 2)]
    os.kill(frozen.pid, signal.SIGCONT)
    wait_for(lambda: place.rows("SELECT 1 FROM ledger WHERE kind = 'fence_lost' AND holder = ?", place.id_of(frozen)))
    assert place.rows(STANDS) == before
    assert alive(int(place.seen()[1][0]))
    assert place.duly("verify").returncode == 0


def test_a_stopped_holder_hands_living_work_over_and_the_next_one_takes_it_at_once(place: Place) -> None:
    first = place.serve(drain="0s")
    pid = start_slow(place)
    first.terminate()
    assert first.wait(30) == 0
    assert alive(pid)
    place.serve()
    wait_for_entry(place, "adopted")
    let_go(place)
    run = place.ended()
    assert (run["outcome"], run["exit_code"], run["attempt"]) == ("failed", 7, 1)
    kinds = [row[0] for row in place.rows("SELECT kind FROM ledger WHERE run = ? ORDER BY seq", run["id"])]
    assert kinds == ["opened", "claimed", "handed_over", "taken_over", "adopted", "ended"]


def test_a_second_copy_is_never_started_beside_adopted_work_not_even_by_hand(place: Place) -> None:
    first = place.serve()
    start_slow(place)
    first.kill()
    first.wait()
    refused = place.duly("run", "slow", check=False)
    assert refused.returncode == 3
    assert "already running" in refused.stderr or "is running" in refused.stderr
    place.serve()
    wait_for(lambda: place.rows("SELECT 1 FROM ledger WHERE kind = 'adopted'"))
    assert place.duly("run", "slow", check=False).returncode == 3
    assert len(place.seen()) == 1


def test_cancel_leaves_no_survivor_of_a_deaf_family_a_child_that_left_its_session_or_a_double_fork(
    place: Place,
) -> None:
    place.serve()
    family = (
        "trap '' TERM; (trap '' TERM; sleep 300) & "
        "setsid sh -c 'trap \"\" TERM; sleep 301' & "
        "(setsid sh -c 'sleep 302 & exit 0' &) ; "
        'echo "$$" >> "$HOME/witness"; sleep 303'
    )
    place.duly("add", "family", "--when", "manual", "--shell", family)
    place.duly("run", "family")
    wait_for(place.seen)
    wait_for(lambda: len(sleepers(place)) == 4)
    place.duly("cancel", place.json("runs")["items"][0]["id"], "--wait")
    assert sleepers(place) == []
    run = place.json("runs")["items"][0]
    assert (run["outcome"], run["reason"]) == ("cancelled", "cancelled_by_hand")


def sleepers(place: Place) -> list[int]:
    """The living processes of this place that sleep for about 300 seconds."""
    found = []
    for pid in place.leftovers():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:1] == [b"sleep"]:
            found.append(pid)
    return found


def test_a_killed_keepers_work_is_ended_and_its_run_abandoned(place: Place) -> None:
    place.serve()
    pid = start_slow(place)
    keeper = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(keeper, signal.SIGKILL)
    run = place.ended()
    assert (run["outcome"], run["reason"]) == ("abandoned", "holder_died")
    assert not alive(pid)


def test_without_its_lock_file_a_living_holder_is_not_taken_for_dead(place: Place) -> None:
    first = place.serve()
    start_slow(place)
    (place.run_folder / "holders" / f"{place.id_of(first)}.lock").unlink()
    second = place.serve()
    wait_for(lambda: beats(place, place.id_of(second)) >= 2)
    let_go(place)
    run = place.ended()
    assert run["holder"] == place.id_of(first)
    assert not place.rows("SELECT 1 FROM ledger WHERE kind = 'taken_over'")


def beats(place: Place, holder: object) -> int:
    """How many beats of this holder were seen so far, told by how long it lives."""
    [(started, last)] = place.rows("SELECT started_us, last_beat_us FROM holders WHERE id = ?", holder)
    return int((last - started) / 1_000_000)


def test_a_second_signal_hands_living_work_over_without_waiting_for_the_drain(place: Place) -> None:
    first = place.serve(drain="1h")
    pid = start_slow(place)
    first.terminate()
    wait_for(lambda: "stopping" in place.errors())
    first.terminate()
    assert first.wait(30) == 0
    assert alive(pid)
    wait_for_entry(place, "handed_over")
