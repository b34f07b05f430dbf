"""How far a long look is: shown on a terminal, on standard error, and gone when it is over."""

import io

import pytest
from cli_scene import Scene
from test_cli_terminal import typed

from duly.cli import out


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_one_line_that_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(out, "PROGRESS_AFTER_S", 0)
    with out.progress("verify") as tell:
        assert tell is not None
        for done in (0, 1, 2, 150, 300):
            tell(done, 300)
        tell(0, 0)
    assert screen.getvalue() == "\rverify: 0 %\rverify: 50 %\rverify: 100 %\r             \r"


@pytest.mark.parametrize("ends", ["well", "ill"])
def test_what_ends_at_once_shows_nothing(monkeypatch: pytest.MonkeyPatch, ends: str) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    if ends == "well":
        with out.progress("verify") as tell:
            assert tell is not None
            tell(1, 2)
    else:
        with pytest.raises(ValueError, match="oh"), out.progress("verify"):
            raise ValueError("oh")
    assert screen.getvalue() == ""


def test_without_a_terminal_nobody_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr("sys.stderr", screen)
    with out.progress("verify") as tell:
        assert tell is None
    assert screen.getvalue() == ""


def test_verify_on_a_terminal_says_that_all_is_well(scene: Scene) -> None:
    scene.add("x")
    code, seen = typed(scene, ["verify"], "")
    assert (code, seen.split("\r\n")[0]) == (0, "all promises hold on this store")
