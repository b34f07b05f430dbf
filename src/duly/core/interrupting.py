"""Interruptions: an attempt whose work is gone without an end of its own; what becomes of its run by `on_interrupt`.

`retry` tries it again from the start, once. `resume` goes on in the agent's session, twice at most; where nothing was
asked of an agent yet, it may begin anew. What may have been asked, in a session that is not known, is neither.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Literal

from duly.core import spoken
from duly.core.admission import NOTHING
from duly.core.edges import ERROR_MOST, entry_of, released, worked
from duly.core.lateness import refused_after_interruption
from duly.core.lifecycle import settle
from duly.core.run import Run, Step
from duly.core.task import OnInterrupt, Rules
from duly.core.values import changed

Interruption = Literal["holder_died", "lease_lost", "shutdown", "agent_error"]

MOST: Mapping[OnInterrupt, int] = {"fail": 0, "retry": 1, "resume": 2}
"""How many interruptions a run outlives; the next ends it."""
WHAT: Mapping[Interruption, str] = {
    "holder_died": "the process that held the run died",
    "lease_lost": "its holder lost the lease",
    "shutdown": "the process that held the run was stopped",
    "agent_error": "the server of its agent went away in the middle of its turn",
}
TIMES = ("first", "second", "third", "fourth")


def interrupted(
    run: Run,
    rules: Rules,
    *,
    choice: OnInterrupt | None = None,
    why: Interruption,
    now: datetime,
    ended_at: datetime,
    following: datetime | None,
    by: str | None,
    told: str | None = None,
    agent: Mapping[str, object] = NOTHING,
) -> Step:
    """Judge a held run whose work is gone without an end of its own: it goes on, or has ended abandoned.

    `choice`: what holds for its action, else the rules decide. `ended_at`: when the work was last known to live; the
    time it worked until then does not count as lateness. `agent`: what its attempt had told of an agent.
    """
    assert run.state == "held"
    choice = choice or rules.on_interrupt or "fail"
    worked_for = run.worked_for + worked(run, ended_at)
    refusal = None
    going_on = spoken.going_on(run, agent, why=why) if choice == "resume" else spoken.after_attempt(run, agent)
    if choice != "fail" and going_on is not None and run.cancel_asked_at is None:
        if run.interruptions >= MOST[choice]:
            refusal = "too_many_resumes" if choice == "resume" else None
        else:
            refusal = refused_after_interruption(run, rules, worked_for=worked_for, following=following, now=now)
            if refusal is None:
                text = told or _text(run, why, choice, None)
                kept = {"agent": going_on, "worked_for": worked_for, "error": text[:ERROR_MOST]}
                return _goes_on(run, kept, choice=choice, why=why, now=now, by=by)
    text = told or _text(run, why, choice, refusal)
    if going_on is None:
        text += "; in which session of its agent is not known, so that it cannot go on"
    elif refusal == "too_many_resumes":
        text += f"; it had gone on {MOST['resume']} times before"
    step = settle(run, "abandoned", now=now, reason=refusal or why, error=text, agent=agent)
    swept = entry_of(run, "swept", now, reason=why, holder=run.holder, by=by, details={"fence": run.fence})
    return replace(step, after=changed(step.after, worked_for=worked_for), entries=(swept, *step.entries))


def not_resumed(run: Run, *, now: datetime, told: str, agent: Mapping[str, object]) -> Step:
    """End a run whose agent could not go on in its session: nothing was asked of it anew, and nothing will be."""
    reason = run.tried_reason if run.tried == "abandoned" else "agent_error"
    return settle(run, "abandoned", now=now, reason=reason, error=told, agent=agent)


def _goes_on(
    run: Run, kept: Mapping[str, object], *, choice: OnInterrupt, why: Interruption, now: datetime, by: str | None
) -> Step:
    after = changed(
        run,
        released(run, now),
        state="waiting",
        interruptions=run.interruptions + 1,
        reason=why,
        tried="abandoned",
        tried_reason=why,
        exit_code=None,
        signal=None,
        not_before=now,
        started_at=None,
        **kept,
    )
    details: dict[str, object] = {"fence": run.fence, "next": choice}
    swept = entry_of(run, "swept", now, reason=why, holder=run.holder, by=by, details=details)
    return Step(before=run, after=after, entries=(swept,))


def _text(run: Run, why: Interruption, choice: OnInterrupt, refusal: str | None) -> str:
    what = WHAT[why]
    match refusal:
        case "stale":
            return f"{what}, and it was too late to try again"
        case "missed_skip":
            return f"{what}, and the task skips what it missed"
        case "missed_offer":
            return f"{what}, and whether it goes on is a person's to decide"
    if run.interruptions and run.interruptions >= MOST[choice]:
        return f"{what}, for the {TIMES[min(run.interruptions, len(TIMES) - 1)]} time"
    return f"{what}, and its work ended with it"
