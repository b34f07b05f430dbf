"""Screens to the letter: narrow, wide, piped and in colour, with names of any script."""

import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cli_scene import Scene
from golden_scene import BEGINS, DAY, HOUR, MINUTE, SECOND, World, compare, world

from duly.cli.table import cells_of
from duly.ports import Outcome

GOLDEN = Path(__file__).parent / "golden"
PARCELS, REPORT = "📦 Pakete 🚚", "毎朝の報告書"
GAP = "2027-03-27T00:00:00Z"
LONG = "the-nightly-reconciliation-of-accounts-of-all-branches-of-the-house-north-and-so"
BAD = Outcome(word="failed", reason="exit_status", exit_code=3, error="rsync: connection unexpectedly closed")
GOOD = Outcome(word="succeeded", exit_code=0)

SCREENS: dict[str, tuple[str, ...]] = {
    "list": ("list",),
    "show task": ("show", "backup"),
    "show emoji": ("show", PARCELS),
    "show failed run": ("show", "{backup_run}"),
    "runs": ("runs",),
    "runs of one": ("runs", "--task", PARCELS),
    "missed": ("missed",),
    "limits": ("limit", "list"),
    "next": ("next",),
    "next of one": ("next", REPORT),
    "preview of a gap": (
        "preview",
        "30 2 * * *",
        "--zone",
        "Europe/Berlin",
        "--after",
        "2027-03-27T00:00:00Z",
        "-n",
        "3",
    ),
    "status": ("status",),
    "holders": ("holders",),
    "ledger": ("ledger",),
    "verify": ("verify",),
    "unknown": ("show", "bakcup"),
}
WIDTHS: dict[str, int | None] = {"80": 80, "140": 140, "piped": None}


@pytest.fixture
def lived(scene: Scene) -> Iterator[World]:
    """Three days of a small house: what ran, what failed, what was missed, what waits."""
    with world(scene) as w:
        yield _lived(w)


def _lived(w: World) -> World:
    w.add("backup", "daily 03:00", "--zone", "Europe/Berlin", command=("rsync", "-a", "/home", "nas:/backup"))
    w.add(PARCELS, "every 15m", "--overlap", "queue", "--project", "shop", "--description", "Parcels, each quarter")
    w.add(REPORT, "0 9 * * mon-fri", "--zone", "Asia/Tokyo", "--on-missed", "offer", "--project", "tokyo")
    w.scene.ok("limit", "set", "gpu", "2", "--per", "10/1h")
    w.add("train", "daily 02:00", "--zone", "UTC", "--limit", "gpu=2", "--needs", "gpu", "--priority", "1")
    w.add("render", "daily 02:00", "--zone", "UTC", "--limit", "gpu", "--max-age", "12h")
    w.add(LONG, "weekly mon,wed,fri 08:00", "--zone", "America/New_York", "--on-missed", "skip")
    w.add("deploy", "manual", "--project", "shop", "--label", "team=web")
    w.add("off", "daily 12:00", "--zone", "UTC", "--disabled")
    w.serve()
    w.at(datetime(2026, 11, 27, 2, 0, tzinfo=UTC))
    w.turn()
    w.at(w.clock.moment + 90 * SECOND)
    w.end("backup", BAD)
    w.end("train", GOOD)
    w.at(w.clock.moment + SECOND)
    w.turn()
    # The machine sleeps until Sunday morning.
    w.at(datetime(2026, 11, 29, 8, 0, tzinfo=UTC))
    w.end("render", GOOD)
    w.turn()
    w.scene.ok("pause", "deploy", "--until", "2h", "--note", "friday freeze 🧊")
    w.at(w.clock.moment + 3 * MINUTE)
    w.turn()
    w.scene.ok("run", PARCELS, "--queue")
    w.at(w.clock.moment + 20 * SECOND)
    return w


def _args(w: World, args: tuple[str, ...]) -> list[str]:
    if not any("{" in arg for arg in args):
        return list(args)
    run = w.scene.ok("runs", "--task", "backup", "--outcome", "failed", "--json").json["items"][0]["id"]
    return [arg.replace("{backup_run}", run) for arg in args]


def test_screens_are_what_they_were_when_somebody_read_them(lived: World) -> None:
    """One world for all screens; none of them changes it."""
    wrong = []
    for name, args in SCREENS.items():
        for width, columns in WIDTHS.items():
            shown = lived.screen(columns, *_args(lived, args))
            try:
                compare(GOLDEN / f"{name.replace(' ', '-')}.{width}.txt", shown)
            except AssertionError as differing:
                wrong.append(f"{name} at {width}: {differing}")
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("name", ["list", "runs", "show failed run", "status"])
def test_screens_in_colour_say_the_same_as_without(lived: World, name: str) -> None:
    args = _args(lived, SCREENS[name])
    coloured = lived.screen(80, *args, colour=True)
    compare(GOLDEN / f"{name.replace(' ', '-')}.colour.txt", coloured)
    plain = coloured
    for code in ("1", "2", "31", "32", "33", "34", "36", "0"):
        plain = plain.replace(f"␛[{code}m", "")
    assert "␛" not in plain
    assert [line.rstrip() for line in plain.splitlines()] == lived.screen(80, *args).splitlines()


@pytest.mark.parametrize("columns", [80, 140])
def test_no_line_of_a_table_is_wider_than_its_terminal_whatever_the_names(lived: World, columns: int) -> None:
    for name in ("list", "runs", "missed", "limits", "next", "holders", "ledger", "status"):
        shown = lived.screen(columns, *SCREENS[name]).partition("--- standard error")[0]
        for line in shown.splitlines():
            assert cells_of(line) <= columns, (name, line)


def test_columns_stand_in_line_under_wide_letters(lived: World) -> None:
    head, *rows = [line for line in lived.screen(140, "list").splitlines() if line.strip()]
    at = cells_of(head[: head.index("WHEN")])
    for row in rows[:7]:
        before, cells = "", 0
        for letter in row:
            if cells >= at:
                break
            before += letter
            cells = cells_of(before)
        assert cells == at, f"a letter straddles the column: {row}"
        assert unicodedata.combining(row[len(before)]) == 0
        assert before[-1] == " "


def test_the_world_is_the_same_to_the_letter_each_time(scene: Scene) -> None:
    """Else a golden screen would tell of the machine and not of Duly."""
    assert BEGINS + DAY + HOUR > BEGINS
    with world(scene) as w:
        first = _lived(w).screen(80, "ledger")
    scene.anew()
    with world(scene) as again:
        assert _lived(again).screen(80, "ledger") == first
