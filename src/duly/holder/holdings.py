"""What this holder holds: each run with its fence, its trust and its runner, seen by all of its threads."""

import threading
from collections.abc import Callable, Iterable

from duly import clock
from duly.core.questions import Asked
from duly.core.run import Run
from duly.core.task import Rules
from duly.ports import Assignment, How, Runner
from duly.runners.gates import Asking


class Holding:
    """One held run from its claim or take-over to the commit of its end."""

    def __init__(
        self,
        run: Run,
        *,
        assignment: Assignment,
        rules: Rules,
        runner: Runner,
        kept: bool,
        trust_end_us: int,
        gate: Asking | None = None,
        origin: str | None = None,
    ) -> None:
        self.run = run
        self.assignment = assignment
        self.rules = rules
        self.runner = runner
        self.kept = kept
        """Its work is a process under a keeper, which others at this place can find."""
        self.trust_end_us = trust_end_us
        self.gate = gate
        """What is asked before the work begins; nothing where that has begun."""
        self.origin = origin
        """The folder of the project whose file defines the task; nothing where no file does, or it is not of here."""
        self.stop_why: str | None = None
        """Why this holder asked for the end: a reason of the closed set, or nothing."""
        self.let_go = False
        """It was to be left to the next holder when this one stopped."""
        self.asked_s: float | None = None
        """When the end was first asked for, on the clock of waits."""
        self.asked_noted = False
        """The run says so."""
        self.asking: dict[str, Asked] = {}
        """What its work has asked a person and waits for, by the ids of the questions; of the writer's thread."""
        self.done = False
        """Its work has ended or was let go; only the writing of that is left."""

    def stop(self, how: How, why: str) -> None:
        """Ask for the end of the work, and remember the first reason why."""
        if self.stop_why is None:
            self.stop_why = why
            self.let_go = how == "detach"
        if self.asked_s is None and how != "detach":
            self.asked_s = clock.monotonic_s()
        if self.gate is not None:
            self.gate.stop(how)
        self.runner.stop(how)


class Holdings:
    """The holdings of one process; every method is safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_run: dict[str, Holding] = {}
        self._under_way: set[str] = set()
        self.on_release: Callable[[Holding], object] = lambda _holding: None
        """Told of each holding that is let go."""

    def claiming(self, runs: Iterable[str]) -> None:
        """Note claims and take-overs before their commit, so that a beat between does not take them for strays."""
        with self._lock:
            self._under_way.update(runs)

    def claimed(self, holdings: Iterable[Holding], under_way: Iterable[str]) -> None:
        """Hold what was won; forget what was under way."""
        with self._lock:
            for holding in holdings:
                self._by_run[holding.run.id] = holding
            self._under_way.difference_update(under_way)

    def release(self, holding: Holding) -> None:
        """Let go of a holding; a later one of the same run stays."""
        with self._lock:
            if self._by_run.get(holding.run.id) is holding:
                del self._by_run[holding.run.id]
        self.on_release(holding)

    def get(self, run: str) -> Holding | None:
        """The holding of this run."""
        with self._lock:
            return self._by_run.get(run)

    def all(self) -> list[Holding]:
        """Every holding."""
        with self._lock:
            return list(self._by_run.values())

    def knows(self, run: str) -> bool:
        """This run is held, or a claim of it is under way."""
        with self._lock:
            return run in self._by_run or run in self._under_way

    def extend(self, answered: set[tuple[str, int]], trust_end_us: int) -> None:
        """Trust what a beat was answered with until this instant; trust never goes back."""
        with self._lock:
            for holding in self._by_run.values():
                if (holding.run.id, holding.run.fence) in answered:
                    holding.trust_end_us = max(holding.trust_end_us, trust_end_us)

    def __len__(self) -> int:
        """How many runs are held."""
        with self._lock:
            return len(self._by_run)
