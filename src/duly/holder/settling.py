"""Settling: what a carrier or a look after a take-over delivers becomes a step, written if the run is still ours."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from duly import chance, ids, zones
from duly.core import gating, interrupting, lifecycle, parking, questions, rearming, retrying, spoken
from duly.core.action_fields import bound_to
from duly.core.interrupting import Interruption
from duly.core.lateness import offer_of
from duly.core.ledger import parks
from duly.core.names import key_of
from duly.core.questions import Asked, Question
from duly.core.run import BY_TIME_OR_EVENT, Entry, Run, Step
from duly.core.schedule import next_due
from duly.core.task import on_interrupt_of
from duly.holder.holdings import Holding
from duly.ports import Busy, Detached, NothingToResume, Outcome, Parked
from duly.store import Session, endings, pauses
from duly.store.holds import hold_failing

UNANSWERED = "question_unanswered"
"""Why work was asked to end whose question nobody answered in time."""
FAILS = frozenset({UNANSWERED, "agent_error"})
"""Reasons of ours for an end that is a failure, and no cancelling."""
AGAIN = 3
"""Times a step is computed anew in one turn because the row was written by somebody else while still ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """The claim never began and goes back, free of charge; `died`: because its holder is dead."""

    why: str
    died: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """The work is gone without an end of its own; `ended_at`: when it was last known to live."""

    why: Interruption
    ended_at: datetime
    told: str | None = None
    agent: Mapping[str, object] = field(default_factory=dict)
    """What an agent's turn has left, where it was one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotNow:
    """The gate did not open, or the project is away, so that nothing began; `told` in words, with the figures."""

    reason: Literal["gate_closed", "gate_failed", "project_missing"]
    told: str
    details: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """The gate let the work begin, or an agent took its prompt; the holding goes on."""

    details: dict[str, object]
    agent: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """The work asks a person something, lives and waits; the holding goes on. `question` is the id that it gets."""

    asked: Asked
    question: str


Verdict = Outcome | Detached | NothingToResume | Parked | Busy | Asks | Returned | Interrupted | NotNow | Begun


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What became of the work of one holding, or that it has begun."""

    holding: Holding
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A delivery that needs no more writing: the run as it stands, or None where it was no longer ours."""

    delivery: Delivery
    run: Run | None


class Settler:
    """Writes deliveries in the caller's transaction."""

    def __init__(self, holder: str, place: str, handover_us: int) -> None:
        self._holder = holder
        self._place = place
        self._handover_us = handover_us

    def step(self, session: Session, deliveries: Sequence[Delivery]) -> list[Settled]:
        """Settle each run that is still ours as it stands now; for those that are not, the ledger is told so."""
        done: list[Settled] = []
        pending = [(delivery, delivery.holding.run) for delivery in self._tell_begun(session, deliveries)]
        for _ in range(AGAIN + len(deliveries)):
            if not pending:
                break
            # One step a run: a second delivery of the same one looks at what the first has left.
            steps: dict[str, tuple[Delivery, Step]] = {}
            later: list[Delivery] = []
            for delivery, run in pending:
                if run.id in steps:
                    later.append(delivery)
                elif _was_put(session, delivery):
                    done.append(Settled(delivery=delivery, run=run))
                else:
                    steps[run.id] = (delivery, self._step(session, delivery, run))
            won = session.runs.move([step for _, step in steps.values()])
            later += self._note(session, steps.values(), won, done)
            pending = self._read_back(session, later, done)
        assert not pending, "nobody else writes inside this transaction"
        return done

    def _note(
        self, session: Session, steps: Iterable[tuple[Delivery, Step]], won: set[str], done: list[Settled]
    ) -> list[Delivery]:
        """Tell the ledger and the counters of the steps that were written; gives the deliveries of the others."""
        written: list[Step] = []
        entries: list[Entry] = []
        left = []
        for delivery, step in steps:
            if step.after.id not in won:
                left.append(delivery)
                continue
            entries += self._offered(session, delivery, step)
            session.questions.insert(_put(delivery, step, session.now))
            written.append(step)
            done.append(Settled(delivery=delivery, run=step.after))
        session.ledger.add(entries)
        endings.count(session, written)
        hold_failing(session, written)
        return left

    def _tell_begun(self, session: Session, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Tell of the work that has begun where it is still ours; gives the other deliveries."""
        left = []
        for delivery in deliveries:
            if not isinstance(delivery.verdict, Begun):
                left.append(delivery)
                continue
            run = session.runs.by_id(delivery.holding.run.id)
            if run is not None and self._is_ours(run, delivery.holding.run):
                session.ledger.add([gating.began(run, now=session.now, details=delivery.verdict.details)])
                if delivery.verdict.agent:
                    session.runs.move([spoken.spoken_to(run, agent=delivery.verdict.agent)])
        return left

    def _offered(self, session: Session, delivery: Delivery, step: Step) -> Sequence[Entry]:
        """Keep the offer to go on with a run that was too late for it; gives the entries of the step, which name it."""
        run = step.after
        if run.state != "ended" or run.reason != "missed_offer":
            return step.entries
        rules = delivery.holding.rules
        offer = offer_of(run, rules, id_=ids.new("mis"), now=session.now, holder=self._holder)
        session.missed.insert([offer])
        return [
            replace(entry, details={**entry.details, "missed": offer.id}) if entry.kind == "ended" else entry
            for entry in step.entries
        ]

    def _read_back(self, session: Session, lost: Sequence[Delivery], done: list[Settled]) -> list[tuple[Delivery, Run]]:
        """A write found no row: written before and the answer lost, moved but still ours, or taken away."""
        again = []
        for delivery in lost:
            mine = delivery.holding.run
            run = session.runs.by_id(mine.id)
            if run is not None and self._is_ours(run, mine):
                again.append((delivery, run))
            elif run is not None and _is_my_own_write(session, run, mine):
                done.append(Settled(delivery=delivery, run=run))
            else:
                session.ledger.add([self._fence_lost(mine, session.now)])
                done.append(Settled(delivery=delivery, run=None))
        return again

    def _is_ours(self, run: Run, mine: Run) -> bool:
        """Held by this very claim: the fence stays when a run is taken over, even back again; the token does not."""
        held = run.state == "held" and (run.holder, run.fence) == (self._holder, mine.fence)
        return held and run.claim_token == mine.claim_token

    def _fence_lost(self, run: Run, now: datetime) -> Entry:
        return lifecycle.fence_lost(
            run.id, task=run.task, attempt=run.attempt, fence=run.fence, holder=self._holder, now=now
        )

    def _step(self, session: Session, delivery: Delivery, run: Run) -> Step:
        holding, verdict = delivery.holding, delivery.verdict
        match verdict:
            case Detached():
                lease_end_us = session.lease_us + self._handover_us
                return lifecycle.hand_over(run, place=self._place, lease_end_us=lease_end_us, now=session.now)
            case Returned():
                return self._returned(session, run, verdict)
            case Interrupted():
                return self._interrupted(session, holding, run, verdict)
            case NotNow():
                return gating.not_now(
                    run, now=session.now, reason=verdict.reason, told=verdict.told, details=verdict.details
                )
            case Busy():
                taken: dict[str, object] = {"session": bound_to(holding.assignment.action)}
                return gating.not_now(run, now=session.now, reason="already_running", told=verdict.told, details=taken)
            case NothingToResume():
                told, agent = verdict.told, verdict.agent
                return interrupting.not_resumed(run, now=session.now, told=told, agent=agent)
            case Begun():
                raise AssertionError("it is told, and is no step")
            case Parked():
                question = _question(holding, run, verdict.asked, ids.new("que"), session.now, attached=False)
                return parking.park(
                    run,
                    question,
                    now=session.now,
                    agent=verdict.agent,
                    log_bytes=verdict.log_bytes,
                    log_cut=verdict.log_cut,
                )
            case Asks():
                question = _question(holding, run, verdict.asked, verdict.question, session.now, attached=True)
                return parking.ask(run, question, now=session.now)
            case Outcome():
                return self._ended(session, holding, run, verdict)

    def _returned(self, session: Session, run: Run, back: Returned) -> Step:
        deaths = lifecycle.deaths_of(one.entry for one in session.ledger.of_run(run.id)) if back.died else 0
        return lifecycle.give_back(run, now=session.now, why=back.why, died=back.died, deaths=deaths)

    def _ended(self, session: Session, holding: Holding, run: Run, outcome: Outcome) -> Step:
        now = session.now
        if outcome.reason == "returned":
            return lifecycle.give_back(run, now=now, why=outcome.error or "returned")
        if not outcome.confirmed:
            return lifecycle.not_confirmed(run, now=now, survivors=outcome.error or "its end could not be confirmed")
        if outcome.word == "abandoned":
            gone = Interrupted(why="holder_died", ended_at=now, told=outcome.error, agent=outcome.agent)
            return self._interrupted(session, holding, run, gone)
        if outcome.word == "cancelled" and "lease_lost" in {holding.stop_why, outcome.reason}:
            lost = Interrupted(why="lease_lost", ended_at=now, agent=outcome.agent)
            return self._interrupted(session, holding, run, lost)
        cut = _cut(holding, outcome, now) if _resumes(holding) else None
        if cut is not None:
            left = self._interrupted(session, holding, run, cut)
            if left.after.state == "waiting":
                return left
        word, reason = outcome.word, outcome.reason
        if word == "cancelled" and holding.stop_why is not None:
            reason = holding.stop_why
            word = "failed" if reason in FAILS else word
        ended = lifecycle.settle(
            run,
            word,
            now=now,
            reason=reason,
            error=outcome.error,
            exit_code=outcome.exit_code,
            signal=outcome.signal,
            log_bytes=outcome.log_bytes,
            log_cut=outcome.log_cut,
            worked_until=outcome.ended_at,
            details=dict(outcome.details),
            agent=outcome.agent,
        )
        hindered = None
        if retrying.may_be_retried(run, holding.rules, word):
            hindered = _hindered(session, run)
        elif outcome.unseen and word == "failed":
            return self._rearmed(session, holding, ended, outcome.ended_at or now)
        return retrying.retried(
            ended, holding.rules, ended_at=outcome.ended_at or now, draw=chance.between(0, 1), hindered=hindered
        )

    def _rearmed(self, session: Session, holding: Holding, ended: Step, ended_at: datetime) -> Step:
        run = ended.before
        task = session.tasks.by_id(run.task)
        return rearming.rearmed(
            ended,
            holding.rules,
            before=rearming.made(one.entry for one in session.ledger.of_run(run.id)),
            ended_at=ended_at,
            draw=chance.between(0, 1),
            scheduled=0 if task is None else task.scheduled_runs,
            following=_following(session, run),
            hindered=_hindered(session, run) or _overtaken(session, run),
        )

    def _interrupted(self, session: Session, holding: Holding, run: Run, gone: Interrupted) -> Step:
        return interrupting.interrupted(
            run,
            holding.rules,
            choice=on_interrupt_of(holding.rules, holding.assignment.action),
            why=gone.why,
            now=session.now,
            ended_at=gone.ended_at,
            following=_following(session, run),
            by=self._holder,
            told=gone.told,
            agent=gone.agent,
        )


def _question(holding: Holding, run: Run, asked: Asked, id_: str, now: datetime, *, attached: bool) -> Question:
    rules = holding.rules
    until = now + rules.answer_within
    return questions.put(run, asked, id_=id_, until=until, otherwise=rules.then, attached=attached, now=now)


def _put(delivery: Delivery, step: Step, now: datetime) -> list[Question]:
    """The question that a step, which was written, has put."""
    verdict, id_ = delivery.verdict, step.after.question
    if not isinstance(verdict, Parked | Asks) or id_ is None or step.after.state == "ended":
        return []
    attached = isinstance(verdict, Asks)
    return [_question(delivery.holding, step.after, verdict.asked, id_, now, attached=attached)]


def _was_put(session: Session, delivery: Delivery) -> bool:
    """This very question was put by an earlier write, whose answer was lost."""
    verdict = delivery.verdict
    return isinstance(verdict, Asks) and session.questions.by_id(verdict.question) is not None


def _cut(holding: Holding, outcome: Outcome, now: datetime) -> Interrupted | None:
    """Give the interruption that an outcome is where its session goes on; None where it is an end of its own."""
    if outcome.word == "cancelled" and holding.let_go:
        return Interrupted(why="shutdown", ended_at=now, agent=outcome.agent)
    if outcome.interrupted:
        return Interrupted(why="agent_error", ended_at=now, told=outcome.error, agent=outcome.agent)
    return None


def _resumes(holding: Holding) -> bool:
    """Whether what is left to the next holder goes on in the session of its agent."""
    return on_interrupt_of(holding.rules, holding.assignment.action) == "resume"


def _is_my_own_write(session: Session, run: Run, mine: Run) -> bool:
    """The row is what an earlier write of mine left, whose answer was lost: ended by my claim, or given back by me."""
    if run.state == "ended" and run.claim_token == mine.claim_token:
        return True
    for written in reversed(session.ledger.of_run(run.id)):
        entry = written.entry
        if entry.attempt == mine.attempt and (entry.kind in {"returned", "swept"} or parks(entry)):
            return mine.holder == (entry.by if entry.kind == "swept" else entry.holder)
    return False


def _following(session: Session, run: Run) -> datetime | None:
    task = session.tasks.by_id(run.task)
    if task is None or not task.definition.triggers or task.broken is not None:
        return None
    return next_due(task.definition, zones.zone(task.definition.zone), run.due_at)


def _overtaken(session: Session, run: Run) -> str | None:
    """Why a run that time opened does not wait any more: a newer one does already."""
    waiting = session.runs.waiting_of(run.task) if run.opened_by in BY_TIME_OR_EVENT else ()
    newer = any(one.opened_by in BY_TIME_OR_EVENT and one.due_at > run.due_at for one in waiting)
    return "superseded" if newer else None


def _hindered(session: Session, run: Run) -> str | None:
    """Why nothing of this run's task may start now, so that its retry would end before it began."""
    task = session.tasks.by_id(run.task)
    if task is None or task.removed_at is not None:
        return "task_removed"
    if run.opened_by not in BY_TIME_OR_EVENT:
        return None
    if not task.definition.enabled:
        return "disabled"
    held = pauses.holding(session.pauses.all(), task=task.id, project_key=key_of(task.definition.project))
    return "paused" if held and not run.anyway else None
