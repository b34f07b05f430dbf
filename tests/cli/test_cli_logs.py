import subprocess
import threading
import time
from pathlib import Path

from cli_scene import DULY, Scene, ended

NOISE = b"plain\n\xff\x00\x1b[31mred\x1b[0m\r\n" + "日本🚀".encode() + b"\nno newline at the end"


def folder_of(scene: Scene, run: str, fence: int) -> Path:
    folder = scene.run_folder / "attempts" / f"{run}.{fence}"
    folder.mkdir(parents=True)
    return folder


def test_a_log_is_printed_byte_for_byte(scene: Scene) -> None:
    run = ended(scene, scene.add("x")["id"])
    (folder_of(scene, run, 7) / "log").write_bytes(NOISE)
    (folder_of(scene, run, 6) / "log").write_bytes(b"first try\n")
    for ask, expected in ((("x",), NOISE), ((run,), NOISE), ((run[-8:], "--attempt", "1"), b"first try\n")):
        done = subprocess.run([DULY, "log", *ask], env=scene.env, capture_output=True, check=True, timeout=60)
        assert (done.stdout, done.stderr) == (expected, b"")
    assert scene.ok("log", "x", "--json").json["text"] == NOISE.decode(errors="replace")
    called = scene.call("log", run, "--attempt", "3")
    assert (called.code, called.out) == (2, "")


def test_a_run_without_output_prints_nothing(scene: Scene) -> None:
    ended(scene, scene.add("x")["id"])
    assert scene.ok("log", "x").out == ""
    scene.add("y")
    called = scene.call("log", "y", "--json")
    assert (called.code, called.fault["reason"]) == (4, "unknown_run")


def test_following_prints_what_is_written_until_the_run_ends(scene: Scene) -> None:
    scene.add("x")
    run = scene.ok("run", "x", "--json").json["id"]
    with subprocess.Popen([DULY, "log", "-f", run], env=scene.env, stdout=subprocess.PIPE) as following:
        assert following.stdout is not None
        time.sleep(1)
        assert following.poll() is None
        scene.ok("cancel", run)
        assert following.stdout.read() == b""
        assert following.wait(timeout=30) == 0


def test_a_log_on_the_screen_of_a_run_cannot_steer_the_terminal(scene: Scene) -> None:
    run = ended(scene, scene.add("x")["id"])
    (folder_of(scene, run, 7) / "log").write_bytes(NOISE)
    shown = scene.ok("show", run).out
    assert "\x1b" not in shown
    assert "日本🚀" in shown
    assert "no disk" in shown


def test_the_ledger_is_followed_as_it_is_written(scene: Scene) -> None:
    scene.add("x")
    with subprocess.Popen(
        [DULY, "ledger", "-f", "--json"], env=scene.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as following:
        lines: list[bytes] = []
        assert following.stdout is not None
        reader = threading.Thread(target=lambda: lines.extend(following.stdout or []))
        reader.start()
        deadline = time.monotonic() + 30
        while len(lines) < 1 and time.monotonic() < deadline:
            time.sleep(0.1)
        scene.ok("disable", "x")
        while len(lines) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        following.terminate()
        reader.join(timeout=30)
    assert [line.split(b'"kind": "')[1].split(b'"')[0] for line in lines] == [b"defined", b"disabled"]
