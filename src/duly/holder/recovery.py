"""Looking at work whose lease was taken over, in the order that makes it safe.

(1) forbid the start: done means that it never began, and a gate that was being asked is ended; (2) an exit file says
how it ended; (3) a living keeper is adopted, or told to end when its holder was silent or is needed by the work; (4)
a stopped keeper is continued, else killed; (5) what a killed keeper left is ended by its nursery; (6) with both gone,
strays are looked for once, and the end stays unconfirmed.
"""

import contextlib
from dataclasses import replace
from datetime import datetime
from typing import Literal, assert_never

from duly import clock as machine
from duly.clock import Clock
from duly.core import lifecycle, spoken
from duly.errors import StoreAway
from duly.holder.assignments import is_attended
from duly.holder.carrier import Carrier, Deliver
from duly.holder.holdings import Holding
from duly.holder.settling import Delivery, Interrupted, Returned, Verdict
from duly.holder.sweeper import TakenOver
from duly.ports import Outcome
from duly.runners import keeping, success, turn_file
from duly.runners.traces import MACHINE, Traces
from duly.store import Store

SWEPT_WITHIN_S = 1.0
END_AGAIN_S = 1.0
"""A keeper that was told to end is told again after so long; a held seat waits until it has ended."""
LOOK_EVERY_S = 0.02


class Recovery:
    """Looks at one taken-over run at a time, in a thread of its own, and delivers what became of it."""

    def __init__(
        self, clock: Clock, carrier: Carrier, deliver: Deliver, store: Store, holder: str, traces: Traces = MACHINE
    ) -> None:
        self._clock = clock
        self._carrier = carrier
        self._deliver = deliver
        self._store = store
        self._holder = holder
        self._traces = traces

    def step(self, taken: TakenOver) -> None:
        """Look, then adopt and carry, or deliver the verdict."""
        verdict = _with_its_turn(taken.holding, self._judge(taken))
        if verdict is None:
            self._note_adoption(taken.holding)
            self._carrier.step(taken.holding, checkpoint={"folder": str(taken.holding.assignment.folder)})
            return
        taken.holding.done = True
        self._deliver(Delivery(holding=taken.holding, verdict=verdict))

    def _judge(self, taken: TakenOver) -> Verdict | None:
        """The verdict, or None when the work lives and is to be adopted."""
        holding = taken.holding
        if known := self._known(taken):
            return known
        folder = holding.assignment.folder
        if taken.rebooted:
            return self._after_reboot(taken)
        if self._traces.forbid_start(folder):
            return self._unmarked(taken)
        while True:
            seen = self._traces.look(folder)
            match seen:
                case keeping.Ended():
                    return self._ended(seen.exit, taken)
                case keeping.KeeperAlive():
                    if not taken.silent and not is_attended(holding.runner):
                        return None
                    self._end(holding)
                case keeping.KeeperStopped():
                    self._traces.continue_or_kill(seen)
                case keeping.KeeperGone():
                    if not (seen.nursery_alive and self._traces.wait_swept(folder, within_s=SWEPT_WITHIN_S)):
                        return self._unseen(holding)
                case keeping.Swept():
                    return self._died(self._clock.now(), "its keeper was killed, and what that left was ended")
                case keeping.Rebooted():
                    return self._died(taken.last_seen_at, "the machine was restarted while it ran")
                case keeping.Elsewhere():
                    if not taken.silent and seen.lock_held and not is_attended(holding.runner):
                        return None
                    if not seen.lock_held:
                        return self._unseen(holding)
                    self._end(holding)
                case keeping.NeverStarted():
                    return Outcome(
                        word="abandoned", reason="end_not_confirmed", error="its traces are gone", confirmed=False
                    )
                case _:
                    assert_never(seen)

    def _known(self, taken: TakenOver) -> Verdict | None:
        """The verdict on what needs no look, or where a look would show nothing."""
        if taken.never_begun:
            return Returned(why="it was claimed, and never handed to anybody")
        if taken.elsewhere and taken.rebooted:
            return self._died(taken.last_seen_at, "the machine was restarted while it ran")
        if taken.elsewhere and taken.deadlined:
            told = "its holder, on another host, was silent past its lease, by when its keeper has ended the work"
            return Interrupted(why="lease_lost", ended_at=taken.last_seen_at, told=told)
        if taken.elsewhere:
            told = "its holder fell silent, and worked in another run folder: nothing of it is seen from here"
            return Outcome(word="abandoned", reason="end_not_confirmed", error=told, confirmed=False)
        if not taken.holding.kept:
            if self._traces.gate_is_asked(taken.holding.assignment.folder):
                return self._unmarked(taken)
            return self._died(taken.last_seen_at, "its holder died, and its work with it")
        return None

    def _unmarked(self, taken: TakenOver) -> Verdict:
        """There was no mark: it never began, unless somebody deleted the folder under work that lives."""
        holding = taken.holding
        asked = holding.rules.gate is not None and self._traces.end_gate(holding.assignment)
        what = "its gate was being asked" if asked else "it had not begun"
        if not self._traces.lives(holding.run.id, holding.run.fence):
            return Returned(why=f"{what} when its holder was gone", died=taken.died)
        left = self._traces.end_living(holding.run.id, holding.run.fence)
        if asked and not left:
            return Returned(why=f"{what} when its holder was gone, and was ended", died=taken.died)
        told = "its gate lives on" if asked else "its folder was gone while its work lived, which was ended"
        if left:
            told += f"; not ended: {', '.join(left)}"
        return Outcome(word="abandoned", reason="end_not_confirmed", error=told, confirmed=False)

    def _after_reboot(self, taken: TakenOver) -> Verdict:
        """Nothing lives, and no mark proves nothing: what was held counts as started (P3)."""
        seen = self._traces.look(taken.holding.assignment.folder)
        if isinstance(seen, keeping.Ended):
            return success.outcome_of(seen.exit, taken.holding.assignment)
        return self._died(taken.last_seen_at, "the machine was restarted while it ran")

    def _end(self, holding: Holding) -> None:
        """Make the keeper ours, tell it to end its tree, and wait a while for that.

        A command is ended at once. What is spoken to is asked, and killed by its keeper when that was of no use: what
        stands for a turn at a server has that turn to end first.
        """
        task = holding.assignment
        how: Literal["term", "kill"] = "term" if is_attended(holding.runner) else "kill"
        self._traces.adopt(task.folder, holder=task.holder, fence=task.fence)
        self._traces.end(task.folder, holder=task.holder, fence=task.fence, how=how)
        until = machine.monotonic_s() + END_AGAIN_S
        while machine.monotonic_s() < until:
            if not isinstance(self._traces.look(task.folder), keeping.KeeperAlive | keeping.Elsewhere):
                return
            machine.pause(LOOK_EVERY_S)

    def _ended(self, found: keeping.Exit, taken: TakenOver) -> Verdict:
        if found.get("ended_by") == "deadline" or (taken.silent and found.get("ended_by") in {"term", "kill"}):
            told = "its holder was silent past its lease, so its work was ended"
            return Interrupted(why="lease_lost", ended_at=self._clock.now(), told=told)
        return success.outcome_of(found, taken.holding.assignment)

    def _died(self, at: datetime, told: str) -> Interrupted:
        return Interrupted(why="holder_died", ended_at=at, told=told)

    def _unseen(self, holding: Holding) -> Outcome:
        left = self._traces.end_strays(holding.assignment.folder, holding.run.id)
        said = f"; not ended: {', '.join(left)}" if left else ""
        return Outcome(
            word="abandoned",
            reason="end_not_confirmed",
            error=f"its keeper and nursery were both killed{said}",
            confirmed=False,
        )

    def _note_adoption(self, holding: Holding) -> None:
        # Told for people; the work goes on whether or not it can be told now.
        with contextlib.suppress(StoreAway), self._store.another_once() as store, store.write() as session:
            session.ledger.add([lifecycle.adopted(holding.run, now=session.now, holder=self._holder)])


def _with_its_turn(holding: Holding, verdict: Verdict | None) -> Verdict | None:
    """For work that is spoken to: the outcome of its turn, where that had ended, else what it left of the turn."""
    if not is_attended(holding.runner) or not isinstance(verdict, Outcome | Interrupted):
        return verdict
    left = turn_file.read(holding.assignment.folder)
    if left is None:
        return replace(verdict, agent={spoken.UNTOUCHED: True})
    if left.word is None or (isinstance(verdict, Outcome) and verdict.word != "abandoned"):
        return replace(verdict, agent=left.agent)
    if isinstance(verdict, Interrupted):
        verdict = Outcome(word="abandoned", error=verdict.told)
    return turn_file.outcome(left, verdict)
