"""Sessions of agents that tasks are bound to: each used by one attempt at a time here, and told its knowledge once.

A file of each lies in the run folder: who locks it uses the session, and what it says is the standing knowledge that
the session has had. The lock ends with the process that holds it.
"""

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

from duly import clock
from duly.core import spoken
from duly.core.agent_reading import bound_to
from duly.ports import Assignment, Busy, Outcome

FOLDER = "sessions"
SAID_MOST = 1_024
LOOK_EVERY_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The session in which an attempt shall work, and what it does while that is busy."""

    session: str
    waits: bool


def bound(assignment: Assignment) -> Bound | None:
    """Give the session that an attempt's task is bound to; None where it is to have one of its own."""
    session, given = bound_to(assignment.action), assignment.action.get("session")
    if session is None:
        return None
    return Bound(session=session, waits=isinstance(given, Mapping) and given.get("busy") == "wait")


class Use:
    """The use of one session, from `begin` to `end`; one process at a place has it at a time, and one attempt in it."""

    def __init__(self, assignment: Assignment, of: Bound) -> None:
        self.of = of
        named = f"{assignment.action.get('agent')}\n{of.session}"
        self._path = assignment.folder.parent.parent / FOLDER / hashlib.sha256(named.encode()).hexdigest()[:32]
        self._descriptor: int | None = None

    def begin(self) -> bool:
        """Take the session; False while somebody else here has it. OSError where that cannot be told."""
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                return False
            raise
        self._descriptor = descriptor
        return True

    def has_had(self, session: str | None, knowledge: str | None) -> bool:
        """Say whether a session, where it is this one, has had this knowledge."""
        if session != self.of.session or knowledge is None or self._descriptor is None:
            return False
        return os.pread(self._descriptor, SAID_MOST, 0) == _digest(knowledge)

    def took(self, session: str | None, knowledge: str | None) -> None:
        """Keep that a session, where it is this one, took this knowledge."""
        if session == self.of.session and knowledge is not None and self._descriptor is not None:
            with contextlib.suppress(OSError):  # it would only hear it once more
                os.ftruncate(self._descriptor, os.pwrite(self._descriptor, _digest(knowledge), 0))

    def end(self) -> None:
        """Leave the session to others; may be repeated."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __enter__(self) -> Self:
        """Use it within a block."""
        return self

    def __exit__(self, *_: object) -> None:
        """End with the block."""
        self.end()


def taken(use: Use, assignment: Assignment, stopped: Callable[[], bool]) -> Outcome | Busy | None:
    """Take the session for an attempt, which waits for it as its task says; gives why that is not to be."""
    resumes = assignment.resumes
    if resumes is not None and resumes.session is not None:
        with contextlib.suppress(OSError):
            use.begin()  # who had it before may stand still, and what goes on there is its own work
        return None
    try:
        return waited(use.begin, use.of, assignment, stopped)
    except OSError as error:
        told = f"whether its session is busy cannot be told: {error}"
        return Outcome(word="failed", reason="preflight", error=told, side_effect=False)


def waited(
    is_free: Callable[[], bool], of: Bound, assignment: Assignment, stopped: Callable[[], bool]
) -> Outcome | Busy | None:
    """Wait for a session, for as long as an attempt may work, where its task says so; gives why it did not help."""
    until_s = clock.monotonic_s() + assignment.timeout.total_seconds()
    while not is_free():
        told = f"the session {of.session} is busy"
        if not of.waits:
            return Busy(told=told)
        if stopped():
            ended = f"it was ended while it waited: {told}"
            untouched = {spoken.UNTOUCHED: True}
            return Outcome(
                word="cancelled", reason="cancelled_by_hand", error=ended, side_effect=False, agent=untouched
            )
        if clock.monotonic_s() >= until_s:
            over = f"it waited for longer than its timeout: {told}"
            return Outcome(word="timed_out", reason="timeout", error=over, side_effect=False)
        clock.pause(LOOK_EVERY_S)
    return None


def is_bound(use: Use | None, session: str | None) -> bool:
    """Say whether this is the session that the task is bound to."""
    return use is not None and session == use.of.session


def notes(use: Use | None, session: str) -> tuple[str, ...]:
    """Give what the log tells of an attempt that works in this session."""
    if use is None or is_bound(use, session):
        return ()
    return (f"[session] {use.of.session} is not there any more; a new one was opened",)


def still_told(use: Use | None, session: str, knowledge: str | None) -> str | None:
    """Give what of this knowledge the session is to be told; nothing where it has had that."""
    return None if use is not None and use.has_had(session, knowledge) else knowledge


def accepted(use: Use | None, session: str | None, knowledge: str | None) -> dict[str, object]:
    """Keep that the session took its prompt, with this knowledge; gives the facts to be told of that."""
    if use is not None:
        use.took(session, knowledge)
    elsewhere: dict[str, object] = {} if use is None or is_bound(use, session) else {"instead_of": use.of.session}
    return {"session": session, **elsewhere}


def _digest(knowledge: str) -> bytes:
    return hashlib.sha256(knowledge.encode("utf-8", "surrogatepass")).hexdigest().encode()
