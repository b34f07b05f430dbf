"""Calls of Python functions, in a child and in a thread: how they end, what they see, and what cannot be called."""

import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from runner_scene import assign, lives, numbers, until

from duly.ports import Assignment, Detached, Outcome
from duly.runners import folders, functions, keeping, logs
from duly.runners.call import Call
from duly.runners.nurseries import Nursery

SHOP = """
import asyncio, os, sys
from pathlib import Path

HERE = Path(__file__).parent

def nightly(*args, **named):
    print("called with", args, named, flush=True)
    with (HERE / "pids").open("a") as file:
        file.write(f"{os.getpid()}\\n")

async def gently(*args):
    await asyncio.sleep(0.01)
    print("gently", args)

def fails():
    raise ValueError("no such shelf")

async def fails_gently():
    await asyncio.sleep(0)
    raise ValueError("no such shelf")

def leaves(code):
    sys.exit(code)

def told(path):
    from duly.told import this_run
    Path(path).write_text(repr(this_run()))

def waits():
    (HERE / "pids").write_text(f"{os.getpid()}\\n")
    while not (HERE / "go").exists():
        __import__("time").sleep(0.01)

def gives():
    yield 1

def wants(name, *, number):
    print(name, number)

class Shelf:
    @staticmethod
    def count():
        print("counted")

def __getattr__(name):
    if name == "made":
        return lambda: print("made")
    raise AttributeError(name)
"""
PLACES = ("child", "thread")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of this test alone, on the path of this process."""
    name = f"shop_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(SHOP)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    sys.modules.pop(name, None)


def call(folder: Path, function: str, where: str = "child", args: object = (), **changes: Any) -> Assignment:
    return assign(folder, {"kind": "call", "function": function, "args": args, "in": where}, **changes)


def perform(nursery: Nursery, assignment: Assignment) -> Outcome:
    outcome = Call(nursery).perform(assignment, None)
    assert isinstance(outcome, Outcome)
    return outcome


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("function", ["nightly", "gently", "Shelf.count", "made"])
def test_a_function_that_returns_has_succeeded_sync_or_async(
    nursery: Nursery, tmp_path: Path, shop: str, function: str, where: str
) -> None:
    outcome = perform(nursery, call(tmp_path, f"{shop}:{function}", where))
    assert (outcome.word, outcome.exit_code, outcome.confirmed) == ("succeeded", 0, True)


def test_a_function_in_a_child_is_given_its_arguments_and_prints_into_the_log(
    nursery: Nursery, tmp_path: Path, shop: str
) -> None:
    listed = call(tmp_path, f"{shop}:nightly", args=["one", 2, None, {"deep": [True]}])
    perform(nursery, listed)
    assert logs.tail(listed.folder) == b"called with ('one', 2, None, {'deep': [True]}) {}\n"
    named = call(tmp_path, f"{shop}:nightly", args={"ü": 1.5}, fence=8)
    perform(nursery, named)
    assert logs.tail(named.folder).decode() == "called with () {'ü': 1.5}\n"
    more = call(tmp_path, f"{shop}:nightly", args=["own"], fence=9)
    perform(nursery, assign(tmp_path, more.action, fence=9, args=("two words", "--flag")))
    assert logs.tail(more.folder) == b"called with ('own', 'two words', '--flag') {}\n"


def test_a_child_is_a_process_of_its_own_and_a_thread_is_not(nursery: Nursery, tmp_path: Path, shop: str) -> None:
    for where in PLACES:
        perform(nursery, call(tmp_path, f"{shop}:nightly", where, fence=7 + PLACES.index(where)))
    child, thread = numbers(tmp_path / "pids")
    assert (child != os.getpid(), thread) == (True, os.getpid())


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("function", ["fails", "fails_gently"])
def test_what_it_raises_is_a_failure_with_its_last_line_and_a_traceback_that_begins_with_its_own_code(
    nursery: Nursery, tmp_path: Path, shop: str, function: str, where: str
) -> None:
    assignment = call(tmp_path, f"{shop}:{function}", where)
    outcome = perform(nursery, assignment)
    assert (outcome.word, outcome.reason, outcome.exit_code) == ("failed", "exit_status", 1)
    assert outcome.error == "ValueError: no such shelf"
    lines = logs.tail(assignment.folder).decode().splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert f"{shop}.py" in lines[1]
    assert lines[-1] == "ValueError: no such shelf"
    assert outcome.log_bytes == logs.size(assignment.folder)


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize(("code", "status"), [(0, 0), (None, 0), (3, 3), ("gone wrong", 1), (256 + 4, 4)])
def test_sys_exit_means_what_it_means_in_a_program(
    nursery: Nursery, tmp_path: Path, shop: str, where: str, code: object, status: int
) -> None:
    outcome = perform(nursery, call(tmp_path, f"{shop}:leaves", where, args=[code]))
    assert (outcome.word, outcome.exit_code) == ("failed" if status else "succeeded", status)
    if code == "gone wrong":
        assert outcome.error == "gone wrong"


@pytest.mark.parametrize("where", PLACES)
def test_a_function_can_ask_about_its_run_in_both_places(
    nursery: Nursery, tmp_path: Path, shop: str, where: str
) -> None:
    assignment = call(tmp_path, f"{shop}:told", where, args=[str(tmp_path / "told")], input="numbers\n")
    assert perform(nursery, assignment).word == "succeeded"
    told = (tmp_path / "told").read_text()
    for said in (
        f"id='{assignment.run}'",
        "fence=7",
        "attempt=2",
        "task='tidy up'",
        "datetime.datetime(2026, 12, 1, 8, 0, tzinfo=datetime.timezone.utc)",
        "input='numbers\\n'",
    ):
        assert said in told


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ({}, "a call has a function"),
        ({"function": "shop"}, "a call has a function"),
        ({"function": "shop:"}, "a call has a function"),
        ({"function": 3}, "a call has a function"),
        ({"function": "no_such_module:f"}, "there is no module no_such_module"),
        ({"function": "json.nowhere:f"}, "there is no module json.nowhere"),
        ({"function": "{shop}.part:f"}, "there is no module {shop}.part: {shop} is no package"),
        ({"function": "json:dmps"}, "json has no dmps; it has dumps"),
        ({"function": "string:digits"}, "string:digits cannot be called"),
        ({"function": "json:dumps", "args": "text"}, "args is a list"),
        ({"function": "json:dumps", "args": [{1, 2}]}, "args is not JSON"),
        ({"function": "json:dumps", "args": [float("nan")]}, "args is not JSON"),
        ({"function": "json:dumps", "in": "space"}, "in is child or thread"),
    ],
)
@pytest.mark.parametrize("where", PLACES)
def test_what_cannot_be_called_is_said_before_it_starts_and_starts_nothing(
    nursery: Nursery, tmp_path: Path, shop: str, action: Mapping[str, Any], said: str, where: str
) -> None:
    action = {"kind": "call", "in": where, **action}
    if isinstance(action.get("function"), str):
        action = {**action, "function": action["function"].replace("{shop}", shop)}
    refusal = Call(nursery).check(action)
    assert refusal is not None
    assert refusal.sentence.startswith(said.replace("{shop}", shop)), refusal.sentence
    outcome = perform(nursery, assign(tmp_path, action))
    assert (outcome.word, outcome.reason, outcome.side_effect) == ("failed", "preflight", False)
    assert outcome.error == refusal.sentence
    assert nursery.pid is None, "nothing was started"


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize(
    ("function", "said", "status"),
    [
        ("absent", "{shop} has no absent", 127),  # its __getattr__ might have made one
        ("Shelf.absent", "{shop} has no Shelf.absent", 127),
        ("gives", "{shop}:gives is a generator: calling it would run nothing of it", 126),
        ("HERE", "{shop}:HERE cannot be called: it is of type PosixPath", 126),
        ("wants", "TypeError: wants() missing 1 required positional argument: 'name'", 1),
    ],
)
def test_what_only_its_own_process_can_tell_is_told_by_that(
    nursery: Nursery, tmp_path: Path, shop: str, function: str, said: str, status: int, where: str
) -> None:
    args = {"number": 1} if function == "wants" else []
    outcome = perform(nursery, call(tmp_path, f"{shop}:{function}", where, args))
    assert (outcome.word, outcome.exit_code) == ("failed", status)
    assert (outcome.error or "").startswith(said.format(shop=shop)), outcome.error


@pytest.mark.parametrize("where", PLACES)
def test_a_module_that_cannot_be_imported_fails_with_its_own_traceback(
    nursery: Nursery, tmp_path: Path, shop: str, where: str
) -> None:
    (tmp_path / f"{shop}.py").write_text("import no_such_library\n\ndef f(): ...\n")
    outcome = perform(nursery, call(tmp_path, f"{shop}:f", where))
    assert (outcome.exit_code, outcome.error) == (1, "ModuleNotFoundError: No module named 'no_such_library'")
    (tmp_path / f"{shop}.py").write_text("def f(:\n")
    outcome = perform(nursery, call(tmp_path, f"{shop}:f", where, fence=8))
    assert "SyntaxError" in (outcome.error or "")


def test_looking_for_a_function_runs_nothing_of_its_module(tmp_path: Path, shop: str) -> None:
    (tmp_path / "pack" / "inner").mkdir(parents=True)  # a namespace, and a namespace in it
    (tmp_path / "pack" / "inner" / "work.py").write_text(
        "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n"
        "def f(): ...\nif True:\n    g = f\ntry:\n    from json import dumps as h\nexcept ImportError:\n    h = None\n"
        "LIMIT = 3\nLATER: int\nk, (l, m) = f, (f, f)\nwith open(__file__) as n: ...\n(o := f)\n"
    )
    path = [str(tmp_path)]
    for name in ("f", "g", "h", "k", "l", "m", "o"):
        assert functions.fault(f"pack.inner.work:{name}", path, here=False) is None, name
    for name, said in (("LIMIT", "it is a constant"), ("LATER", "it is a constant"), ("e", "has no e")):
        assert said in (functions.fault(f"pack.inner.work:{name}", path, here=False) or ""), name
    assert not (tmp_path / "pack" / "inner" / "ran").exists()
    assert "pack" not in sys.modules


@pytest.mark.parametrize(
    "source", ["globals()['f'] = print", "from json import *", "def __getattr__(name): ...", "def f(:", "\0", "'" * 9]
)
def test_a_module_whose_names_cannot_be_known_without_running_it_is_believed(
    tmp_path: Path, shop: str, source: str
) -> None:
    (tmp_path / f"{shop}.py").write_text(source)
    assert functions.fault(f"{shop}:f", [str(tmp_path)], here=False) is None


def test_a_child_imports_what_lies_in_its_folder_first(nursery: Nursery, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "only_there.py").write_text("import os\ndef f(): print(os.getcwd())\n")
    assignment = assign(tmp_path, {"kind": "call", "function": "only_there:f", "cwd": str(inner)})
    assert perform(nursery, assignment).word == "succeeded"
    assert logs.tail(assignment.folder).decode().strip() == str(inner)


def test_a_child_sees_its_variables_the_store_of_its_holder_and_nothing_else_of_ours(
    nursery: Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sees.py").write_text(
        "import os, sys\ndef f(): print(sorted(k for k in os.environ if k.startswith(('DULY_', 'OWN'))), sys.argv)\n"
    )
    for name in ("DULY_STORE", "DULY_TOKEN", "DULY_CONFIG"):
        monkeypatch.setenv(name, "here")
    assignment = assign(
        tmp_path, {"kind": "call", "function": "sees:f", "cwd": str(tmp_path), "env": {"OWN": "1"}, "in": "child"}
    )
    perform(nursery, assignment)
    said = logs.tail(assignment.folder).decode()
    assert "'DULY_STORE'" in said
    assert "'OWN'" in said
    assert "DULY_TOKEN" not in said
    assert "DULY_IMPORTING" not in said
    assert said.strip().endswith("['sees:f']")


def test_a_function_in_a_child_is_ended_by_its_timeout_and_by_a_cancel(
    nursery: Nursery, tmp_path: Path, shop: str
) -> None:
    outcome = perform(nursery, call(tmp_path, f"{shop}:waits", timeout=timedelta(seconds=1)))
    assert (outcome.word, outcome.reason) == ("timed_out", "timeout")
    (tmp_path / "pids").unlink()
    runner = Call(nursery)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(runner.perform, call(tmp_path, f"{shop}:waits", fence=8), None)
        [pid] = until(lambda: numbers(tmp_path / "pids"))
        runner.stop("term")
        ended = future.result(20)
    assert isinstance(ended, Outcome)
    assert (ended.word, ended.reason, lives(pid)) == ("cancelled", "cancelled_by_hand", False)


def test_a_function_in_a_child_is_let_go_and_adopted_like_a_command(
    nursery: Nursery, tmp_path: Path, shop: str
) -> None:
    assignment = call(tmp_path, f"{shop}:waits")
    runner = Call(nursery)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(runner.perform, assignment, None)
        [pid] = until(lambda: numbers(tmp_path / "pids"))
        runner.stop("detach")
        assert future.result(20) == Detached()
    assert lives(pid)
    (tmp_path / "go").touch()
    adopted = Call(nursery).perform(assign(tmp_path, assignment.action, holder="hld_second"), {})
    assert isinstance(adopted, Outcome)
    assert adopted.word == "succeeded"
    assert numbers(tmp_path / "pids") == [pid], "it ran once"
    folders.remove_traces(assignment.folder)
    assert not assignment.folder.exists()


def test_a_function_in_a_thread_cannot_be_ended_and_says_so_when_it_returns(
    nursery: Nursery, tmp_path: Path, shop: str
) -> None:
    for wish in ("term", "timeout"):
        (tmp_path / "pids").unlink(missing_ok=True)
        (tmp_path / "go").unlink(missing_ok=True)
        limit = timedelta(seconds=0.2 if wish == "timeout" else 60)
        assignment = call(tmp_path, f"{shop}:waits", "thread", timeout=limit)
        runner = Call(nursery)
        assert not runner.kept(assignment.action)
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(runner.perform, assignment, None)
            until(lambda: numbers(tmp_path / "pids"))
            if wish == "term":
                runner.stop("term")
                runner.stop("kill")
            else:
                until(lambda runner=runner: runner.overdue)  # type: ignore[misc]
            assert not future.done()
            (tmp_path / "go").touch()
            outcome = future.result(20)
        assert isinstance(outcome, Outcome)
        expected = ("cancelled", "cancelled_by_hand") if wish == "term" else ("timed_out", "timeout")
        assert (outcome.word, outcome.reason, outcome.confirmed) == (*expected, True)
        assert "a function in a thread cannot be ended, and this one returned after" in (outcome.error or "")


def test_a_wish_that_comes_after_the_end_of_a_function_in_a_thread_changes_nothing(
    nursery: Nursery, tmp_path: Path, shop: str
) -> None:
    class AskedLate(Call):
        """Asked to end in the instant between the function's end and the outcome."""

        def _judged(self, outcome: Outcome, took_s: float, assignment: Assignment) -> Outcome:
            self.stop("term")
            return super()._judged(outcome, took_s, assignment)

    outcome = AskedLate(nursery).perform(call(tmp_path, f"{shop}:nightly", "thread"), None)
    assert isinstance(outcome, Outcome)
    assert outcome.word == "succeeded"
    cancelled = Call(nursery)
    cancelled.stop("term")
    before = cancelled.perform(call(tmp_path, f"{shop}:nightly", "thread", fence=8), None)
    assert isinstance(before, Outcome)
    assert (before.word, before.side_effect, len(numbers(tmp_path / "pids"))) == ("cancelled", False, 1)


def test_calls_in_threads_leave_no_thread_and_no_file_behind(nursery: Nursery, tmp_path: Path, shop: str) -> None:
    before = threading.active_count()
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(
            pool.map(lambda n: perform(nursery, call(tmp_path, f"{shop}:gently", "thread", run=f"run_{n}")), range(40))
        )
    assert [outcome for outcome in outcomes if outcome.word != "succeeded"] == []
    assert threading.active_count() == before
    assert not (tmp_path / "attempts").exists()


def test_a_function_whose_module_another_thread_is_still_importing_is_waited_for(
    nursery: Nursery, tmp_path: Path, shop: str
) -> None:
    """The module is known to this process, and none of its functions is there yet."""
    slow = f"slow_{shop}"
    waits = "import time\nwhile not (HERE / 'go').exists():\n    time.sleep(0.01)\n"
    head, functions_ = SHOP.split("def nightly", 1)
    (tmp_path / f"{slow}.py").write_text(f"{head}{waits}def nightly{functions_}")
    with ThreadPoolExecutor(2) as pool:
        try:
            first = pool.submit(perform, nursery, call(tmp_path, f"{slow}:nightly", "thread", run="run_1"))
            until(lambda: slow in sys.modules)
            second = call(tmp_path, f"{slow}:nightly", "thread", run="run_2")
            assert Call(nursery).check(second.action) is None
            later = pool.submit(perform, nursery, second)
        finally:
            (tmp_path / "go").touch()
        assert [first.result().word, later.result().word] == ["succeeded", "succeeded"]
    sys.modules.pop(slow)


def test_a_silent_function_is_stopped_by_its_idle_timeout(nursery: Nursery, tmp_path: Path, shop: str) -> None:
    began = time.monotonic()
    outcome = perform(nursery, call(tmp_path, f"{shop}:waits", idle_timeout=timedelta(seconds=1)))
    assert (outcome.word, outcome.reason) == ("timed_out", "idle")
    assert time.monotonic() - began < 20
    assert isinstance(keeping.look(tmp_path), keeping.NeverStarted)
