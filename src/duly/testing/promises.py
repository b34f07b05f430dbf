"""The promises, watched in a simulated world: after every commit, at every begin of work, and at the end."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Protocol

from duly.clock import to_us
from duly.core.run import Entry, Run
from duly.holder.wish import Wish
from duly.operations.audit import verify
from duly.store import Session, Store
from duly.store.rows import run_of
from duly.store.runs import LIVE
from duly.testing.children import Child
from duly.testing.clocks import Time
from duly.testing.lives import Life, Place

LIVE_MOST = 10_000
ASKED = ("version", "cancel_asked_at", "cancel_asked_by", "cancel_why", "cancel_how")
"""What anybody may write on a run that another holds: the wish that it ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A promise that was not kept, and what shows it."""

    promise: str
    text: str


class Around(Protocol):
    """What is looked at besides the store."""

    places: list[Place]
    time: Time
    wish: Wish
    served: bool
    placed: dict[str, Place]


class Promises:
    """Looks at one store through a connection of its own; each look gives what is wrong since the last."""

    def __init__(self, eyes: Store, flow: Around) -> None:
        self._eyes = eyes
        self._flow = flow
        self._places = flow.places
        self._renewed: dict[str, int] = {}
        """The true instant from which the lease of what is held was counted last."""
        self._latest_us = 0
        """The latest that the clock of a database has ever shown."""
        self._seq = 0
        self._live: dict[str, Run] = {}
        self._rows: dict[tuple[Any, ...], Run] = {}
        self._opened: dict[tuple[str, str], str] = {}
        self._fences: dict[str, int] = {}
        self._returned: set[tuple[str, int]] = set()
        self._unconfirmed: set[tuple[str, int]] = set()
        self._begun: Counter[str] = Counter()
        self._succeeded: set[str] = set()

    def committed(self, life: Life | None) -> list[Fault]:
        """Look at what was committed, by this life or (None) by a person."""
        with self._eyes.read() as session:
            live = {run.id: run for run in self._read(session)}
            entries = self._entries(session)
            found = [*self._told(entries, life), *self._moved(session, live, life), *self._crowded(session, live)]
        self._renew(live)
        self._live = live
        return [*found, *self._living()]

    def begun(self, child: Child) -> list[Fault]:
        """Look at work that begins now: it was claimed on disk before (P3), and nothing like it has been done."""
        found = []
        run = self._live.get(child.run)
        if run is None or run.state != "held" or run.fence != child.fence:
            found.append(Fault(promise="P3", text=f"{child.name} begins, and the store has it as {_told(run)}"))
        if (child.run, child.fence) in self._returned:
            found.append(Fault(promise="P4", text=f"{child.name} begins after it was given back"))
        if self._flow.served and run is not None and self._is_early(run):
            found.append(Fault(promise="P6", text=f"{child.name} begins before its instant by the store's clock"))
        if child.run in self._succeeded:
            found.append(Fault(promise="P1", text=f"{child.name} begins, and its run's work had succeeded before"))
        self._begun[child.run] += 1
        return [*found, *self._living()]

    def at_the_end(self) -> list[Fault]:
        """Look at everything, once the world has come to rest: nothing sticks, and the audit finds nothing."""
        found = [Fault(promise=one.promise, text=one.text) for one in verify(self._eyes)]
        with self._eyes.read() as session:
            found += [
                Fault(promise="P6", text=f"{run.id} sticks: {_told(run)}, though nothing hinders it any more")
                for run in session.runs.listed(most=LIVE_MOST)
                if run.state != "ended"
            ]
            for id_, begun in self._begun.items():
                run = session.runs.by_id(id_)
                if run is not None and begun > 1 + run.interruptions + run.retries:
                    why = f"{run.interruptions} interruptions and {run.retries} retries"
                    found.append(Fault(promise="P4", text=f"{id_} began {begun} times, with {why} on record"))
        found += [Fault(promise="P5", text=f"{child.name} lives when all is over") for child in self._children()]
        return found

    def _read(self, session: Session) -> list[Run]:
        """Read what is live; a row that stands as it stood is the run that it was."""
        rows = [tuple(row) for row in session.line.rows(LIVE, most=LIVE_MOST)]
        self._rows = {row: self._rows.get(row) or run_of(row) for row in rows}
        return list(self._rows.values())

    def _children(self) -> list[Child]:
        return [child for place in self._places for child in place.keepers.living()]

    def _entries(self, session: Session) -> list[Entry]:
        written = session.ledger.after(self._seq, most=LIVE_MOST)
        if written:
            self._seq = written[-1].seq
        return [one.entry for one in written]

    def _living(self) -> Iterable[Fault]:
        """P2 and P5: what lives is the work of a run that is held, by its fence; of a seat there is one."""
        seats: Counter[tuple[str, int | None]] = Counter()
        for child in self._children():
            run = self._live.get(child.run)
            if (child.run, child.fence) in self._unconfirmed and child.keeper == "killed":
                continue
            if run is None or run.fence != child.fence:
                yield Fault(promise="P5", text=f"{child.name} lives, and the store has it as {_told(run)}")
                continue
            seats[run.task, run.seat] += 1
        for (task, seat), number in seats.items():
            if number > 1:
                yield Fault(promise="P2", text=f"{number} live attempts in seat {seat} of {task}")

    def _is_early(self, run: Run) -> bool:
        self._latest_us = max(self._latest_us, self._flow.time.store_us)
        return max(to_us(run.due_at), to_us(run.not_before)) > self._latest_us

    def _renew(self, live: Mapping[str, Run]) -> None:
        """Note from when on leases are counted that were given just now."""
        if not self._flow.served:
            return
        now_us, store_us = self._flow.time.us, self._flow.time.store_us
        self._latest_us = max(self._latest_us, store_us)
        for id_, run in live.items():
            before = self._live.get(id_)
            if run.lease_end_us is not None and (before is None or before.lease_end_us != run.lease_end_us):
                since_us = now_us - max(0, store_us - (run.lease_end_us - self._flow.wish.figures.lease_us))
                self._renewed[id_] = since_us

    def _told(self, entries: Iterable[Entry], life: Life | None) -> Iterable[Fault]:
        """P1, and fences that rise: what the ledger was told since."""
        for entry in entries:
            fence = entry.details.get("fence")
            pair = (entry.run or "", fence if isinstance(fence, int) else 0)
            match entry.kind:
                case "opened" if entry.occurrence is not None:
                    before = self._opened.setdefault((entry.task or "", entry.occurrence), entry.run or "")
                    if before != entry.run:
                        yield Fault(promise="P1", text=f"{entry.occurrence} opened {before} and {entry.run}")
                case "claimed":
                    highest = self._fences.get(entry.task or "", 0)
                    if pair[1] <= highest:
                        yield Fault(promise="P2", text=f"{entry.run} claimed with fence {pair[1]} after {highest}")
                    self._fences[entry.task or ""] = max(pair[1], highest)
                case "returned" if entry.details.get("next") is None:
                    self._returned.add(pair)
                    if self._child(pair) is not None:
                        yield Fault(promise="P4", text=f"{entry.run} was given back, and it had begun")
                case "ended" | "swept" | "returned":
                    yield from self._ended(entry, pair, life)
                case _:
                    continue

    def _ended(self, entry: Entry, pair: tuple[str, int], life: Life | None) -> Iterable[Fault]:
        """The end that is told is the end that the work had."""
        if entry.reason == "end_not_confirmed":
            self._unconfirmed.add(pair)
        child = self._child(pair)
        outcome = entry.details.get("outcome")
        code = None if child is None or child.exit is None else child.exit.get("exit_code")
        if outcome == "succeeded":
            self._succeeded.add(pair[0])
            if code != 0:
                yield Fault(promise="P4", text=f"{entry.run} succeeded, and its work ended with {code}")
        elif code == 0 and entry.kind in {"ended", "swept"} and not self._may_be_unseen(entry, child, life):
            yield Fault(promise="P4", text=f"{entry.run} is told as {outcome or entry.kind}, and its work succeeded")

    def _may_be_unseen(self, entry: Entry, child: Child | None, life: Life | None) -> bool:
        """What only another host knows is told by nobody here."""
        elsewhere = self._flow.served and life is not None and child not in life.keepers.children.values()
        return entry.reason == "end_not_confirmed" or elsewhere

    def _child(self, pair: tuple[str, int]) -> Child | None:
        name = f"{pair[0]}.{pair[1]}"
        for place in self._places:
            if name in place.keepers.children:
                return place.keepers.children[name]
        return None

    def _moved(self, session: Session, live: Mapping[str, Run], life: Life | None) -> Iterable[Fault]:
        """P4: what another holds is changed by nobody; but it may be taken over, as the rules allow."""
        for id_, before in self._live.items():
            after = live.get(id_) or session.runs.by_id(id_)
            if after is None or after is before or after == before or before.state != "held":
                continue
            mine = life is not None and before.holder == life.id
            if mine and life is not None and _only(before, after, ("lease_end_us",)):
                holding = None if life.holder is None else life.holder.holdings.get(id_)
                if holding is None or holding.run.fence != after.fence:
                    yield Fault(promise="P4", text=f"{life.name} extends the lease of {id_} without vouching for it")
                continue
            if mine or _only(before, after, ASKED):
                continue
            if life is None:
                yield Fault(promise="P4", text=f"a person changed {_told(before)} to {_told(after)}")
            elif after.state == "held" and after.holder == life.id and after.fence == before.fence:
                yield from self._taken_over(before, life)
            else:
                yield Fault(promise="P4", text=f"{life.name} changed {_told(before)} to {_told(after)}")

    def _taken_over(self, before: Run, life: Life) -> Iterable[Fault]:
        """A run is taken from the dead, from who handed it over, or after its lease; at its very end the beat wins."""
        assert life.holder is not None
        if self._flow.served:
            yield from self._taken_elsewhere(before, life)
            return
        if before.handed_to == life.holder.place or before.lease_boot != life.face.boot_id():
            return
        if before.holder not in self.holding and before.holder != life.id:
            return
        if before.lease_end_us is not None and before.lease_end_us < life.face.lease_us():
            return
        yield Fault(promise="P4", text=f"{life.name} took {_told(before)}, whose holder lives within its lease")

    def _taken_elsewhere(self, before: Run, life: Life) -> Iterable[Fault]:
        """Where a server is shared: from who is at another host only when a whole lease has truly passed.

        Whatever the clock of the store says meanwhile: hosts' clocks may go differently by a hundredth of a lease.
        """
        assert life.holder is not None
        now_us, lease_us = self._flow.time.us, self._flow.wish.figures.lease_us
        if before.handed_to is not None and before.handed_to == life.holder.place:
            return
        former = self.holding.get(before.holder or "")
        here = self._flow.placed.get(before.holder or "") is life.place
        if before.holder == life.id or (former is None and here):
            return
        passed_us = now_us - self._renewed.get(before.id, 0)
        needed_us = self._flow.wish.figures.handover_us if before.handed_to is not None else lease_us
        if passed_us < needed_us - lease_us // 100:
            name = life.place.keepers.machine.name
            told = f"{life.name} of {name} took {_told(before)} after {passed_us / 1e6:g} s, short of its lease"
            yield Fault(promise="P5", text=told)

    holding: Mapping[str, Life] = MappingProxyType({})
    """The holders that live, whatever state they are in."""

    def _crowded(self, session: Session, live: Mapping[str, Run]) -> Iterable[Fault]:
        """P2 and P8 in the rows: a seat is taken once, and of each limit no more than it allows."""
        seats = Counter((run.task, run.seat) for run in live.values())
        yield from (
            Fault(promise="P2", text=f"seat {seat} of {task} is taken {number} times")
            for (task, seat), number in seats.items()
            if number > 1
        )
        taken: Counter[str] = Counter()
        for run in live.values():
            taken.update(run.taken)
        if taken:
            for key, limit in session.crowd.by_keys(list(taken)).items():
                if taken[key] > limit.most:
                    yield Fault(promise="P8", text=f"{taken[key]} of {key} are taken, and {limit.most} are allowed")


def _only(before: Run, after: Run, names: Iterable[str]) -> bool:
    """Nothing but these fields differs."""
    return replace(before, **{name: getattr(after, name) for name in names}) == after


def _told(run: Run | None) -> str:
    if run is None:
        return "not live"
    return f"{run.id[-6:]} {run.state} by {(run.holder or 'nobody')[-6:]} with fence {run.fence}, version {run.version}"
