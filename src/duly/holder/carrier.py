"""Carriers: threads that perform attempts, one at a time each, and deliver what became of them."""

import queue
import threading
from collections.abc import Callable, Mapping

from duly import ids
from duly.clock import Clock
from duly.core.questions import Asked
from duly.holder.holdings import Holding
from duly.holder.settling import Asks, Begun, Delivery, NotNow, Returned, Verdict
from duly.ports import Outcome
from duly.runners import gates
from duly.there import missing

Deliver = Callable[[Delivery], None]


class Carrier:
    """Performs one holding's attempt in the calling thread."""

    def __init__(self, clock: Clock, beat_us: int, deliver: Deliver) -> None:
        self._clock = clock
        self._beat_us = beat_us
        self._deliver = deliver

    def step(self, holding: Holding, checkpoint: dict[str, object] | None = None) -> None:
        """Carry one attempt to its end and deliver that; too little trust left to begin gives the claim back."""
        verdict = self.before(holding) if checkpoint is None else None
        if verdict is None:
            verdict = self._perform(holding, checkpoint)
        self.end(holding, verdict)

    def end(self, holding: Holding, verdict: Verdict) -> None:
        """Deliver what became of the attempt."""
        holding.done = True
        self._deliver(Delivery(holding=holding, verdict=verdict))

    def before(self, holding: Holding) -> Verdict | None:
        """Ask whether the work may begin: why it does not, or None."""
        if (lacking := self._lacking_trust(holding)) is not None:
            return lacking
        away = None if holding.origin is None else missing(holding.origin)
        if away is not None:
            told = f"the folder of its project, {holding.origin}, cannot be used: {away}"
            return NotNow(reason="project_missing", told=told, details={"dir": holding.origin, "why": away})
        if holding.gate is None:
            return None
        try:
            answer = holding.gate.ask(holding.assignment)
        except Exception as error:  # noqa: BLE001 - nor must a gate's
            answer = gates.Closed(reason="gate_failed", told=f"asking the gate failed: {type(error).__name__}: {error}")
        match answer:
            case gates.Stopped():
                return Returned(why="its gate was being asked when it was stopped")
            case gates.Closed():
                details: dict[str, object] = {"exit_code": answer.exit_code, "said": answer.said}
                return NotNow(reason=answer.reason, told=answer.told, details=details)
            case gates.Open():
                # A gate may take its time, and the heart may have failed meanwhile.
                if (lacking := self._lacking_trust(holding)) is not None:
                    return lacking
                begun = Begun(details={"gate": "open" if answer.asked else "failed", "said": answer.said})
                self._deliver(Delivery(holding=holding, verdict=begun))
                return None

    def _lacking_trust(self, holding: Holding) -> Verdict | None:
        if holding.trust_end_us - self._clock.trust_us() >= self._beat_us:
            return None
        return Returned(why="too little of the lease was left to begin")

    def _perform(self, holding: Holding, checkpoint: dict[str, object] | None) -> Verdict:
        if hasattr(holding.runner, "on_told"):
            holding.runner.on_told = lambda facts: self._told(holding, facts)
        if hasattr(holding.runner, "on_asked"):
            holding.runner.on_asked = lambda asked: self._asked(holding, asked)
        try:
            return holding.runner.perform(holding.assignment, checkpoint)
        except Exception as error:  # noqa: BLE001 - a runner's fault must not take its carrier along
            return Outcome(
                word="failed",
                reason="preflight",
                error=f"the runner failed: {type(error).__name__}: {error}",
                confirmed=not holding.kept,
            )

    def _told(self, holding: Holding, facts: Mapping[str, object]) -> None:
        """Have it on the run's row, and in the ledger, what the work lets know while it goes on."""
        self._deliver(Delivery(holding=holding, verdict=Begun(details=dict(facts), agent=facts)))

    def _asked(self, holding: Holding, asked: Asked) -> None:
        """Have a person asked what the work asks, while it lives and waits."""
        self._deliver(Delivery(holding=holding, verdict=Asks(asked=asked, question=ids.new("que"))))


class Carriers:
    """As many carrier threads as there are slots, started at need; and one thread more for each adoption.

    Work that waits for a person gives its slot away, and its thread waits beside those.
    """

    def __init__(self, carrier: Carrier, slots: int) -> None:
        self._carrier = carrier
        self._slots = slots
        self._work: queue.SimpleQueue[Holding | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._out = 0
        self._carried: set[int] = set()
        """Holdings that have a slot, by their identity."""
        self._aside: set[int] = set()
        """Those whose slot is given away."""

    @property
    def free(self) -> int:
        """Slots that have no work."""
        with self._lock:
            return max(0, self._slots - self._out)

    @property
    def out(self) -> int:
        """Slots that have work."""
        with self._lock:
            return self._out

    def carry(self, holding: Holding) -> None:
        """Give a slot its work."""
        with self._lock:
            self._out += 1
            self._carried.add(id(holding))
            if self._threads < min(self._slots, self._out) + len(self._aside):
                self._threads += 1
                threading.Thread(target=self._run, name=f"carrier-{self._threads}", daemon=True).start()
        self._work.put(holding)

    def step_aside(self, holding: Holding) -> None:
        """Give away the slot of work that waits for a person; one that has none, or has ended, changes nothing."""
        with self._lock:
            if id(holding) in self._carried:
                self._carried.discard(id(holding))
                self._aside.add(id(holding))
                self._out -= 1

    def step_back(self, holding: Holding) -> bool:
        """Take a slot again for work that goes on; False where none is free."""
        with self._lock:
            if id(holding) not in self._aside:
                return True
            if self._out >= self._slots:
                return False
            self._aside.discard(id(holding))
            self._carried.add(id(holding))
            self._out += 1
            return True

    def adopt(self, look: Callable[[], object]) -> None:
        """Look at taken-over work in a thread of its own: adoption is no start and takes no slot."""
        threading.Thread(target=look, name="adopter", daemon=True).start()

    def close(self) -> None:
        """Let the threads end when they have no work."""
        with self._lock:
            for _ in range(self._threads):
                self._work.put(None)

    def _run(self) -> None:
        while (holding := self._work.get()) is not None:
            try:
                self._carrier.step(holding)
            finally:
                with self._lock:
                    self._out -= id(holding) in self._carried
                    self._carried.discard(id(holding))
                    self._aside.discard(id(holding))
