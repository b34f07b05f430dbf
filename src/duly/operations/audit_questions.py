"""What `verify` reads of questions: asked by runs that live, answered once and told so; no parked run asks nothing."""

from collections.abc import Iterator

from duly.core.questions import Question
from duly.core.run import Run
from duly.operations.audit_fates import Finding
from duly.store import Session

PAGE = 500
LIVE_MOST = 1_000_000


def asked(session: Session) -> Iterator[Finding]:
    """P6 of questions: each stands as its run and the ledger tell."""
    before = "~"
    while page := session.questions.listed(before=before, most=PAGE):
        before = page[-1].id
        runs = {run.id: run for run in session.runs.by_ids(sorted({one.run for one in page}))}
        for one in page:
            for text in _wrong(session, one, runs.get(one.run)):
                yield Finding(promise="P6", task=one.task, run=one.run, text=f"{one.id} {text}")
    for run in session.runs.live(most=LIVE_MOST):
        if run.state == "parked":
            yield from _parked(session, run)


def _wrong(session: Session, one: Question, run: Run | None) -> Iterator[str]:
    if run is None:
        yield "is asked by a run that is not there"
        return
    if one.state == "open" and run.state not in {"held", "parked"}:
        yield f"is open, and its run is {run.state}"
    told = [
        written.entry.details.get("answer")
        for written in session.ledger.of_run(run.id)
        if written.entry.kind == "answered" and written.entry.details.get("question") == one.id
    ]
    if told != ([one.answer] if one.state == "answered" else []):
        yield f"is {one.state} ({one.answer}), and the ledger tells {told or 'of no answer'}"


def _parked(session: Session, run: Run) -> Iterator[Finding]:
    """A parked run waits for the one question that it asked last, or was answered it."""
    last = None if run.question is None else session.questions.by_id(run.question)
    wanted = "open" if run.answered_at is None else "answered"
    if last is None or last.run != run.id or last.attached or last.state != wanted:
        found = "asks nothing" if last is None else f"has asked {last.id}, which is {last.state}"
        ready = "waits for an answer" if wanted == "open" else "has its answer"
        yield Finding(promise="P6", task=run.task, run=run.id, text=f"it is parked, {ready}, and {found}")
