"""Serving inside of a program: in the background, in the foreground; what is touched meanwhile and afterwards."""

import logging
import signal
import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from face_scene import Home, until

import databases
from duly import Invalid, Refused
from duly.app.background import LOG

UNTOUCHED = """
import logging, os, signal, sys, threading

def standing():
    root = logging.getLogger()
    return {
        "signals": {int(one): repr(signal.getsignal(one)) for one in signal.valid_signals()},
        "wakeup": signal.set_wakeup_fd(-1),
        "root": (root.level, list(root.handlers), list(root.filters), logging.lastResort),
        "duly": (logging.getLogger("duly").handlers, logging.getLogger("duly").level),
        "threads": sorted(one.name for one in threading.enumerate()),
        "hooks": (sys.excepthook, threading.excepthook, sys.getswitchinterval(), os.getcwd(), list(sys.path)),
        "children": open("/proc/self/task/%d/children" % os.getpid()).read(),
        "subreaper": open("/proc/self/status").read().count("Subreaper"),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "output": (sys.stdout, sys.stderr),
    }

before = standing()
import duly
assert standing() == before, "the package"
from duly import Duly, this_run, Refused
assert standing() == before, "the face"
jobs = Duly("duly.db")
assert standing() == before, "an object"
"""


def test_import_and_stop_leave_signals_loggers_threads_children_and_descriptors_as_they_were(home: Home) -> None:
    out = home.ran(
        UNTOUCHED
        + f"""
import ctypes, {home.name} as shop
jobs.task("every 1s")(shop.nightly)
jobs.task("every 1s", place="thread")(shop.gently)
warm = standing()  # what other libraries open when they are loaded is not ours
jobs.start()
during = standing()
for name in ("signals", "wakeup", "root", "duly", "hooks", "subreaper", "output"):
    assert during[name] == warm[name], name
subreaper = ctypes.c_int()
ctypes.CDLL(None).prctl(37, ctypes.byref(subreaper), 0, 0, 0)
assert subreaper.value == 0, "a subreaper"
assert [one.name for one in threading.enumerate() if not one.daemon] == ["MainThread"]
for task in ("nightly", "gently"):
    run = jobs.run(task, queue=True)
    assert jobs.wait(run, 40).outcome == "succeeded", jobs.wait(run)
assert jobs.stop(40)
jobs.close()
import time
until = time.monotonic() + 10
while (after := standing()) != warm and time.monotonic() < until:
    time.sleep(0.05)
for name in warm:
    assert after[name] == warm[name], (name, after[name], warm[name])
print("untouched")
"""
    )
    assert out.strip().endswith("untouched")


def test_functions_run_in_both_places_sync_and_async_and_their_output_is_kept(home: Home) -> None:
    duly = home.duly()
    shop = home.shop
    for place in ("child", "thread"):
        for function in (shop.nightly, shop.gently, shop.fails):
            duly.define(
                f"{function.__name__}-{place}", call=function, place=place, args=["x"] * (function != shop.fails)
            )
    duly.start()
    runs = {task.name: duly.run(task.name) for task in duly.tasks()}
    ended = {name: duly.wait(run, 60) for name, run in runs.items()}
    assert {name: run.outcome for name, run in ended.items()} == {
        name: "failed" if name.startswith("fails") else "succeeded" for name in runs
    }
    for place in ("child", "thread"):
        assert ended[f"fails-{place}"].error == "ValueError: no such shelf"
        assert "Traceback" in duly.log(runs[f"fails-{place}"]).decode()
    assert duly.log(runs["nightly-child"]) == b"nightly x\n"
    assert duly.log(runs["gently-child"]) == b"gently x\n"


def test_starting_twice_serves_once_and_stopping_twice_is_harmless(home: Home) -> None:
    duly = home.duly()
    duly.start(slots=2, labels=["here"], beat="2s", lease="20s")
    duly.start()
    assert duly.status()["holders_alive"] == 1
    assert home.rows("SELECT slots, labels FROM holders") == [(2, '["here"]')]
    with pytest.raises(Refused) as caught:
        duly.serve()
    assert caught.value.reason == "already_running"
    assert (duly.stop(), duly.stop(), duly.serving, duly.status()["holders_alive"]) == (True, True, False, 0)
    duly.start()
    assert duly.status()["holders_alive"] == 1, "it can start again"
    duly.close()
    assert (duly.serving, duly.status()["holders_alive"]) == (False, 0)


@pytest.mark.parametrize(
    "how",
    [
        {"slots": 0},
        {"slots": "4"},
        {"beat": "0s"},
        {"beat": 5},
        {"beat": "1s", "lease": "2s"},
        {"slot": 4},
        {"on_stop": "handover"},
    ],
)
def test_a_holder_that_cannot_be_safe_is_refused_and_nothing_serves(home: Home, how: dict[str, Any]) -> None:
    duly = home.duly()
    with pytest.raises((Invalid, TypeError)):
        duly.start(**how)
    assert not duly.serving
    assert [one.name for one in threading.enumerate() if one.name in {"duly", "heart", "guard"}] == []


@pytest.mark.parametrize(("on_stop", "ended"), [("cancel", True), ("hand-over", False)])
def test_a_program_that_stops_serving_ends_its_commands_or_leaves_them_as_it_said(
    home: Home, on_stop: str, ended: bool
) -> None:
    duly = home.duly()
    duly.define("long", shell='echo on > "$PWD/began"; sleep 60', cwd=str(home.folder))
    duly.start(beat="1s", lease="8s", drain="0s", on_stop=on_stop)  # type: ignore[arg-type]
    run = duly.run("long")
    until((home.folder / "began").exists)
    assert duly.stop(30)
    [left] = duly.runs()
    assert (left.state, left.outcome) == (("ended", "cancelled") if ended else ("running", None))
    if not ended:
        duly.start(beat="1s", lease="8s", drain="0s")
        duly.cancel(run)
        assert duly.wait(run, 30).outcome == "cancelled"


def test_a_function_in_a_thread_keeps_its_holder_until_it_returns_and_is_never_run_beside_itself(home: Home) -> None:
    duly = home.duly()
    duly.define("waits", call=home.shop.waits, place="thread")
    duly.start(beat="1s", lease="8s", drain="0s")
    run = duly.run("waits")
    until(home.lines)
    assert not duly.stop(18), "it cannot be ended"
    assert duly.serving
    other = home.duly()
    other.start(beat="1s", lease="8s")  # who could start it again, if it took the first holder for dead
    time.sleep(9)  # longer than a lease
    assert len(home.lines()) == 1
    assert [one.state for one in other.runs()] == ["running"]
    (home.folder / "go").touch()
    ended = other.wait(run, 30)
    assert (ended.outcome, ended.reason) == ("cancelled", "shutdown")
    assert duly.stop(30)
    assert len(home.lines()) == 1


def test_the_foreground_serves_until_nothing_is_left_and_gives_signals_back(home: Home) -> None:
    duly = home.duly()
    duly.task()(home.shop.nightly)
    run = duly.run("nightly")
    before = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]
    duly.serve(until_idle=True)
    assert [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)] == before
    assert duly.wait(run, 0).outcome == "succeeded"


@pytest.mark.parametrize("by", ["TERM", "INT", "stop"])
def test_the_foreground_ends_by_a_signal_or_by_stop_and_the_script_goes_on(home: Home, by: str) -> None:
    program = home.program(
        """
import sys, threading
from duly import Duly
with Duly("duly.db") as duly:
    def ready():
        while not duly.serving: pass
        print("ready", flush=True)
        if sys.argv[1] == "stop": duly.stop()
    threading.Thread(target=ready, daemon=True).start()
    duly.serve()
    print("went on", duly.serving)
""",
        "program.py",
        by,
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    if by != "stop":
        program.send_signal(getattr(signal, f"SIG{by}"))
    out, errors = program.communicate(timeout=60)
    assert (program.returncode, out) == (0, "went on False\n"), errors


def test_what_holders_have_to_say_goes_to_the_logger_of_duly_alone(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="duly")
    duly = home.duly()
    duly.task()(home.shop.fails)
    duly.start()
    duly.wait(duly.run("fails"), 60)
    duly.close()
    said = [(record.name, record.levelname, record.getMessage()) for record in caplog.records]
    assert any(text.startswith("duly: run ended (task=fails") and "outcome=failed" in text for _, _, text in said)
    assert {name for name, _, _ in said} == {"duly"}
    assert LOG.handlers == []


def test_commands_live_on_when_a_program_ends_without_a_word_and_are_adopted_by_the_next(home: Home) -> None:
    line = f"echo $$ >> {home.witness}; while ! test -e {home.folder}/go; do sleep 0.05; done; echo done"
    home.duly().define("long", shell=line, cwd=str(home.folder))
    home.ran(
        f"""
from duly import Duly
import time, pathlib
duly = Duly("duly.db")
duly.run("long")
duly.start()
while not pathlib.Path({str(home.witness)!r}).exists(): time.sleep(0.02)
"""
    )
    duly = home.duly()
    duly.start()
    [run] = duly.runs()
    assert run.state == "running"
    (home.folder / "go").touch()
    assert duly.wait(run, 60).outcome == "succeeded"
    assert (len(home.lines()), duly.log(run)) == (1, b"done\n")
    assert duly.wait(run).attempt == 1


def test_a_program_that_serves_while_its_module_is_imported_is_told_and_serves_nothing_twice(home: Home) -> None:
    program = """
from duly import Duly
duly = Duly("duly.db")

@duly.task()
def work():
    print("worked")

run = duly.run(work, queue=True)
duly.start()
print(duly.wait(run, 50).error)
"""
    out = home.ran(program, "unguarded.py", name="unguarded.py")
    assert "this module is being imported to call one of its functions, and it serves while it is imported" in out
    assert home.rows("SELECT count(*) FROM holders") == [(1,)]


def test_a_store_that_vanishes_under_a_holder_in_the_background_ends_no_program(
    home: Home, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duly.app.background.AGAIN_AFTER_S", 0.2)
    duly = home.duly()
    duly.start(beat="1s", lease="6s")
    with databases.away(home.place):
        # Over a server a holder waits itself until it answers, and over a file the program starts the next one.
        told = "store away" if databases.ON_SERVER else "the store is away, and is tried again"
        until(lambda: told in caplog.text)
        assert duly.serving
    duly.define("nightly", call=home.shop.nightly)
    assert duly.wait(duly.run("nightly"), 60).outcome == "succeeded"
    assert duly.stop(60)


def test_waiting_gives_up_when_it_was_told_to(home: Home) -> None:
    duly = home.duly()
    duly.task()(home.shop.nightly)
    run = duly.run("nightly")
    began = time.monotonic()
    with pytest.raises(TimeoutError) as caught:
        duly.wait(run, timedelta(seconds=0.3))
    assert 0.3 <= time.monotonic() - began < 20
    assert "it is waiting" in str(caught.value)
