"""What the ends of runs mean for their tasks: they are counted, each once, whichever road they came by."""

from collections.abc import Iterable

from duly.core.lifecycle import last_outcome
from duly.core.run import Run, Step
from duly.store.store import Session
from duly.store.tasks import FAILURE, NEITHER, SUCCESS

FAILURES = frozenset({"failed", "timed_out", "abandoned"})


def count(session: Session, steps: Iterable[Step]) -> None:
    """Note those of these steps, which were written, that ended a run which had an attempt.

    So the failures in a row are runs, not attempts; what was opened and never started is no run here.
    """
    session.tasks.count_end([(step.after.task, step.after.id, _verdict(step.after)) for step in steps if _ends(step)])


def failed(steps: Iterable[Step]) -> dict[str, Run]:
    """Of these steps, the last run of each task that ended in a failure, by the task's id."""
    return {step.after.task: step.after for step in steps if _ends(step) and step.after.outcome in FAILURES}


def _ends(step: Step) -> bool:
    if step.after.state != "ended" or step.after.outcome == "skipped":
        return False
    return step.before.state != "waiting" or last_outcome(step.before) is not None


def _verdict(run: Run) -> int:
    if run.outcome == "succeeded":
        return SUCCESS
    return FAILURE if run.outcome in FAILURES else NEITHER
