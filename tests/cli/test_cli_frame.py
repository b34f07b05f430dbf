import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_scene import DULY, Scene

from duly.cli import frame
from duly.cli.frame import COMMANDS

HEAVY = {
    "alembic",
    "fastapi",
    "acp",
    "apprise",
    "structlog",
    "jinja2",
    "pydantic",
    "rich",
    "uvicorn",
}


def test_every_command_loads_and_says_in_its_help_what_it_does(scene: Scene) -> None:
    listed = scene.ok("--help").out
    for name, (_, text) in COMMANDS.items():
        assert f"{name} " in listed
        assert text in listed
        assert scene.ok(name, "--help").out.startswith(f"Usage: duly {name}")


@pytest.mark.parametrize("args", [("--json", "list"), ("list", "--json")])
def test_json_is_taken_before_and_after_the_command(scene: Scene, args: tuple[str, ...]) -> None:
    assert scene.ok(*args).json == {"items": [], "next": None}


@pytest.mark.parametrize("before", [True, False])
def test_the_store_is_taken_before_and_after_the_command(scene: Scene, before: bool) -> None:
    other = ("--store", str(scene.home / "other.db"))
    add = ("add", "x", "--when", "manual", "--", "true")
    scene.ok(*other, *add) if before else scene.ok(*add[:4], *other, *add[4:])
    assert (scene.home / "other.db").exists()
    assert not scene.is_made()


def test_reading_makes_nothing_where_there_is_no_store(scene: Scene) -> None:
    for ask in (("list",), ("runs",), ("next",), ("status",), ("ledger",), ("verify",)):
        called = scene.ok(*ask)
        assert called.out == ""
        assert "there is no store at" in called.err
        assert scene.ok(*ask, "--json").err == ""
    assert list(scene.home.iterdir()) == []
    assert not scene.is_made()


def test_the_default_store_lies_in_the_data_folder(scene: Scene) -> None:
    scene.monkeypatch.delenv("DULY_STORE")
    assert scene.ok("list").code == 0
    assert not (scene.home / ".local").exists()
    scene.add("x")
    assert (scene.home / ".local/share/duly/duly.db").exists()


def test_a_fault_of_ours_leaves_a_report_and_no_traceback(scene: Scene) -> None:
    def burst() -> None:
        raise ZeroDivisionError("a hidden figure")

    scene.monkeypatch.setitem(COMMANDS, "status", ("burst", "burst"))
    scene.monkeypatch.setattr(frame, "import_module", lambda _: burst())
    called = scene.call("status", "--json")
    assert (called.code, called.out) == (70, "")
    path = Path(called.fault["details"]["report"])
    assert path.parent == scene.home / ".local/state/duly/reports"
    assert path.stat().st_mode & 0o777 == 0o600
    assert "a hidden figure" in path.read_text()
    assert "Traceback" not in called.err


def test_a_reader_that_leaves_early_is_no_fault(scene: Scene) -> None:
    for number in range(3):
        scene.add(f"task-{number}")
    line = f"{DULY} ledger --json | true; {DULY} preview '* * * * *' -n 5000 | head -1"
    done = subprocess.run(["bash", "-c", line], env=scene.env, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith("words")


def test_a_reader_that_leaves_in_the_middle_makes_no_failure_of_what_succeeded(scene: Scene) -> None:
    scene.add("x")
    for line in (
        f"{DULY} preview '* * * * *' -n 5000 | head -1",
        f"{DULY} list --json | true",
        f"{DULY} --help | true",
    ):
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line], env=scene.env, check=False, capture_output=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, b""), line


def test_a_reader_that_leaves_early_hides_no_failure(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    from duly.operations import audit

    class Gone(io.StringIO):
        def write(self, _: str, /) -> int:
            raise BrokenPipeError

    scene.add("x")
    monkeypatch.setattr(audit, "verify", lambda *_: ["a promise is broken"])
    monkeypatch.setattr(frame, "_mute", lambda: None)
    monkeypatch.setattr(sys, "stdout", Gone())
    assert frame.run(["verify"]) == 1
    assert frame.run(["list"]) == 0


def test_list_loads_nothing_heavy(scene: Scene) -> None:
    scene.add("hello")
    code = (
        "import sys; from duly.cli.frame import run; run(['list']);"
        f"print('loaded:', sorted({HEAVY!r} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=scene.env, check=False, capture_output=True, text=True, timeout=60
    )
    assert "hello" in done.stdout
    assert done.stderr.splitlines()[-1] == "loaded: []"


def test_preview_loads_neither_database_nor_models(scene: Scene) -> None:
    code = (
        "import sys; from duly.cli.frame import run; run(['preview', 'daily 09:00']);"
        f"print('loaded:', sorted({HEAVY | {'sqlalchemy'}!r} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=scene.env, check=False, capture_output=True, text=True, timeout=60
    )
    assert done.stderr.splitlines()[-1] == "loaded: []"


def test_ctrl_c_leaves_the_run_and_says_how_to_look_at_it(scene: Scene) -> None:
    scene.add("slow")
    with subprocess.Popen(
        [DULY, "run", "slow", "--wait"], env=scene.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as waiting:
        deadline = time.monotonic() + 30
        while not scene.ok("runs", "--json").json["items"] and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(0.5)
        waiting.send_signal(signal.SIGINT)
        out, err = waiting.communicate(timeout=30)
    assert waiting.returncode == 130
    assert out == ""
    assert "nobody serves this store" in err
    assert "the run goes on: duly show " in err
    assert scene.ok("runs", "--json").json["items"][0]["state"] == "waiting"


def test_words_that_are_not_utf8_are_refused_and_shown(scene: Scene) -> None:
    done = subprocess.run(
        [DULY.encode(), b"add", b"caf\xe9", b"--when", b"manual", b"--", b"true"],
        env={os.fsencode(name): os.fsencode(value) for name, value in scene.env.items()},
        check=False,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.startswith(b"duly: NAME: ")


def test_output_that_cannot_be_written_is_told_as_such(scene: Scene) -> None:
    scene.add("x")
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [DULY, "list"], env=scene.env, stdout=full, stderr=subprocess.PIPE, check=False, text=True, timeout=60
        )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "duly: the output cannot be written: No space left on device"


def test_closed_streams_are_no_fault(scene: Scene) -> None:
    scene.add("x")
    for line in (f"{DULY} list >&-", f"{DULY} list >&- 2>&-", f"{DULY} list --json <&-"):
        done = subprocess.run(["bash", "-c", line], env=scene.env, check=False, capture_output=True, timeout=60)
        assert done.returncode == 0, line
