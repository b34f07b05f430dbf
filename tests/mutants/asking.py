"""Asks the tests about each change of the core, in a process of its own that begins with everything collected.

mutmut makes the changes, all in one copy of the source, and a switch that says which is in force. Its own way is to
call pytest anew for each; here pytest collects once, looks once at which test reaches which function, and then forks
for each function, asking first the tests that reach least else and stopping at the first that notices.
"""

import contextlib
import functools
import gc
import hashlib
import inspect
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, TypedDict

import pytest
from hypothesis import Phase, settings
from mutmut import __main__ as mutmut
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state
from mutmut.utils.file_utils import copy_also_copy_files, copy_src_dir, setup_source_paths
from mutmut.utils.format_utils import mangled_name_from_mutant_name

DRAWS = 10
"""How many inputs a test that draws them draws at most."""
SECONDS_MOST = 0.5
"""Of the tests that reach a change those that reach least else are asked, as many as together last so long."""
MEMORY_MOST = 4 << 30
CHILD_MOST = 600
ALWAYS = "test_core_golden.py"
"""The tests of what people are told, word for word, are asked about each change that they reach, as the last."""
LOOK_MOST = 1
"""Seconds that one test may last where each call is counted; what lasts longer is asked about no change."""
LOOKS = Path("looks.json").resolve()
"""What each test reached and how long it lasted, with the hash of its file: looked at again when that is another."""
SURVIVED, NOTICED, UNTESTED, UNCLEAN = 0, 1, 33, -99
"""What mutmut keeps of a change; below zero: the signal that ended its process, which is noticed too."""


LONG = ("test_time_law.py", "test_time_walking.py")
"""Files whose tests follow very many instants, one by one: they ask for seconds what others ask in milliseconds."""


class Look(TypedDict):
    """One test, run once: whether it passes, what it reached, how many seconds it lasted."""

    of: str
    passes: bool
    lasted: float
    reached: list[str]


def main(modules: Sequence[str], folders: Sequence[str]) -> int:
    set_mutant_under_test("mutant_generation")
    Path("mutants").mkdir(exist_ok=True)
    with contextlib.redirect_stdout(sys.stderr):
        copy_src_dir()
        copy_also_copy_files()
        setup_source_paths()
        mutmut.create_mutants(1)
    set_mutant_under_test("")
    changes = {name: SourceFileMutationData(path=Path(f"src/duly/core/{name}.py")) for name in modules}
    for data in changes.values():
        data.meta_path = data.meta_path.resolve()
        data.load()
    with contextlib.chdir("mutants"):
        return int(pytest.main(["-s", "--assert=plain", "-p", "no:cacheprovider", *folders], plugins=[Asking(changes)]))


class Asking:
    """In place of pytest's own loop: all tests once, then those that reach a change, for each change."""

    def __init__(self, changes: dict[str, SourceFileMutationData]) -> None:
        self.changes = changes
        self.reaching: dict[str, list[tuple[int, float, pytest.Item]]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if not _is_long(item)]
        for item in items:
            _draw_less(item)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("the tests cannot be collected")
        CACHES.extend(_caches())
        _forget()
        gc.collect()
        gc.freeze()
        self._look(session.items)
        for data in self.changes.values():
            codes = data.exit_code_by_key
            wanted = [name for name, code in codes.items() if code in (None, SURVIVED, UNTESTED)]
            for function, names in groupby(wanted, mangled_name_from_mutant_name):
                codes.update(self._answers(function, list(names)))
                data.save()
            missed = sum(code in (SURVIVED, UNTESTED) for code in codes.values())
            print(f"{time.strftime('%H:%M:%S')} {data.path}: {len(codes) - missed} of {len(codes)}", flush=True)
        return True

    def _look(self, items: Sequence[pytest.Item]) -> None:
        """Run each test once, without any change and apart from the others, and keep what it reached and how long."""
        seen: dict[str, Look] = json.loads(LOOKS.read_text()) if LOOKS.exists() else {}
        looks: dict[str, Look] = {}
        for at, item in enumerate(items):
            of = hashlib.sha256(Path(item.path).read_bytes()).hexdigest()
            known = seen.get(item.nodeid)
            look = known if known is not None and known["of"] == of else _looked(item, of)
            looks[item.nodeid] = look
            if at % 100 == 0:
                LOOKS.write_text(json.dumps({**seen, **looks}))
            if not look["passes"]:
                print(f"left out, for it fails or lasts too long where calls are counted: {item.nodeid}")
                continue
            for function in look["reached"]:
                self.reaching.setdefault(function, []).append((len(look["reached"]), look["lasted"], item))
        LOOKS.write_text(json.dumps({**seen, **looks}))
        for reaching in self.reaching.values():
            reaching.sort(key=lambda one: (one[2].path.name == ALWAYS, *one[:2]))
        print(f"{len(items)} tests, {sum(look['lasted'] for look in looks.values()):.0f} s", flush=True)

    def _answers(self, function: str, names: list[str]) -> dict[str, int]:
        """Ask about all changes of one function; who is never answered ended the process that asked."""
        items: list[pytest.Item] = []
        lasting = 0.0
        for _, lasted, item in self.reaching.get(function, ()):
            if lasting + lasted <= SECONDS_MOST or item.path.name == ALWAYS:
                items.append(item)
                lasting += lasted
        if not items:
            return dict.fromkeys(names, UNTESTED)
        codes: dict[str, int] = {}
        while open_ := [name for name in names if name not in codes]:
            answers, status = _asked(open_, items, lasting)
            if answers[-1:] == [UNCLEAN]:
                # Something that was changed outlived its change: each once more, in a process of its own.
                return {name: (_asked([name], items, lasting)[0] or [-signal.SIGXCPU])[0] for name in names}
            codes.update(zip(open_, answers, strict=False))
            if len(answers) < len(open_):
                codes[open_[len(answers)]] = status
        return codes


CACHES: list[Any] = []


def _caches() -> list[Any]:
    """The caches of the core: what an unchanged function answered is not what a changed one answers."""
    cached = [one for one in gc.get_objects() if isinstance(one, functools._lru_cache_wrapper)]
    return [one for one in cached if str(one.__module__).startswith("duly.")]


def _forget() -> None:
    for one in CACHES:
        one.cache_clear()


def _looked(item: pytest.Item, of: str) -> Look:
    """Run one test in a process of its own, with every call of a function of the core counted."""
    begun = time.monotonic()
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        _be_quiet(LOOK_MOST)
        set_mutant_under_test("stats")
        start = time.process_time()
        passes = _passes(item)
        look = Look(of=of, passes=passes, lasted=time.process_time() - start, reached=sorted(state()._stats))
        os.write(into, json.dumps(look).encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    lost = Look(of=of, passes=False, lasted=time.monotonic() - begun, reached=[])
    return json.loads(text) if text else lost


def _be_quiet(seconds: int) -> None:
    """Be a child that says nothing and cannot go on without end."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MOST, MEMORY_MOST))


def _asked(names: Sequence[str], items: list[pytest.Item], lasting: float) -> tuple[list[int], int]:
    """Ask these tests about these changes, in a process of its own; gives its answers, and how it ended."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _answer(names, items, lasting, into)
        finally:
            os._exit(0)
    os.close(into)
    with os.fdopen(out) as answers:
        codes = [int(line) for line in answers]
    _, status = os.waitpid(child, 0)
    return codes, os.waitstatus_to_exitcode(status) or -signal.SIGXCPU


def _answer(names: Sequence[str], items: list[pytest.Item], lasting: float, into: int) -> None:
    _be_quiet(CHILD_MOST)
    items = [*items]
    noticing: dict[str, pytest.Item] = {}
    for name in names:
        _forget()
        set_mutant_under_test(name)
        signal.setitimer(signal.ITIMER_PROF, 1 + 3 * lasting)  # at its end the process is ended
        by = next((item for item in items if not _passes(item)), None)
        os.write(into, b"%d\n" % (SURVIVED if by is None else NOTICED))
        if by is not None:
            noticing[by.nodeid] = by
            items.remove(by)
            items.insert(0, by)  # what notices one change of a function notices most of the others
    _forget()
    set_mutant_under_test("")
    if not all(_passes(item) for item in noticing.values()):
        os.write(into, b"%d\n" % UNCLEAN)


def _passes(item: Any) -> bool:
    """Run one test as pytest does, without a report."""
    item._initrequest()
    try:
        item.session._setupstate.setup(item)
        item.runtest()
    except pytest.skip.Exception:
        return True
    except BaseException:  # noqa: BLE001  (whatever a change does, it is noticed)
        return False
    finally:
        item.session._setupstate.teardown_exact(None)
    return True


def _function(item: pytest.Item) -> Any:
    function = item.function  # type: ignore[attr-defined]
    return function.hypothesis.inner_test if hasattr(function, "hypothesis") else function


def _is_long(item: pytest.Item) -> bool:
    return item.path.name in LONG or "subprocess" in inspect.getsource(_function(item))


def _draw_less(item: pytest.Item) -> None:
    """Draw fewer inputs, always the same ones, and look for no smaller one that fails as well."""
    function = item.function  # type: ignore[attr-defined]
    own = getattr(function, "_hypothesis_internal_use_settings", None)
    if own is not None:
        function._hypothesis_internal_use_settings = settings(
            own,
            max_examples=min(own.max_examples, DRAWS),
            phases=(Phase.explicit, Phase.generate),
            derandomize=True,
            database=None,
            deadline=None,
        )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1].split(), sys.argv[2].split()))
