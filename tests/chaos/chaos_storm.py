"""A storm: what befalls servers, keepers, nurseries and the store, drawn from a seed and printed when it is over."""

import contextlib
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from chaos_scene import KEEPER, NURSERY, Arena, Served, wait_for

from databases import Server
from duly.clock import monotonic_s, pause
from duly.runners import processes

SERVERS = 4
FROZEN_FOR_S = 8.0  # past the lease of 6 s
LOCK_FOR_S = (0.5, 3.0)
BETWEEN_S = (0.05, 0.5)
RETRYING = ("long-retry", "deaf-retry")
STEADY = ("steady", "odd")
STRICT_TASKS = ("steady", "odd", "queue", "long-fail", *RETRYING)


@dataclass(slots=True)
class Storm:
    """Its acts and what is still to be undone; the same seed draws the same acts."""

    arena: Arena
    seed: int
    acts: list[str] = field(default_factory=list)
    later: list[tuple[float, Callable[[], object]]] = field(default_factory=list)
    frozen: list[Served] = field(default_factory=list)
    added: int = 0
    server: Server | None = None
    """The server whose connections are cut and which is started anew, where the storm is over one of its own."""

    def prepare(self) -> None:
        """Add the tasks and start the servers."""
        add = self.arena.add
        add("steady", tenths=1)
        add("odd", tenths=2, status=3)
        add("queue", "--overlap", "queue", tenths=3)
        add("long-fail", tenths=40)
        add("long-retry", "--on-interrupt", "retry", tenths=50)
        add("deaf-retry", "--on-interrupt", "retry", "--overlap", "queue", tenths=25)
        self.arena.duly("add", "switched", "--when", "* * * * * *", "--", "true")
        for _ in range(SERVERS):
            self.arena.serve(ready=False)
        wait_for(lambda: all(one.holder for one in self.arena.served), told=self.arena.errors)

    def blow(self, seconds: float) -> None:
        """Act and act again for so long, then undo what is to be undone."""
        chance = random.Random(self.seed)
        acts = [self._kill] * 6 + [self._freeze] * 3 + [self._term] * 3 + [self._kill_keeper] * 3
        acts += [self._kill_nursery] * 2 + [self._kill_family] * 2 + [self._freeze_keeper] * 2 + [self._edit] * 6
        acts += [self._lock, self._blink, self._blink, self._kill_all, self._freeze_nursery, self._lose_lock_file]
        # However slow the machine is, and few the acts: what only these storms have comes first.
        first = [self._restart, self._cut] if self.server is not None else []
        if self.server is not None:
            acts += [self._cut] * 5 + [self._restart]
        if self.arena.hosts > 1:
            # What nobody is left to end, another host cannot: who kills keepers too has only one host in these storms.
            alone = (self._kill_keeper, self._kill_nursery, self._kill_family, self._freeze_keeper, self._kill_all)
            acts = [act for act in acts if act not in (*alone, self._freeze_nursery, self._lose_lock_file)]
        until = monotonic_s() + seconds
        try:
            while monotonic_s() < until:
                self._undo(monotonic_s())
                act = first.pop() if first else chance.choice(acts)
                told = act(random.Random(chance.random()))
                self.acts.append(f"{act.__name__.strip('_')} {told or ''}".strip())
                self._replace()
                pause(chance.uniform(*BETWEEN_S))
            while self.later:
                self._undo(monotonic_s())
                pause(0.05)
        finally:
            print(f"seed {self.seed}, {len(self.acts)} acts: " + "; ".join(self.acts))  # shown when it fails

    def calm(self) -> None:
        """Switch every task off, and wait until all is at its end."""
        self._replace()
        self.arena.duly("pause", "--all")
        self.arena.settle()
        wait_for(lambda: not self.arena.works(), told=self.arena.works)

    def _undo(self, now_s: float) -> None:
        due = [one for one in self.later if one[0] <= now_s]
        self.later = [one for one in self.later if one[0] > now_s]
        for _, undo in due:
            undo()

    def _replace(self) -> None:
        for _ in range(SERVERS - len([one for one in self.arena.living() if not one.termed])):
            self.arena.serve(ready=False)

    def _one(self, chance: random.Random) -> Served | None:
        ready = [one for one in self.arena.living() if one.holder and not one.stopped and not one.termed]
        return chance.choice(ready) if ready else None

    def _kill(self, chance: random.Random) -> str:
        if one := self._one(chance):
            one.send(signal.SIGKILL)
            one.process.wait()
        return one.holder or "" if one else "nobody"

    def _freeze(self, chance: random.Random) -> str:
        one = self._one(chance)
        if one is None or len([each for each in self.arena.served if each.stopped and each.lives]) > 1:
            return "nobody"
        # Not inside a write: that is a test of its own, since it stops everybody.
        for _ in range(50):
            one.send(signal.SIGSTOP)
            if not self.arena.is_locked():
                break
            one.send(signal.SIGCONT)
            pause(0.005)
        else:
            return "nobody"
        self.later.append((monotonic_s() + FROZEN_FOR_S, one.wake))
        return one.holder or ""

    def _term(self, chance: random.Random) -> str:
        if one := self._one(chance):
            one.send(signal.SIGTERM)
        return one.holder or "" if one else "nobody"

    def _signal(self, chance: random.Random, name: str, number: int) -> processes.Process | None:
        found = self.arena.ours(name)
        chosen = chance.choice(sorted(found, key=lambda one: (one.ticks, one.pid))) if found else None
        if chosen is not None:
            processes.send(chosen, number)
        return chosen

    def _kill_keeper(self, chance: random.Random) -> str:
        return str(self._signal(chance, KEEPER, signal.SIGKILL))

    def _kill_nursery(self, chance: random.Random) -> str:
        return str(self._signal(chance, NURSERY, signal.SIGKILL))

    def _kill_family(self, chance: random.Random) -> str:
        """Kill a nursery and all of its keepers, the nursery first, so that nobody sweeps."""
        nurseries = {one.pid for one in self.arena.ours(NURSERY)}
        keepers = [one for one in self.arena.ours(KEEPER) if one.parent in nurseries]
        parents = sorted({one.parent for one in keepers})
        if not parents:
            return "nobody"
        chosen = chance.choice(parents)
        family = [one for one in self.arena.ours(NURSERY) if one.pid == chosen]
        family += [one for one in keepers if one.parent == chosen]
        for one in family:
            processes.send(one, signal.SIGKILL)
        return f"{len(family)} of ours"

    def _freeze_keeper(self, chance: random.Random) -> str:
        one = self._signal(chance, KEEPER, signal.SIGSTOP)
        if one is not None:
            self.later.append((monotonic_s() + 3, lambda: processes.send(one, signal.SIGCONT)))
        return str(one)

    def _freeze_nursery(self, chance: random.Random) -> str:
        one = self._signal(chance, NURSERY, signal.SIGSTOP)
        if one is not None:
            self.later.append((monotonic_s() + 2, lambda: processes.send(one, signal.SIGCONT)))
        return str(one)

    def _kill_all(self, chance: random.Random) -> str:
        """Kill servers, nurseries and keepers, as fast as they can be."""
        for served in self.arena.living():
            served.send(signal.SIGKILL)
        found = self.arena.ours(NURSERY, KEEPER)
        for one in found:
            processes.send(one, signal.SIGKILL)
        return f"{len(found)} of ours"

    def _lock(self, chance: random.Random) -> str:
        seconds = chance.uniform(*LOCK_FOR_S)
        with self.arena.locked():
            pause(seconds)
        return f"for {seconds:.1f} s"

    def _cut(self, chance: random.Random) -> str:
        """End connections of the store's on the server, some or all of them."""
        share = chance.choice((0.3, 1.0))
        query = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'duly' AND random() < ?"
        )
        return f"{len(self.arena.rows(query, share))} connections"

    def _restart(self, chance: random.Random) -> str:
        """Stop the server, as its owner does or as a crash does, and start it again."""
        assert self.server is not None
        how = chance.choice((signal.SIGINT, signal.SIGQUIT))
        self.server.stop(how)
        pause(chance.uniform(0.0, 1.0))
        self.server.start()
        return how.name

    def _blink(self, chance: random.Random) -> str:
        """Start a server and tell it to stop in its first moments."""
        one = self.arena.serve(ready=False)
        after_s = chance.choice((0.0, 0.3, 0.6, 0.9, 1.2))
        number = chance.choice((signal.SIGTERM, signal.SIGTERM, signal.SIGKILL))
        self.later.append((monotonic_s() + after_s, lambda: one.send(number) if one.lives else None))
        return f"after {after_s} s by {number.name}"

    def _lose_lock_file(self, chance: random.Random) -> str:
        """Delete the file by which others see a holder alive."""
        one = self._one(chance)
        if one is None:
            return "nobody"
        self.arena.unproven.add(str(one.holder))
        with contextlib.suppress(FileNotFoundError):
            for folder in self.arena.run_folders():
                (folder / "holders" / f"{one.holder}.lock").unlink(missing_ok=True)
        return one.holder or ""

    def _edit(self, chance: random.Random) -> str:
        """Do by the command line what people do, at tasks and runs; refusals are answers too."""
        verb = chance.choice(("pause", "disable", "run", "cancel", "cancel", "add", "remove"))
        codes = (0, 1, 3, 4)
        if verb in ("pause", "disable"):
            undo = {"pause": "unpause", "disable": "enable"}[verb]
            self.arena.duly(verb, "switched", codes=codes)
            again_s = monotonic_s() + chance.uniform(0.5, 2)
            self.later.append((again_s, lambda: self.arena.duly(undo, "switched", codes=codes)))
        elif verb == "run":
            self.arena.duly("run", chance.choice(STRICT_TASKS), "--queue", codes=codes)
        elif verb == "cancel":
            live = self.arena.rows("SELECT id FROM runs WHERE state = 'held' ORDER BY id")
            if live:
                self.arena.duly("cancel", chance.choice(live)[0], codes=codes)
        elif verb == "add":
            self.added += 1
            self.arena.add(f"more{self.added}", tenths=chance.randrange(1, 9))
        elif self.added:
            self.arena.duly("remove", f"more{chance.randint(1, self.added)}", "--yes", codes=codes)
        return verb


def seed_of_now() -> int:
    """A seed that another day draws anew."""
    return time.time_ns() % 1_000_000_007
