"""Gates: asked with real programs under real keepers; what they answer, what they leave, how they are ended."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from runner_scene import assign, kill, lives, mark_of, numbers, until

from duly.core.successes import Success
from duly.core.task import Gate
from duly.ports import Assignment
from duly.runners import gates, keeping
from duly.runners.gates import Asking, Closed, Open, Stopped
from duly.runners.nurseries import Nursery

LONG = "echo $$ > pids; sleep 600"


def gate(line: str, **more: Any) -> Gate:
    return Gate(argv=("sh", "-c", line), **more)


def work(folder: Path, **changes: Any) -> Assignment:
    return assign(folder, {"kind": "command", "shell": "false", "cwd": str(folder), "env": {"WHAT": "this"}}, **changes)


def ask(nursery: Nursery, folder: Path, line: str, **more: Any) -> Open | Closed | Stopped:
    return Asking(nursery, gate(line, **more)).ask(work(folder))


@contextmanager
def being_asked(nursery: Nursery, assignment: Assignment, asked: Gate) -> Iterator[tuple[Asking, Future[Any]]]:
    """Ask in a thread; what is still asked in the end is killed."""
    asking = Asking(nursery, asked)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(asking.ask, assignment)
        try:
            yield asking, future
        finally:
            asking.stop("kill")


def test_exit_status_0_lets_the_attempt_begin_and_leaves_nothing(nursery: Nursery, tmp_path: Path) -> None:
    assignment = work(tmp_path)
    assert Asking(nursery, gate("echo; echo ready; echo more")).ask(assignment) == Open(said="ready")
    assert not assignment.folder.exists()
    assert Asking(nursery, gate("true")).ask(assignment) == Open(said=None)


@pytest.mark.parametrize("status", [1, 75])
def test_exit_status_1_or_75_says_not_now_with_its_first_line(nursery: Nursery, tmp_path: Path, status: int) -> None:
    told = f"the gate said not now (exit status {status})"
    found = ask(nursery, tmp_path, f"echo 'no ticket' >&2; echo more; exit {status}", on_error="go")
    expected = Closed(reason="gate_closed", told=f"{told}: no ticket", exit_code=status, said="no ticket")
    assert found == expected, "on_error is for gates that could not be asked"
    assert ask(nursery, tmp_path, f"exit {status}") == Closed(reason="gate_closed", told=told, exit_code=status)


FAILING: dict[str, tuple[Gate, str]] = {
    "another status": (gate("echo broken; exit 3"), "the gate could not be asked: exit status 3: broken"),
    "a shell that finds nothing": (gate("no-such-program 2>/dev/null"), "the gate could not be asked: exit status 127"),
    "no such program": (
        Gate(argv=("no-such-gate",)),
        "the gate could not be asked: the program no-such-gate was not found",
    ),
    "a signal": (gate("kill -9 $$"), "the gate could not be asked: ended by signal SIGKILL (9), from elsewhere"),
    "its timeout": (
        gate("echo thinking; sleep 600", timeout=timedelta(seconds=0.3)),
        "the gate could not be asked: it took longer than 0.3s: thinking",
    ),
}


@pytest.mark.parametrize("fault", FAILING)
def test_any_other_end_is_no_answer_and_the_rule_decides(nursery: Nursery, tmp_path: Path, fault: str) -> None:
    asked, told = FAILING[fault]
    found = Asking(nursery, asked).ask(work(tmp_path))
    assert isinstance(found, Closed)
    assert (found.reason, found.told) == ("gate_failed", told)
    going = Gate(argv=asked.argv, timeout=asked.timeout, on_error="go")
    assert Asking(nursery, going).ask(work(tmp_path)) == Open(said=told, asked=False)


def test_a_gate_is_not_asked_in_a_folder_that_is_gone_or_without_its_secrets(nursery: Nursery, tmp_path: Path) -> None:
    gone = assign(tmp_path, {"kind": "command", "shell": "true", "cwd": str(tmp_path / "gone"), "env": {}})
    found = Asking(nursery, gate("true")).ask(gone)
    assert isinstance(found, Closed)
    assert "gone cannot be entered" in found.told
    bare = assign(tmp_path, {"kind": "command", "shell": "true", "cwd": "/", "env": {"KEY": "${NO_SUCH_SECRET}"}})
    found = Asking(nursery, gate("true")).ask(bare)
    assert isinstance(found, Closed)
    assert "the secret NO_SUCH_SECRET" in found.told


def test_a_gate_sees_what_its_work_would_see_and_may_be_silent(nursery: Nursery, tmp_path: Path) -> None:
    line = 'env > seen; cat "$DULY_INPUT_FILE" >> seen; pwd > here; sleep 0.5'
    assignment = work(tmp_path, input="a ticket", args=("--more",), idle_timeout=timedelta(seconds=0.1))
    assert isinstance(Asking(nursery, gate(line)).ask(assignment), Open)
    seen = (tmp_path / "seen").read_text()
    for told in (f"DULY_RUN={assignment.run}", "DULY_ATTEMPT=2", "DULY_FENCE=7", "DULY_INPUT=a ticket", "WHAT=this"):
        assert told in seen
    assert seen.endswith("a ticket")
    assert (tmp_path / "here").read_text().strip() == str(tmp_path)


def test_what_a_gate_says_is_kept_short_and_is_no_output_of_the_run(nursery: Nursery, tmp_path: Path) -> None:
    assignment = work(tmp_path)
    found = Asking(nursery, gate("yes x | head -c 20000000 | tr -d '\\n'; exit 1")).ask(assignment)
    assert isinstance(found, Closed)
    assert found.said == "x" * 199 + "…"
    assert len(found.told) < 300
    assert not assignment.folder.exists()
    colour = ask(nursery, tmp_path, "printf '\\033[31mred\\033[0m\\a\\n'; exit 1")
    assert isinstance(colour, Closed)
    assert colour.said == "red"


def test_the_whole_tree_of_a_gate_has_ended_before_it_answers(nursery: Nursery, tmp_path: Path) -> None:
    deaf = "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ >> pids; sleep 600' & echo $$ >> pids; sleep 600"
    asking = Asking(nursery, gate(deaf, timeout=timedelta(seconds=0.5)))
    found = asking.ask(work(tmp_path))
    assert isinstance(found, Closed)
    assert found.reason == "gate_failed"
    assert len(numbers(tmp_path / "pids")) == 2
    assert [pid for pid in numbers(tmp_path / "pids") if lives(pid)] == []


@pytest.mark.parametrize("how", ["term", "kill", "detach"])
def test_a_gate_that_is_stopped_gives_no_answer_and_is_never_handed_over(
    nursery: Nursery, tmp_path: Path, how: Any
) -> None:
    assignment = work(tmp_path)
    with being_asked(nursery, assignment, gate(LONG, on_error="go")) as (asking, future):
        [pid] = until(lambda: numbers(tmp_path / "pids"))
        assert gates.is_asked(assignment.folder)
        asking.stop(how)
        assert future.result(20) == Stopped()
    assert not lives(pid)
    assert not assignment.folder.exists()


def test_what_a_gate_leaves_running_is_ended_whatever_its_work_may_leave(nursery: Nursery, tmp_path: Path) -> None:
    assignment = work(tmp_path, leftovers="leave")
    assert isinstance(Asking(nursery, gate("sleep 600 & echo $! > pids")).ask(assignment), Open)
    [pid] = numbers(tmp_path / "pids")
    assert not lives(pid)


def test_a_gate_that_was_stopped_before_is_not_asked_at_all(nursery: Nursery, tmp_path: Path) -> None:
    asking = Asking(nursery, gate("touch asked"))
    asking.stop("term")
    assert asking.ask(work(tmp_path)) == Stopped()
    assert not (tmp_path / "asked").exists()


def test_a_gate_whose_keeper_was_killed_gave_no_answer(nursery: Nursery, tmp_path: Path) -> None:
    assignment = work(tmp_path)
    with being_asked(nursery, assignment, gate(LONG)) as (_, future):
        [pid] = until(lambda: numbers(tmp_path / "pids"))
        kill(int(mark_of(of_gate(assignment))["keeper"][0]))
        found = future.result(20)
    assert isinstance(found, Closed)
    assert (found.reason, lives(pid)) == ("gate_failed", False)
    assert "its keeper was killed" in found.told


def of_gate(assignment: Assignment) -> Assignment:
    return replace(assignment, folder=assignment.folder / "gate")


def test_who_takes_over_ends_the_gate_and_forbids_that_it_is_asked_again(nursery: Nursery, tmp_path: Path) -> None:
    assignment = work(tmp_path)
    second = work(tmp_path, holder="hld_second")
    with being_asked(nursery, assignment, gate(f"trap '' TERM; {LONG}")) as (_, future):
        [pid] = until(lambda: numbers(tmp_path / "pids"))
        assert keeping.forbid_start(assignment.folder)
        assert gates.end(second)
        assert not lives(pid)
        future.result(20)
    late = work(tmp_path, fence=8)
    assert not gates.end(late), "its gate was never asked"
    assert [path.name for path in (late.folder / "gate").iterdir()] == ["begun"]
    found = Asking(nursery, gate("touch asked", on_error="go")).ask(late)
    assert found == Stopped()
    assert not (tmp_path / "asked").exists()


def test_a_frozen_asker_that_wakes_after_its_gate_was_ended_learns_nothing(nursery: Nursery, tmp_path: Path) -> None:
    assignment = work(tmp_path)
    with being_asked(nursery, assignment, gate(LONG, on_error="closed")) as (_, future):
        until(lambda: numbers(tmp_path / "pids"))
        gates.end(work(tmp_path, holder="hld_second"))
        assert not isinstance(future.result(20), Open)


def test_what_a_task_calls_a_success_is_not_asked_of_its_gate(nursery: Nursery, tmp_path: Path) -> None:
    rule = Success(exit=(3,), matches="^done$", file="out.md")
    assert isinstance(Asking(nursery, gate("true")).ask(work(tmp_path, success_when=rule)), Open)
    found = Asking(nursery, gate("exit 3")).ask(work(tmp_path, fence=8, success_when=rule))
    assert isinstance(found, Closed)
    assert found.reason == "gate_failed"
