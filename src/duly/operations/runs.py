"""Asking for runs and for their end; the same road as time's own, exempt from the late table only."""

from collections.abc import Sequence

from duly import ids
from duly.core import lifecycle, parking
from duly.core.action_fields import ARGUMENT_MOST, ARGUMENTS_MOST
from duly.core.admission import rank_of
from duly.core.fields import INPUT_MOST, KEY_MOST
from duly.core.names import key_of
from duly.core.occurrences import manual_key
from duly.core.questions import Question
from duly.core.reading import shown
from duly.core.run import Run
from duly.core.spans import write_instant
from duly.core.task import Task
from duly.errors import Invalid, Refused
from duly.ids import new as new_id
from duly.operations.budgets import check_budget
from duly.operations.lookup import find_run, find_task, told
from duly.operations.owned import refuse_missing
from duly.operations.rail import refuse_in_a_run
from duly.store import Session, Store
from duly.store.pauses import holding
from duly.store.switches import lift_over, move


def run_now(
    store: Store,
    word: str,
    *,
    by: str,
    input_: str | None = None,
    args: Sequence[str] = (),
    key: str | None = None,
    queue: bool = False,
    anyway: bool = False,
    run: str | None = None,
) -> Run:
    """Open a run by hand; the same `key` again answers with the run it opened first. `args`: further arguments of it.

    Refused: `already_running` with the holder, `already_waiting`, `budget_exceeded` (these not with `queue`), `paused`
    (not with `anyway`, unless a `run` asks), `key_reused` when the key was used with another input.
    """
    _check_input(input_, key)
    _check_args(args)
    with store.write() as session:
        lift_over(session)
        task = find_task(session, word)
        occurrence = manual_key(key if key is not None else new_id("evt").removeprefix("evt_"))
        first = session.runs.by_occurrence(task.id, occurrence)
        if first is not None:
            if first.input != input_ or first.args != tuple(args):
                other = "another input" if first.input != input_ else "other arguments"
                raise Refused(
                    "key_reused",
                    f"the key {key} was used for {first.id} with {other}",
                    details={"run": first.id, "key": key},
                )
            return first
        refuse_missing(store, session, task)
        check_task(session, task, anyway=anyway, run=run)
        _check_room(task, args)
        if not queue:
            check_free(session, task)
            check_budget(session, task)
        opened = Run(
            id=ids.new("run"),
            task=task.id,
            occurrence=occurrence,
            due_at=session.now,
            opened_at=session.now,
            opened_by="manual",
            opened_by_whom=by,
            not_before=session.now,
            definition_version=task.definition_version,
            input=input_,
            args=tuple(args),
            anyway=anyway,
            queued=queue,
            project=key_of(task.definition.project),
            rank=rank_of("manual", task.definition.rules),
        )
        session.runs.insert([opened])
        session.ledger.add([lifecycle.opened_by_hand(opened)])
        return opened


def cancel(store: Store, word: str, *, by: str) -> Run:
    """Put the wish to end a run on record: a waiting or parked one ends at once, a running one when its holder obeys.

    Refused `already_ended` with its outcome. Asking again changes nothing.
    """
    with store.write() as session:
        run = find_run(session, word)
        if run.state == "ended":
            raise Refused(
                "already_ended",
                f"{run.id} has ended: {run.outcome}",
                details={"run": run.id, "outcome": run.outcome, "reason": run.reason},
            )
        if run.cancel_asked_at is None or run.state != "held":
            end = {"waiting": lifecycle.cancel_waiting, "parked": parking.cancelled}.get(run.state)
            move(session, [(end or lifecycle.ask_cancel)(run, by=by, now=session.now)])
        again = session.runs.by_id(run.id)
        assert again is not None
        return again


def _check_input(input_: str | None, key: str | None) -> None:
    if input_ is not None:
        if "\0" in input_:
            raise Invalid("an input cannot hold a NUL character", field="input")
        if len(input_.encode("utf-8", "surrogateescape")) > INPUT_MOST:
            raise Invalid("an input is at most 10 MiB", field="input")
    if key is not None and not 1 <= len(key) <= KEY_MOST:
        raise Invalid(f"a key has 1 to {KEY_MOST} characters", field="key")


def _check_args(args: Sequence[str]) -> None:
    for at, word in enumerate(args):
        field = f"args[{at}]"
        if "\0" in word:
            raise Invalid("an argument cannot hold a NUL character", field=field)
        try:
            size = len(word.encode())
        except UnicodeEncodeError as bad:
            raise Invalid(f"{shown(word)} is not valid UTF-8", field=field, text=word, at=bad.start) from bad
        if size > ARGUMENT_MOST:
            raise Invalid(f"an argument is at most {ARGUMENT_MOST:,} bytes", field=field, hint="--input @FILE instead")


def _check_room(task: Task, args: Sequence[str]) -> None:
    """Refuse further arguments that are too long together with the command's own."""
    action = task.definition.action
    if args and action.get("kind") == "agent":
        raise Invalid("an agent takes no further arguments", field="args", hint="--input TEXT|@FILE")
    own = action.get("argv")
    words = [*(own if isinstance(own, list | tuple) else ()), *args]
    total = sum(len(str(word).encode()) + 1 for word in words)
    if args and total > ARGUMENTS_MOST:
        raise Invalid(
            f"the arguments have {total:,} bytes together, and {ARGUMENTS_MOST:,} are allowed",
            field="args",
            hint="--input @FILE instead",
        )


def check_task(session: Session, task: Task, *, anyway: bool, run: str | None = None) -> None:
    """Refuse what is asked of a task that cannot run, or that is paused (with `anyway` where a `run` asks alone)."""
    if task.broken is not None:
        raise Refused(
            "invalid",
            f"{told(task)} cannot run: its {task.broken.field} no longer reads: {task.broken.message}",
            details={"task": task.id, "field": task.broken.field},
        )
    if anyway and run is None:
        return
    pauses = holding(session.pauses.all(), task=task.id, project_key=key_of(task.definition.project))
    if pauses and anyway:
        # Who may lift no hold may not pass one by either: what a run has made waits for a person.
        refuse_in_a_run(run, "running what is held", f"duly unpause {told(task)}, from a terminal of one's own")
    if pauses:
        one = pauses[0]
        raise Refused(
            "paused",
            f"{told(task)} is paused since {one.since:%Y-%m-%d %H:%M} UTC by {one.by}"
            + (f": {one.note}" if one.note else ""),
            details={"task": task.id, "scope": one.scope, "since": write_instant(one.since), "note": one.note},
            hint="--anyway runs it all the same",
        )


def check_free(session: Session, task: Task) -> None:
    """Refuse what a person asks of a task that is running, or of which they have asked for a run that still waits."""
    for run in session.runs.live_of(task.id):
        asked = [] if run.question is None else session.questions.open_of(run.id)
        raise Refused(
            "already_running",
            f"{told(task)} is running: {run.id}, {_held(run, asked)}",
            details={
                "run": run.id,
                "holder": run.holder,
                "since": write_instant(run.started_at) if run.started_at else None,
                "question": asked[0].id if asked else None,
            },
            hint=f"duly answer {asked[0].id}" if asked else "--queue lets the new run wait for its end",
        )
    for run in session.runs.waiting_of(task.id):
        if run.opened_by == "manual":
            raise Refused(
                "already_waiting",
                f"a run of {told(task)} is waiting already: {run.id}",
                details={"run": run.id},
                hint="--queue lets one more wait",
            )


def _held(run: Run, asked: Sequence[Question]) -> str:
    if asked:
        return f"which waits for the answer to {asked[0].id}"
    return "which waits to go on with an answer" if run.state == "parked" else f"held by {run.holder}"
