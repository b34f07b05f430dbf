"""`retry`: an ended run once more, by hand: the same definition, due instant and input, in a run of its own."""

from dataclasses import replace

from duly import ids
from duly.core import lifecycle, offers
from duly.core.admission import rank_of
from duly.core.names import key_of
from duly.core.occurrences import manual_key
from duly.core.run import Run
from duly.core.spans import write_instant
from duly.core.task import Broken, Definition, Task
from duly.errors import Refused
from duly.operations import shapes
from duly.operations.budgets import check_budget
from duly.operations.lookup import find_run, told
from duly.operations.owned import refuse_missing
from duly.operations.runs import check_free, check_task
from duly.store import Session, Store
from duly.store.switches import lift_over


def retry(
    store: Store, word: str, *, by: str, queue: bool = False, anyway: bool = False, run: str | None = None
) -> Run:
    """Open a run by hand that does again what an ended one did; `retry_of` names it.

    Refused: `already_waiting` and `already_running` where that run, or (not with `queue`) its task, waits or runs;
    `budget_exceeded` (not with `queue`); `paused` (not with `anyway`, unless a `run` asks); `unknown_task` when the
    task was removed; `invalid` when the definition by which the run was performed no longer reads. An open offer to go
    on with that run is answered by this.
    """
    with store.write() as session:
        lift_over(session)
        old = find_run(session, word)
        _check_ended(old)
        task = _task_of(session, old)
        refuse_missing(store, session, task)
        check_task(session, task, anyway=anyway, run=run)
        definition = _definition(session, old, task)
        if not queue:
            check_free(session, task)
            check_budget(session, task)
        opened = Run(
            id=ids.new("run"),
            task=task.id,
            occurrence=manual_key(ids.new("evt").removeprefix("evt_")),
            due_at=old.due_at,
            opened_at=session.now,
            opened_by="manual",
            opened_by_whom=by,
            not_before=session.now,
            definition_version=old.definition_version,
            input=old.input,
            args=old.args,
            event=old.event,
            anyway=anyway,
            queued=queue,
            project=key_of(task.definition.project),
            rank=rank_of("manual", definition.rules),
            retry_of=old.id,
        )
        session.runs.insert([opened])
        session.ledger.add([replace(lifecycle.opened_by_hand(opened), details={"retry_of": old.id})])
        _answer_offers(session, old, opened, by=by)
        return opened


def _check_ended(run: Run) -> None:
    if run.state == "ended":
        return
    details = {
        "run": run.id,
        "state": shapes.state(run),
        "holder": run.holder,
        "since": None if run.started_at is None else write_instant(run.started_at),
    }
    if run.state == "waiting":
        text = f"{run.id} has not ended: it waits" + (f" after {run.attempt} attempts" if run.attempt > 1 else "")
        raise Refused("already_waiting", text, details=details, hint=f"duly show {run.id}")
    text = f"{run.id} has not ended: it is {shapes.state(run)}" + (f", held by {run.holder}" if run.holder else "")
    raise Refused("already_running", text, details=details, hint=f"duly cancel {run.id} --wait")


def _task_of(session: Session, run: Run) -> Task:
    task = session.tasks.by_id(run.task)
    if task is None or task.removed_at is not None:
        name = run.task if task is None else told(task)
        raise Refused(
            "unknown_task",
            f"the task {name} was removed, so nothing of it runs any more",
            details={"run": run.id, "task": run.task},
        )
    return task


def _definition(session: Session, run: Run, task: Task) -> Definition:
    version = run.definition_version
    read = session.versions.read(task.id, version)
    if isinstance(read, Definition):
        return read
    why = f"its {read.field} no longer reads: {read.message}" if isinstance(read, Broken) else "it is not kept any more"
    raise Refused(
        "invalid",
        f"{run.id} was performed by version {version} of {told(task)}, and {why}",
        details={"run": run.id, "task": task.id, "version": version},
        hint=f"duly run {told(task)}",
    )


def _answer_offers(session: Session, old: Run, run: Run, *, by: str) -> None:
    """Whoever retries a run has answered the offer to go on with it."""
    for one in session.missed.of_run(old.id):
        if one.state == "open":
            after = offers.accepted(one, run.id, by=by, now=session.now)
            if session.missed.decide(one, after):
                session.ledger.add([offers.told(after, "accepted", now=session.now, run=run)])
