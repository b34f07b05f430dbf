"""Commands: how they end, what they see, and that nothing of them stays (areas F1 to F8)."""

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from runner_scene import assign, children_of, keeper_of, lives, mark_of, numbers, perform, performing, until

from duly.ports import Outcome
from duly.runners import folders, keeping, logs, processes
from duly.runners.command import Command
from duly.runners.nurseries import Nursery

SHORT = timedelta(seconds=1)


def test_exit_status_0_is_success_and_leaves_no_folder(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, {"kind": "command", "argv": ["true"], "cwd": "/"})
    assert perform(nursery, assignment) == Outcome(word="succeeded", exit_code=0)
    folders.remove_traces(assignment.folder)
    assert not assignment.folder.exists()


def test_another_exit_status_is_a_failure_whose_text_is_its_last_line(nursery: Nursery, tmp_path: Path) -> None:
    outcome = perform(nursery, assign(tmp_path, "echo fine; printf '\\033[31mno such table\\033[0m\\n\\n' >&2; exit 3"))
    assert (outcome.word, outcome.reason, outcome.exit_code) == ("failed", "exit_status", 3)
    assert outcome.error == "no such table"


def test_a_failure_without_a_word_has_its_exit_status_as_text(nursery: Nursery, tmp_path: Path) -> None:
    assert perform(nursery, assign(tmp_path, "exit 4")).error == "exit status 4"


def test_a_long_last_line_is_cut_to_what_a_text_may_hold(nursery: Nursery, tmp_path: Path) -> None:
    error = perform(nursery, assign(tmp_path, "head -c 3000 /dev/zero | tr '\\0' x; exit 1")).error
    assert error is not None
    assert len(error) == keeping.ERROR_CHARACTERS


def test_a_signal_from_elsewhere_is_a_failure_that_names_it(nursery: Nursery, tmp_path: Path) -> None:
    outcome = perform(nursery, assign(tmp_path, "echo halfway; kill -SEGV $$"))
    assert (outcome.word, outcome.reason, outcome.signal) == ("failed", "signal", signal.SIGSEGV)
    assert outcome.error == "ended by signal SIGSEGV (11), from elsewhere; its last line: halfway"


def test_when_its_leader_is_killed_the_rest_of_a_command_is_ended_too(nursery: Nursery, tmp_path: Path) -> None:
    outcome = perform(nursery, assign(tmp_path, "sleep 600 & echo $! > pids; kill -9 $$"))
    assert (outcome.reason, outcome.signal) == ("signal", signal.SIGKILL)
    assert not lives(numbers(tmp_path / "pids")[0])


@pytest.mark.parametrize(
    ("made", "action", "reason", "said"),
    [
        (None, {"argv": ["no-such-program"]}, "not_found", "no-such-program was not found"),
        (None, {"argv": ["./absent"]}, "not_found", "./absent was not found"),
        ("text", {"argv": ["./made"]}, "not_executable", "Permission denied"),
        ("#!/no/such/interpreter\n", {"argv": ["./made"]}, "not_found", "the interpreter"),
        ("no program\n", {"argv": ["./made"]}, "not_executable", "no #! line"),
        (None, {"argv": ["true"], "cwd": "/no/such/place"}, "no_directory", "/no/such/place"),
        (None, {"argv": ["true"], "cwd": "/etc/passwd"}, "no_directory", "Not a directory"),
    ],
)
def test_what_cannot_be_started_fails_before_it_starts_and_says_why(
    nursery: Nursery, tmp_path: Path, made: str | None, action: dict[str, object], reason: str, said: str
) -> None:
    if made is not None:
        (tmp_path / "made").write_text(made)
        (tmp_path / "made").chmod(0o600 if made == "text" else 0o700)
    outcome = perform(nursery, assign(tmp_path, {"kind": "command", "cwd": str(tmp_path)} | action))
    assert (outcome.word, outcome.reason, outcome.side_effect) == ("failed", reason, False)
    assert said in (outcome.error or "")


def test_a_timeout_ends_the_whole_group(nursery: Nursery, tmp_path: Path) -> None:
    began = time.monotonic()
    outcome = perform(
        nursery, assign(tmp_path, "sleep 600 & echo $! $$ | tr ' ' '\\n' > pids; sleep 600", timeout=SHORT)
    )
    assert (outcome.word, outcome.reason, outcome.confirmed) == ("timed_out", "timeout", True)
    assert 1 <= time.monotonic() - began < 20
    assert [pid for pid in numbers(tmp_path / "pids") if lives(pid)] == []


def test_a_family_deaf_to_term_is_killed_when_its_grace_is_over(nursery: Nursery, tmp_path: Path) -> None:
    line = "trap '' TERM; (trap '' TERM; echo 1 >> ready; sleep 600) & echo $! > pids; echo $$ >> pids; wait"
    assignment = assign(tmp_path, line)
    with performing(nursery, assignment, grace_s=0.6) as (command, future):
        until((tmp_path / "ready").exists)
        until(lambda: len(numbers(tmp_path / "pids")) == 2)
        asked = time.monotonic()
        command.stop("term")
        outcome = future.result(20)
    assert isinstance(outcome, Outcome)
    assert time.monotonic() - asked >= 0.6
    assert (outcome.word, outcome.reason, outcome.signal) == ("cancelled", "cancelled_by_hand", signal.SIGKILL)
    assert [pid for pid in numbers(tmp_path / "pids") if lives(pid)] == []


def test_what_left_its_group_its_session_its_parents_and_its_descriptors_is_ended_too(
    nursery: Nursery, tmp_path: Path
) -> None:
    daemon = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "if os.fork(): time.sleep(600)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        "os.closerange(0, 1000)\n"
        "file = os.open('pids', os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n"
        "os.write(file, b'%d\\n' % os.getpid()); os.close(file)\n"
        "time.sleep(600)\n"
    )
    action = {"kind": "command", "argv": [sys.executable, "-I", "-S", "-c", daemon], "cwd": str(tmp_path)}
    with performing(nursery, assign(tmp_path, action), grace_s=0.2) as (command, future):
        [pid] = until(lambda: numbers(tmp_path / "pids"))
        command.stop("term")
        outcome = future.result(20)
    assert isinstance(outcome, Outcome)
    assert (outcome.word, outcome.confirmed) == ("cancelled", True)
    assert not lives(pid)


def test_a_work_that_was_stopped_can_be_cancelled_gently(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, "trap 'echo bye; exit 9' TERM; echo $$ > pids; kill -STOP $$; sleep 600 & wait")
    with performing(nursery, assignment) as (command, future):
        [pid] = until(lambda: numbers(tmp_path / "pids"))
        until(lambda: (found := processes.read(pid)) is not None and found.state == "T")
        command.stop("term")
        outcome = future.result(20)
    assert isinstance(outcome, Outcome)
    assert (outcome.word, outcome.exit_code) == ("cancelled", 9)
    assert logs.tail(assignment.folder) == b"bye\n"


def test_what_stopped_itself_outside_the_group_hears_term_too(nursery: Nursery, tmp_path: Path) -> None:
    line = "setsid sh -c 'trap \"echo bye; exit\" TERM; echo $$ > pids; kill -STOP $$; sleep 600 & wait' & wait"
    assignment = assign(tmp_path, line)
    with performing(nursery, assignment, grace_s=60) as (command, future):
        [pid] = until(lambda: numbers(tmp_path / "pids"))
        until(lambda: (found := processes.read(pid)) is not None and found.state == "T")
        command.stop("term")
        future.result(20)
    assert logs.tail(assignment.folder) == b"bye\n"


def test_kill_gives_no_grace(nursery: Nursery, tmp_path: Path) -> None:
    with performing(nursery, assign(tmp_path, "trap '' TERM; echo $$ > pids; sleep 600")) as (command, future):
        until(lambda: numbers(tmp_path / "pids"))
        command.stop("term")
        command.stop("kill")
        outcome = future.result(5)
    assert isinstance(outcome, Outcome)
    assert (outcome.word, outcome.signal) == ("cancelled", signal.SIGKILL)


def test_what_a_finished_command_leaves_running_is_ended_after_two_seconds_and_reported(
    nursery: Nursery, tmp_path: Path
) -> None:
    began = time.monotonic()
    assignment = assign(tmp_path, "sleep 600 & echo $! > pids; echo done")
    outcome = perform(nursery, assignment)
    [pid] = numbers(tmp_path / "pids")
    assert outcome.word == "succeeded"
    assert outcome.details == {"leftovers": [f"sleep ({pid})"]}
    assert 2 <= time.monotonic() - began < 20
    assert logs.tail(assignment.folder) == b"done\n"
    assert not lives(pid)


def test_a_leftover_that_ends_by_itself_is_waited_for_and_its_output_kept(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, "(sleep 0.5; echo late) & echo early")
    assert perform(nursery, assignment).details == {}
    assert logs.tail(assignment.folder) == b"early\nlate\n"


def test_a_success_that_came_first_stays_a_success(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, "sleep 600 & echo $! > pids", timeout=timedelta(seconds=1.5))
    with performing(nursery, assignment) as (command, future):
        keeper = keeper_of(assignment)
        leader = until(lambda: mark_of(assignment).get("work", {})).get("pid")
        until(lambda: not any(child.pid == leader for child in children_of(keeper)))
        command.stop("term")
        outcome = future.result(20)
    assert isinstance(outcome, Outcome)
    assert outcome.word == "succeeded"


def test_a_cancel_before_the_start_starts_nothing(nursery: Nursery, tmp_path: Path) -> None:
    command = Command(nursery)
    command.stop("term")
    outcome = command.perform(assign(tmp_path, "touch ran"), None)
    assert isinstance(outcome, Outcome)
    assert (outcome.word, outcome.side_effect) == ("cancelled", False)
    assert not (tmp_path / "ran").exists()


def test_a_stop_after_the_end_is_harmless(nursery: Nursery, tmp_path: Path) -> None:
    command = Command(nursery)
    command.perform(assign(tmp_path, "true"), None)
    command.stop("kill")


def test_stdin_is_empty_no_descriptor_leaks_and_every_signal_is_as_it_is_by_default(
    nursery: Nursery, tmp_path: Path
) -> None:
    assignment = assign(tmp_path, "wc -c; grep -E 'Sig(Ign|Blk)' /proc/self/status; ls -l /proc/self/fd | grep -c '^l'")
    perform(nursery, assignment)
    count, _, blocked, _, ignored, descriptors = logs.tail(assignment.folder).decode().split()
    unsettable = 0b11 << 31  # the C library keeps signals 32 and 33 to itself
    assert (count, int(blocked, 16) & ~unsettable, int(ignored, 16) & ~unsettable) == ("0", 0, 0)
    assert descriptors == "5", "stdin, stdout, stderr, the lock, and the folder that ls itself opens"


def test_a_command_sees_its_run_and_nothing_of_the_holders_own_settings(nursery: Nursery, tmp_path: Path) -> None:
    around = {"PATH": os.environ["PATH"], "KEPT": "grüße\udcff", "DULY_TOKEN": "t", "DULY_STORE": "s", "DULY_NEW": "n"}
    assignment = assign(
        tmp_path,
        {"kind": "command", "argv": ["env", "-0"], "cwd": "/", "env": {"GIVEN": "a=b", "HIDDEN": "${SOME_SECRET}"}},
        input="hello",
    )
    Command(nursery, environment=lambda: around | {"SOME_SECRET": "s3cr3t"}).perform(assignment, None)
    seen = dict(pair.split(b"=", 1) for pair in logs.tail(assignment.folder).split(b"\0") if pair)
    assert seen[b"KEPT"] == "grüße".encode() + b"\xff"
    assert (seen[b"GIVEN"], seen[b"HIDDEN"]) == (b"a=b", b"s3cr3t")
    assert {name: value for name, value in seen.items() if name.startswith(b"DULY_")} == {
        b"DULY_TASK": b"tidy up",
        b"DULY_PROJECT": b"house",
        b"DULY_RUN": assignment.run.encode(),
        b"DULY_ATTEMPT": b"2",
        b"DULY_FENCE": b"7",
        b"DULY_OCCURRENCE": b"at:2026-12-01T08:00:00Z",
        b"DULY_DUE_AT": b"2026-12-01T08:00:00Z",
        b"DULY_OPENED_BY": b"schedule",
        b"DULY_INPUT": b"hello",
        b"DULY_INPUT_FILE": str(assignment.folder / "input").encode(),
    }


def test_a_secret_that_is_missing_fails_before_the_start(nursery: Nursery, tmp_path: Path) -> None:
    action = {"kind": "command", "shell": "touch ran", "cwd": str(tmp_path), "env": {"KEY": "${NOT_SET_ANYWHERE}"}}
    outcome = perform(nursery, assign(tmp_path, action))
    assert (outcome.word, outcome.reason, outcome.side_effect) == ("failed", "preflight", False)
    assert "NOT_SET_ANYWHERE" in (outcome.error or "")
    assert not (tmp_path / "ran").exists()


def test_no_file_of_an_attempt_holds_a_secret(nursery: Nursery, tmp_path: Path) -> None:
    action = {"kind": "command", "shell": "sleep 600", "cwd": "/", "env": {"KEY": "${SOME_SECRET}"}}
    assignment = assign(tmp_path, action)
    command = Command(nursery, environment=lambda: os.environ | {"SOME_SECRET": "s3cr3t"})
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(command.perform, assignment, None)
        until(lambda: mark_of(assignment).get("work"))
        command.stop("kill")
        future.result(20)
    assert not any(b"s3cr3t" in path.read_bytes() for path in assignment.folder.iterdir())


def test_a_large_input_goes_by_file_alone_and_is_byte_identical(nursery: Nursery, tmp_path: Path) -> None:
    text = "ü" * 1_000_000
    assignment = assign(tmp_path, 'cp "$DULY_INPUT_FILE" got; printf %s "${DULY_INPUT-none}"', input=text)
    assert perform(nursery, assignment).word == "succeeded"
    assert (tmp_path / "got").read_text() == text
    assert logs.tail(assignment.folder) == b"none"


def test_the_largest_argument_that_linux_takes_runs_and_one_byte_more_is_refused_in_words(
    nursery: Nursery, tmp_path: Path
) -> None:
    action = {"kind": "command", "argv": ["sh", "-c", 'printf %s "$1" | wc -c', "sh", "x" * 131_071], "cwd": "/"}
    assignment = assign(tmp_path, action)
    assert perform(nursery, assignment).word == "succeeded"
    assert logs.tail(assignment.folder).split() == [b"131071"]
    action["argv"] = ["echo", "x" * 131_072]
    refusal = Command(nursery).check(action)
    assert refusal is not None
    assert "DULY_INPUT_FILE" in refusal.sentence
    outcome = perform(nursery, assign(tmp_path, action, fence=8))
    assert (outcome.word, outcome.reason, outcome.side_effect) == ("failed", "preflight", False)


def test_a_command_line_too_long_as_a_whole_is_told_in_words(nursery: Nursery, tmp_path: Path) -> None:
    action = {"kind": "command", "argv": ["echo", *["x" * 131_000] * 64], "cwd": "/"}
    outcome = perform(nursery, assign(tmp_path, action))
    assert (outcome.reason, outcome.side_effect) == ("preflight", False)
    assert "too long" in (outcome.error or "")


@pytest.mark.parametrize(
    "action",
    [
        {},
        {"argv": []},
        {"argv": ["a", 1]},
        {"argv": [""]},
        {"shell": " "},
        {"argv": ["a"], "shell": "b"},
        {"argv": ["a\0b"]},
        {"shell": "a\0b"},
        {"argv": ["a"], "env": {"A=B": "c"}},
        {"argv": ["a"], "env": {"A": "b\0"}},
        {"argv": ["a"], "env": {"A": 1}},
        {"argv": ["a"], "cwd": 1},
    ],
)
def test_an_action_that_means_nothing_is_refused_beforehand(nursery: Nursery, action: dict[str, object]) -> None:
    refusal = Command(nursery).check({"kind": "command"} | action)
    assert refusal is not None
    assert refusal.reason == "invalid"
    assert nursery.pid is None, "a check starts nothing"


def test_three_hundred_short_commands_leave_no_descriptor_thread_file_or_zombie(
    nursery: Nursery, tmp_path: Path
) -> None:
    def one(number: int) -> None:
        assignment = assign(tmp_path, {"kind": "command", "argv": ["true"], "cwd": "/"}, run=f"run_{number}")
        assert perform(nursery, assignment).word == "succeeded"
        folders.remove_traces(assignment.folder)

    def held(pid: int) -> int:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))

    others = {child.pid for child in children_of(os.getpid())}
    one(0)
    assert nursery.pid is not None
    until(lambda: nursery.pid is not None and children_of(nursery.pid) == [])
    before = held(os.getpid()), held(nursery.pid), threading.active_count()
    with ThreadPoolExecutor(8) as carriers:
        list(carriers.map(one, range(1, 301)))
    assert list((tmp_path / "attempts").iterdir()) == []
    until(lambda: nursery.pid is not None and children_of(nursery.pid) == [])
    assert (held(os.getpid()), held(nursery.pid), threading.active_count()) == before
    ours = [child for child in children_of(os.getpid()) if child.pid not in others]
    assert [child.name for child in ours if child.state in processes.DEAD] == []


def test_sixty_four_carriers_share_one_nursery(nursery: Nursery, tmp_path: Path) -> None:
    def one(number: int) -> bytes:
        assignment = assign(tmp_path, f"echo {number}", run=f"run_{number}")
        assert perform(nursery, assignment).word == "succeeded"
        assert mark_of(assignment)["nursery"][0] == nursery.pid
        return logs.tail(assignment.folder)

    with ThreadPoolExecutor(64) as carriers:
        assert list(carriers.map(one, range(64))) == [b"%d\n" % number for number in range(64)]
