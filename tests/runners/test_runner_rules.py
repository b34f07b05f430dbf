"""What rules ask of a keeper (F8 to F10): what is left running, silence, texts too long for a command line."""

import signal
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
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

from duly.ports import Outcome
from duly.runners import folders, keeping, logs
from duly.runners.nurseries import Nursery
from duly.runners.starting import ARGUMENT_BYTES

DAEMON = "(trap 'echo bye > ended; exit' TERM; echo $$ > pids; while :; do sleep 0.05; echo more; done) & echo done"
SOON = timedelta(seconds=0.6)


@pytest.fixture(autouse=True)
def _nothing_stays_of_a_test(nursery: Nursery, tmp_path: Path) -> Iterator[None]:
    yield
    for pid in numbers(tmp_path / "pids"):
        if lives(pid):
            kill(pid)


def test_under_leave_what_a_succeeded_command_leaves_running_lives_on_and_is_named(
    nursery: Nursery, tmp_path: Path
) -> None:
    began = time.monotonic()
    assignment = assign(tmp_path, "sleep 600 & echo $! > pids; echo done", leftovers="leave")
    outcome = perform(nursery, assignment)
    took = time.monotonic() - began
    [pid] = numbers(tmp_path / "pids")
    assert (outcome.word, outcome.confirmed) == ("succeeded", True)
    assert outcome.details == {"left_running": [f"sleep ({pid})"]}
    assert 2 <= took < 20, "what ends by itself is given the same two seconds"
    assert lives(pid)
    folders.remove_traces(assignment.folder)
    assert logs.tail(assignment.folder) == b"done\n"


def test_what_was_left_may_write_on_and_its_keeper_ends_with_it(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, DAEMON, leftovers="leave")
    assert perform(nursery, assignment).word == "succeeded"
    keeper = keeper_of(assignment)
    size = logs.size(assignment.folder)
    [daemon] = [one.pid for one in children_of(keeper)]
    written = Path(f"/proc/{daemon}/io").read_text().splitlines()[1]
    # Far more than a pipe holds: nobody may make it wait for a reader.
    until(lambda: Path(f"/proc/{daemon}/io").read_text().splitlines()[1] != written)
    assert logs.size(assignment.folder) == size, "the run has ended, and its log with it"
    kill(daemon, signal.SIGTERM)
    until(lambda: not lives(keeper))
    assert (tmp_path / "ended").exists()


def test_a_keeper_that_stays_with_what_was_left_takes_no_other_attempt(nursery: Nursery, tmp_path: Path) -> None:
    first = assign(tmp_path, "sleep 600 & echo $! > pids", leftovers="leave")
    perform(nursery, first)
    other = assign(tmp_path, "true", fence=8)
    assert perform(nursery, other).word == "succeeded"
    assert keeper_of(other) != keeper_of(first)


def test_what_was_left_outlives_the_kill_of_its_keeper(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, "sleep 600 & echo $! > pids", leftovers="leave")
    perform(nursery, assignment)
    keeper = keeper_of(assignment)
    [pid] = numbers(tmp_path / "pids")
    kill(keeper)
    until(lambda: not lives(keeper))
    # The nursery has heard of it once it serves another.
    assert perform(nursery, assign(tmp_path, "true", fence=8)).word == "succeeded"
    assert lives(pid)
    assert not (assignment.folder / "swept").exists()


def test_under_leave_a_failed_command_leaves_nothing(nursery: Nursery, tmp_path: Path) -> None:
    outcome = perform(nursery, assign(tmp_path, "sleep 600 & echo $! > pids; exit 3", leftovers="leave"))
    [pid] = numbers(tmp_path / "pids")
    assert (outcome.word, outcome.details) == ("failed", {"leftovers": [f"sleep ({pid})"]})
    assert not lives(pid)


def test_under_leave_a_cancelled_command_leaves_nothing(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, "sleep 600 & echo $! > pids; sleep 600", leftovers="leave")
    with performing(nursery, assignment) as (command, future):
        [pid] = until(lambda: numbers(tmp_path / "pids"))
        command.stop("term")
        outcome = future.result(20)
    assert isinstance(outcome, Outcome)
    assert (outcome.word, lives(pid)) == ("cancelled", False)


def test_who_adopted_a_work_sees_its_end_though_its_keeper_stays(nursery: Nursery, tmp_path: Path) -> None:
    line = "sleep 600 & echo $! > pids; while ! test -e go; do sleep 0.02; done"
    assignment = assign(tmp_path, line, leftovers="leave")
    with performing(nursery, assignment) as (first, future):
        [pid] = until(lambda: numbers(tmp_path / "pids"))
        first.stop("detach")
        future.result(20)
    adopted = assign(tmp_path, line, leftovers="leave", holder="hld_second")
    with performing(nursery, adopted, attach=True) as (_, second):
        until(lambda: mark_of(assignment)["holder"] == "hld_second")
        (tmp_path / "go").touch()
        outcome = second.result(20)
    assert isinstance(outcome, Outcome)
    assert outcome.details == {"left_running": [f"sleep ({pid})"]}
    assert lives(keeper_of(assignment))


def test_a_work_that_says_nothing_for_its_idle_timeout_is_stopped_and_timed_out(
    nursery: Nursery, tmp_path: Path
) -> None:
    began = time.monotonic()
    outcome = perform(nursery, assign(tmp_path, "echo hello; echo $$ > pids; sleep 600", idle_timeout=SOON))
    assert (outcome.word, outcome.reason, outcome.confirmed) == ("timed_out", "idle", True)
    assert outcome.error == (
        "was silent for longer than its idle timeout; ended by signal SIGTERM (15); its last line: hello"
    )
    assert 0.6 <= time.monotonic() - began < 20
    assert not lives(numbers(tmp_path / "pids")[0])


def test_a_work_that_speaks_now_and_then_is_not_idle(nursery: Nursery, tmp_path: Path) -> None:
    line = "for n in 1 2 3 4 5 6; do printf .; sleep 0.3; done"
    began = time.monotonic()
    assert perform(nursery, assign(tmp_path, line, idle_timeout=timedelta(seconds=1.5))).word == "succeeded"
    assert time.monotonic() - began >= 1.8, "longer in all than the silence it may keep"


def test_of_timeout_and_idle_timeout_the_sooner_one_tells(nursery: Nursery, tmp_path: Path) -> None:
    busy = "while :; do echo .; sleep 0.05; done"
    outcome = perform(nursery, assign(tmp_path, busy, timeout=SOON, idle_timeout=timedelta(seconds=30)))
    assert (outcome.word, outcome.reason) == ("timed_out", "timeout")


def test_a_keeper_frozen_longer_than_the_idle_timeout_reads_before_it_judges(nursery: Nursery, tmp_path: Path) -> None:
    line = "echo $$ > pids; while ! test -e go; do echo .; sleep 0.05; done"
    assignment = assign(tmp_path, line, idle_timeout=SOON)
    with performing(nursery, assignment) as (_, future):
        until(lambda: numbers(tmp_path / "pids"))
        keeper = keeper_of(assignment)
        kill(keeper, signal.SIGSTOP)
        time.sleep(1.2)  # twice the silence that is allowed: the freeze itself is what is tried
        (tmp_path / "go").touch()
        kill(keeper, signal.SIGCONT)
        outcome = future.result(20)
    assert isinstance(outcome, Outcome)
    assert outcome.word == "succeeded"


def test_further_arguments_of_a_run_come_after_the_commands_own(nursery: Nursery, tmp_path: Path) -> None:
    script = "import sys; print(sys.argv[1:])"
    action = {"kind": "command", "argv": [sys.executable, "-c", script, "own"], "cwd": "/"}
    assignment = assign(tmp_path, action, args=("two words", "--flag", "$HOME", ""))
    perform(nursery, assignment)
    assert logs.tail(assignment.folder).decode() == "['own', 'two words', '--flag', '$HOME', '']\n"


def test_a_shell_line_finds_further_arguments_by_their_numbers(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, 'echo "$0 $# [$1] [$2]"', args=("two words", "*"))
    perform(nursery, assignment)
    assert logs.tail(assignment.folder) == b"/bin/sh 2 [two words] [*]\n"


@pytest.mark.parametrize("word", ["x" * ARGUMENT_BYTES, "a\0b"])
def test_a_further_argument_that_no_program_can_be_given_starts_nothing(
    nursery: Nursery, tmp_path: Path, word: str
) -> None:
    outcome = perform(nursery, assign(tmp_path, "touch ran", args=(word,)))
    assert (outcome.word, outcome.reason, outcome.side_effect) == ("failed", "preflight", False)
    assert not (tmp_path / "ran").exists()


def test_a_shell_line_longer_than_one_argument_goes_by_a_file(nursery: Nursery, tmp_path: Path) -> None:
    line = f": '{'x' * 2 * ARGUMENT_BYTES}'; echo \"$1 ü\"; exit 3"
    assignment = assign(tmp_path, line, args=("one",))
    outcome = perform(nursery, assignment)
    assert (outcome.exit_code, outcome.error) == (3, "one ü")
    assert (assignment.folder / "line").stat().st_mode & 0o777 == 0o600
    folders.remove_traces(assignment.folder)
    assert not (assignment.folder / "line").exists()


def test_arguments_and_variables_too_long_together_are_told_with_their_sizes(nursery: Nursery, tmp_path: Path) -> None:
    action = {"kind": "command", "argv": ["echo", *["x" * 131_000] * 64], "cwd": "/"}
    error = perform(nursery, assign(tmp_path, action)).error or ""
    assert "arguments of 8,384,069 bytes" in error
    assert "$DULY_INPUT_FILE" in error


def test_what_a_work_is_left_with_after_a_holders_death_is_named_by_who_settles_it(
    nursery: Nursery, tmp_path: Path
) -> None:
    assignment = assign(tmp_path, "sleep 600 & echo $! > pids", leftovers="leave", holder=HOLDER)
    perform(nursery, assignment)
    seen = keeping.look(assignment.folder)
    assert isinstance(seen, keeping.Ended)
    [pid] = numbers(tmp_path / "pids")
    assert keeping.outcome_from_exit(seen.exit).details == {"left_running": [f"sleep ({pid})"]}
