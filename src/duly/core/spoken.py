"""What a run keeps of its turns with an agent: the session of the last one, how far that had come, and the cost.

`told` is what an attempt says of its turn: its `session`; whether its prompt may have reached the agent (`prompted`);
whether an earlier one of this session may have (`under_way`); `untouched`, where it is known that no prompt was sent;
its `usage`.
"""

from collections.abc import Mapping

from duly.core import usage
from duly.core.run import Run, Step
from duly.core.values import changed

PROMPTED = "prompted"
"""Kept of a run whose last attempt may have reached its agent: what did not, cost nothing."""
UNDER_WAY = "under_way"
UNTOUCHED = "untouched"
ATTEMPT = "attempt"
"""Of which attempt the session is told."""
ANSWERED = "answered"
RESUMES = "resumes"
"""Why the next attempt goes on in the session that is kept."""


def spoken_to(run: Run, *, agent: Mapping[str, object]) -> Step:
    """Note the session of an agent that took its prompt, while its turn goes on."""
    after = changed(run, version=run.version + 1, agent=_in_attempt(run, agent))
    return Step(before=run, after=after, entries=())


def after_attempt(run: Run, told: Mapping[str, object]) -> dict[str, object]:
    """Give what a run keeps after an attempt that told this of itself; where that had no session, none is shown."""
    kept = run.agent
    if not told:
        return {name: value for name, value in kept.items() if name not in {PROMPTED, RESUMES, UNDER_WAY}}
    session, before, now = told.get("session"), kept.get("usage"), told.get("usage")
    spent = usage.added(
        before if isinstance(before, Mapping) else {},
        now if isinstance(now, Mapping) else {},
        same_session=session is not None and session == kept.get("session"),
    )
    out: dict[str, object] = {"session": session, ATTEMPT: run.attempt}
    return out | ({PROMPTED: True} if told.get(PROMPTED) else {}) | ({"usage": spent} if spent else {})


def going_on(run: Run, told: Mapping[str, object], *, why: str) -> dict[str, object] | None:
    """Give what a run keeps whose next attempt goes on where this one was; None where nobody knows where that is.

    Without a session in it the next begins anew: nothing had been asked yet.
    """
    kept, after = run.agent, after_attempt(run, told)
    if kept.get(RESUMES) == ANSWERED and not told.get(PROMPTED):
        why = ANSWERED  # the answer has not been passed on yet
    session, under_way = told.get("session"), bool(told.get(PROMPTED) or told.get(UNDER_WAY))
    if session is None and kept.get(RESUMES) and not told.get(PROMPTED):
        session, under_way = kept.get("session"), bool(kept.get(UNDER_WAY))
    elif session is None and told.get(UNTOUCHED):
        return after
    elif session is None and kept.get(ATTEMPT) == run.attempt:
        session, under_way = kept.get("session"), True
    if session is None:
        return None
    return after | {"session": session, ATTEMPT: run.attempt, RESUMES: why} | ({UNDER_WAY: True} if under_way else {})


def shown(kept: Mapping[str, object]) -> dict[str, object]:
    """Give session and usage as a run shows them; null where not known."""
    spent = kept.get("usage")
    known = spent if isinstance(spent, Mapping) else {}
    return {
        "session": kept.get("session"),
        "usage": {name: known.get(name) for name in (*usage.TOKENS, usage.COST)},
    }


def _in_attempt(run: Run, told: Mapping[str, object]) -> dict[str, object]:
    """What a run keeps while a turn goes on whose session is told; what the turns before cost stays."""
    spent = {"usage": run.agent["usage"]} if run.agent.get("usage") else {}
    return {**spent, "session": told.get("session"), ATTEMPT: run.attempt}
