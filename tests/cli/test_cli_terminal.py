import os
import pty
import select
import time

import pytest
from cli_scene import DULY, Scene

PATIENCE_S = 120


def typed(scene: Scene, args: list[str], answer: str, *, columns: int = 80) -> tuple[int, str]:
    """Call Duly on a terminal, type an answer, and give its exit code and what the screen was sent."""
    child, terminal = pty.fork()
    if child == 0:
        os.execve(DULY, ["duly", *args], scene.env | {"TERM": "xterm", "COLUMNS": str(columns)})
    seen, sent, deadline = b"", False, time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                data = os.read(terminal, 65536)
            except OSError:  # what Linux says at the end of a terminal
                break
            if not data:
                break
            seen += data
        if answer and not sent and b"[y/N]" in seen:
            os.write(terminal, answer.encode())
            sent = True
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), seen.decode()


@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, 0), ("n\n", 3, 1), ("\n", 3, 1)])
def test_removing_asks_on_a_terminal(scene: Scene, answer: str, code: int, left: int) -> None:
    scene.add("x")
    got, seen = typed(scene, ["remove", "x"], answer)
    assert got == code, seen
    assert "Remove x (0 runs so far)? [y/N]" in seen
    assert len(scene.ok("list", "--json").json["items"]) == left


def test_a_terminal_gets_colour_a_footer_and_no_line_too_long(scene: Scene) -> None:
    from duly.cli.table import cells_of

    scene.add("日次バックアップ")
    scene.add("a-name-that-is-rather-long-" * 2, when="weekly mon,wed,fri 08:00,12:00,16:00")
    code, seen = typed(scene, ["list"], "")
    assert code == 0
    assert "\x1b[" in seen
    assert "2 tasks" in seen
    bare = "".join(part.partition("m")[2] if at else part for at, part in enumerate(seen.split("\x1b[")))
    rows = [line for line in bare.splitlines() if line and not line.startswith("hint:")]
    assert rows[0].startswith("NAME")
    assert all(cells_of(row) <= 80 for row in rows), rows
