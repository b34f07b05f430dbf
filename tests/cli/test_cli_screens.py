"""What people see: tables on narrow and wide screens, and why a run stands as it does."""

import pytest
from cli_scene import Scene, ended

from duly.cli import out
from duly.cli.table import Cell, Column, cells_of, pairs, render, trimmed
from duly.core.reasons import NO_START

WHENS = {
    "backup": "daily 03:00",
    "beat": "every 90m",
    "day": "every 1d",
    "later": "once 2099-12-01T08:00:00Z",
    "month-end": "0 0 L * *",
    "office": "*/15 8-18 * * mon-fri",
    "report": "0 9 * * mon-fri",
    "week": "weekly mon,wed,fri 08:00",
}


@pytest.fixture
def full(scene: Scene) -> Scene:
    """A scene with tasks of many kinds, one of which failed."""
    for name, when in WHENS.items():
        added = scene.add(name, when=when)
        if name == "report":
            ended(scene, added["id"], error="soon")
    return scene


def rows(scene: Scene, columns: int, *args: str) -> dict[str, str]:
    """The lines below the head by their first word."""
    return {line.partition(" ")[0]: line for line in screen(scene, columns, *args)[1:]}


def screen(scene: Scene, columns: int, *args: str) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        lines = scene.ok(*args).out.splitlines()
    assert all(cells_of(line) <= columns for line in lines), lines
    return lines


def test_at_80_columns_the_list_tells_every_schedule_whole_and_the_last_run_short(full: Scene) -> None:
    found = rows(full, 80, "list")
    assert "…" not in "".join(found.values())
    assert "every day at 03:00" in found["backup"]
    assert "every 24 hours" in found["day"]
    assert "0 0 L * *" in found["month-end"] or "at 00:00 on the last day of the month" in found["month-end"]
    assert "*/15 8-18 * * mon-fri" in found["office"]
    assert "✗" in found["report"]
    assert "ago" in found["report"]


def test_at_140_columns_the_list_is_rich(full: Scene) -> None:
    found = rows(full, 140, "list")
    assert "at 00:00 on the last day of the month" in found["month-end"]
    assert "✗ failed" in found["report"]
    assert "(" in found["backup"], "the instant stands beside the distance"


def test_a_piped_list_is_whole_and_plain(full: Scene) -> None:
    text = full.ok("list").out
    assert "…" not in text
    assert "every 15 minutes from 08:00 to 18:45, on weekdays (Monday to Friday)" in text


def test_why_a_run_failed_begins_with_its_exit_status_on_every_screen(full: Scene) -> None:
    for columns in (80, 140):
        (row,) = rows(full, columns, "runs").values()
        assert row.endswith("exit 3: soon")
    run = full.ok("runs", "--json").json["items"][0]
    assert run["error"] == "soon", "the field is for programs, and they have exit_code beside it"
    assert "exit 3: soon" in full.ok("show", "report").out
    assert "exit 3: soon" in full.ok("show", run["id"]).out
    assert "failed, exit code 3" in full.ok("ledger").out


@pytest.mark.parametrize(
    ("reason", "error", "code", "why"),
    [
        ("exit_status", "exit status 3", 3, "exit 3"),
        ("exit_status", "no disk", 3, "exit 3: no disk"),
        ("not_found", "the program x was not found", None, "the program x was not found"),
        ("timeout", "ran longer than its timeout; exit status 0", 0, "ran longer than its timeout; exit status 0"),
    ],
)
def test_the_why_of_a_run_says_each_thing_once(
    scene: Scene, reason: str, error: str, code: int | None, why: str
) -> None:
    ended(scene, scene.add("x")["id"], reason=reason, error=error, code=code)
    assert scene.ok("runs").out.splitlines()[1].endswith(f"  {why}")


def test_at_80_columns_a_long_why_gives_way_to_its_reason_and_an_exit_status_is_never_cut(scene: Scene) -> None:
    ended(scene, scene.add("a-task-with-a-name")["id"], reason="not_found", error="the program " + "x" * 40, code=None)
    ended(scene, scene.add("another-with-a-name")["id"], error="a table that was there yesterday is gone")
    by_task = {line.split()[1]: line for line in rows(scene, 80, "runs").values()}
    assert by_task["a-task-with-a-name"].endswith("  not_found")
    assert by_task["another-with-a-name"].endswith("  exit 3: a table that…")


def test_why_is_a_sentence_and_where_it_is_narrow_its_reason(scene: Scene) -> None:
    for name, outcome, reason in (
        ("skipped-by-its-overlap", "skipped", "already_running"),
        ("cancelled", "cancelled", "cancelled_by_hand"),
    ):
        ended(scene, scene.add(name)["id"], outcome=outcome, reason=reason, error=None, code=None)
    text = scene.ok("runs").out
    assert "a person cancelled it" in text
    assert NO_START["already_running"] in text
    assert "  already_running" in "\n".join(screen(scene, 80, "runs"))


def test_at_80_columns_the_ledger_is_told_in_fewer_words_and_no_word_is_cut(full: Scene) -> None:
    ended(full, full.add("a-name-that-is-long")["id"], reason="not_found", error="x", code=None)
    text = "\n".join(screen(full, 80, "ledger"))
    assert "  exit 3" in text
    assert "outcome" not in text
    assert "…" not in text


def test_the_ledger_tells_the_day_of_what_was_not_today(full: Scene) -> None:
    narrow = rows(full, 80, "ledger")
    assert any("11-01" in time for time in narrow)
    assert "2026-11-01 08:00:09.000Z" in full.ok("ledger").out


def test_a_hold_in_the_ledger_has_no_fractions_of_a_second(scene: Scene) -> None:
    scene.add("x")
    scene.ok("pause", "x", "--until", "2h")
    scene.ok("unpause", "x")
    for line in scene.ok("ledger").out.splitlines():
        assert not any("." in word for word in line.split("Z")[1:]), line


def test_status_names_what_fails_and_what_is_done_does_not_fail(scene: Scene) -> None:
    for name in ("bad", "soon", "good"):
        task = scene.add(name)
        if name != "good":
            ended(scene, task["id"])
    assert "2 tasks: bad, soon (why: duly runs)" in scene.ok("status").out
    scene.sql("UPDATE tasks SET done = true WHERE name = 'soon'")
    assert "1 task: bad (why: duly runs)" in scene.ok("status").out
    found = scene.ok("status", "--json").json
    assert (found["failing"], found["failing_tasks"]) == (1, ["bad"])


def test_a_terminal_without_a_size_is_taken_for_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    import os
    import pty
    import sys

    monkeypatch.delenv("COLUMNS", raising=False)
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert os.get_terminal_size(stream.fileno()).columns == 0
        assert out.width() == 80
    os.close(ours)


def test_columns_give_way_in_their_order_and_what_may_go_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [
        Column(head="A"),
        Column(head="B", yields=2, optional=True),
        Column(head="C", words=True, yields=1),
    ]
    row: list[Cell | str] = ["name", "manual", Cell(text="the long way to say it, and more", shorter=("short",))]
    monkeypatch.setenv("COLUMNS", "80")
    assert render(columns, [row])[1] == "name  manual  the long way to say it, and more"
    monkeypatch.setenv("COLUMNS", "40")
    assert render(columns, [row])[1] == "name  the long way to say it, and more"
    assert render([*columns, Column(head="DDDDDDDD")], [[*row, ""]])[1] == "name  short"


def test_a_sentence_is_cut_after_a_word() -> None:
    assert trimmed("every weekday at 09:00", 16) == "every weekday…"
    assert trimmed("exit 4: no such table", 14) == "exit 4: no…"
    assert trimmed("antidisestablishment", 8) == "antidis…"
    assert trimmed("日本語文字列", 6) == "日本…"
    assert trimmed("short", 5) == "short"


def test_sentences_beside_names_are_wrapped_and_commands_never_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = "one two three four five six seven eight nine"
    assert pairs([("why", Cell(text=text, wraps=True)), ("command", text)]) == [
        "why      one two three four five six",
        "         seven eight nine",
        f"command  {text}",
    ]
