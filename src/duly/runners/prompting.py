"""What every attempt of a prompt has, whatever its agent speaks: what shall be said, and how its end is judged."""

import contextlib
import os
from dataclasses import dataclass, replace
from pathlib import Path

from duly.core.action_fields import bound_to
from duly.core.agent_config import Agent
from duly.core.permissions import Permission, Unattended
from duly.core.questions import Asked
from duly.core.turns import Judged, Turn, is_unseen, judge
from duly.ports import Assignment, NothingToResume, Outcome, OutcomeWord, Parked, Resumption
from duly.runners import command, folders, logs, success, turn_file, worktrees
from duly.runners.agent_process import Process
from duly.runners.bound import Use
from duly.runners.prompt_texts import Unread, text_of
from duly.runners.turn_file import Left
from duly.secrets import Missing, Secrets

ERROR_MOST = 2_000
NOT_STARTED = ("not_found", "not_executable", "no_directory")


class Unfit(Exception):
    """The agent cannot do what the task asks, and nothing was asked of it yet: `reason` and words."""

    def __init__(self, reason: str, words: str) -> None:
        super().__init__(words)
        self.reason = reason


class NotResumed(Exception):
    """The agent cannot go on with a session, in words; nothing was asked of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """What shall be said: in which folder, with which model, which prompt, for how long, answered how."""

    cwd: str
    model: str | None
    prompt: str
    knowledge: str | None = None
    """What goes before it: the standing knowledge of the project."""
    notes: tuple[str, ...] = ()
    """What the log should tell of how the prompt was made."""
    timeout_s: float
    idle_s: float | None
    unattended: Unattended
    permissions: tuple[Permission, ...]
    resumes: Resumption | None = None
    use: Use | None = None
    """The session that the task is bound to, which is ours for this attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heeded:
    """How a conversation ended; `unfit`: its agent could not be prompted at all; `not_resumed`: not in its session."""

    turn: Turn
    left: Left
    unfit: Unfit | None = None
    not_resumed: NotResumed | None = None
    cut: bool = False
    """The server at which it was held went away in the middle of the turn."""
    parks: Asked | None = None
    """What a person is to answer before its session goes on."""


def prepared(
    agent: Agent, assignment: Assignment, secrets: Secrets, use: Use | None
) -> tuple[Talk, dict[str, str]] | Outcome:
    """Put together what shall be said, and the agent's own variables; an Outcome says why not. Starts nothing."""
    action = assignment.action
    cwd = action.get("cwd")
    cwd = cwd if isinstance(cwd, str) else str(Path.home())
    if not Path(cwd).is_dir():
        return not_begun("no_directory", f"the working directory {cwd} is missing")
    if assignment.args:
        return not_begun("preflight", "an agent takes no further arguments; give --input instead")
    try:
        text = text_of(assignment)
        folders.make_folder(assignment.folder)
        if assignment.input is not None:
            folders.write_private(assignment.folder / "input", assignment.input)
        if assignment.event is not None:
            folders.write_private(assignment.folder / command.EVENT, assignment.event.body)
        given = {name: secrets.fill(value) for name, value in agent.env.items()}
        apart = worktrees.make(assignment) if action.get("worktree") else None
    except worktrees.NoWorktree as none:
        return not_begun("preflight", str(none))
    except Missing as missing:
        return not_begun("preflight", f"the agent {agent.name}: {missing}")
    except Unread as unread:
        return not_begun("preflight", str(unread))
    except OSError as error:
        return not_begun("preflight", f"the attempt's folder cannot be made: {error}")
    model = action.get("model")
    where = () if apart is None else (f"[worktree] {apart.path}, on the branch {apart.branch}",)
    talk = Talk(
        cwd=cwd if apart is None else str(apart.cwd),
        model=model if isinstance(model, str) else None,
        prompt=text.prompt,
        knowledge=text.knowledge,
        notes=(*where, *text.notes),
        timeout_s=assignment.timeout.total_seconds(),
        idle_s=None if assignment.idle_timeout is None else assignment.idle_timeout.total_seconds(),
        unattended=assignment.unattended,
        permissions=assignment.permissions,
        resumes=assignment.resumes,
        use=use,
    )
    return talk, given


def around() -> dict[str, str]:
    """Give the environment that agents have from us: ours, without our own variables."""
    return command.without_ours(os.environ)


def finished(
    assignment: Assignment, process: Process, heeded: Heeded, secrets: Secrets
) -> Outcome | NothingToResume | Parked:
    """Give what a conversation came to, told without secrets, when its process has ended."""
    if heeded.parks is not None and heeded.turn.ours == "park":
        return _parked(assignment, process, heeded, heeded.parks)
    outcome = masked(ended(assignment, process, heeded, secrets), secrets)
    if heeded.not_resumed is not None and heeded.turn.ours is None and outcome.confirmed:
        told = f"interrupted, and it could not go on where it was: {outcome.error}"
        return NothingToResume(told=told, agent=outcome.agent)
    return outcome


def _parked(assignment: Assignment, process: Process, heeded: Heeded, asked: Asked) -> Outcome | Parked:
    """Leave the question to a person, once nothing of the turn lives."""
    gone = process.end(at_once=True)
    if gone.reason == "lease_lost":
        return replace(gone, word="cancelled", agent=heeded.left.agent)
    if not gone.confirmed:
        return replace(gone, word="abandoned", reason="end_not_confirmed", agent=heeded.left.agent)
    size = max(gone.log_bytes, logs.size(assignment.folder))
    return Parked(asked=asked, agent=heeded.left.agent, log_bytes=size, log_cut=gone.log_cut)


def ended(assignment: Assignment, process: Process, heeded: Heeded, secrets: Secrets) -> Outcome:
    """Judge the turn, keep that, end the process, and say both."""
    judged = success.of_turn(_judged(heeded), assignment, said=heeded.turn.said, cwd=worktrees.folder_of(assignment))
    error = None if judged.error is None else secrets.mask(judged.error)[:ERROR_MOST]
    goes_on = assignment.resumes is not None and assignment.resumes.prompted
    # What had its prompt is never sent the same by itself once more: neither by who goes on nor where all go on.
    there = heeded.left.session is not None and bound_to(assignment.action) == heeded.left.session
    had_it = goes_on or (there and heeded.left.prompted)
    unseen = judged.reason == "agent_error" and is_unseen(heeded.turn) and not had_it
    left = replace(heeded.left, word=judged.word, reason=judged.reason, error=error, unseen=unseen)
    with contextlib.suppress(OSError):  # it is settled by us: only who takes it over from us would miss it
        turn_file.write(assignment.folder, replace(left, word=None) if heeded.cut else left)
    ended = process.end(at_once=heeded.turn.ours is not None)
    if ended.reason in NOT_STARTED or (ended.reason == "preflight" and not ended.side_effect):
        return ended
    outcome = replace(turn_file.outcome(left, ended), interrupted=heeded.cut)
    if ended.reason == "lease_lost":
        return replace(outcome, word="cancelled", reason="lease_lost")
    if heeded.turn.end == "gone" and heeded.turn.ours is None:
        if ended.reason == "timeout":
            return replace(outcome, word="timed_out", reason="timeout", error=ended.error)
        outcome = replace(outcome, error=_gone(outcome, heeded))
    if heeded.unfit is not None:
        outcome = replace(outcome, side_effect=False)
    return replace(outcome, log_bytes=max(outcome.log_bytes, logs.size(assignment.folder)))


def masked(outcome: Outcome, secrets: Secrets) -> Outcome:
    """Give an outcome whose error tells no secret, and is no longer than an error may be."""
    if outcome.error is None:
        return outcome
    return replace(outcome, error=secrets.mask(outcome.error)[:ERROR_MOST])


def not_begun(reason: str, error: str, *, word: OutcomeWord = "failed") -> Outcome:
    """Give the outcome of an attempt that asked nothing of anybody."""
    return Outcome(word=word, reason=reason, error=error, side_effect=False)


def _judged(heeded: Heeded) -> Judged:
    if heeded.unfit is not None and heeded.turn.ours is None:
        return Judged(word="failed", reason=heeded.unfit.reason, error=str(heeded.unfit))
    return judge(heeded.turn)


def _gone(outcome: Outcome, heeded: Heeded) -> str:
    """Tell of an agent that went away in the middle of its turn, with how its process ended."""
    if heeded.turn.error is not None:
        return outcome.error or heeded.turn.error
    how = "it closed its output"
    if outcome.signal is not None:
        how = f"it was ended by signal {outcome.signal}"
    elif outcome.exit_code is not None:
        how = f"it ended with exit status {outcome.exit_code}"
    last = f"; its last line: {heeded.turn.last_line}" if heeded.turn.last_line else ""
    return f"the agent went away in the middle of its turn: {how}{last}"
