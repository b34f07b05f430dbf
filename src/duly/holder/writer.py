"""The writer: one thread a process through which all of its work on runs is written, many writes to a commit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from duly import chance
from duly.core import spoken
from duly.core.events import Event
from duly.core.questions import Question, given
from duly.core.run import Run
from duly.errors import StoreAway, StoreBusy
from duly.holder.assignments import hold
from duly.holder.carrier import Carriers
from duly.holder.dispatcher import Dispatcher, Won
from duly.holder.figures import Figures
from duly.holder.holdings import Holding, Holdings
from duly.holder.inbox import Inbox
from duly.holder.origins import origins_of
from duly.holder.planner import Planned, Planner
from duly.holder.settling import Asks, Delivery, Settled, Settler
from duly.ports import Outcome
from duly.runners import folders
from duly.runners.registry import Registry
from duly.store import Session, Store
from duly.store.engine import PATIENCE_S
from duly.store.glances import has_come
from duly.store.queueing import overtake, trim
from duly.store.secrets_made import lend

DELIVERIES_A_TURN = 200
STAND_BACK_S = (0.005, 0.03)
"""Where another holder writes at this moment, it may do all there is to do: this one looks again after so long."""
STAND_BACK_MOST = 2
"""So often in a row; then the lock is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one turn did."""

    settled: int
    opened: int
    claimed: int
    ended: int
    asked: int
    """Live runs that were asked to end for newer ones."""

    @property
    def progress(self) -> bool:
        """Something moved, so another turn may find more."""
        return bool(self.settled or self.opened or self.claimed or self.ended)


class Writer:
    """Settles, opens and claims in one transaction a turn; hands out what was claimed only after its commit."""

    def __init__(
        self,
        store: Store,
        *,
        planner: Planner,
        dispatcher: Dispatcher,
        settler: Settler,
        holdings: Holdings,
        carriers: Carriers,
        inbox: Inbox,
        registry: Registry,
        figures: Figures,
        on_settled: Callable[[Settled], None],
    ) -> None:
        self._store = store
        self._run_folder = store.run_folder
        self._planner = planner
        self._dispatcher = dispatcher
        self.settler = settler
        self._holdings = holdings
        self._carriers = carriers
        self._inbox = inbox
        self._registry = registry
        self._figures = figures
        self._on_settled = on_settled
        self.accepting = True
        """New work is opened and claimed; else only what is held is brought to its end."""
        self.claims_undone = 0
        """Claims that a store in trouble undid, so that their runs wait again."""
        self.soonest: datetime | None = None
        """When the next turn is due by time alone."""
        self._stood_back = 0
        self._waits = store.engine.one_place
        """Behind one file's lock nobody stands for long; on a server all holders are woken by the same news."""

    def step(self) -> Turn:
        """Take one turn. When it raises nothing was handed out, and every delivery is back in the inbox."""
        self._inbox.linger(lambda: self._carriers.out)
        deliveries = self._inbox.take(DELIVERIES_A_TURN)
        back = not (self._waits or deliveries) and self._stood_back < STAND_BACK_MOST
        try:
            turn = self._turn(deliveries, 0.0 if back else PATIENCE_S)
        except BaseException as error:
            self._inbox.put_back(deliveries)
            if back and isinstance(error, StoreBusy):
                return self._stand_back()
            raise
        self._stood_back = 0
        return turn

    def _stand_back(self) -> Turn:
        self._stood_back += 1
        self.soonest = self._store.clock.now() + timedelta(seconds=chance.between(*STAND_BACK_S))
        return Turn(settled=0, opened=0, claimed=0, ended=0, asked=0)

    def step_carefully(self) -> None:
        """Write each delivery by itself, so that one which cannot be written keeps no other from it.

        A run whose end cannot be written as it is ends abandoned, with the fault for its error.
        """
        deliveries = self._inbox.take(DELIVERIES_A_TURN)
        left = list(deliveries)
        try:
            for delivery in deliveries:
                try:
                    settled = self._settle(delivery)
                except StoreAway:
                    raise
                except Exception as error:  # noqa: BLE001 - a fault of ours in one run must not stop the others
                    told = f"its end could not be written: {type(error).__name__}: {error}"
                    given_up = Outcome(word="abandoned", reason="end_not_confirmed", error=told, confirmed=False)
                    settled = self._settle(Delivery(holding=delivery.holding, verdict=given_up))
                left.remove(delivery)
                self._let_go(settled)
        finally:
            self._inbox.put_back(left)

    def _settle(self, delivery: Delivery) -> list[Settled]:
        with self._store.write() as session:
            return self.settler.step(session, [delivery])

    def look(self) -> bool:
        """Ask without the lock whether a turn would find anything to do, and when the next is due."""
        with self._store.read() as session:
            seen = self._planner.glance(session)
            self.soonest = self._planner.soonest(session, seen)
            if not self.accepting:
                return False
            return (
                self._planner.is_due(session, seen)
                or has_come(seen, seen.pause_us)
                or has_come(seen, seen.offer_us)
                or seen.leaving
                or has_come(seen, seen.question_us)
                or ((seen.waiting or seen.ready) and self._may_move(session))
            )

    def _may_move(self, session: Session) -> bool:
        """Tell whether a run that waits may be claimed here, or ends for want of a seat."""
        may_claim = self._carriers.free > 0 and self._dispatcher.may_claim(session)
        return may_claim or bool(session.waiting.blocked(session.now, 1))

    def _turn(self, deliveries: list[Delivery], patience_s: float) -> Turn:
        sent_us = self._store.clock.trust_us()
        won: Sequence[Won] = ()
        events: Mapping[str, Event] = {}
        answered: Mapping[str, Question] = {}
        tokens: Mapping[str, str] = {}
        origins: Mapping[str, str] = {}
        holdings: list[Holding] = []
        try:
            with self._store.write(patience_s=patience_s) as session:
                settled = self.settler.step(session, deliveries)
                opened, ended, asked = 0, 0, 0
                if self.accepting:
                    planned = self._planner.open(session)
                    opened = len(planned.runs) + planned.taken_over + planned.looked_over
                    opened_of = {run.task for run in planned.runs}
                    read = {task.id: task for task in planned.tasks if task.id in opened_of}
                    done = self._dispatcher.step(session, self._carriers.free, read, ready=planned.ready)
                    won, ended, asked = done.won, done.ended, done.asked
                    self._holdings.claiming(one.run.id for one in won)
                    events = session.events.by_ids({one.run.event for one in won if one.run.event is not None})
                    answered = session.questions.by_ids(one.run.question or "" for one in won if _has_answer(one.run))
                    tokens = lend(session, ((one.run, one.definition) for one in won))
                    origins = origins_of(session, won, one_place=self._store.engine.one_place)
                    ended += self._trim(session, planned) if planned.runs else 0
                self.soonest = self._planner.soonest(session)
            holdings = [
                self.hold(
                    one,
                    sent_us,
                    events.get(one.run.event or ""),
                    answered.get(one.run.question or ""),
                    tokens.get(one.run.id),
                    origins.get(one.run.id),
                )
                for one in won
            ]
        except BaseException:
            self.claims_undone += len(won)
            raise
        finally:
            self._holdings.claimed(holdings, [one.run.id for one in won])
        # What is held is handed out before anything else: nobody else would ever look after it.
        for holding in holdings:
            self._carriers.carry(holding)
        self._let_go(settled)
        return Turn(settled=len(settled), opened=opened, claimed=len(won), ended=ended, asked=asked)

    def _trim(self, session: Session, planned: Planned) -> int:
        return sum(trim(session, task) for task in planned.tasks) + overtake(session, planned.tasks, planned.runs)

    def hold(
        self,
        won: Won,
        sent_us: int,
        event: Event | None = None,
        asked: Question | None = None,
        token: str | None = None,
        origin: str | None = None,
    ) -> Holding:
        """Make the holding of a claim that was won; `sent_us` is the lease clock before its first byte.

        `asked`: the question whose answer it goes on with. `token`: what its work may show to come to the store.
        `origin`: the folder from which its task comes.
        """
        runner = self._registry.make(str(won.definition.action["kind"]))
        assert runner is not None, "only kinds known here are claimed"
        gate = won.definition.rules.gate
        return hold(
            won.run,
            won.definition,
            runner=runner,
            run_folder=self._run_folder,
            # What goes on with an answer was let go by its gate when it began.
            gate=None if gate is None or won.run.anyway or won.run.answered_at else self._registry.asking(gate),
            trust_end_us=sent_us + self._figures.trust_us,
            event=event,
            answer=None if asked is None else given(asked),
            lent={} if token is None else {"DULY_STORE": self._store.address.whole, "DULY_TOKEN": token},
            # What goes on with an answer had begun where it is.
            origin=None if won.run.answered_at else origin,
        )

    def _let_go(self, settled: list[Settled]) -> None:
        """After the commit: what was settled is held no longer, and leaves only its log."""
        for one in settled:
            holding, verdict = one.delivery.holding, one.delivery.verdict
            if isinstance(verdict, Asks) and one.run is not None and one.run.state == "held":
                holding.asking[verdict.question] = verdict.asked
                self._carriers.step_aside(holding)
                continue
            self._holdings.release(holding)
            if holding.kept and one.run is not None and one.run.state != "held":
                folders.remove_traces(holding.assignment.folder)
            self._on_settled(one)


def _has_answer(run: Run) -> bool:
    """Whether its work goes on with an answer, which no attempt has passed on yet."""
    return run.answered_at is not None or run.agent.get(spoken.RESUMES) == spoken.ANSWERED
