"""The sweeper: takes over what a dead or silent holder held, first the lease, and looks at the work afterwards.

Every holder sweeps, nobody is elected. A holder proven dead by its free lock is swept at once, a silent one after its
lease; at the lease's end itself the beat wins.
"""

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from duly.chance import token_bytes
from duly.clock import MICROSECOND
from duly.core import lifecycle
from duly.core.run import Entry, Run, Step
from duly.core.task import Broken, Definition
from duly.holder import presence
from duly.holder.assignments import hold, is_kept
from duly.holder.figures import Figures
from duly.holder.holdings import Holding, Holdings
from duly.runners.faulty import Faulty
from duly.runners.registry import Registry
from duly.store import Session, Store
from duly.store.rows import HolderRow

ROWS_A_STEP = 200
"""Held runs of others that one step looks at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver:
    """A run that is held by us now, whose work has still to be looked at."""

    holding: Holding
    silent: bool
    """Its former holder may still live: its work is ended, never adopted."""
    last_seen_at: datetime
    """The last instant at which the former holder was known to live."""
    died: bool = False
    """Its former holder is proven dead."""
    never_begun: bool = False
    """Known without a look: our own claim that was handed to nobody."""
    rebooted: bool = False
    """The machine was restarted since: nothing that was started before lives."""
    elsewhere: bool = False
    """Its former holder worked in another run folder: nothing here tells of its work, and nothing here can end it."""
    deadlined: bool = False
    """Its keeper, wherever it is, ended the work before the lease was over."""


class Sweeper:
    """Finds and takes over; what it gives back is looked at by `recovery`."""

    def __init__(
        self,
        store: Store,
        holder: str,
        place: str,
        figures: Figures,
        holdings: Holdings,
        registry: Registry,
    ) -> None:
        self._store = store
        self._run_folder: Path = store.run_folder
        self._holder = holder
        self._place = place
        self._boot = store.clock.lease_boot()
        self._machine = store.clock.boot_id()
        self._here = (socket.gethostname(), presence.folder_of(place))
        self._figures = figures
        self._holdings = holdings
        self._registry = registry
        self._many = not store.engine.one_place
        self.believes_store: Callable[[], bool] = lambda: True
        """The store's clock can be trusted to judge the leases of other places."""
        self.deaths = 0
        """Holders found dead so far, all of whose runs are somebody else's by now."""
        self.killed: set[str] = set()
        """Holders that this process killed because they blocked the store, for the ledger to tell."""
        self._others_hold = True

    def step(self) -> list[TakenOver]:
        """Take over every run whose holder is dead, has handed it over, or is silent past its lease."""
        with self._store.read() as session:
            held = session.runs.held_by_others(self._holder, ROWS_A_STEP)
            life = {run.holder: self._life(run.holder) for run in held if run.holder is not None}
            formers = {} if self._store.engine.one_place else {id_: session.holders.by_id(id_) for id_ in life}
            why = {
                run.id: self._why(session, run, life.get(run.holder or "", "unknown"), formers.get(run.holder or ""))
                for run in held
            }
            # What we held before and lost is ours again only when nothing here works on it any more.
            chosen = [(run, why[run.id]) for run in held if why[run.id] and not self._holdings.knows(run.id)]
        self._others_hold = bool(held)
        return self.take(chosen)

    def strays(self, runs: Sequence[str]) -> list[TakenOver]:
        """Take hold of runs held in our own name that nobody here knows of: late commits, lost answers."""
        with self._store.read() as session:
            found = [session.runs.by_id(run) for run in runs]
        mine = [
            (run, "stray")
            for run in found
            if run and run.state == "held" and run.holder == self._holder and not self._holdings.knows(run.id)
        ]
        return self.take(mine)

    def _life(self, holder: str) -> presence.Life:
        return presence.life_of(self._run_folder, holder)

    def _why(self, session: Session, run: Run, life: presence.Life, former: HolderRow | None) -> str:
        if run.handed_to == self._place:
            return "handed_over"
        # A lock file outlives a restart of the machine: whose lease is of another boot died with that boot.
        if run.lease_boot != self._boot:
            return "rebooted"
        if former is not None and former.boot != self._machine and not self._is_elsewhere(former, run):
            return "rebooted"
        if life == "dead":
            return "holder_died"
        assert run.lease_end_us is not None
        if run.lease_end_us >= session.lease_us:
            return ""
        # A server whose clock has jumped ends every lease at once: only what was seen to pass is believed.
        return "lease_over" if self._store.engine.one_place or self.believes_store() else ""

    def take(self, chosen: Sequence[tuple[Run, str]]) -> list[TakenOver]:
        """Take hold of those that still stand as they were read, the end of their lease included."""
        if not chosen:
            return []
        sent_us = self._store.clock.trust_us()
        ids = [run.id for run, _ in chosen]
        self._holdings.claiming(ids)
        taken: list[TakenOver] = []
        try:
            with self._store.write() as session:
                written = self._write(session, chosen, sent_us)
            # Only what is known to stand: of an answer that was lost the next beat tells, and it is taken as a stray.
            taken = written
        finally:
            self._holdings.claimed([one.holding for one in taken], ids)
        return taken

    def _write(self, session: Session, chosen: Sequence[tuple[Run, str]], sent_us: int) -> list[TakenOver]:
        ready: list[tuple[Step, Definition, str, datetime, HolderRow | None]] = []
        for run, why in chosen:
            definition = self._definition(session, run)
            former = session.holders.by_id(run.holder or "")
            last_seen = former.last_beat_at if former else run.started_at or session.now
            # Where it began, not where it was held last: who took it over before us may have come from elsewhere too.
            claimer = _began_by(session, run) or former
            elsewhere = self._many and why != "stray" and self._is_elsewhere(former, run)
            if definition is None or not self._may_take(definition, why, elsewhere=elsewhere):
                continue
            step = lifecycle.take_over(
                run,
                holder=self._holder,
                token=token_bytes(12).hex(),
                lease_end_us=session.lease_us + self._figures.lease_us,
                boot=self._boot,
                now=session.now,
                why=why,
            )
            ready.append((step, definition, why, last_seen, claimer))
        won = session.runs.move([step for step, *_ in ready], naming_lease=True)
        taken = []
        for step, definition, why, last_seen, claimer in ready:
            if step.after.id not in won:
                continue
            session.ledger.add(step.entries)
            holding = self._hold(session, step.after, definition, sent_us)
            taken.append(
                TakenOver(
                    holding=holding,
                    silent=why == "lease_over",
                    last_seen_at=last_seen,
                    died=why == "holder_died",
                    # A stray may also be what we took over from another, whose work had begun.
                    never_begun=why == "stray"
                    and not holding.kept
                    and claimer is not None
                    and claimer.id == self._holder,
                    rebooted=why == "rebooted",
                    elsewhere=self._is_elsewhere(claimer, step.before),
                    deadlined=self._many and holding.kept,
                )
            )
        return taken

    def _is_elsewhere(self, former: HolderRow | None, run: Run) -> bool:
        """Whose work it is worked in another run folder: the file has two names, or was moved."""
        if self._many:
            if former is None or self._life(former.id) != "unknown":
                return former is None  # its lock file lies here
            # Device and inode of a folder say nothing on another machine.
            return (former.host, presence.folder_of(former.place)) != self._here
        if former is not None:
            return presence.folder_of(former.place) != presence.folder_of(self._place)
        return run.handed_to != self._place and self._life(run.holder or "") == "unknown"

    def _definition(self, session: Session, run: Run) -> Definition | None:
        read = session.versions.read(run.task, run.definition_version)
        return None if isinstance(read, Broken) else read

    def _may_take(self, definition: Definition, why: str, *, elsewhere: bool) -> bool:
        runner = self._registry.make(str(definition.action["kind"]))
        if runner is None or isinstance(runner, Faulty):
            return False
        # Work inside a silent process cannot be ended from here: its run stays that process's until it is dead; on
        # another host it can be ended by nobody, and is abandoned with its end not confirmed.
        return why != "lease_over" or is_kept(runner, definition) or elsewhere

    def _hold(self, session: Session, run: Run, definition: Definition, sent_us: int) -> Holding:
        runner = self._registry.make(str(definition.action["kind"]))
        assert runner is not None, "only what can be looked at here is taken"
        return hold(
            run,
            definition,
            runner=runner,
            run_folder=self._run_folder,
            trust_end_us=sent_us + self._figures.trust_us,
            event=None if run.event is None else session.events.by_id(run.event),
        )

    def _is_gone(self, row: HolderRow, session: Session) -> bool:
        """Proven dead; or, where its lock file is missing, silent past its lease or of another boot."""
        life = self._life(row.id)
        if life != "unknown":
            return life == "dead"
        if row.boot != self._machine and not self._many:
            return True
        over = session.lease_us - row.beat_lease_us > row.lease_for // MICROSECOND
        return over and (not self._many or self.believes_store())

    def forget_dead(self) -> bool:
        """Mark holders gone that are proven dead and hold nothing; says whether others are left, or hold anything.

        A step of its own: it may find the store away, when what the last step took has been handed out already.
        """
        with self._store.read() as session:
            living = [row for row in session.holders.living() if row.id != self._holder]
            dead = [row for row in living if self._is_gone(row, session) and not session.runs.held_by(row.id)]
        if not dead:
            return bool(living) or self._others_hold
        with self._store.write() as session:
            # One that only was silent may have beaten since it was looked at: its beat waits for nobody's turn.
            dead = [row for row in dead if session.holders.mark_dead(row)]
            for row in dead:
                details: dict[str, object] = {"pid": row.pid, "host": row.host}
                if row.id in self.killed:
                    details["killed"] = "it was stopped inside a write, past its lease, and blocked the store"
                entry = Entry(
                    kind="holder_ended",
                    at=session.now,
                    holder=row.id,
                    reason="holder_died",
                    by=self._holder,
                    details=details,
                )
                session.ledger.add([entry])
        self.deaths += len(dead)
        for row in dead:
            presence.forget(self._run_folder, row.id)
        return True


def _began_by(session: Session, run: Run) -> HolderRow | None:
    """The holder that claimed this attempt; the traces of its work lie in that one's run folder."""
    for written in reversed(session.ledger.of_run(run.id)):
        entry = written.entry
        if entry.kind == "claimed" and entry.attempt == run.attempt:
            return session.holders.by_id(entry.holder or "")
    return None
