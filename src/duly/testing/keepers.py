"""The traces of one simulated place: which attempts have begun there, what lives, and who may order what."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from duly import clock
from duly.ports import Assignment
from duly.runners import deadlines, keeping
from duly.runners.traces import Traces
from duly.testing.children import FOREVER_US, Child, Nest, Script
from duly.testing.clocks import Machine

LOOK_EVERY_S = 0.1
STRAYS_S = 0.5
"""What ending strays takes."""
Begun = Callable[[Child], None]


class Keepers(Traces):
    """Answers what is asked of this machine from memory; the folders themselves are never made."""

    def __init__(self, machine: Machine, *, begun: Begun, deadlines: bool = False, holders: Path | None = None) -> None:
        self.machine = machine
        self.holders = holders
        """Where the holders of this place say until when they are believed; without it, `extend` does."""
        self.deadlines = deadlines
        """Whether keepers end their work by themselves when their holder moves its deadline no more."""
        self._begun = begun
        self._forbidden: set[str] = set()
        self._until: dict[str, int] = {}
        self.children: dict[str, Child] = {}

    def start(self, work: Assignment, *, nest: Nest, script: Script, grace_us: int, trusted_us: int) -> Child | None:
        """Begin an attempt; None where it is forbidden, has begun before, or would begin past its deadline."""
        name = work.folder.name
        deadline_us = FOREVER_US
        told = self._believed(work.holder)
        if told is not None:
            deadline_us = told[0]
        elif self.deadlines and self.holders is None:
            deadline_us = self._true(max(trusted_us, self._until.get(work.holder, 0)))
        # The keeper looks at its deadline before it makes the mark.
        if name in self._forbidden or name in self.children or deadline_us <= self.machine.time.us:
            return None
        child = Child(
            run=work.run,
            fence=work.fence,
            task=work.task,
            attempt=work.attempt,
            holder=work.holder,
            nest=nest,
            boot=self.machine.boot,
            script=script,
            begun_us=self.machine.time.us,
            timeout_us=int(work.timeout.total_seconds() * 1e6),
            grace_us=grace_us,
            deadline_us=deadline_us,
            believed=self._believed,
        )
        self.children[name] = child
        self._begun(child)
        return child

    def extend(self, holder: str, trusted_us: int) -> None:
        """Move the deadline of a holder's keepers: it is trusted until this instant of the lease clock."""
        self._until[holder] = max(self._until.get(holder, 0), trusted_us)
        if self.deadlines:
            for child in self.living():
                if child.holder == holder:
                    child.deadline_us = max(child.deadline_us, self._true(self._until[holder]))

    def living(self) -> Iterable[Child]:
        """What lives."""
        return [child for child in self.children.values() if child.alive]

    def restart(self) -> None:
        """End everything at once, as a restart of the machine does."""
        for child in self.children.values():
            child.rebooted = True
            if child.alive:
                child.vanish(self.machine.time.us)

    def child(self, folder: Path) -> Child | None:
        """The child of this attempt, if it has begun."""
        return self.children.get(folder.name)

    # What a look asks

    def look(self, folder: Path) -> keeping.Look:
        """Say where an attempt stands."""
        child = self.child(folder)
        if child is None:
            return keeping.NeverStarted(forbidden=folder.name in self._forbidden)
        if child.exit is not None:
            return keeping.Ended(exit=child.exit)
        if child.rebooted:
            return keeping.Rebooted()
        if child.keeper == "lives":
            return keeping.KeeperAlive(pid=1, ticks=1, holder=child.holder)
        if child.keeper == "stopped":
            return keeping.KeeperStopped(pid=_pid(self.children, child), ticks=1)
        return keeping.Swept() if child.swept else keeping.KeeperGone(nursery_alive=child.nest.alive)

    def forbid_start(self, folder: Path) -> bool:
        """Forbid for ever that this attempt starts; False if it has begun."""
        if folder.name in self.children:
            return False
        self._forbidden.add(folder.name)
        return True

    def adopt(self, folder: Path, *, holder: str, fence: int) -> bool:
        """Order the keeper to obey this holder from now on."""
        child = self.child(folder)
        if child is None or child.fence != fence:
            return False
        child.holder = holder
        child.is_believed(self.machine.time.us)
        return child.keeper == "lives"

    def end(self, folder: Path, *, holder: str, fence: int, how: Literal["term", "kill"]) -> bool:
        """Order the keeper to end its tree; it obeys its present holder only."""
        child = self.child(folder)
        if child is None or not child.alive or (child.holder, child.fence) != (holder, fence):
            return False
        child.order(how, self.machine.time.us)
        return child.keeper == "lives"

    def continue_or_kill(self, stopped: keeping.KeeperStopped) -> bool:
        """Say whether a stopped keeper goes on: one stopped for good is killed."""
        child = list(self.children.values())[stopped.pid]
        clock.pause(1.0 if child.script.deaf else LOOK_EVERY_S)
        if child.script.deaf:
            child.kill_keeper(self.machine.time.us)
            return False
        child.continue_keeper(self.machine.time.us)
        return True

    def wait_swept(self, folder: Path, *, within_s: float) -> bool:
        """Wait so long for the word that nothing of a killed keeper's work is left."""
        until = clock.monotonic_s() + within_s
        while not isinstance(seen := self.look(folder), keeping.Swept | keeping.Ended):
            if clock.monotonic_s() > until or seen == keeping.KeeperGone(nursery_alive=False):
                return False
            clock.pause(LOOK_EVERY_S)
        return True

    def end_strays(self, folder: Path, run: str) -> tuple[str, ...]:
        """End what is left where keeper and nursery are both gone."""
        child = self.child(folder)
        if child is not None and child.alive:
            clock.pause(STRAYS_S)
            child.vanish(self.machine.time.us)
        return ()

    def gate_is_asked(self, folder: Path) -> bool:
        """Say that no gate is asked: none of this world's tasks has one."""
        return False

    def end_gate(self, assignment: Assignment) -> bool:
        """Say that no gate was being asked."""
        return False

    def lives(self, run: str, fence: int) -> bool:
        """Whether anything of this attempt lives."""
        return any(child.alive for child in self.children.values() if (child.run, child.fence) == (run, fence))

    def end_living(self, run: str, fence: int) -> list[str]:
        """End all of that."""
        for child in self.children.values():
            if child.alive and (child.run, child.fence) == (run, fence):
                child.vanish(self.machine.time.us)
        return []

    def _true(self, lease_us: int) -> int:
        return self.machine.true_us(lease_us)

    def _believed(self, holder: str) -> tuple[int, int] | None:
        """Read the file that a holder's heart moves on."""
        if self.holders is None:
            return None
        try:
            trust_us, kill_us = (self.holders / f"{holder}{deadlines.SUFFIX}").read_text(encoding="ascii").split()
        except (OSError, ValueError):
            return None
        return self._true(int(trust_us)), self._true(int(kill_us))


def _pid(children: dict[str, Child], child: Child) -> int:
    return list(children.values()).index(child)
