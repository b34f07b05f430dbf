"""From a held run and its definition to what a runner is given."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from duly.core import spoken
from duly.core.events import Event
from duly.core.questions import Answered
from duly.core.run import Run
from duly.core.task import Definition, idle_timeout_of, timeout_of
from duly.holder.holdings import Holding
from duly.ports import Assignment, Resumption, Runner
from duly.runners.folders import folder_of
from duly.runners.gates import Asking

NOTHING: Mapping[str, str] = MappingProxyType({})


def hold(
    run: Run,
    definition: Definition,
    *,
    runner: Runner,
    run_folder: Path,
    trust_end_us: int,
    gate: Asking | None = None,
    event: Event | None = None,
    answer: Answered | None = None,
    lent: Mapping[str, str] = NOTHING,
    origin: str | None = None,
) -> Holding:
    """Make the holding of a run that was claimed or taken over.

    `event` is what it was opened for, `answer` what its work had asked before and goes on with, `lent` what it sees
    of the store.
    """
    assert run.holder is not None
    return Holding(
        run,
        assignment=assignment_of(run, definition, run_folder=run_folder, event=event, answer=answer, lent=lent),
        rules=definition.rules,
        runner=runner,
        kept=is_kept(runner, definition),
        trust_end_us=trust_end_us,
        gate=gate,
        origin=origin,
    )


def assignment_of(
    run: Run,
    definition: Definition,
    *,
    run_folder: Path,
    event: Event | None = None,
    answer: Answered | None = None,
    lent: Mapping[str, str] = NOTHING,
) -> Assignment:
    """Make what a runner is given for the attempt that a run's fence names."""
    return Assignment(
        run=run.id,
        attempt=run.attempt,
        fence=run.fence,
        holder=run.holder or "",
        task=run.task,
        task_name=definition.name,
        project=definition.project,
        occurrence=run.occurrence,
        due_at=run.due_at,
        opened_by=run.opened_by,
        action=definition.action,
        input=run.input,
        args=run.args,
        timeout=timeout_of(definition),
        idle_timeout=idle_timeout_of(definition),
        leftovers=definition.rules.leftovers,
        zone=definition.zone,
        unattended=definition.rules.unattended,
        permissions=definition.rules.permissions,
        answer_within=definition.rules.answer_within,
        resumes=_resumption(run, answer) if run.agent or answer is not None else None,
        success_when=definition.rules.success_when,
        event=event,
        lent=lent,
        folder=folder_of(run_folder, run.id, run.fence),
    )


def _resumption(run: Run, answer: Answered | None) -> Resumption | None:
    kept = run.agent
    session = None if kept.get("session") is None else str(kept["session"])
    if answer is not None:
        return Resumption(session=session, prompted=True, why="answered", answer=answer)
    if session is None or spoken.RESUMES not in kept:
        return None
    return Resumption(session=session, prompted=bool(kept.get(spoken.UNDER_WAY)), why="interrupted")


def is_kept(runner: Runner, definition: Definition) -> bool:
    """Whether this work is a process under a keeper; a runner that says nothing is believed to make it so."""
    kept = getattr(runner, "kept", True)
    return bool(kept(definition.action) if callable(kept) else kept)


def is_attended(runner: Runner) -> bool:
    """Whether this work needs its holder, and so is never adopted: what lives of it is ended instead."""
    return bool(getattr(runner, "attended", False))
