"""The nursery and its keepers: what they are made of, how they follow one another, how they end."""

import ast
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from runner_holders import LONG, SECOND
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

from duly.ports import Outcome
from duly.runners import ask, keeper, keeping, logs, nursery, processes
from duly.runners.nurseries import Nursery


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
    kin = {"ask", "deadlines", "endings", "keeper", "nursery", "output", "processes", "starting"}
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
        spoken=False,
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
