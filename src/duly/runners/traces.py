"""What a look after a take-over asks of this machine, in one place, so that a simulated machine can answer instead."""

from pathlib import Path
from typing import Literal

from duly.ports import Assignment
from duly.runners import gates, keeping, strays


class Traces:
    """The traces that attempts leave on this machine: folders, marks, keepers, and what lives of their work."""

    def look(self, folder: Path) -> keeping.Look:
        """Say where an attempt stands."""
        return keeping.look(folder)

    def forbid_start(self, folder: Path) -> bool:
        """Forbid for ever that this attempt starts; False if it has begun."""
        return keeping.forbid_start(folder)

    def adopt(self, folder: Path, *, holder: str, fence: int) -> bool:
        """Order the keeper to obey this holder from now on."""
        return keeping.send_adopt(folder, holder=holder, fence=fence)

    def end(self, folder: Path, *, holder: str, fence: int, how: Literal["term", "kill"]) -> bool:
        """Order the keeper to end its tree."""
        return keeping.send_end(folder, holder=holder, fence=fence, how=how)

    def continue_or_kill(self, stopped: keeping.KeeperStopped) -> bool:
        """Say whether a stopped keeper goes on; else it is killed."""
        return keeping.continue_or_kill(stopped)

    def wait_swept(self, folder: Path, *, within_s: float) -> bool:
        """Wait so long for the word that nothing of a killed keeper's work is left."""
        return keeping.wait_swept(folder, within_s=within_s)

    def end_strays(self, folder: Path, run: str) -> tuple[str, ...]:
        """End what is left where keeper and nursery are both gone; gives what could not be ended."""
        return keeping.end_strays(folder, run)

    def gate_is_asked(self, folder: Path) -> bool:
        """Whether its gate was being asked when its holder was last there."""
        return gates.is_asked(folder)

    def end_gate(self, assignment: Assignment) -> bool:
        """End the gate that a former holder may be asking; whether one was being asked."""
        return gates.end(assignment)

    def lives(self, run: str, fence: int) -> bool:
        """Whether anything lives whose environment names this run and this fence."""
        return bool(strays.living(run, fence))

    def end_living(self, run: str, fence: int) -> list[str]:
        """End all of that; gives what did not end in time."""
        return strays.end(run, fence)


MACHINE = Traces()
