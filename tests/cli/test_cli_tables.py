import pytest
from cli_scene import Scene

from duly.cli import out
from duly.cli.table import Cell, Column, cells_of, cut, plain, render


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("abc", 3),
        ("日本", 4),
        ("🚀", 2),
        ("👩‍👩‍👧", 2),
        ("é", 1),
        ("e\u0301", 1),
        ("🇩🇪", 2),
        ("☀️", 2),
        ("👍🏽", 2),
        ("مهمة", 4),
    ],
)
def test_the_columns_of_a_text_are_what_a_terminal_gives_it(text: str, columns: int) -> None:
    assert cells_of(text) == columns


def test_a_long_text_is_cut_in_the_middle_and_never_inside_a_letter() -> None:
    assert cut("abcdefghij", 5) == "ab…ij"
    assert cut("日本語文字列", 6) == "日…列"
    assert cells_of(cut("👩‍👩‍👧 a family of three", 8)) <= 8
    assert cut("short", 5) == "short"


def test_rows_of_wide_letters_stand_in_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = render(
        [Column(head="NAME", cut=True), Column(head="STATE")], [["日次", "on"], ["plain", "on"], ["🚀", "off"]]
    )
    assert {cells_of(line.partition(" o")[0]) for line in lines[1:]} == {6} or len(
        {cells_of(line[: line.rindex(" ") + 1]) for line in lines}
    ) == 1


def test_a_narrow_terminal_cuts_only_what_may_be_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    columns = [Column(head="NAME", cut=True), Column(head="ID"), Column(head="WHEN", cut=True)]
    lines = render(columns, [["a-very-long-name-indeed" * 2, "12345678", "every weekday at 09:00 and 17:30"]])
    assert all(cells_of(line) <= 40 for line in lines)
    assert "12345678" in lines[1]
    assert "…" in lines[1]


def test_colour_is_for_terminals_unless_asked_for(scene: Scene) -> None:
    scene.add("x")
    assert "\x1b" not in scene.ok("list").out
    scene.monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in scene.ok("list").out
    scene.monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in scene.ok("list").out


def test_what_others_wrote_cannot_move_the_cursor() -> None:
    assert plain("a\x1b[31mb\nc") == "a\\x1b[31mb\\nc"
    assert plain("🚀 日本") == "🚀 日本"


def test_styles_never_change_the_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    row = render([Column(head="A"), Column(head="B")], [[Cell(text="x", styles=("red",)), "y"]])[1]
    assert row == f"{out.STYLES['red']}x{out.RESET}  y"
