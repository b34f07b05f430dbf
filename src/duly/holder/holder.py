"""The holder put together: its identity, its threads, its loop, and how it stops."""

import threading
from collections.abc import Callable, Mapping, Sequence

from duly import clock as machine
from duly import ids
from duly.clock import MICROSECOND
from duly.core.run import Entry
from duly.errors import StoreAway, StoreBusy, StoreNewer
from duly.holder import presence
from duly.holder.absence import Absence
from duly.holder.attending import Attending
from duly.holder.blocking import Unblocker
from duly.holder.dispatcher import Dispatcher
from duly.holder.enrolling import enter, row_of
from duly.holder.heart import Beaten, Beating, Guard, Heart
from duly.holder.holdings import Holdings
from duly.holder.leaving import Leaving
from duly.holder.noticing import Noticing
from duly.holder.pacing import Pacing
from duly.holder.planner import Planner
from duly.holder.presence import Presence, place_of
from duly.holder.recovery import Recovery
from duly.holder.setting import REAL, Setting
from duly.holder.settling import Settled, Settler
from duly.holder.stopping import Stopping
from duly.holder.sweeper import Sweeper, TakenOver
from duly.holder.tidying import Tidier
from duly.holder.wish import Wish
from duly.holder.writer import Writer
from duly.runners.registry import Registry
from duly.store import Session, Store

LOOK_EVERY_S = 0.2
"""How often a waiting loop asks whether another process has changed the store; microseconds when not."""
WATCHED_LOOK_EVERY_S = 1.0
"""The same where the kernel tells of writes: then asking is only for what it may have missed."""
ALONE_LOOK_EVERY_S = 2.0
SWEEP_EVERY_S = 1.0
AWAY_AGAIN_S = 1.0

Tell = Callable[[str, Mapping[str, object]], None]


class Holder:
    """One life of one process that may hold leases. `start`, then `run` until asked to stop, then `finish`."""

    def __init__(self, store: Store, wish: Wish, registry: Registry, *, tell: Tell, setting: Setting = REAL) -> None:
        self.id = ids.new("hld")
        self.store = store
        self._wish = wish
        self._tell = tell
        self.registry = registry
        self._stop = threading.Event()
        self._hurry = threading.Event()
        self._draining = False
        """Somebody asked for the end of this life once what it holds has ended."""
        self.forgotten = False
        """Others took this life for over while it slept: it claims nothing more, and a supervisor starts the next."""
        self._next_sweep_s = 0.0
        self._left = self._looked = self._nobody_else = False
        """The last sweep found no other holder and nothing held by one, and nobody has written since."""
        self._version_looked_s = 0.0
        self._echoes = 0
        self._newer: StoreNewer | None = None
        self._presence = Presence(store.run_folder, self.id)
        self.place = place_of(store.run_folder, store.clock.boot_id())
        self._boot = store.clock.lease_boot()
        self.holdings = Holdings()
        self._inbox = setting.inbox(store.engine.watch)
        self.carrier = setting.carrier(store.clock, wish.figures.beat_us, self._inbox.deliver)
        self._carriers = setting.carriers(self.carrier, wish.slots)
        self._recovery = Recovery(store.clock, self.carrier, self._inbox.deliver, store, self.id, setting.traces)
        self.sweeper = Sweeper(store, self.id, self.place, wish.figures, self.holdings, registry)
        self.dispatcher = Dispatcher(self.id, self._boot, wish.figures.lease_us, registry.kinds, wish.labels)
        pacing = Pacing(registry.starts_at_once, wish.catch_up_delay, wish.catch_up_spacing)
        lives = presence.looking(store)
        self._planner = Planner(self.id, lives=lives, pacing=pacing)
        self._absence = Absence(store.clock, tell)
        self.noticing = Noticing(store, self.id, wish.figures.lease_us * MICROSECOND, lives)
        self.writer = Writer(
            store,
            planner=self._planner,
            dispatcher=self.dispatcher,
            settler=Settler(self.id, self.place, wish.figures.handover_us),
            holdings=self.holdings,
            carriers=self._carriers,
            inbox=self._inbox,
            registry=registry,
            figures=wish.figures,
            on_settled=self._told_settled,
        )
        self.writer.accepting = not wish.passive
        self._put_beside(wish, setting)

    def _put_beside(self, wish: Wish, setting: Setting) -> None:
        """Put together what stands beside the writer: heart, guard, and those that end and clear up."""
        store = self.store
        self._heart_store = store.another()
        self.heart = Heart(self._heart_store, self.id, self._boot, wish.figures, self.holdings)
        self._abroad = setting.abroad(store, self._presence, wish.figures, self.heart, self.sweeper, self.holdings)
        self._stopping = Stopping(store, self.holdings)
        self._attending = Attending(store, self.holdings, self._carriers)
        self._leaving = Leaving(
            wish,
            holdings=self.holdings,
            inbox=self._inbox,
            writer=self.writer,
            stopping=self._stopping,
            look=self._look,
            tell=self._tell,
        )
        self._tidier = Tidier(store)
        self.unblocker = Unblocker(self._heart_store, self._boot, self._tell)
        self.sweeper.killed = self.unblocker.killed
        self.guard = Guard(store.clock, wish.figures, self.holdings)
        self.beating = Beating(self.heart, self.guard, wish.figures, on_beat=self.on_beat)
        self._strays: list[str] = []
        self._strays_lock = threading.Lock()

    def start(self) -> None:
        """Register, and start the heart and its guard."""
        self.register()
        self.beating.start()
        self.store.prepare()

    def register(self) -> None:
        """Enter this life into the store, and take back tasks that were put aside."""
        row = row_of(self.id, self.place, self._wish, self.store.clock)
        self._abroad.begin()
        enter(self.store, row, self._wish.figures, begin=self._begin, away=self._kept_out, stopped=self._stop.is_set)

    def stop(self) -> None:
        """Ask the loop to end; asked again, it drains no longer and hands over at once. Safe from a signal."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()
        self._inbox.ring()

    @property
    def stopping(self) -> bool:
        """It was asked to end, or found that it must."""
        return self._stop.is_set()

    def run(self) -> None:
        """Turn until asked to stop, or until idle where that was wished; then drain and hand over."""
        again = True
        while not self._stop.is_set():
            again = self._round(again)
            if not again and (self._is_drained() or (self._wish.until_idle and self._is_idle())):
                break
            if not again:
                self._wait()
        self._finish()
        if self._newer is not None:
            raise self._newer

    def step(self, *, again: bool = True) -> bool:
        """One round of the loop without its waiting: sweep, cancel, turn; says whether more may be found at once."""
        return self._round(again)

    def _begin(self, session: Session) -> None:
        if not self._wish.passive:
            self.noticing.begin(session)
        self._planner.begin(session)

    def _kept_out(self, error: StoreBusy) -> None:
        self._absence.tell("store away", error)
        self.unblocker.step()

    def quit(self) -> None:
        """Give everything back to the process after `run` is over, however that ended."""
        if not self._left:
            self.beating.stop()
            self.die()

    def forget(self) -> None:
        """In a forked child: hold nothing that proves the parent alive, nor the line to its nursery."""
        self._presence.release()
        self.registry.nursery.forget()

    def die(self) -> None:
        """Give everything back to the system without a word to the store, as a killed process does."""
        self._presence.release()
        self._carriers.close()
        self._inbox.close()
        self._heart_store.close()
        self.registry.close()

    def _round(self, again: bool) -> bool:
        self.noticing.look()
        try:
            self.noticing.step()
            self._sweep()
            changed = self._look()
            if again or changed or self._is_time() or len(self._inbox):
                again = self._turn(again)
            self._look_at_version()
            if self._absence.begun_s is not None:
                self._back()
        except StoreNewer as error:
            self._newer = error
            self._tell("store newer", {"error": error.message})
            self._stop.set()
            return False
        except StoreAway as error:
            self._away(error)
            return False
        return again or self._echoed()

    def _echoed(self) -> bool:
        """Tell whether events of Duly's own have opened runs since the last ask: our own writes show no other way."""
        before, self._echoes = self._echoes, self.store.echoes
        return before != self._echoes

    def _look(self) -> bool:
        """Ask whether anybody else has written to the store since the last look; if so, obey what was asked of us."""
        changed = self.store.changed()
        self._looked = True
        if changed:
            self._nobody_else = False
            self._obey()
        self._attending.step()
        return changed

    def _turn(self, again: bool) -> bool:
        if not again and not len(self._inbox) and not self.writer.look():
            return False
        try:
            turn = self.writer.step()
        except StoreAway:
            raise
        except Exception as error:
            self._tell("turn failed", {"error": f"{type(error).__name__}: {error}"})
            self.writer.step_carefully()
            raise StoreAway(f"a turn failed: {type(error).__name__}: {error}") from error
        if turn.asked:
            self._obey()  # our own writes are no change that we would notice
        self.heart.claims += turn.claimed
        self.heart.claims_lost = self.dispatcher.lost
        return turn.progress

    def _is_time(self) -> bool:
        soonest = self.writer.soonest
        return self.writer.accepting and soonest is not None and self.store.clock.now() >= soonest

    def _wait(self) -> None:
        told = self._inbox.watches and not self.store.engine.restless()
        wait_s = (ALONE_LOOK_EVERY_S if self._nobody_else else WATCHED_LOOK_EVERY_S) if told else LOOK_EVERY_S
        if self.writer.accepting and self.writer.soonest is not None:
            ahead_s = (self.writer.soonest - self.store.clock.now()).total_seconds()
            wait_s = min(wait_s, max(0.0, ahead_s))
        if self._absence.begun_s is not None:
            wait_s = AWAY_AGAIN_S
        self._inbox.wait(wait_s)

    def _sweep(self) -> None:
        with self._strays_lock:
            strays, self._strays = self._strays, []
        if strays:
            self._adopt(self.sweeper.strays(strays))
        if machine.monotonic_s() >= self._next_sweep_s:
            self._next_sweep_s = machine.monotonic_s() + SWEEP_EVERY_S
            self._stopping.step()
            # Who drains would never come to an end if it took over what others leave.
            if not self._nobody_else and not self._draining:
                # Handed out before anything else is asked of the store: nobody would look at them again.
                self._adopt(self.sweeper.step())
                # What appears after this sweep is noticed as a change, once there was a look to compare with.
                self._nobody_else = self._looked and not self.sweeper.forget_dead()
        if self._tidier.is_due(self.sweeper.deaths):
            self._carriers.adopt(self._tidier.step)

    def _adopt(self, taken: Sequence[TakenOver]) -> None:
        for one in taken:
            self._tell("taken over", {"run": one.holding.run.id})
            self._carriers.adopt(lambda one=one: self.look_at(one))  # type: ignore[misc]

    def look_at(self, taken: TakenOver) -> None:
        """Look at work that was taken over until that has succeeded; adoption stays until the work has ended."""
        while True:
            try:
                self._recovery.step(taken)
                return
            except Exception as error:  # noqa: BLE001 - a run that is held must never be forgotten by its thread
                self._tell("look failed", {"run": taken.holding.run.id, "error": f"{type(error).__name__}: {error}"})
                machine.pause(AWAY_AGAIN_S)

    def _obey(self) -> None:
        """End what shall be cancelled, and take no more work once the store says that this life shall end."""
        with self.store.read() as session:
            asked, row = session.runs.cancel_asked(self.id), session.holders.by_id(self.id)
        for run in asked:
            holding = self.holdings.get(run.id)
            if holding is not None and holding.stop_why is None:
                holding.stop(run.cancel_how, run.cancel_why)

        if row is not None and row.state == "draining" and not self._draining and not self._stop.is_set():
            self._draining = True
            self.writer.accepting = False
            self._tell("draining: what runs goes on, and nothing more is taken", {"runs": len(self.holdings)})

    def _look_at_version(self) -> None:
        if machine.monotonic_s() - self._version_looked_s >= self._wish.figures.beat_us / 1e6:
            self._version_looked_s = machine.monotonic_s()
            self.store.check_here()
            self.store.check_version()

    def on_beat(self, answer: Beaten | StoreAway) -> None:
        """Take a beat's answer, or the error that left it unknown; in the heart's thread."""
        if isinstance(answer, StoreAway):
            self._absence.tell("beat unanswered", answer)
            if isinstance(answer, StoreBusy):
                self.unblocker.step()
            return
        if not answer.registered:
            self._tell("forgotten", {"holder": self.id})
            self.forgotten = True
            self._hurry.set()  # others take this life for over: what it runs goes to the next one now
            self.stop()
        if answer.strays:
            with self._strays_lock:
                self._strays = list(answer.strays)
            self._inbox.ring()

    def _away(self, error: StoreAway) -> None:
        """The store cannot be used: try again, and give up only when no trust in anything held is left."""
        away_s = self._absence.begin(error)
        # A lock or a full disk passes: the guard ends what loses its trust, and the loop stays for what comes after.
        if error.passing:
            return
        if away_s > self._wish.figures.trust_us / 1e6 and self._nothing_lives():
            raise error

    def _back(self) -> None:
        """The store can be used again: say so, and tell what its absence cost."""
        outage = self._absence.end(self.writer.claims_undone)
        self.writer.claims_undone = 0
        if outage is not None:
            self.noticing.note(outage)
            self.noticing.step()

    def _nothing_lives(self) -> bool:
        return all(holding.done for holding in self.holdings.all())

    def _is_drained(self) -> bool:
        return self._draining and not len(self.holdings) and not len(self._inbox)

    def _is_idle(self) -> bool:
        if len(self.holdings) or len(self._inbox):
            return False
        with self.store.read() as session:
            soon = session.tasks.soonest_us()
            due = soon is not None and soon <= machine.to_us(session.now)
            return not due and not session.runs.counts()

    def _finish(self) -> None:
        """Drain, hand over what can be adopted, end the rest, and leave."""
        self.writer.accepting = False
        self._set_state("draining")
        self._leaving.step(self._hurry)
        self.beating.stop()
        self._carriers.close()
        self._abroad.hand_over()
        self._leave()

    def _set_state(self, state: str) -> None:
        try:
            with self.store.write() as session:
                if state != "gone":
                    session.holders.set_state(self.id, state)
                else:
                    session.holders.leave(self.id, now=session.now)
                    session.ledger.add([Entry(kind="holder_ended", at=session.now, holder=self.id, reason="shutdown")])
        except StoreAway as error:
            self._tell("store away", {"error": error.message})

    def _leave(self) -> None:
        if self._stopping.unended():
            return  # the end of this process ends that work, and frees the lock that proves it
        self._left = True
        self._set_state("gone")
        self._presence.leave()
        self._inbox.close()
        self._heart_store.close()
        self.registry.close()

    def _told_settled(self, settled: Settled) -> None:
        run, work = settled.run, settled.delivery.holding.assignment
        told: dict[str, object] = {"task": work.task_name, "run": work.run, "attempt": work.attempt}
        if run is None:
            self._tell("run lost", told)
        elif run.state == "ended":
            self._tell("run ended", {**told, "outcome": run.outcome, "reason": run.reason})
        elif run.state == "parked":
            self._tell("run parked", {**told, "question": run.question})
