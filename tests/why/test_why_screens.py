"""What a person sees who asks why: kept as files, one screen each, and read by somebody before they were kept."""

import re
from pathlib import Path

import pytest
from why_scene import Stage
from why_screens import SCENES
from why_write import GOLDEN, shown

from by_hand import dump_of
from duly.cli.table import cells_of

LINES = 24
AHEAD = ("is not due", "will be due")


@pytest.mark.parametrize("name", SCENES)
def test_a_screen_is_the_one_that_was_read_and_kept(stage: Stage, name: str) -> None:
    ask = SCENES[name](stage)
    assert shown(stage, ask) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SCENES)
def test_a_screen_fits_its_terminal_and_is_shorter_where_that_is_wide(stage: Stage, name: str) -> None:
    ask = SCENES[name](stage)
    narrow, wide = (stage.call(*ask, columns=columns).splitlines() for columns in (80, 140))
    assert max(map(cells_of, narrow)) <= 80
    assert max(map(cells_of, wide)) <= 140
    assert len(wide) <= len(narrow) < LINES


def test_there_are_thirty_screens_and_twelve_of_them_look_ahead() -> None:
    files = sorted(path.stem for path in GOLDEN.glob("*.txt"))
    assert files == sorted(SCENES), "a file without a scene, or a scene without a file"
    assert len(files) >= 30
    ahead = [name for name in files if any(word in _first(GOLDEN / f"{name}.txt") for word in AHEAD)]
    assert len(ahead) >= 12, ahead


def _first(path: Path) -> str:
    return path.read_text(encoding="utf-8").splitlines()[1]


@pytest.mark.parametrize("name", SCENES)
def test_the_answer_in_json_says_the_same_fate_as_the_screen(stage: Stage, name: str) -> None:
    ask = SCENES[name](stage)
    told = stage.json(*ask)
    if "--since" in ask:
        assert told["not_as_planned"] == sum(item["count"] for item in told["items"])
        return
    first = stage.call(*ask, columns=1000).splitlines()[0]
    # The screen tells instants on the task's wall, JSON in UTC; the words before them are the same.
    assert first.split()[1:5] == told["answer"].split()[:4]
    assert told["subject"]["name"] in first


def test_the_readmes_screen_is_a_real_one() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```\n(\$ duly why .*?)```", readme, re.DOTALL)
    kept = (GOLDEN / "found-late-and-stood-for.txt").read_text(encoding="utf-8")
    # Ids alone may differ: they are chance.
    assert re.sub(r"(run|by) \w{8}\b", r"\1 ID", block) == re.sub(r"(run|by) \w{8}\b", r"\1 ID", kept)


def test_asking_changes_nothing(stage: Stage) -> None:
    ask = SCENES["what-did-not-run-as-planned"](stage)
    before = dump_of(stage.place)
    stage.call(*ask)
    stage.call("why", "sync")
    stage.call("why", "sync", "--at", "+1d")
    assert dump_of(stage.place) == before
