"""Guards of the protocol taken away, one at a time, for as long as a `with` lasts: bugs that a simulation must find."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from duly.core.run import Run
from duly.holder import heart, settling
from duly.holder.carrier import Carrier
from duly.holder.holdings import Holding
from duly.holder.settling import Returned, Settler
from duly.store import changing, runs, steps, switches, tasks
from duly.store.engine import DIALECT
from duly.store.sql import SIZES, Batch, Statement
from duly.store.store import Session
from duly.testing.keepers import Keepers

Plant = Callable[[ExitStack], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """A guard that is gone: its name in the protocol, how it is taken away, and in how many places the world has."""

    name: str
    plant: Plant
    places: int = 1
    control: Plant | None = None
    """What is weakened besides, and alone breaks nothing."""


@contextmanager
def planted(bug: Bug) -> Iterator[None]:
    with ExitStack() as stack:
        if bug.control is not None:
            bug.control(stack)
        bug.plant(stack)
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


def trusting_for_ever(self: Holding, now_us: int = 0) -> None: ...


def no_strays(real: Any) -> Any:
    return lambda self: replace(real(self), strays=())


def nothing_lost(real: Any) -> Any:
    return lambda self: replace(real(self), lost=())


BUGS: dict[str, Bug] = {
    bug.name: bug
    for bug in (
        Bug(
            name="holder and fence in the beat",
            plant=leave_out(runs.BEAT, "runs.fence = v.fence", "runs.holder = v.holder"),
        ),
        Bug(name="holder and fence in settle", plant=put(Settler, "_is_ours", is_held)),
        Bug(
            name="holder and fence in give-back",
            plant=put(Settler, "_read_back", _read_back_given_back(Settler._read_back)),
        ),
        Bug(
            name="fence + 1 in the claim",
            plant=leave_out(tasks.RAISE_FENCE, '(tasks.fence + v."by")', instead='v."by"'),
        ),
        Bug(
            name="the lease's end in the sweep",
            plant=leave_out(steps.STEP_NAMING_LEASE, "runs.lease_end_us IS v.was_lease_end_us"),
        ),
        Bug(
            name="edits plan up to now first",
            plant=all_of(
                put(changing, "bring_up_to_now", lambda _session, task: task),
                put(switches, "bring_up_to_now", lambda _session, task: task),
                put(switches, "owed", lambda *_given: None),
            ),
        ),
        Bug(name="the mark that forbids the start", plant=put(Keepers, "forbid_start", lambda _self, _folder: True)),
        Bug(name="recompute while the run is still ours", plant=put(Settler, "_read_back", never_again)),
        Bug(name="strays named by the beat", plant=put(heart.Heart, "step", no_strays(heart.Heart.step))),
        Bug(name="trust left before the start", plant=put(Carrier, "_lacking_trust", lambda _self, _holding: None)),
        Bug(name="the token of the claim", plant=put(settling, "_is_my_own_write", lambda _session, _run, _mine: True)),
    )
}
