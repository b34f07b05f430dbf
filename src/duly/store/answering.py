"""Answers of questions, and deadlines that pass without one, with what each means for its run; one transaction.

What is over is looked at by whoever writes first, so that what people see never depends on who serves.
"""

from duly.core import parking, questions
from duly.core.questions import Question
from duly.store.holds import hold_failing
from duly.store.store import Session
from duly.store.switches import move

OVER_A_TURN = 100
"""Questions that one look brings to their end; the rest is left to the next, so that the lock is never held long."""


def answer(session: Session, after: Question) -> bool:
    """Write an answer and let its parked run be claimed; False where the question was open no longer."""
    if not session.questions.decide(after):
        return False
    run = session.runs.by_id(after.run)
    assert run is not None, "with its run a question is over"
    session.ledger.add([questions.answered(after, run, now=session.now)])
    if not after.attached:
        won = move(session, [parking.ready(run, after, now=session.now)])
        assert won, "nobody else writes inside this transaction"
    return True


def look_over(session: Session) -> int:
    """Bring the questions to their end whose time is over; gives how many. Their parked runs go on, or end failed."""
    over = session.questions.over(session.now, OVER_A_TURN)
    for one in over:
        after = questions.at_deadline(one)
        if after.state == "answered":
            answer(session, after)
            continue
        if not session.questions.decide(after) or after.attached:
            continue  # whoever holds an attached one sees it, and ends its work
        run = session.runs.by_id(after.run)
        assert run is not None, "with its run a question is over"
        step = parking.unanswered(run, after, now=session.now)
        move(session, [step])
        hold_failing(session, [step])
    return len(over)
