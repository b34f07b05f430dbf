"""Output: kept as bytes, live to readers, bounded in memory and on disk (F3; B65, B68, B69)."""

import contextlib
import os
import subprocess
import time
from datetime import timedelta
from pathlib import Path

import pytest
from runner_scene import assign, keeper_of, mark_of, numbers, perform, performing, until

from duly.ports import Outcome
from duly.runners import folders, logs, output, processes
from duly.runners.nurseries import Nursery

KEEPER_BYTES = 48 * 1024 * 1024


def whole(folder: Path) -> tuple[bytes, int]:
    """Read all that is kept, and how much was cut out."""
    out, cut, position = b"", 0, 0
    while (piece := logs.read(folder, position, most=1 << 20)).data:
        out += piece.data
        cut += piece.cut
        position = piece.next
    return out, cut


def on_disk(folder: Path) -> int:
    """Give the size of all log files together."""
    total = 0
    for path in folder.glob("log*"):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def memory_of(pid: int) -> int:
    """Give the most memory that a process has had in its own pages and others', in bytes."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) * 1024


def test_stdout_and_stderr_keep_their_order(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, "echo 1; echo 2 >&2; echo 3; echo 4 >&2")
    assert perform(nursery, assignment).log_bytes == 8
    assert whole(assignment.folder) == (b"1\n2\n3\n4\n", 0)


def test_output_is_live_to_readers_even_without_a_newline(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, "printf half; while ! test -e go; do sleep 0.02; done; printf ' and half'")
    with performing(nursery, assignment) as (_, future):
        until(lambda: whole(assignment.folder) == (b"half", 0))
        assert not logs.finished(assignment.folder)
        (tmp_path / "go").touch()
        future.result(20)
    piece = logs.read(assignment.folder, 4)
    assert (piece.data, piece.cut, piece.next) == (b" and half", 0, 13)
    assert logs.finished(assignment.folder)


def test_bytes_that_are_no_text_are_kept_and_change_no_outcome(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, r"printf 'ok \377\342\232'; sleep 0.1; printf '\253\000end'")
    assert perform(nursery, assignment).word == "succeeded"
    assert whole(assignment.folder) == (b"ok \xff\xe2\x9a\xab\0end", 0)


def test_a_failure_in_bytes_that_are_no_text_still_has_a_text(nursery: Nursery, tmp_path: Path) -> None:
    assert perform(nursery, assign(tmp_path, r"printf 'bad \377 end'; exit 1")).error == "bad � end"


def test_a_grandchild_that_holds_the_pipe_does_not_hang_the_run(nursery: Nursery, tmp_path: Path) -> None:
    # The pipe is handed to a process that is no descendant and lives on, by way of /proc.
    assignment = assign(tmp_path, "echo $$ > pids; echo out; while ! test -e go; do sleep 0.02; done")
    with performing(nursery, assignment) as (_, future):
        [pid] = until(lambda: numbers(tmp_path / "pids"))
        with Path(f"/proc/{pid}/fd/1").open("wb") as pipe, subprocess.Popen(["sleep", "600"], stdout=pipe) as stranger:
            try:
                (tmp_path / "go").touch()
                outcome = future.result(10)
            finally:
                stranger.kill()
    assert isinstance(outcome, Outcome)
    assert outcome.word == "succeeded"


def test_a_flood_keeps_its_head_and_tail_in_bounded_memory_and_on_a_bounded_disk(
    nursery: Nursery, tmp_path: Path
) -> None:
    assignment = assign(tmp_path, "seq 1 4000000; sleep 0.3; exec yes", timeout=timedelta(seconds=30))
    most = output.HEAD_BYTES + 2 * output.TAIL_BYTES
    with performing(nursery, assignment) as (command, future):
        seen = 0
        while seen < 200_000_000:
            assert on_disk(assignment.folder) <= most
            seen = logs.size(assignment.folder)
            time.sleep(0.01)
        assert memory_of(keeper_of(assignment)) < KEEPER_BYTES
        command.stop("kill")
        outcome = future.result(20)
    assert isinstance(outcome, Outcome)
    assert outcome.log_bytes - outcome.log_cut == output.HEAD_BYTES + output.TAIL_BYTES
    assert on_disk(assignment.folder) == output.HEAD_BYTES + output.TAIL_BYTES
    kept, cut = whole(assignment.folder)
    assert cut == outcome.log_cut
    assert kept.startswith(b"1\n2\n3\n")
    assert kept.endswith((b"y\ny", b"y\n"))


def test_one_endless_line_is_cut_in_its_middle_with_true_counts(nursery: Nursery, tmp_path: Path) -> None:
    size = 64 * 1024 * 1024
    assignment = assign(tmp_path, f"printf begin; head -c {size} /dev/zero; printf end; exit 1")
    outcome = perform(nursery, assignment)
    assert (outcome.log_bytes, outcome.word) == (size + 8, "failed")
    kept, cut = whole(assignment.folder)
    assert (kept[:5], kept[-3:], len(kept) + cut) == (b"begin", b"end", size + 8)
    assert logs.tail(assignment.folder, 4) == b"\0end"
    folders.remove_traces(assignment.folder)
    assert sorted(path.name for path in assignment.folder.iterdir()) == ["cut", "log"]
    assert whole(assignment.folder) == (kept, cut)
    assert logs.size(assignment.folder) == size + 8


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("edge", [output.HEAD_BYTES, output.HEAD_BYTES + output.TAIL_BYTES])
def test_nothing_is_cut_that_fits(tmp_path: Path, edge: int, more: int) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    log = output.Log(descriptor)
    data = (bytes(range(251)) * (edge // 251 + 1))[: edge + more]
    for start in range(0, edge + more, 99_991):
        log.add(data[start : start + 99_991])
    assert whole(tmp_path) == (data, 0), "while it runs, more than what is kept in the end is there"
    cut = log.finish()
    assert cut == max(0, edge + more - output.HEAD_BYTES - output.TAIL_BYTES)
    processes.write_whole(descriptor, "exit", {"cut_at": output.HEAD_BYTES if cut else None, "log_cut": cut})
    before = whole(tmp_path)
    log.clear()
    os.close(descriptor)
    assert whole(tmp_path) == before
    assert before == (data[: output.HEAD_BYTES] + data[output.HEAD_BYTES + cut :], cut)


def test_a_reader_who_falls_behind_a_flood_is_told_what_it_missed(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    log = output.Log(descriptor)
    log.add(b"x" * output.HEAD_BYTES)
    position = logs.read(tmp_path, output.HEAD_BYTES - 3).next
    log.add(b"y" * (3 * output.TAIL_BYTES + 5))
    piece = logs.read(tmp_path, position)
    os.close(descriptor)
    assert (piece.at, piece.cut, piece.data[:1]) == (position + 2 * output.TAIL_BYTES, 2 * output.TAIL_BYTES, b"y")
    assert piece.at + piece.cut >= position


def test_a_disk_that_refuses_the_log_does_not_stop_the_work(nursery: Nursery, tmp_path: Path) -> None:
    assignment = assign(tmp_path, "echo out; echo $$ > pids; exit 3")
    assignment.folder.mkdir(parents=True)
    (assignment.folder / "log").mkdir()
    outcome = perform(nursery, assignment)
    assert (outcome.exit_code, outcome.log_bytes, outcome.log_cut) == (3, 4, 4)
    assert outcome.details == {"log_error": "Is a directory", "cut_at": 0}
    assert mark_of(assignment)["run"] == assignment.run
