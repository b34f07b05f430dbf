"""Children of a simulated world: the work of attempts, with the keepers and nurseries around it, living in memory.

They obey the rules of the real ones: a keeper owns the end of its work and writes it down whole; a nursery ends what a
killed keeper leaves; a stopped keeper does nothing; a keeper obeys its present holder only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

FOREVER_US = 2**62
Believed = Callable[[str], tuple[int, int] | None]
"""Until when a holder is believed, and when what it started has to be gone; None where nobody says so."""
Keeper = Literal["lives", "stopped", "killed"]


@dataclass(slots=True, kw_only=True)
class Nest:
    """The nursery of one holder: it outlives that holder, until its last keeper has ended or it is killed itself."""

    alive: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """How the work of one attempt goes: how long it lasts, the exit status it ends with, how it takes orders."""

    lasts_us: int
    code: int = 0
    term_us: int = 200_000
    """From TERM to its end."""
    deaf: bool = False
    """It ignores TERM."""
    kill_us: int = 50_000
    """From KILL to the end of the last of its processes."""
    swept_us: int = 200_000
    """From the death of its keeper to the word of the nursery that nothing is left."""


@dataclass(slots=True, kw_only=True)
class Child:
    """The work of one attempt, from the mark of its begin on."""

    run: str
    fence: int
    task: str
    attempt: int
    holder: str
    nest: Nest
    boot: str
    script: Script
    begun_us: int
    timeout_us: int
    grace_us: int
    deadline_us: int = FOREVER_US
    """When its keeper ends it if nobody moves this instant on."""
    believed: Believed | None = None
    """Where its keeper reads that instant anew, once it is over."""
    alive: bool = True
    keeper: Keeper = "lives"
    swept: bool = False
    rebooted: bool = False
    exit: Mapping[str, object] | None = None
    ended_us: int | None = None
    _ends: dict[str, int] = field(default_factory=dict)
    _kill_us: int | None = None

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.run}.{self.fence}"

    def next_us(self) -> int:
        """When something happens to it by itself; in the past where its keeper was stopped meanwhile."""
        if not self.alive:
            return FOREVER_US
        if self.keeper == "killed":
            return self._ends.get("swept", FOREVER_US)
        natural = self.begun_us + self.script.lasts_us
        if self.keeper == "stopped":
            return natural
        ends = min((us for word, us in self._ends.items() if word != "swept"), default=FOREVER_US)
        overdue = FOREVER_US if self._ends else min(self.deadline_us, self.begun_us + self.timeout_us)
        return min(natural, ends, overdue)

    def pass_(self, now_us: int) -> str | None:
        """Let what is due happen to it; says what that was."""
        if not self.alive:
            return None
        if self.keeper == "killed":
            return self._sweep(now_us)
        if now_us >= self.begun_us + self.script.lasts_us and self.keeper == "stopped":
            # The work is through, and nobody is there to write it down yet.
            self.alive = False
            return "ended unseen"
        for word, us in sorted(self._ends.items(), key=lambda item: item[1]):
            if us <= min(now_us, self.begun_us + self.script.lasts_us) and word != "swept":
                return self._end(us, {"ended_by": word})
        if now_us >= self.begun_us + self.script.lasts_us:
            return self._end(now_us, {"ended_by": "work", "exit_code": self.script.code})
        if now_us >= self.begun_us + self.timeout_us:
            self.order("term", now_us, word="timeout")
            return "timed out"
        if now_us >= self.deadline_us and not self.is_believed(now_us):
            self.order("term", now_us, word="deadline")
            return "past its deadline"
        return None

    def is_believed(self, now_us: int) -> bool:
        """Read the deadline anew, and say whether it lies ahead now; one that is gone changes nothing."""
        told = None if self.believed is None else self.believed(self.holder)
        if told is not None:
            self.deadline_us, self._kill_us = told
        return now_us < self.deadline_us

    def order(self, how: Literal["term", "kill"], now_us: int, *, word: str | None = None) -> None:
        """Order its end: TERM is followed by KILL after the keeper's grace."""
        word = word or how
        if how == "kill":
            self._ends[word] = min(self._ends.get(word, FOREVER_US), now_us + self.script.kill_us)
            return
        if word in self._ends:
            return
        asked = FOREVER_US if self.script.deaf else now_us + self.script.term_us
        grace_us = self.grace_us
        if word == "deadline" and self._kill_us is not None:
            grace_us = max(0, self._kill_us - now_us)
        self._ends[word] = min(asked, now_us + grace_us + self.script.kill_us)

    def stop_keeper(self) -> None:
        """Stop its keeper, as by a signal."""
        if self.keeper == "lives":
            self.keeper = "stopped"

    def continue_keeper(self, now_us: int) -> None:
        """Let a stopped keeper go on; what ended meanwhile is written down now."""
        if self.keeper == "stopped":
            self.keeper = "lives"
            if not self.alive:
                self._end(now_us, {"ended_by": "work", "exit_code": self.script.code})

    def kill_keeper(self, now_us: int) -> None:
        """Kill its keeper; a nursery that lives ends what is left, which takes a moment."""
        if self.exit is not None or self.keeper == "killed":
            return
        self.keeper = "killed"
        if self.nest.alive:
            self._ends["swept"] = now_us + self.script.swept_us
            if not self.alive:
                self.swept = True

    def vanish(self, now_us: int) -> None:
        """End without a word: its machine was restarted, or somebody ended all that was found of it."""
        self.alive = False
        self.ended_us = now_us

    def _sweep(self, now_us: int) -> str | None:
        if now_us < self._ends.get("swept", FOREVER_US):
            return None
        self.vanish(now_us)
        self.swept = True
        return "swept"

    def _end(self, now_us: int, told: Mapping[str, object]) -> str:
        self.alive = False
        self.ended_us = now_us
        self.exit = told
        return f"ended by {told['ended_by']}"
