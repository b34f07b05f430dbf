"""An agent's process: started under a keeper with its streams in our hands, and ended whole."""

import os
import select
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from duly.ports import Assignment, Detached, Outcome
from duly.runners import keeping, nurseries
from duly.runners.ask import Ask
from duly.runners.command import Command
from duly.runners.nurseries import Forbidden, NotStarted, Nursery, Started

GRACE_S = 10.0
LEAVES_WITHIN_S = 2.0
"""An agent whose input was closed has so long to leave by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipes:
    """Our ends of the agent's streams, and of its log."""

    stdin: int
    stdout: int
    stderr: int
    log: int


ASKED_MOST = 10
"""Times that the keeper leaves an agent the whole time for an answer, before it takes it for hung."""


class Process:
    """One agent's process from its start to its confirmed end; `stop` from any thread."""

    def __init__(self, nursery: Nursery, assignment: Assignment) -> None:
        self._nursery = nursery
        self._assignment = assignment
        self._command = Command(nursery)
        self._started: Started | None = None

    def start(self, argv: tuple[str, ...], cwd: str, env: Mapping[str, str]) -> Pipes | Forbidden | NotStarted:
        """Start it, and give our ends of its streams; the attempt's folder stands already."""
        theirs: list[int] = []
        ours: list[int] = []
        try:
            for _ in range(4):
                out_of, into = os.pipe2(os.O_CLOEXEC)
                theirs.append(out_of)
                ours.append(into)
            stdin, stdout, stderr, log = zip(theirs, ours, strict=True)
            # It reads the first; of the two it writes it has the other ends; the keeper reads what is logged.
            given = [stdin[0], stdout[1], stderr[1], log[0]]
            kept = Pipes(stdin=stdin[1], stdout=stdout[0], stderr=stderr[0], log=log[1])
            started = self._nursery.start(self._assignment.folder, self._ask(argv, cwd, env), given)
        except OSError as error:
            started = NotStarted(why=f"its streams cannot be made: {error}")
            given, kept = [*theirs, *ours], None
        if not isinstance(started, Started) or kept is None:
            for descriptor in {*theirs, *ours}:
                os.close(descriptor)
            assert not isinstance(started, Started)
            return started
        for descriptor in given:
            os.close(descriptor)
        self._started = started
        return kept

    def end(self, *, at_once: bool = False) -> Outcome:
        """Wait a moment for it to leave by itself, then end its whole tree; gives how its process ended."""
        channel = None if self._started is None else self._started.channel
        if channel is not None:
            if not at_once:
                poll = select.poll()
                poll.register(channel.fileno(), select.POLLIN)
                poll.poll(int(LEAVES_WITHIN_S * 1000))
            channel.close()
        # What is through already is only looked at.
        self._command.stop("term")
        outcome = self._command.perform(self._assignment, {})
        assert not isinstance(outcome, Detached), "nobody asks for that here"
        return outcome

    def kill(self) -> None:
        """End its whole tree by force, whoever waits for it."""
        task = self._assignment
        self._command.stop("kill")
        try:
            keeping.send_end(task.folder, holder=task.holder, fence=task.fence, how="kill")
        except OSError:
            keeping.kill_keeper(task.folder)  # a full disk takes no order

    def _ask(self, argv: tuple[str, ...], cwd: str, env: Mapping[str, str]) -> Ask:
        task = self._assignment
        return Ask(
            run=task.run,
            fence=task.fence,
            holder=task.holder,
            argv=list(argv),
            cwd=cwd,
            env=dict(env),
            # Its holder keeps the time, and asks before it ends; where that fails the keeper does it. While a person is
            # asked no time of the work runs.
            timeout_s=(task.timeout + ASKED_MOST * _asking(task)).total_seconds() + 6 * GRACE_S,
            idle_s=None,
            leave=False,
            grace_s=GRACE_S,
            spoken=True,
            starter=nurseries.this_process(),
        )


def _asking(task: Assignment) -> timedelta:
    return task.answer_within if task.unattended == "park" else timedelta(0)
