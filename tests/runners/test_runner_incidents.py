"""What went wrong in other schedulers, B65 to B75: the input of each report and others of its kind, really run."""

import time
from datetime import timedelta
from pathlib import Path

import pytest
from runner_scene import assign, lives, numbers, perform, performing, until
from test_runner_logs import on_disk, whole

from duly.ports import Outcome
from duly.runners.nurseries import Nursery

MEGABYTE = 1024 * 1024


@pytest.mark.parametrize(
    ("line", "timeout_s", "word", "said"),
    [
        ("sleep 600 & echo $! > pids; echo done", 60, "succeeded", b"done\n"),
        ("sleep 600 & echo $! > pids; sleep 600", 1, "timed_out", b""),
        ("(sleep 600 & echo $! > pids); echo half; exit 3", 60, "failed", b"half\n"),
        ("setsid sleep 600 & echo $! > pids; echo out; echo err >&2", 60, "succeeded", b"out\nerr\n"),
    ],
)
def test_b65_a_grandchild_that_keeps_the_pipe_keeps_nobody_waiting(
    nursery: Nursery, tmp_path: Path, line: str, timeout_s: int, word: str, said: bytes
) -> None:
    began = time.monotonic()
    assignment = assign(tmp_path, line, timeout=timedelta(seconds=timeout_s))
    outcome = perform(nursery, assignment, grace_s=1)
    assert time.monotonic() - began < 30
    assert outcome.word == word
    assert whole(assignment.folder) == (said, 0)
    [left] = numbers(tmp_path / "pids")
    until(lambda: not lives(left))


@pytest.mark.parametrize(
    "text",
    [
        "x" * 131_071,
        "x" * 131_072,
        "line\n" * 200_000,
        "日本" * 50_000 + "\\ $HOME `id` 'quoted'",
        "\t" * (10 * MEGABYTE),
    ],
    ids=["131,071 bytes", "131,072 bytes", "1 MB", "not ascii", "10 MB"],
)
def test_b67_a_text_of_any_size_reaches_its_command_byte_for_byte(nursery: Nursery, tmp_path: Path, text: str) -> None:
    line = f"cp -- $DULY_INPUT_FILE {tmp_path}/got; wc -c < $DULY_INPUT_FILE"
    assert perform(nursery, assign(tmp_path, line, input=text)).word == "succeeded"
    assert (tmp_path / "got").read_bytes() == text.encode()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (r"printf 'ok \377\342\232'", b"ok \xff\xe2\x9a"),
        (r"printf '\342'; sleep 0.3; printf '\202\254 rest'", "€ rest".encode()),
        (r"LANG=C LC_ALL=C printf '\303\244\n'; printf '\200' >&2", b"\xc3\xa4\n\x80"),
        (r"""awk 'BEGIN { for (n = 0; n < 40000; n++) printf "\342\202\254" }'""", "€".encode() * 40_000),
        (r"printf '\000\001\033[2J\r'", b"\0\x01\x1b[2J\r"),
    ],
)
def test_b68_output_of_any_bytes_is_kept_and_the_exit_status_decides(
    nursery: Nursery, tmp_path: Path, line: str, said: bytes
) -> None:
    assignment = assign(tmp_path, line)
    assert perform(nursery, assignment).word == "succeeded"
    assert whole(assignment.folder) == (said, 0)
    failing = assign(tmp_path, f"{line}; exit 4", fence=8)
    outcome = perform(nursery, failing)
    assert (outcome.word, outcome.exit_code) == ("failed", 4)


@pytest.mark.parametrize(
    ("line", "size"),
    [
        ("yes | head -c 60000000", 60_000_000),
        ("head -c 40000000 /dev/zero", 40_000_000),
        ("yes | head -c 30000000 >&2 & yes out | head -c 30000000; wait", 60_000_000),
        ("awk 'BEGIN { for (n = 0; n < 4000000; n++) print n }'", 30_888_890),
    ],
    ids=["many lines", "one line", "on both streams", "short lines"],
)
def test_b69_a_flood_is_kept_as_head_and_tail_with_its_true_size(
    nursery: Nursery, tmp_path: Path, line: str, size: int
) -> None:
    assignment = assign(tmp_path, line)
    outcome = perform(nursery, assignment)
    kept, cut = whole(assignment.folder)
    assert outcome.word == "succeeded"
    assert cut > 0
    assert len(kept) + cut == outcome.log_bytes
    assert outcome.log_bytes == size
    assert on_disk(assignment.folder) < 25 * MEGABYTE


@pytest.mark.parametrize(
    ("line", "grace_s"),
    [
        ("echo $$ >> pids; sleep 600", 1),
        ("trap '' TERM; echo $$ >> pids; while :; do sleep 0.1; done", 1),
        ("setsid sh -c 'echo $$ >> pids; sleep 600' & wait; sleep 600", 2),
        ("(trap '' TERM HUP; echo $$ >> pids; sleep 600) & sleep 600", 1),
    ],
    ids=["plain", "deaf", "of another session", "with a deaf child"],
)
def test_b75_the_first_attempt_is_over_before_the_second_begins(
    nursery: Nursery, tmp_path: Path, line: str, grace_s: int
) -> None:
    first = assign(tmp_path, line, timeout=timedelta(seconds=1), attempt=1, fence=7)
    with performing(nursery, first, grace_s) as (_, future):
        outcome = future.result(30)
        assert isinstance(outcome, Outcome)
        assert (outcome.word, outcome.confirmed) == ("timed_out", True)
        left = [pid for pid in numbers(tmp_path / "pids") if lives(pid)]
        assert left == [], "nothing of it lives when its end is told"
    second = assign(tmp_path, 'test "$DULY_ATTEMPT" = 2 && echo "$DULY_OCCURRENCE"', attempt=2, fence=8)
    assert perform(nursery, second).word == "succeeded"
    assert whole(second.folder)[0] == b"at:2026-12-01T08:00:00Z\n"
