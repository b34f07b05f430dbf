"""What the tests of retries and of pauses after failures share."""

from datetime import datetime

from store_scene import Scene
from store_walk import FAILED

from duly.core.run import Run
from duly.holder.dispatcher import Won
from duly.ports import Outcome


def again(s: Scene, holder: str = "hld_a") -> Won:
    """Let the time of the only waiting run come, and claim it."""
    [run] = [one for one in s.runs() if one.state == "waiting"]
    s.at(max(s.clock.moment, run.not_before))
    [won] = s.claim(holder=holder)
    assert won.run.id == run.id
    return won


def fail(s: Scene, won: Won, outcome: Outcome = FAILED) -> Run:
    return s.settle(won, outcome).run or s.run(won.run.id)


def shown(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
