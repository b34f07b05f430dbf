"""What is known of an agent's turn while it goes on, on disk beside its log, for whoever takes the attempt over.

Each write is durable when it returns: the session's id before the prompt is sent, that it is being sent before the
first byte of it, the outcome before anybody is told.
"""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from duly.ports import Outcome, OutcomeWord
from duly.runners import processes
from duly.runners.folders import opened

NAME = "turn"
WORDS: Mapping[str, OutcomeWord] = {
    "succeeded": "succeeded",
    "failed": "failed",
    "timed_out": "timed_out",
    "cancelled": "cancelled",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What a turn has left: its session, whether its prompt may have reached the agent, how it ended if it did."""

    session: str | None = None
    prompted: bool = False
    under_way: bool = False
    """An earlier attempt may have prompted it in this session."""
    message: str | None = None
    """The id under which the prompt was sent, where we choose it."""
    usage: Mapping[str, object] = field(default_factory=dict)
    word: OutcomeWord | None = None
    reason: str | None = None
    error: str | None = None
    unseen: bool = False
    """It failed before anything of it could be seen."""

    @property
    def agent(self) -> dict[str, object]:
        """What of it the run shows."""
        shown: dict[str, object] = {"session": self.session, "prompted": self.prompted, "under_way": self.under_way}
        untouched = not self.prompted and not self.under_way
        shown |= {"untouched": untouched, "usage": dict(self.usage)}
        return {name: value for name, value in shown.items() if value}


def write(folder: Path, left: Left) -> None:
    """Put it on disk; OSError where it cannot be kept."""
    fields: dict[str, object] = {
        "session": left.session,
        "prompted": left.prompted,
        "under_way": left.under_way,
        "message": left.message,
        "usage": dict(left.usage),
        "word": left.word,
        "reason": left.reason,
        "error": left.error,
        "unseen": left.unseen,
    }
    with opened(folder) as descriptor:
        if descriptor is None:
            raise FileNotFoundError(f"the attempt's folder {folder} is gone")
        processes.write_whole(descriptor, NAME, fields)
        written = os.open(NAME, os.O_RDONLY | os.O_CLOEXEC, dir_fd=descriptor)
        try:
            os.fsync(written)
        finally:
            os.close(written)
        os.fsync(descriptor)


def read(folder: Path) -> Left | None:
    """Read what was left; None where nothing was, or nothing that reads."""
    found = None
    with contextlib.suppress(OSError, ValueError), opened(folder) as descriptor:
        found = None if descriptor is None else processes.read_whole(descriptor, NAME)
    if found is None:
        return None
    session, usage, word = found.get("session"), found.get("usage"), found.get("word")
    return Left(
        session=session if isinstance(session, str) else None,
        prompted=bool(found.get("prompted")),
        under_way=bool(found.get("under_way")),
        message=_text(found.get("message")),
        usage=usage if isinstance(usage, Mapping) else {},
        word=WORDS.get(word) if isinstance(word, str) else None,
        reason=_text(found.get("reason")),
        error=_text(found.get("error")),
        unseen=bool(found.get("unseen")),
    )


def outcome(left: Left, ended: Outcome) -> Outcome:
    """Give the outcome of a turn that had ended, with what is known of the end of its process."""
    assert left.word is not None
    return Outcome(
        word=left.word,
        reason=left.reason,
        error=left.error,
        unseen=left.unseen,
        exit_code=ended.exit_code,
        signal=ended.signal,
        confirmed=ended.confirmed,
        log_bytes=ended.log_bytes,
        log_cut=ended.log_cut,
        ended_at=ended.ended_at,
        details=ended.details,
        agent=left.agent,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
