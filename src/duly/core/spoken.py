"""What a run keeps of its turns with an agent: the session of the last one, whether that was prompted, and the cost."""

from collections.abc import Mapping

from duly.core import usage
from duly.core.run import Run, Step
from duly.core.values import changed

PROMPTED = "prompted"
"""Kept of a run whose last attempt may have reached its agent: what did not, cost nothing."""


def spoken_to(run: Run, *, agent: Mapping[str, object]) -> Step:
    """Note the session of an agent that took its prompt, while its turn goes on."""
    after = changed(run, version=run.version + 1, agent=in_attempt(run.agent, agent))
    return Step(before=run, after=after, entries=())


def in_attempt(kept: Mapping[str, object], told: Mapping[str, object]) -> dict[str, object]:
    """Give what a run keeps while a turn goes on whose session is told; what the turns before cost stays."""
    return {**_usage(kept), "session": told.get("session")}


def after_attempt(kept: Mapping[str, object], told: Mapping[str, object]) -> dict[str, object]:
    """Give what a run keeps after an attempt that told this of itself; where that had no session, none is shown."""
    if not told:
        return {name: value for name, value in kept.items() if name != PROMPTED}
    before, now = kept.get("usage"), told.get("usage")
    spent = usage.added(
        before if isinstance(before, Mapping) else {}, now if isinstance(now, Mapping) else {}, same_session=False
    )
    out: dict[str, object] = {"session": told.get("session")}
    return out | ({PROMPTED: True} if told.get(PROMPTED) else {}) | ({"usage": spent} if spent else {})


def shown(kept: Mapping[str, object]) -> dict[str, object]:
    """Give session and usage as a run shows them; null where not known."""
    spent = kept.get("usage")
    known = spent if isinstance(spent, Mapping) else {}
    return {
        "session": kept.get("session"),
        "usage": {name: known.get(name) for name in (*usage.TOKENS, usage.COST)},
    }


def _usage(kept: Mapping[str, object]) -> dict[str, object]:
    return {"usage": kept["usage"]} if kept.get("usage") else {}
