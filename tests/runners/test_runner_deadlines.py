"""A keeper's deadline: read from the file of its holder, moved by beats, kept though the file is torn or gone."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from duly.clock import boottime_us
from duly.runners import deadlines
from duly.runners.deadlines import Deadline

SECOND_US = 1_000_000
HOLDERS = ("hld_a", "hld_b")


@pytest.fixture
def attempt(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "holders").mkdir()
    (tmp_path / "attempts" / "run_1.1").mkdir(parents=True)
    folder = os.open(tmp_path / "attempts" / "run_1.1", os.O_RDONLY)
    yield folder
    os.close(folder)


def believed(tmp_path: Path, seconds: float, holder: str = "hld_a", grace: float = 5.0) -> None:
    end_us = boottime_us() + int(seconds * SECOND_US)
    deadlines.write(tmp_path / "holders", holder, end_us, end_us + int(grace * SECOND_US))


def test_without_a_file_there_is_no_deadline_and_no_look_at_the_clock(attempt: int) -> None:
    deadline = Deadline(attempt, "hld_a")
    assert not deadline.over()
    assert deadline.wait_ms(None) is None
    assert deadline.wait_ms(70_000) == 70_000


def test_a_deadline_ahead_lets_work_go_on_and_is_looked_at_each_second(tmp_path: Path, attempt: int) -> None:
    believed(tmp_path, 60)
    deadline = Deadline(attempt, "hld_a")
    assert not deadline.over()
    assert deadline.wait_ms(None) == deadlines.LOOK_EVERY_MS
    assert deadline.wait_ms(3) == 3


def test_a_deadline_that_is_past_is_over_and_its_force_comes_a_grace_later(tmp_path: Path, attempt: int) -> None:
    believed(tmp_path, -1, grace=60)
    deadline = Deadline(attempt, "hld_a")
    assert deadline.over()
    assert not deadline.kill()
    believed(tmp_path, -10, grace=1)
    assert Deadline(attempt, "hld_a").kill()


def test_a_beat_that_moved_it_meanwhile_is_seen_before_anything_is_ended(tmp_path: Path, attempt: int) -> None:
    believed(tmp_path, 0)
    deadline = Deadline(attempt, "hld_a")
    believed(tmp_path, 60)
    assert not deadline.over()


@pytest.mark.parametrize("torn", [None, "", "123", "soon later"])
def test_a_file_that_is_gone_or_torn_changes_nothing_that_was_read(
    tmp_path: Path, attempt: int, torn: str | None
) -> None:
    believed(tmp_path, -1)
    deadline = Deadline(attempt, "hld_a")
    path = tmp_path / "holders" / f"hld_a{deadlines.SUFFIX}"
    path.unlink() if torn is None else path.write_text(torn)
    assert deadline.over()


def test_after_an_adoption_the_new_holders_word_counts(tmp_path: Path, attempt: int) -> None:
    believed(tmp_path, -1)
    believed(tmp_path, 60, "hld_b")
    deadline = Deadline(attempt, "hld_a")
    deadline.holder = "hld_b"
    assert not deadline.over()
