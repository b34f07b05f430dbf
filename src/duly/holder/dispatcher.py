"""The dispatcher: claims as many waiting runs as there are free slots, and ends those that will not start."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from duly.chance import token_bytes
from duly.core import lifecycle, parking
from duly.core.admission import NOTHING, Admitted, Skipped, Waits, admit
from duly.core.budgets import SPENDS, key_of_budget, lacking, told
from duly.core.limits import weights_of
from duly.core.run import Entry, Run, Step
from duly.core.task import Definition, Task
from duly.core.values import value
from duly.errors import Taken
from duly.holder import overlapping
from duly.holder.view import Place, View, version_for
from duly.store import Session
from duly.store.budgets import Charge
from duly.store.crowd import Started
from duly.store.holds import hold_failing
from duly.store.switches import move
from duly.store.waiting import Claim

TOKEN_BYTES = 12
LOOKED_AT_MOST = 4096
"""Waiting runs that one turn looks at when those at the front may not start."""


@value
class Won:
    """A claim that was won: the run as it stands, and what it will be performed by."""

    run: Run
    task: Task
    definition: Definition


@value
class Chosen:
    """A run that admission lets start, by this definition and at this place."""

    run: Run
    task: Task
    definition: Definition
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatched:
    """What one turn did: claims that were won, runs ended without a start, live runs that were asked to end."""

    won: Sequence[Won]
    ended: int
    asked: int


class Dispatcher:
    """Asks admission about waiting runs, in the caller's transaction, and claims what it admits."""

    def __init__(
        self,
        holder: str,
        boot: str,
        lease_us: int,
        kinds: Callable[[], Collection[str]],
        labels: Collection[str] = (),
    ) -> None:
        self.holder = holder
        self._boot = boot
        self._lease_us = lease_us
        self._kinds = kinds
        self._labels = frozenset(labels)
        self._known: frozenset[str] = frozenset()
        self.lost = 0
        """Claims that another holder won; quiet, and counted."""

    def step(
        self, session: Session, free: int, read: Mapping[str, Task] = NOTHING, *, ready: bool = True
    ) -> Dispatched:
        """Claim up to `free` runs, after those without a seat have been judged by their task's rule.

        What goes on with an answer (`ready`: there may be such) comes first. `read`: tasks by their ids as this
        transaction has read them; what has been planned since does not matter here.
        """
        overlap = overlapping.step(session)
        won: list[Won] = []
        ended = overlap.ended
        view = View(session, read)
        if ready and free:
            page = session.waiting.ready(session.now, LOOKED_AT_MOST, holder=self.holder)
            chosen, skips = self._choose(view, page, free)
            ended += len(move(session, skips))
            hold_failing(session, skips)
            won += self._claim(session, chosen)
        most = free - len(won)
        projects = session.waiting.projects() if most else []
        while projects and len(won) < free and most <= LOOKED_AT_MOST:
            page = session.waiting.claimable(session.now, most, holder=self.holder, projects=projects)
            chosen, skips = self._choose(view, page, free - len(won))
            moved = move(session, skips)
            if hold_failing(session, [step for step in skips if step.after.id in moved]):
                view = View(session)
            claimed = self._claim(session, chosen)
            ended += len(moved)
            won += claimed
            if len(page) < most:
                break
            # What was claimed has filled seats and limits, and the next page leaves out what waits for those.
            most = free if moved or claimed else most * 2
        if len(projects) > 1:
            self._take_turns(session, won)
        return Dispatched(won=won, ended=ended, asked=overlap.asked)

    def may_claim(self, session: Session) -> bool:
        """Tell whether anything waits that a step might claim."""
        waits = session.waiting.claimable(session.now, 1, holder=self.holder)
        return bool(waits or session.waiting.ready(session.now, 1, holder=self.holder))

    def _choose(self, view: View, page: Sequence[Run], free: int) -> tuple[list[Chosen], list[Step]]:
        """Judge a page of waiting runs in its order; gives up to `free` that may start, and those that never will."""
        chosen: list[Chosen] = []
        skips: list[Step] = []
        view.read(page)
        for run in page:
            if len(chosen) == free:
                break
            self._judge(view, run, chosen, skips)
        return chosen, skips

    def _judge(self, view: View, run: Run, chosen: list[Chosen], skips: list[Step]) -> None:
        task = view.task(run.task)
        seat = run.seat if run.state == "parked" else view.free_seat(task)
        if seat is None:
            return  # this turn gave the last one away: the next asks what becomes of this run
        definition = view.definition(run, task)
        weights = NOTHING if definition is None else weights_of(definition)
        kind = str((definition or task.definition).action.get("kind"))
        standings = view.standings(task)
        spends = kind == SPENDS
        charge = view.wanted(run, definition) if standings or spends else None
        verdict = admit(
            run,
            task,
            None if definition is None else definition.rules,
            paused=view.is_paused(task),
            kind=kind,
            kinds=self._kinds_for(view, kind),
            now=view.session.now,
            labels=self._labels,
            weights=weights,
            limits=view.limits(weights),
            lacks=None if charge is None else lacking(standings, charge, spends=spends),
        )
        match verdict:
            case Admitted():
                assert definition is not None
                place = view.take(task, seat, weights, charge)
                chosen.append(Chosen(run=run, task=task, definition=definition, place=place))
            case Skipped():
                skips += _skipped(run, verdict, view.session.now)
            case Waits():
                return

    def _kinds_for(self, view: View, kind: str) -> Collection[str]:
        """What can be performed here; looked up anew, once a turn, where this kind is not known yet."""
        if not view.kinds_asked and kind not in self._known:
            view.kinds_asked = True
            self._known = frozenset(self._kinds())
        return self._known

    def _claim(self, session: Session, chosen: Sequence[Chosen]) -> list[Won]:
        if not chosen:
            return []
        try:
            with session.line.savepoint():
                won = self._write(session, chosen)
        except Taken:
            # A seat was taken under us: the batch is undone and each claim is tried by itself.
            won = []
            for one in chosen:
                try:
                    with session.line.savepoint():
                        won += self._write(session, [one])
                except Taken:
                    continue
        self.lost += len(chosen) - len(won)
        return won

    def _take_turns(self, session: Session, won: Sequence[Won]) -> None:
        """Where several projects wait, those that had their turn go behind the others."""
        projects = dict.fromkeys(one.run.project for one in won)
        if len(projects | dict.fromkeys(session.waiting.projects())) > 1:
            for project in projects:
                session.waiting.had_turn(project)

    def _write(self, session: Session, chosen: Sequence[Chosen]) -> list[Won]:
        tokens = token_bytes(TOKEN_BYTES * len(chosen)).hex(" ", TOKEN_BYTES).split()
        session.tasks.raise_fences(Counter(one.task.id for one in chosen).items())
        claims = [
            Claim(
                run=one.run,
                holder=self.holder,
                token=token,
                lease_end_us=session.lease_us + self._lease_us,
                lease_boot=self._boot,
                seat=one.place.seat,
                definition_version=version_for(one.run, one.task),
                started_at=session.now,
                taken=tuple(one.place.weights.items()),
            )
            for one, token in zip(chosen, tokens, strict=True)
        ]
        by_run = {one.run.id: one for one in chosen}
        # In the order of the choice: each tells the crowd with those before it.
        held = session.waiting.claim(claims)
        session.crowd.started(
            [
                Started(key=key, at=session.now, run=run.id, attempt=run.attempt)
                for run in held
                for key, limit in by_run[run.id].place.limits.items()
                if limit.rate is not None
            ]
        )
        session.budgets.reserve(
            [
                Charge(
                    run=run.id,
                    attempt=run.attempt,
                    task=run.task,
                    project=run.project,
                    amounts=charge,
                )
                for run in held
                if (charge := by_run[run.id].place.charge) is not None
            ],
            session.now,
        )
        session.ledger.add([_told(session, run, by_run[run.id].place) for run in held])
        return [Won(run=run, task=by_run[run.id].task, definition=by_run[run.id].definition) for run in held]


def _skipped(run: Run, verdict: Skipped, now: datetime) -> list[Step]:
    if run.state == "parked":
        step = parking.not_admitted(run, verdict.reason, now=now, details=verdict.details)
        return [] if step is None else [step]
    return [lifecycle.skip(run, reason=verdict.reason, now=now, details=dict(verdict.details))]


def _told(session: Session, run: Run, place: Place) -> Entry:
    """Tell of a claim with the crowd it saw, itself included: what is taken of each limit, and how much may be."""
    late_by = max(timedelta(0), session.now - run.due_at - run.spread)
    crowd: dict[str, object] = {}
    if place.limits:
        crowd["limits"] = {
            key: {"weight": place.weights[key], "used": limit.used, "most": limit.most}
            for key, limit in place.limits.items()
        }
    if place.standings:
        crowd["budgets"] = {key_of_budget(one.budget): told(one) for one in place.standings}
    return lifecycle.claimed(run, now=session.now, late_by=late_by, crowd=crowd)
