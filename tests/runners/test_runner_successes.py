"""What a task calls a success, asked of real processes: their status, what they wrote, the file they left."""

import os
from datetime import timedelta
from pathlib import Path

import pytest
from runner_holders import a_holder, attached
from runner_scene import assign, numbers, perform, until

from duly.core.successes import TEXT_MOST, Success
from duly.ports import Outcome
from duly.runners.nurseries import Nursery

ROWS = [
    ("its status is the wanted one", "exit 3", Success(exit=(3,)), None, None),
    ("its status is one of the wanted", "exit 1", Success(exit=(0, 1)), None, None),
    ("it is 0, and that is not wanted", "exit 0", Success(exit=(3,)), "success_rule", "exit status 0, and the task's"),
    ("it is another bad one", "echo why; exit 4", Success(exit=(3,)), "exit_status", "why"),
    ("it wrote the words", "echo one; echo ok: 3 files", Success(matches=r"^ok: \d+ files$"), None, None),
    ("it wrote them as an error", "echo ok >&2", Success(matches="^ok$"), None, None),
    ("it wrote others", "echo not ok", Success(matches="^ok$"), "success_rule", "nothing in its output matches ^ok$"),
    ("it wrote nothing", "true", Success(matches="."), "success_rule", "all 0 bytes were asked"),
    ("it wrote the words and failed", "echo ok; exit 1", Success(matches="ok"), "exit_status", "ok"),
    ("it wrote the file", "echo x > out.md", Success(file="out.md"), None, None),
    ("it wrote a folder", "mkdir out.md", Success(file="out.md"), None, None),
    ("there is no file", "true", Success(file="out.md"), "success_rule", "there is no file out.md"),
    ("the file is old", "true", Success(file="old.md"), "success_rule", "is old: it was written 20"),
    ("the file was touched", "touch old.md", Success(file="old.md"), None, None),
    (
        "a file lies in its way",
        "true",
        Success(file="old.md/x"),
        "success_rule",
        "cannot be looked at: Not a directory",
    ),
    ("of three one is missing", "echo ok", Success(exit=(0,), matches="ok", file="out.md"), "success_rule", "out.md"),
    ("all three hold", "echo ok; touch out.md; exit 2", Success(exit=(2,), matches="ok", file="out.md"), None, None),
]


@pytest.mark.parametrize(("line", "rule", "reason", "error"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_command_has_succeeded_when_all_of_its_rule_holds(
    nursery: Nursery, tmp_path: Path, line: str, rule: Success, reason: str | None, error: str | None
) -> None:
    (tmp_path / "old.md").touch()
    os.utime(tmp_path / "old.md", (1_700_000_000, 1_700_000_000))
    outcome = perform(nursery, assign(tmp_path, line, success_when=rule))
    assert (outcome.word, outcome.reason) == ("succeeded" if reason is None else "failed", reason)
    assert (outcome.error is None) == (error is None)
    assert (error or "") in (outcome.error or "")
    assert outcome.confirmed


def test_of_a_long_output_the_end_is_asked_and_that_is_said(nursery: Nursery, tmp_path: Path) -> None:
    line = f"echo first; head -c {TEXT_MOST} /dev/zero | tr '\\0' x; echo; echo last"
    assert perform(nursery, assign(tmp_path, line, success_when=Success(matches="^last$"))).word == "succeeded"
    assignment = assign(tmp_path, line, fence=8, success_when=Success(matches="^first$"))
    outcome = perform(nursery, assignment)
    assert outcome.reason == "success_rule"
    assert f"the last {TEXT_MOST:,} bytes were asked, 12 before them were not" in (outcome.error or "")


def test_an_expression_that_would_take_for_ever_is_answered(nursery: Nursery, tmp_path: Path) -> None:
    line = "head -c 60000 /dev/zero | tr '\\0' a; echo '!'"
    outcome = perform(nursery, assign(tmp_path, line, success_when=Success(matches="^(a+)+$")))
    assert outcome.reason == "success_rule"


def test_what_ran_out_of_its_time_has_failed_whatever_its_rule_says(nursery: Nursery, tmp_path: Path) -> None:
    rule = Success(exit=(0, 143), matches="ok")
    outcome = perform(
        nursery, assign(tmp_path, "echo ok; exec sleep 60", timeout=timedelta(seconds=1), success_when=rule)
    )
    assert (outcome.word, outcome.reason) == ("timed_out", "timeout")


def test_an_adopted_command_is_asked_as_any_other(nursery: Nursery, tmp_path: Path) -> None:
    line = "echo $$ > pids; while ! test -e go; do sleep 0.02; done; echo ok; exit 7"
    assignment = assign(tmp_path, line, success_when=Success(exit=(7,), matches="^ok$"))
    with a_holder(assignment) as holder:
        until(lambda: numbers(tmp_path / "pids"))
        holder.kill()
    (tmp_path / "go").touch()
    outcome = attached(nursery, assignment)
    assert isinstance(outcome, Outcome)
    assert (outcome.word, outcome.exit_code) == ("succeeded", 7)


def test_a_file_written_in_the_instant_of_the_start_is_new(nursery: Nursery, tmp_path: Path) -> None:
    # A mark of the attempt that is written on, as its keeper writes on `begun`, would be newer than the file.
    for fence in range(7, 17):
        assignment = assign(tmp_path, ": > out.md", fence=fence, success_when=Success(file="out.md"))
        assert perform(nursery, assignment).word == "succeeded"
