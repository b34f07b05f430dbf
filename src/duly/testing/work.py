"""What a simulated holder lives among: a runner whose work lives in memory, carriers and an inbox without threads."""

from collections.abc import Callable, Mapping
from typing import Protocol

from duly.clock import Clock
from duly.core.reasons import Refusal
from duly.holder.abroad import Abroad
from duly.holder.carrier import Carrier, Carriers, Deliver
from duly.holder.holdings import Holding
from duly.holder.inbox import Inbox
from duly.holder.settling import Delivery, Verdict
from duly.ports import Assignment, Detached, How, Outcome, OutcomeWord
from duly.runners import keeping
from duly.runners.registry import Registry
from duly.testing.children import Nest, Script
from duly.testing.keepers import Keepers

SWEPT_WITHIN_S = 5.0


class Surroundings(Protocol):
    """What the work of one simulated process is started in."""

    nest: Nest
    keepers: Keepers
    grace_us: int

    def script(self, assignment: Assignment) -> Script:
        """Say how the work of this attempt goes."""

    def between(self) -> None:
        """Let anything come between."""

    def wake(self) -> None:
        """Let the carriers look at their work soon."""


class Work:
    """The runner of simulated work: it goes by the same road as a command under its keeper, without ever waiting."""

    at_once = True
    kept = True

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._wish: How | None = None
        self._assignment: Assignment | None = None

    def check(self, action: Mapping[str, object]) -> Refusal | None:
        """Find nothing wrong with any action."""
        return None

    def perform(self, assignment: Assignment, checkpoint: Mapping[str, object] | None) -> Outcome | Detached:
        """Never asked: carriers of a simulated world begin work and look after it in turns."""
        raise AssertionError("simulated work is never waited for")

    def begin(self, holding: Holding, checkpoint: Mapping[str, object] | None) -> Outcome | None:
        """Start, or attach to what was started; None where there is something to look after now."""
        work = self._assignment = holding.assignment
        if checkpoint is not None:
            return self._attach(work)
        if self._wish is not None:
            word: OutcomeWord = "abandoned" if self._wish == "detach" else "cancelled"
            return _not_begun("returned" if self._wish == "detach" else "cancelled_by_hand", word)
        self._around.between()
        around = self._around
        started = around.keepers.start(
            work,
            nest=around.nest,
            script=around.script(work),
            grace_us=around.grace_us,
            trusted_us=holding.trust_end_us,
        )
        if started is None:
            return _not_begun("fence_lost", "abandoned")
        self._pass_on()
        return None

    def ended(self) -> Outcome | Detached | None:
        """What became of it, or None while it lives."""
        assert self._assignment is not None
        work, keepers = self._assignment, self._around.keepers
        seen = keepers.look(work.folder)
        match seen:
            case keeping.Ended():
                return keeping.outcome_from_exit(seen.exit)
            case keeping.Swept():
                return _abandoned("its keeper was killed, and what that left was ended", confirmed=True)
            case keeping.Rebooted():
                return _abandoned("the machine was restarted while it ran", confirmed=True)
            case keeping.KeeperGone():
                if seen.nursery_alive and not keepers.wait_swept(work.folder, within_s=SWEPT_WITHIN_S):
                    return None
                if seen.nursery_alive:
                    return self.ended()
                keepers.end_strays(work.folder, work.run)
                return _abandoned("its keeper and nursery were both killed", confirmed=False)
            case keeping.KeeperStopped() if self._wish in {"term", "kill"}:
                keepers.continue_or_kill(seen)
                return None
            case _:
                return Detached() if self._wish == "detach" else None

    def stop(self, how: How) -> None:
        """Ask for the end, or the letting go; an end asked for is not taken back, and a kill not softened."""
        if self._wish == "kill" or (self._wish == "term" and how == "detach"):
            return
        self._wish = how
        self._pass_on()
        self._around.wake()

    def _pass_on(self) -> None:
        work = self._assignment
        if work is not None and self._wish in {"term", "kill"}:
            self._around.keepers.end(work.folder, holder=work.holder, fence=work.fence, how=self._wish)

    def _attach(self, work: Assignment) -> Outcome | None:
        keepers = self._around.keepers
        seen = keepers.look(work.folder)
        if isinstance(seen, keeping.KeeperStopped):
            keepers.continue_or_kill(seen)
        if isinstance(seen, keeping.NeverStarted):
            if keepers.forbid_start(work.folder):
                return _not_begun("returned", "abandoned")
            return _abandoned("its traces are gone", confirmed=False)
        keepers.adopt(work.folder, holder=work.holder, fence=work.fence)
        self._pass_on()
        return None


class TurnedCarrier(Carrier):
    """Begins attempts and looks after them in turns, where a real one waits in a thread."""

    def __init__(self, clock: Clock, beat_us: int, deliver: Deliver) -> None:
        super().__init__(clock, beat_us, deliver)
        self._watched: dict[int, Holding] = {}
        self.on_end: Callable[[Holding], None] = lambda _holding: None

    def step(self, holding: Holding, checkpoint: dict[str, object] | None = None) -> None:
        """Begin one attempt, or attach to it."""
        verdict: Verdict | None = self.before(holding) if checkpoint is None else None
        if verdict is None:
            assert isinstance(holding.runner, Work)
            verdict = holding.runner.begin(holding, checkpoint)
        if verdict is None:
            self._watched[id(holding)] = holding
        else:
            self.end(holding, verdict)

    def end(self, holding: Holding, verdict: Verdict) -> None:
        """Deliver what became of it."""
        super().end(holding, verdict)
        self.on_end(holding)

    def look(self) -> None:
        """Deliver what has ended."""
        for key, holding in list(self._watched.items()):
            assert isinstance(holding.runner, Work)
            verdict = holding.runner.ended()
            if verdict is not None and self._watched.pop(key, None) is not None:
                self.end(holding, verdict)


class TurnedCarriers(Carriers):
    """Slots without threads: what they are given waits for the world to give each its turn."""

    def __init__(self, carrier: Carrier, slots: int, called: Callable[[], None]) -> None:
        super().__init__(carrier, slots)
        assert isinstance(carrier, TurnedCarrier)
        self.turned = carrier
        self._most = slots
        self._taken: set[int] = set()
        self._called = called
        self.queue: list[Callable[[], object]] = []
        carrier.on_end = lambda holding: self._taken.discard(id(holding))

    @property
    def free(self) -> int:
        """Slots that have no work."""
        return max(0, self._most - len(self._taken))

    @property
    def out(self) -> int:
        """None for whom a turn should linger."""
        return 0

    def carry(self, holding: Holding) -> None:
        """Give a slot its work."""
        self._taken.add(id(holding))
        self.adopt(lambda: self.turned.step(holding))

    def adopt(self, look: Callable[[], object]) -> None:
        """Let this be done at some turn to come."""
        self.queue.append(look)
        self._called()

    def close(self) -> None:
        """There are no threads to end."""


class TurnedInbox(Inbox):
    """An inbox whose waiting lets the world go on."""

    def __init__(self, wait: Callable[[float], None], called: Callable[[], None]) -> None:
        super().__init__()
        self._world_wait = wait
        self._called = called

    def deliver(self, delivery: Delivery) -> None:
        """Leave a delivery for the writer's next turn."""
        super().deliver(delivery)
        self._called()

    def ring(self) -> None:
        """Call the writer."""
        super().ring()
        self._called()

    def wait(self, seconds: float) -> bool:
        """Let so long pass in the world."""
        self._world_wait(seconds)
        return True

    def linger(self, out: Callable[[], int]) -> None:
        """Take what is there."""


class TurnedAbroad(Abroad):
    """What is done for other hosts, without the thread that copies output: simulated work writes none."""

    def begin_to_copy(self) -> None:
        """Copy nothing."""


class WorkRegistry(Registry):
    """Performs commands by simulated work, and nothing else."""

    def __init__(self, around: Surroundings) -> None:
        super().__init__({"command": lambda: Work(around)})

    def kinds(self) -> list[str]:
        """Name the one kind."""
        return ["command"]

    def starts_at_once(self, kind: str) -> bool:
        """Work in memory needs nothing to get ready."""
        return True


def _not_begun(reason: str, word: OutcomeWord) -> Outcome:
    return Outcome(word=word, reason=reason, error="it had not begun", side_effect=False)


def _abandoned(error: str, *, confirmed: bool) -> Outcome:
    reason = "holder_died" if confirmed else "end_not_confirmed"
    return Outcome(word="abandoned", reason=reason, error=error, confirmed=confirmed)
