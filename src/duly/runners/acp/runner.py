"""One attempt of a prompt by the Agent Client Protocol: process, conversation, judgement, confirmed end."""

import contextlib
import importlib
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from duly import zones
from duly.core.action_fields import PROMPT_FILE_MOST
from duly.core.agent_config import Agent
from duly.core.turns import Judged, judge
from duly.ports import Assignment, Outcome, OutcomeWord
from duly.prompts.making import Facts, make
from duly.runners import command, folders, logs, turn_file
from duly.runners.acp.conversation import Conversation, Heeded, Talk
from duly.runners.acp.process import Process
from duly.runners.nurseries import Forbidden, NotStarted, Nursery
from duly.runners.streams import Streams
from duly.secrets import Missing, Secrets

ERROR_MOST = 2_000


class Acp:
    """Performs one attempt; `stop` may come before, during and after `perform`, from any thread."""

    def __init__(self, nursery: Nursery, secrets: Secrets, streams: Streams) -> None:
        self._nursery = nursery
        self._secrets = secrets
        self._streams = streams
        self._lock = threading.Lock()
        self._wish: Literal["term", "kill"] | None = None
        self._conversation: Conversation | None = None
        self._process: Process | None = None

    def perform(self, agent: Agent, assignment: Assignment, on_told: Callable[[Mapping[str, object]], None]) -> Outcome:
        """Prompt the agent, and come back when its turn is judged and its process has ended."""
        importlib.import_module("acp.connection")  # here, so that nobody waits for it in the loop of all
        prepared = self._prepared(agent, assignment)
        if isinstance(prepared, Outcome):
            return self._masked(prepared)
        talk, env = prepared
        process = Process(self._nursery, assignment)
        if not self._begins(process):
            return _not_begun("cancelled_by_hand", "it was cancelled before it began", word="cancelled")
        pipes = process.start(agent.command, talk.cwd, env)
        if isinstance(pipes, Forbidden):
            return _not_begun("fence_lost", "the attempt was taken away before it began", word="abandoned")
        if isinstance(pipes, NotStarted):
            return _not_begun("preflight", pipes.why)
        conversation = Conversation(
            pipes,
            talk,
            keep=lambda left: turn_file.write(assignment.folder, left),
            on_told=on_told,
            mask=self._secrets.mask,
            longest=self._secrets.longest,
        )
        self._speaks(conversation)
        heeded = self._streams.run(conversation.run()).result()
        return self._masked(self._ended(assignment, process, heeded))

    def stop(self, how: Literal["term", "kill"]) -> None:
        """Ask the agent to end its turn; or end its process, at once."""
        with self._lock:
            self._wish = "kill" if "kill" in (how, self._wish) else how
            conversation, process = self._conversation, self._process
        if conversation is not None:
            self._streams.call(lambda: conversation.end("cancel"))
        if how == "kill" and process is not None:
            process.kill()

    def _begins(self, process: Process) -> bool:
        """Whether nobody wished for the end before there was anything to end."""
        with self._lock:
            self._process = process
            return self._wish is None

    def _speaks(self, conversation: Conversation) -> None:
        with self._lock:
            self._conversation = conversation
            if self._wish is not None:
                conversation.end("cancel")

    def _prepared(self, agent: Agent, assignment: Assignment) -> tuple[Talk, dict[str, str]] | Outcome:
        """Put together what shall be said and seen, before anything is started; an Outcome says why not."""
        action = assignment.action
        cwd = action.get("cwd")
        cwd = cwd if isinstance(cwd, str) else str(Path.home())
        if not Path(cwd).is_dir():
            return _not_begun("no_directory", f"the working directory {cwd} is missing")
        if assignment.args:
            return _not_begun("preflight", "an agent takes no further arguments; give --input instead")
        try:
            text = _prompt(assignment, cwd)
            folders.make_folder(assignment.folder)
            if assignment.input is not None:
                folders.write_private(assignment.folder / "input", assignment.input)
            if assignment.event is not None:
                folders.write_private(assignment.folder / command.EVENT, assignment.event.body)
            env = self._env(agent, assignment)
        except Missing as missing:
            return _not_begun("preflight", f"the agent {agent.name}: {missing}")
        except _Unread as unread:
            return _not_begun("preflight", str(unread))
        except OSError as error:
            return _not_begun("preflight", f"the attempt's folder cannot be made: {error}")
        model = action.get("model")
        talk = Talk(
            cwd=cwd,
            model=model if isinstance(model, str) else None,
            prompt=text,
            timeout_s=assignment.timeout.total_seconds(),
            idle_s=None if assignment.idle_timeout is None else assignment.idle_timeout.total_seconds(),
            unattended=assignment.unattended,
            permissions=assignment.permissions,
        )
        return talk, env

    def _env(self, agent: Agent, assignment: Assignment) -> dict[str, str]:
        around = command.without_ours(os.environ)
        given = {name: self._secrets.fill(value) for name, value in agent.env.items()}
        return command.as_utf8(around | given | command.told(assignment))

    def _ended(self, assignment: Assignment, process: Process, heeded: Heeded) -> Outcome:
        """Judge the turn, keep that, end the process, and say both."""
        judged = _judged(heeded)
        error = None if judged.error is None else self._secrets.mask(judged.error)[:ERROR_MOST]
        left = replace(heeded.left, word=judged.word, reason=judged.reason, error=error)
        with contextlib.suppress(OSError):  # it is settled by us: only who takes it over from us would miss it
            turn_file.write(assignment.folder, left)
        ended = process.end(at_once=heeded.turn.ours is not None)
        if ended.reason in ("not_found", "not_executable", "no_directory") or (
            ended.reason == "preflight" and not ended.side_effect
        ):
            return ended
        outcome = turn_file.outcome(left, ended)
        if ended.reason == "lease_lost":
            return replace(outcome, word="cancelled", reason="lease_lost")
        if heeded.turn.end == "gone" and heeded.turn.ours is None:
            if ended.reason == "timeout":
                return replace(outcome, word="timed_out", reason="timeout", error=ended.error)
            outcome = replace(outcome, error=_gone(outcome, heeded))
        if heeded.unfit is not None:
            outcome = replace(outcome, side_effect=False)
        return replace(outcome, log_bytes=max(outcome.log_bytes, logs.size(assignment.folder)))

    def _masked(self, outcome: Outcome) -> Outcome:
        if outcome.error is None:
            return outcome
        return replace(outcome, error=self._secrets.mask(outcome.error)[:ERROR_MOST])


class _Unread(Exception):
    """The prompt cannot be had; in words."""


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


def _prompt(assignment: Assignment, cwd: str) -> str:
    given, file = assignment.action.get("prompt"), assignment.action.get("prompt_file")
    text = given if isinstance(given, str) else _read(Path(cwd) / str(file))
    facts = Facts(
        run=assignment.run,
        attempt=assignment.attempt,
        due_at=assignment.due_at,
        zone=zones.zone(assignment.zone),
        input=assignment.input,
        event=None if assignment.event is None else assignment.event.body,
    )
    made = make(text, facts)
    size = len(made.encode("utf-8", "replace"))
    if size > PROMPT_FILE_MOST:
        raise _Unread(
            f"the prompt has {size:,} bytes with all that is put into it, and {PROMPT_FILE_MOST:,} are allowed"
        )
    if not made.strip():
        raise _Unread("the prompt is empty")
    return made


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(PROMPT_FILE_MOST + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no file's name"
        raise _Unread(f"the prompt file {path} cannot be read: {why}") from None
    if len(data) > PROMPT_FILE_MOST:
        raise _Unread(f"the prompt file {path} is larger than {PROMPT_FILE_MOST:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _Unread(f"the prompt file {path} is not UTF-8 (byte {error.start})") from None


def _not_begun(reason: str, error: str, *, word: OutcomeWord = "failed") -> Outcome:
    return Outcome(word=word, reason=reason, error=error, side_effect=False)
