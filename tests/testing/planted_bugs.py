"""Guards of the protocol taken away, one at a time, for as long as a `with` lasts: bugs that a simulation must find."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from duly.core.limits import Limit
from duly.core.run import Run
from duly.holder import heart, presence, settling, sweeper
from duly.holder.figures import figures
from duly.holder.settling import Returned, Settler
from duly.holder.view import View
from duly.store import changing, runs, steps, switches, tasks, waiting
from duly.store.engine import DIALECT
from duly.store.runs import Runs
from duly.store.sql import SIZES, Batch, Statement
from duly.store.store import Session
from duly.store.tasks import Tasks
from duly.testing import STORM, Troubles, flow, storm, world
from duly.testing.children import Script
from duly.testing.keepers import Keepers
from duly.testing.stores import Opening, file_store

Plant = Callable[[ExitStack], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """A guard that is gone: its name in the protocol, how it is taken away, and how many places the world has."""

    name: str
    plant: Plant | None = None
    opening: Callable[[Path], Opening] | None = None
    """Stores that lack something; without it, whatever is at hand."""
    places: int = 1
    control: Plant | None = None
    """What is weakened besides, and alone breaks nothing: another guard that would hide this one."""
    troubles: Troubles = STORM
    first: int = 0
    """Where the search begins: a seed near one that found it, so that the test is quick."""


@contextmanager
def planted(bug: Bug) -> Iterator[None]:
    LIMITS_SEEN.clear()
    with ExitStack() as stack:
        if bug.control is not None:
            bug.control(stack)
        if bug.plant is not None:
            bug.plant(stack)
        yield


@contextmanager
def controlled(bug: Bug) -> Iterator[None]:
    """Only what would hide the guard is weakened, and the guard itself is there."""
    with ExitStack() as stack:
        assert bug.control is not None
        bug.control(stack)
        yield


@contextmanager
def without(written: Batch | Statement, guard: str, instead: str = "1 = 1") -> Iterator[None]:
    """Take a condition out of a statement as it is sent."""
    compiled = [written.on(DIALECT, size) for size in SIZES] if isinstance(written, Batch) else [written.on(DIALECT)]
    texts = [one.text for one in compiled]
    for one in compiled:
        assert guard in one.text, one.text
        one.text = one.text.replace(guard, instead)
    try:
        yield
    finally:
        for one, text in zip(compiled, texts, strict=True):
            one.text = text


def leave_out(written: Batch | Statement, *guards: str, instead: str = "1 = 1") -> Plant:
    def plant(stack: ExitStack) -> None:
        for guard in guards:
            stack.enter_context(without(written, guard, instead))

    return plant


def put(of: object, name: str, instead: Any) -> Plant:
    return lambda stack: stack.enter_context(patch.object(of, name, instead))


def all_of(*plants: Plant) -> Plant:
    def plant(stack: ExitStack) -> None:
        for one in plants:
            one(stack)

    return plant


# What each guard is replaced by


def is_held(_self: Settler, run: Run, _mine: Run) -> bool:
    return run.state == "held"


def _read_back_given_back(real: Any) -> Any:
    def read_back(self: Settler, session: Session, lost: Any, done: Any) -> Any:
        with (
            patch.object(Settler, "_is_ours", is_held)
            if any(isinstance(one.verdict, Returned) for one in lost)
            else ExitStack()
        ):
            return real(self, session, lost, done)

    return read_back


def never_again(self: Settler, session: Session, lost: Any, done: list[settling.Settled]) -> list[Any]:
    """The version moved: the run is taken for lost, though it is still ours."""
    done += [settling.Settled(delivery=delivery, run=None) for delivery in lost]
    return []


def figures_of(changed: Any) -> Plant:
    return lambda stack: stack.enter_context(patch("duly.testing.world.figures", changed(figures)))


def of_long_trust(real: Any) -> Any:
    """Holders believe in their leases long after those are over, and so do the keepers they start."""
    return lambda *given, **named: replace(real(*given, **named), trust_us=real(*given, **named).lease_us * 4)


def of_long_grace(real: Any) -> Any:
    """The kill comes a whole lease after the trust is over."""
    return lambda *given, **named: replace(real(*given, **named), grace_us=real(*given, **named).lease_us)


def deaf_for_long(**ways: Any) -> Script:
    """Work that ignores TERM, and takes its time."""
    return Script(**{**ways, "deaf": True, "lasts_us": 30_000_000})


def as_read_before(real: Any) -> Any:
    """What this connection read the last time it asked, and takes for what stands."""
    seen: dict[int, Any] = {}

    def asked(self: Any, *given: Any) -> Any:
        now = real(self, *given)
        before, seen[id(self._line)] = seen.get(id(self._line), now), now
        return before

    return asked


def limits_as_read_before(self: View, weights: Mapping[str, int]) -> Mapping[str, Limit]:
    """What a turn sees of limits is what its process saw at its last turn."""
    for key, limit in self.session.crowd.by_keys([key for key in weights if key not in self._limits]).items():
        before = LIMITS_SEEN.get((id(self.session.line), key), limit)
        LIMITS_SEEN[id(self.session.line), key] = limit
        self._limits[key] = replace(limit, used=before.used)
    return {key: self._limits[key] for key in weights}


LIMITS_SEEN: dict[tuple[int, str], Limit] = {}


def without_index(name: str) -> Callable[[Path], Opening]:
    """Stores of which one index is gone."""

    def opening(folder: Path) -> Opening:
        opened = file_store(folder)
        with closing(sqlite3.connect(folder / "duly.db", isolation_level=None)) as raw:
            raw.execute(f"DROP INDEX {name}")
        return opened

    return opening


def no_strays(real: Any) -> Any:
    return lambda self: replace(real(self), strays=())


BUGS: dict[str, Bug] = {
    bug.name: bug
    for bug in (
        Bug(name="trust window", first=10, plant=figures_of(of_long_trust), places=2),
        Bug(
            name="kill time in I1",
            plant=figures_of(of_long_grace),
            places=2,
            control=put(world, "Script", deaf_for_long),
        ),
        Bug(
            name="holder and fence in the beat",
            first=30,
            plant=leave_out(runs.BEAT, "runs.fence = v.fence", "runs.holder = v.holder"),
        ),
        Bug(name="holder and fence in settle", first=11, plant=put(Settler, "_is_ours", is_held)),
        Bug(
            name="holder and fence in give-back",
            first=11,
            plant=put(Settler, "_read_back", _read_back_given_back(Settler._read_back)),
        ),
        Bug(
            name="fence + 1 in the claim's statement",
            plant=leave_out(tasks.RAISE_FENCE, '(tasks.fence + v."by")', instead='v."by"'),
        ),
        Bug(
            name="lease end named by the sweep",
            first=33,
            plant=leave_out(steps.STEP_NAMING_LEASE, "runs.lease_end_us IS v.was_lease_end_us"),
            troubles=replace(STORM, between=0.4, calamity=0.06),
            control=put(flow, "WAKES", 1.0),
        ),
        Bug(
            name="seat index",
            opening=without_index("runs_seat"),
            control=leave_out(waiting.CLAIMABLE, "count(*) >= tasks.seats", instead="count(*) > 1000"),
        ),
        Bug(
            name="occurrence index",
            first=46,
            opening=without_index("runs_occurrence"),
            control=put(Runs, "by_occurrence", lambda _self, _task, _occurrence: None),
        ),
        Bug(
            name="cursor in the planner's write",
            plant=leave_out(
                tasks.PLANNED,
                "tasks.planned_until_us = v.was_planned_until_us",
                "tasks.planned_until_us <= v.planned_until_us",
            ),
            control=put(Tasks, "due", as_read_before(Tasks.due)),
        ),
        Bug(
            name="serialised claims",
            first=31,
            plant=all_of(
                put(View, "limits", limits_as_read_before),
                leave_out(waiting.CLAIMABLE, "limits.used + task_limits.weight > limits.most", instead="0 = 1"),
            ),
        ),
        Bug(
            name="edits that plan first",
            plant=all_of(
                put(changing, "bring_up_to_now", lambda _session, task: task),
                put(switches, "bring_up_to_now", lambda _session, task: task),
                put(switches, "owed", lambda *_given: None),
            ),
        ),
        Bug(name="the mark that forbids the start", plant=put(Keepers, "forbid_start", lambda _self, _folder: True)),
        Bug(name="recompute while the run is still ours", first=58, plant=put(Settler, "_read_back", never_again)),
        Bug(
            name="strays named by the beat",
            first=12,
            plant=put(heart.Heart, "step", no_strays(heart.Heart.step)),
            troubles=replace(STORM, lost=0.06),
            control=put(storm, "LIVES_MOST", 1),
        ),
        Bug(name="death proven by a lock", first=4, plant=put(presence, "life_of", lambda _folder, _holder: "dead")),
        Bug(
            name="where an attempt began",
            first=65,
            plant=put(sweeper, "_began_by", lambda _session, _run: None),
            places=2,
        ),
    )
}
