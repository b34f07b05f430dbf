"""Holders, nurseries and keepers that are killed or frozen, and who then ends what (area D; take-over at one place)."""

import ast
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from runner_scene import (
    HOLDER,
    assign,
    children_of,
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
from duly.runners import ask, folders, keeper, keeping, logs, nursery, processes
from duly.runners.command import Command
from duly.runners.nurseries import Nursery

LONG = "echo $$ > pids; sleep 600"
SECOND = "hld_second"
HOLDER_SCRIPT = """
import json, sys
from datetime import timedelta
from pathlib import Path
from duly.ports import Assignment
from duly.runners.command import Command
from duly.runners.nurseries import Nursery
told = json.loads(sys.argv[1])
Command(Nursery(), grace=timedelta(seconds=1)).perform(Assignment(**told | {
    "due_at": None, "folder": Path(told["folder"]), "timeout": timedelta(seconds=60)}), None)
"""


def a_holder(assignment: Assignment) -> subprocess.Popen[bytes]:
    """Start a process that holds and performs the assignment."""
    names = ("run", "attempt", "fence", "holder", "task", "task_name", "project", "occurrence", "opened_by", "input")
    told = {name: getattr(assignment, name) for name in names}
    told |= {"action": dict(assignment.action), "folder": str(assignment.folder)}
    return subprocess.Popen([sys.executable, "-c", HOLDER_SCRIPT, json.dumps(told)], stdin=subprocess.DEVNULL)


def attached(nursery: Nursery, assignment: Assignment) -> Outcome:
    """Look after what another holder has started, to its end."""
    outcome = Command(nursery).perform(assignment, {})
    assert isinstance(outcome, Outcome)
    return outcome


def stopped(assignment: Assignment) -> keeping.KeeperStopped | None:
    """Give the keeper if it is seen to be frozen."""
    seen = keeping.look(assignment.folder)
    return seen if isinstance(seen, keeping.KeeperStopped) else None


def by_another(assignment: Assignment) -> Assignment:
    """Give the same attempt in the hands of the second holder."""
    return assign(
        assignment.folder.parent.parent, assignment.action, run=assignment.run, fence=assignment.fence, holder=SECOND
    )


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


def test_a_new_nursery_takes_the_place_of_a_dead_one(nursery: Nursery, tmp_path: Path) -> None:
    assert perform(nursery, assign(tmp_path, "true")).word == "succeeded"
    first = nursery.pid
    assert first is not None
    kill(first)
    assert perform(nursery, assign(tmp_path, "true", fence=8)).word == "succeeded"
    assert nursery.pid not in (None, first)
    assert processes.read(first) is None, "the dead one was reaped"


def test_work_goes_on_when_its_nursery_dies(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, "echo $$ > pids; while ! test -e go; do sleep 0.02; done; exit 6")
    with performing(nursery, assignment) as (_, future):
        until(lambda: numbers(tmp_path / "pids"))
        assert nursery.pid is not None
        kill(nursery.pid)
        (tmp_path / "go").touch()
        outcome = future.result(20)
    assert isinstance(outcome, Outcome)
    assert outcome.exit_code == 6


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


def test_a_keeper_refuses_to_start_when_its_holder_has_hung_up(tmp_path: Path) -> None:
    assignment = assign(tmp_path, "touch ran")
    assignment.folder.mkdir(parents=True)
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel, far = socket.socketpair()
    lock = os.open(assignment.folder / "lock", os.O_RDWR | os.O_CREAT)
    asked = ask.Ask(
        run="run_x",
        fence=1,
        holder=HOLDER,
        argv=["touch", "ran"],
        cwd=str(tmp_path),
        env=dict(os.environ),
        timeout_s=60,
        idle_s=None,
        leave=False,
        grace_s=1,
        stdin=False,
        stdout=False,
        starter=(1, 1),
    )
    channel.sendall(ask.sent(asked))
    socket.send_fds(control, [os.fsencode(assignment.folder)], [far.fileno(), lock])
    for end in (channel, far, control):
        end.close()
    os.close(lock)
    # Everything that was asked for lies ready, and nobody holds the other ends any more.
    argv = [sys.executable, "-I", "-S", nursery.__file__]
    code = f"import os; os.dup2({theirs.fileno()}, {nursery.CONTROL}); os.execv({argv[0]!r}, {argv!r})"
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", code], pass_fds=[theirs.fileno()]) as process:
        theirs.close()
        assert process.wait(20) == 0
    assert not (tmp_path / "ran").exists()
    assert not (assignment.folder / "begun").exists()


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


def test_the_lock_is_held_by_the_work_and_by_nobody_of_the_holder(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, LONG)
    with performing(nursery, assignment) as (command, future):
        [pid] = until(lambda: numbers(tmp_path / "pids"))
        assert keeping.lock_held(assignment.folder)
        wanted = (assignment.folder / "lock").stat()
        who = {pid, keeper_of(assignment), os.getpid(), nursery.pid or 0}
        links = {one: [link for link in Path(f"/proc/{one}/fd").iterdir() if link.exists()] for one in who}
        holds = {one for one, all_of in links.items() if any(os.path.samestat(each.stat(), wanted) for each in all_of)}
        assert holds == {pid, keeper_of(assignment)}
        found = processes.read(pid)
        assert found is not None
        assert (found.group, found.session) == (pid, keeper_of(assignment))
        command.stop("kill")
        future.result(20)
    assert not keeping.lock_held(assignment.folder)


def test_the_nursery_and_its_keepers_load_nothing_of_the_house_but_each_other() -> None:
    kin = {"ask", "endings", "keeper", "nursery", "output", "processes", "starting"}
    here = Path(keeper.__file__).parent
    for name in kin:
        for node in ast.walk(ast.parse((here / f"{name}.py").read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("duly"):
                assert node.module == "duly.runners.ask" or {one.name for one in node.names} <= kin
                assert (node.module or "").startswith("duly.runners")
            elif isinstance(node, ast.Import):
                assert {one.name.split(".")[0] for one in node.names} <= sys.stdlib_module_names


def test_the_nursery_is_deaf_to_the_terminal_and_ends_with_its_holder(nursery: Nursery, tmp_path: Path) -> None:
    assert perform(nursery, assign(tmp_path, "true")).word == "succeeded"
    first = nursery.pid
    assert first is not None
    found = processes.read(first)
    assert found is not None
    assert found.session == first
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        kill(first, number)
    assert perform(nursery, assign(tmp_path, "true", fence=8)).word == "succeeded"
    assert nursery.pid == first
    assert children_of(first) == [] or until(lambda: children_of(first) == [])


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


def test_a_keeper_keeps_one_attempt_after_the_other_and_carries_nothing_over(nursery: Nursery, tmp_path: Path) -> None:
    first = assign(tmp_path, "cd /; sleep 0.1 & exec sh -c 'trap \"\" HUP; echo one; kill -TERM $$'")
    second = assign(tmp_path, "pwd; echo ${OWN-none}; ls -l /proc/self/fd | grep -c '^l'", fence=8)
    assert perform(nursery, first).reason == "signal"
    assert perform(nursery, second).word == "succeeded"
    assert mark_of(first)["keeper"] == mark_of(second)["keeper"]
    assert logs.tail(second.folder).decode().split() == [str(tmp_path), "none", "5"]


def test_a_keeper_that_others_may_watch_takes_no_other_attempt(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, "echo $$ > pids; while ! test -e go; do sleep 0.02; done")
    with performing(nursery, assignment) as (_, future):
        until(lambda: numbers(tmp_path / "pids"))
        number = keeper_of(assignment)
        assert keeping.send_adopt(assignment.folder, holder=SECOND, fence=assignment.fence)
        (tmp_path / "go").touch()
        future.result(20)
    other = assign(tmp_path, "true", fence=8)
    perform(nursery, other)
    assert keeper_of(other) != number
    until(lambda: not lives(number))


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


def test_a_killed_keeper_without_an_attempt_is_nobodys_loss(nursery: Nursery, tmp_path: Path) -> None:
    first = assign(tmp_path, "true")
    perform(nursery, first)
    kill(keeper_of(first))
    assert perform(nursery, assign(tmp_path, "true", fence=8)).word == "succeeded"
    assert isinstance(keeping.look(first.folder), keeping.Ended)


def test_keepers_without_an_attempt_end_with_their_nursery(nursery: Nursery, tmp_path: Path) -> None:
    attempts = [assign(tmp_path, f"touch here{n}; until test -e here{1 - n}; do :; done", fence=n) for n in range(2)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda one: perform(nursery, one), attempts))
    keepers = [keeper_of(one) for one in attempts]
    assert nursery.pid is not None
    kill(nursery.pid)
    until(lambda: not any(lives(one) for one in keepers))
