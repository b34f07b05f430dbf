"""Sessions of agents that tasks are bound to: each used by one attempt at a time here, and told its knowledge once.

A file of each lies in the run folder: who locks it uses the session, and it says which run that is, which one has asked
in it last, and which standing knowledge it has had. The lock ends with the process that holds it.
"""

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from duly import clock
from duly.core import spoken
from duly.core.action_fields import bound_to
from duly.core.values import changed
from duly.ports import Assignment, Busy, How, NothingToResume, Outcome

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


Wished = Callable[[], How | None]
"""How an attempt was asked to end, if it was; what is let go while it waits for its session goes back as it came."""


class Use:
    """The use of one session, from `begin` to `end`; one process at a place has it at a time, and one attempt in it."""

    def __init__(self, assignment: Assignment, of: Bound, wished: Wished = lambda: None) -> None:
        self.of = of
        self.wished = wished
        self._run = assignment.run
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
        self._say(user=self._run)
        return True

    def is_of_another(self) -> bool:
        """Say whether who has the session now has it for another run than this one."""
        return self._said().get("user") != self._run

    def was_asked_by_another(self) -> bool:
        """Say whether another run has asked in the session after this one did."""
        return self._said().get("asked") not in (None, self._run)

    def asks(self, session: str) -> None:
        """Keep that this run asks in a session, where it is this one: before it does."""
        if session == self.of.session:
            self._say(asked=self._run)

    def has_had(self, session: str | None, knowledge: str | None) -> bool:
        """Say whether a session, where it is this one, has had this knowledge."""
        known = session == self.of.session and knowledge is not None and self._descriptor is not None
        return known and self._said().get("knowledge") == _digest(str(knowledge))

    def took(self, session: str | None, knowledge: str | None) -> None:
        """Keep that a session, where it is this one, took this knowledge."""
        if session == self.of.session and knowledge is not None:
            self._say(knowledge=_digest(knowledge))

    def _said(self) -> dict[str, object]:
        """What the file says; nothing where it says nothing that reads."""
        with contextlib.suppress(OSError, ValueError):
            with self._path.open("rb") as file:
                found = json.loads(file.read(SAID_MOST))
            return found if isinstance(found, dict) else {}
        return {}

    def _say(self, **more: str) -> None:
        if self._descriptor is None:
            return
        said = json.dumps(self._said() | more).encode()
        with contextlib.suppress(OSError):  # what it does not know it tells once more, and takes for its own
            os.ftruncate(self._descriptor, os.pwrite(self._descriptor, said, 0))

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


def begun(assignment: Assignment) -> Assignment:
    """Give the attempt as it begins: one that goes on in the bound session before it asked there only begins anew.

    Somebody else may have been at work in it since.
    """
    resumes = assignment.resumes
    if resumes is None or resumes.prompted or resumes.session != bound_to(assignment.action):
        return assignment
    return changed(assignment, resumes=None)


def taken(use: Use, assignment: Assignment) -> Outcome | NothingToResume | Busy | None:
    """Take the session for an attempt, which waits for it as its task says; gives why that is not to be."""
    resumes = assignment.resumes
    try:
        if resumes is None or resumes.session is None:
            return waited(use.begin, use.of, assignment, use.wished)
        if resumes.session != use.of.session:
            return None
        return _taken_again(use, assignment)
    except OSError as error:
        told = f"whether its session is busy cannot be told: {error}"
        return Outcome(word="failed", reason="preflight", error=told, side_effect=False)


def _taken_again(use: Use, assignment: Assignment) -> Outcome | NothingToResume | Busy | None:
    """Take a session in which the run has asked before: whatever its task says, it is waited for."""
    own = 0

    def is_free() -> bool:
        nonlocal own
        # Who had it for this very run may stand still, and what goes on there is the run's own work. Two looks: who
        # takes it says so a moment later.
        own = 0 if use.is_of_another() else own + 1
        return use.begin() or own > 1

    refused = waited(is_free, patient(use.of), assignment, use.wished)
    answered = assignment.resumes is not None and assignment.resumes.answer is not None
    if refused is None and not answered and use.was_asked_by_another():
        told = f"interrupted, and another run has asked in the session {use.of.session} since"
        return NothingToResume(told=told, agent={"session": use.of.session, spoken.UNDER_WAY: True})
    return refused


def patient(of: Bound) -> Bound:
    """Give a bound session for a run that has asked in it, and so waits for it whatever its task says."""
    return replace(of, waits=True)


def waited(
    is_free: Callable[[], bool],
    of: Bound,
    assignment: Assignment,
    wished: Wished,
    *,
    every_s: float = LOOK_EVERY_S,
) -> Outcome | Busy | None:
    """Wait for a session, for as long as an attempt may work, where its task says so; gives why it did not help."""
    until_s = clock.monotonic_s() + assignment.timeout.total_seconds()
    while not is_free():
        told = f"the session {of.session} is busy"
        if not of.waits:
            return Busy(told=told)
        if (how := wished()) is not None:
            ended = f"it was ended while it waited: {told}"
            if how == "detach":
                return Outcome(word="abandoned", reason="returned", error=ended, side_effect=False)
            untouched = {spoken.UNTOUCHED: True}
            return Outcome(
                word="cancelled", reason="cancelled_by_hand", error=ended, side_effect=False, agent=untouched
            )
        if clock.monotonic_s() >= until_s:
            over = f"it waited for longer than its timeout: {told}"
            return Outcome(word="timed_out", reason="timeout", error=over, side_effect=False)
        clock.pause(every_s)
    return None


def is_bound(use: Use | None, session: str | None) -> bool:
    """Say whether this is the session that the task is bound to."""
    return use is not None and session == use.of.session


def notes(use: Use | None, session: str) -> tuple[str, ...]:
    """Give what the log tells of an attempt that works in this session."""
    if use is None or is_bound(use, session):
        return ()
    return (f"[session] {use.of.session} is not there any more; a new one was opened",)


def asking(use: Use | None, session: str, knowledge: str | None) -> str | None:
    """Keep that the session is asked now; gives what of this knowledge it is told: nothing where it had that."""
    if use is not None:
        use.asks(session)
    return None if use is not None and use.has_had(session, knowledge) else knowledge


def accepted(use: Use | None, session: str | None, knowledge: str | None) -> dict[str, object]:
    """Keep that the session took its prompt, with this knowledge; gives the facts to be told of that."""
    if use is not None:
        use.took(session, knowledge)
    elsewhere: dict[str, object] = {} if use is None or is_bound(use, session) else {"instead_of": use.of.session}
    return {"session": session, **elsewhere}


def _digest(knowledge: str) -> str:
    return hashlib.sha256(knowledge.encode("utf-8", "surrogatepass")).hexdigest()
