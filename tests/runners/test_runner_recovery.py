"""Holders, nurseries and keepers that are killed or frozen, and who then ends what (area D; take-over at one place)."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from runner_holders import LONG, SECOND, a_holder, attached, by_another, stopped
from runner_scene import (
    HOLDER,
    assign,
    keeper_of,
    kill,
    lives,
    mark_of,
    numbers,
    perform,
    performing,
    until,
)

from duly import clock
from duly.ports import Assignment, Detached, Outcome
from duly.runners import folders, keeping, logs, processes
from duly.runners.command import Command
from duly.runners.nurseries import Nursery


def test_a_command_whose_holder_was_killed_is_adopted_with_its_output_and_exit_status_intact(
    nursery: Nursery, tmp_path: Path
) -> None:
    line = "echo $$ > pids; echo before; while ! test -e go; do sleep 0.02; done; echo after >&2; exit 5"
    assignment = assign(tmp_path, line)
    with a_holder(assignment) as holder:
        [pid] = until(lambda: numbers(tmp_path / "pids"))
        first = keeper_of(assignment)
        nursery_pid = mark_of(assignment)["nursery"][0]
        holder.kill()
    assert lives(pid)
    with performing(nursery, by_another(assignment), attach=True) as (_, future):
        until(lambda: mark_of(assignment)["holder"] == SECOND)
        (tmp_path / "go").touch()
        outcome = future.result(20)
    assert isinstance(outcome, Outcome)
    assert (outcome.word, outcome.exit_code, outcome.error) == ("failed", 5, "after")
    assert logs.tail(assignment.folder) == b"before\nafter\n"
    assert numbers(tmp_path / "pids") == [pid], "it ran once"
    until(lambda: not lives(first))
    until(lambda: not lives(nursery_pid))


def test_what_ended_while_nobody_held_it_is_settled_from_its_exit_file(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, "echo $$ > pids; while ! test -e go; do sleep 0.02; done; echo said")
    with a_holder(assignment) as holder:
        until(lambda: numbers(tmp_path / "pids"))
        holder.kill()
    (tmp_path / "go").touch()
    until(lambda: isinstance(keeping.look(assignment.folder), keeping.Ended))
    assert attached(nursery, by_another(assignment)).word == "succeeded"


def test_a_second_holder_can_cancel_what_it_adopted(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, LONG)
    with a_holder(assignment) as holder:
        [pid] = until(lambda: numbers(tmp_path / "pids"))
        holder.kill()
    with performing(nursery, by_another(assignment), attach=True) as (command, future):
        command.stop("term")
        outcome = future.result(20)
    assert isinstance(outcome, Outcome)
    assert (outcome.word, lives(pid)) == ("cancelled", False)


def test_what_was_asked_to_end_before_its_adopter_looked_ends(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, LONG)
    with a_holder(assignment) as holder:
        [pid] = until(lambda: numbers(tmp_path / "pids"))
        holder.kill()
    command = Command(nursery)
    command.stop("term")
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(command.perform, by_another(assignment), {})
        try:
            outcome = future.result(20)
        finally:
            command.stop("kill")
    assert isinstance(outcome, Outcome)
    assert (outcome.word, lives(pid)) == ("cancelled", False)


def test_what_is_let_go_lives_on_and_is_adopted(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, "echo $$ > pids; while ! test -e go; do sleep 0.02; done")
    with performing(nursery, assignment) as (command, future):
        [pid] = until(lambda: numbers(tmp_path / "pids"))
        command.stop("detach")
        assert future.result(20) == Detached()
    assert lives(pid)
    (tmp_path / "go").touch()
    assert attached(nursery, by_another(assignment)).word == "succeeded"


def test_the_tree_of_a_killed_keeper_is_ended_by_the_nursery_which_says_so(nursery: Nursery, tmp_path: Path) -> None:
    line = "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ >> pids; sleep 600' & echo $$ >> pids; sleep 600"
    assignment = assign(tmp_path, line)
    with performing(nursery, assignment) as (_, future):
        until(lambda: len(numbers(tmp_path / "pids")) == 2)
        kill(keeper_of(assignment))
        outcome = future.result(20)
    assert isinstance(outcome, Outcome)
    assert (outcome.word, outcome.reason, outcome.confirmed) == ("abandoned", "holder_died", True)
    assert (assignment.folder / "swept").exists()
    assert [pid for pid in numbers(tmp_path / "pids") if lives(pid)] == []
    assert not keeping.lock_held(assignment.folder)


def test_a_killed_keeper_takes_no_other_keepers_work_with_it(nursery: Nursery, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other = assign(tmp_path / "a", LONG), assign(tmp_path / "b", LONG)
    with performing(nursery, one) as (_, first), performing(nursery, other) as (command, second):
        [pid] = until(lambda: numbers(tmp_path / "b" / "pids"))
        until(lambda: numbers(tmp_path / "a" / "pids"))
        kill(keeper_of(one))
        first.result(20)
        assert lives(pid)
        command.stop("term")
        outcome = second.result(20)
    assert isinstance(outcome, Outcome)
    assert outcome.word == "cancelled"


@pytest.mark.parametrize("found_by", ["its environment", "its session", "its lock"])
def test_strays_of_a_killed_keeper_and_nursery_are_found_and_ended(
    nursery: Nursery, tmp_path: Path, found_by: str
) -> None:
    sleeper = "echo $$ > pids; exec 9>&-; exec sleep 600"
    by = {
        "its environment": f"exec setsid sh -c 'exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&-; {sleeper}'",
        "its session": f"exec env -i sh -c 'exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&-; {sleeper}'",
        "its lock": f"exec env -i setsid -w sh -c '{sleeper}'",
    }
    assignment = assign(tmp_path, by[found_by])
    with performing(nursery, assignment) as (_, future):
        [pid] = until(lambda: numbers(tmp_path / "pids"))
        assert nursery.pid is not None
        kill(nursery.pid)
        kill(keeper_of(assignment))
        outcome = future.result(20)
    assert isinstance(outcome, Outcome)
    assert (outcome.word, outcome.reason, outcome.confirmed) == ("abandoned", "end_not_confirmed", False)
    assert not lives(pid)


def test_ending_strays_spares_another_fence_of_the_run_and_strangers(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, LONG)
    with performing(nursery, assignment) as (_, future):
        [pid] = until(lambda: numbers(tmp_path / "pids"))
        newer = {"DULY_RUN": assignment.run, "DULY_FENCE": "8"}
        with (
            subprocess.Popen(["sleep", "600"], env=os.environ | newer) as later,
            subprocess.Popen(["sleep", "600"], start_new_session=True) as stranger,
        ):
            try:
                assert nursery.pid is not None
                kill(nursery.pid)
                kill(keeper_of(assignment))
                future.result(20)
                assert (lives(pid), lives(later.pid), lives(stranger.pid)) == (False, True, True)
            finally:
                later.kill()
                stranger.kill()


def test_a_frozen_keeper_is_seen_goes_on_after_cont_and_obeys(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, LONG)
    with performing(nursery, assignment) as (command, future):
        [pid] = until(lambda: numbers(tmp_path / "pids"))
        kill(keeper_of(assignment), signal.SIGSTOP)
        frozen = until(lambda: stopped(assignment))
        assert keeping.continue_or_kill(frozen)
        assert isinstance(keeping.look(assignment.folder), keeping.KeeperAlive)
        kill(keeper_of(assignment), signal.SIGSTOP)
        command.stop("term")
        outcome = future.result(20)
    assert isinstance(outcome, Outcome)
    assert (outcome.word, lives(pid)) == ("cancelled", False)


def test_a_keeper_frozen_for_good_is_killed_and_its_tree_ended(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, LONG)
    with performing(nursery, assignment) as (_, future):
        [pid] = until(lambda: numbers(tmp_path / "pids"))
        number = keeper_of(assignment)
        kill(number, signal.SIGSTOP)
        frozen = until(lambda: stopped(assignment))
        # What froze it for good is played by asking for one with other ticks: CONT reaches nobody.
        assert not keeping.continue_or_kill(keeping.KeeperStopped(pid=frozen.pid, ticks=frozen.ticks + 1))
        assert isinstance(keeping.look(assignment.folder), keeping.KeeperStopped), "another one's number kills nobody"
        kill(number)
        assert keeping.wait_swept(assignment.folder, within_s=10)
        assert not lives(pid)
        future.result(20)


def test_orders_of_an_older_fence_or_of_another_holder_are_refused(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, LONG)
    folder, fence = assignment.folder, assignment.fence
    with performing(nursery, assignment) as (_, future):
        [pid] = until(lambda: numbers(tmp_path / "pids"))
        assert keeping.send_end(folder, holder=SECOND, fence=fence, how="kill")
        assert keeping.send_end(folder, holder=HOLDER, fence=fence - 1, how="kill")
        assert keeping.send_adopt(folder, holder=SECOND, fence=fence - 1)
        # An order that is obeyed shows that the keeper has read what came before it.
        assert keeping.send_adopt(folder, holder="hld_third", fence=fence)
        until(lambda: mark_of(assignment)["holder"] == "hld_third")
        assert keeping.send_end(folder, holder=HOLDER, fence=fence, how="kill")
        assert keeping.send_adopt(folder, holder="hld_fourth", fence=fence)
        until(lambda: mark_of(assignment)["holder"] == "hld_fourth")
        assert lives(pid)
        # It may read the order, obey and be gone before it is woken: what came of it is the proof.
        keeping.send_end(folder, holder="hld_fourth", fence=fence, how="kill")
        outcome = future.result(20)
    assert isinstance(outcome, Outcome)
    assert outcome.word == "cancelled"


def test_of_many_that_try_to_create_the_mark_one_decides(nursery: Nursery, tmp_path: Path) -> None:
    for number in range(12):
        assignment = assign(tmp_path, f"touch ran{number}", run=f"run_{number}")
        gate = threading.Barrier(5)

        def forbid(folder: Path, gate: threading.Barrier = gate) -> bool:
            gate.wait()
            return keeping.forbid_start(folder)

        def start(assignment: Assignment, gate: threading.Barrier = gate) -> Outcome:
            gate.wait()
            return perform(nursery, assignment)

        with ThreadPoolExecutor(5) as pool:
            tries = [pool.submit(forbid, assignment.folder) for _ in range(4)]
            outcome = pool.submit(start, assignment).result(20)
            forbidden = {one.result(20) for one in tries}
        started = (tmp_path / f"ran{number}").exists()
        assert forbidden == {not started}
        assert (outcome.word, outcome.side_effect) == (("succeeded", True) if started else ("abandoned", False))


def test_a_forbidden_start_starts_nothing_and_stays_forbidden(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, "touch ran")
    assert keeping.look(assignment.folder) == keeping.NeverStarted(forbidden=False)
    assert keeping.forbid_start(assignment.folder)
    folders.remove_traces(assignment.folder)
    assert keeping.look(assignment.folder) == keeping.NeverStarted(forbidden=True)
    outcome = perform(nursery, assignment)
    assert (outcome.word, outcome.reason, outcome.side_effect) == ("abandoned", "fence_lost", False)
    assert not (tmp_path / "ran").exists()


def test_what_never_began_is_given_back_by_who_takes_it_over(nursery: Nursery, tmp_path: Path) -> None:
    outcome = attached(nursery, assign(tmp_path, "touch ran"))
    assert (outcome.word, outcome.reason, outcome.side_effect) == ("abandoned", "returned", False)


def test_a_recycled_number_is_neither_taken_for_the_keeper_nor_signalled(tmp_path: Path) -> None:
    assignment = assign(tmp_path, "true")
    assignment.folder.mkdir(parents=True)
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as stranger:
        try:
            found = processes.read(stranger.pid)
            assert found is not None
            descriptor = os.open(assignment.folder, os.O_RDONLY)
            identity = [found.pid, found.ticks - 1]
            mark: dict[str, object] = {}
            mark |= {"boot": clock.boot_id(), "pids": processes.namespace(), "keeper": identity, "nursery": identity}
            mark |= {"starter": None, "run": "run_x", "fence": 1, "holder": HOLDER, "work": None}
            begun = processes.create_whole(descriptor, "begun", mark)
            assert begun is not None
            os.close(begun)
            os.close(descriptor)
            assert keeping.look(assignment.folder) == keeping.KeeperGone(nursery_alive=False)
            assert not keeping.send_end(assignment.folder, holder=HOLDER, fence=1, how="kill")
            assert not keeping.continue_or_kill(keeping.KeeperStopped(pid=found.pid, ticks=found.ticks - 1), within_s=0)
            assert keeping.end_strays(assignment.folder, "run_x") == ()
            assert lives(stranger.pid)
        finally:
            stranger.kill()


def test_what_began_in_another_boot_is_gone_unless_its_exit_is_whole(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, "exit 3")
    perform(nursery, assignment)
    mark = mark_of(assignment) | {"boot": "another"}
    descriptor = os.open(assignment.folder, os.O_RDONLY)
    processes.write_whole(descriptor, "begun", mark)
    os.close(descriptor)
    assert attached(nursery, assignment).exit_code == 3
    whole = (assignment.folder / "exit").read_bytes()
    for torn in (whole[:-2], whole[1:], whole.replace(b'"exit_code":3', b'"exit_code":0'), b""):
        (assignment.folder / "exit").write_bytes(torn)
        assert keeping.look(assignment.folder) == keeping.Rebooted()
    outcome = attached(nursery, assignment)
    assert (outcome.word, outcome.confirmed) == ("abandoned", True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a pid namespace without more ado")
def test_a_keeper_in_another_pid_namespace_is_adopted_by_files(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, LONG)
    with performing(nursery, assignment) as (_, future):
        until(lambda: numbers(tmp_path / "pids"))
        told = {"run": assignment.run, "folder": str(assignment.folder), "cwd": str(tmp_path)}
        code = f"""
import sys, threading
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from runner_scene import assign
from duly.runners.command import Command
from duly.runners.nurseries import Nursery
from duly.runners import keeping
told = {told!r}
assignment = assign(Path(told["cwd"]), "true", run=told["run"], holder={SECOND!r})
assert isinstance(keeping.look(assignment.folder), keeping.Elsewhere)
command = Command(Nursery())
threading.Timer(0.2, command.stop, ["term"]).start()
print(command.perform(assignment, {{}}).word)
"""
        inside = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-c", code]
        done = subprocess.run(inside, capture_output=True, text=True, timeout=30, check=False)
        if "unshare" in done.stderr:
            pytest.skip(done.stderr.strip())
        outcome = future.result(20)
    assert (done.stdout.strip(), done.stderr) == ("cancelled", "")
    assert isinstance(outcome, Outcome)
    assert outcome.word == "cancelled"


def test_who_adopts_while_the_work_is_ending_sees_the_same_end(nursery: Nursery, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        for number in range(60):
            assignment = assign(tmp_path, f"sleep 0.0{number % 10}", run=f"run_{number}")
            first = pool.submit(perform, nursery, assignment)
            other = pool.submit(perform, nursery, assign(tmp_path, "true", run=f"other_{number}"))
            until(lambda at=assignment: mark_of(at))  # type: ignore[misc]
            adopted = pool.submit(attached, nursery, by_another(assignment))
            assert adopted.result(20) == first.result(20)
            assert other.result(20).word == "succeeded"
