"""Feeds: what lies ready for one reader of a stream, up to a bound, between the tail's thread and the reader's loop."""

import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from duly.core.run import Run
from duly.operations import following, outputs
from duly.operations.following import Told, Wanted
from duly.runners import folders
from duly.store import Session, Store

ENTRIES_MOST = 64
"""Entries that lie ready for one reader; who does not read is sent no more, and goes on where it stopped."""
BYTES_MOST = 64 * 1024
"""The same in bytes."""
RETRY_MS = 2_000
"""So long a browser waits before it comes again."""

Wake = Callable[[], None]
"""Tells a reader that something lies ready; called in the tail's thread, and returns at once."""


class Feed:
    """One reader's place in what is told; filled by the tail, emptied by the reader."""

    def __init__(self, wake: Wake) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._ready: deque[bytes] = deque()
        self._bytes = 0
        self._over = False

    @property
    def has_room(self) -> bool:
        """More may be put to what lies ready."""
        with self._lock:
            return not self._over and len(self._ready) < ENTRIES_MOST and self._bytes < BYTES_MOST

    @property
    def over(self) -> bool:
        """Nothing more will come."""
        with self._lock:
            return self._over

    def put(self, piece: bytes) -> None:
        """Lay something ready."""
        with self._lock:
            self._ready.append(piece)
            self._bytes += len(piece)

    def end(self) -> None:
        """Nothing more comes after what lies ready."""
        with self._lock:
            self._over = True
        self._wake()

    def wake(self) -> None:
        """Call the reader where something lies ready."""
        with self._lock:
            ready = bool(self._ready)
        if ready:
            self._wake()

    def take(self) -> bytes:
        """Take all that lies ready; nothing where nothing does."""
        with self._lock:
            taken = b"".join(self._ready)
            self._ready.clear()
            self._bytes = 0
            return taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """What was told of late: everything above a number."""

    since: int
    told: Sequence[Told]


class LedgerFeed(Feed):
    """Entries of the ledger from a number on, as server-sent events; `after` None: from now on."""

    def __init__(self, wake: Wake, wanted: Wanted, after: int | None) -> None:
        super().__init__(wake)
        self._wanted = wanted
        self._after = after
        self._begun = False
        self._said = 0
        """The last number that the reader was sent."""

    def lags(self, recent: Recent | None) -> bool:
        """Something was told that it has not been given."""
        if recent is None or not self._begun or self._after is None:
            return True
        return self._after < (recent.told[-1].seq if recent.told else recent.since)

    def fill(self, session: Session, recent: Recent) -> bool:
        """Lay ready what is new, from what was told of late or else from the store; says whether to go on at once."""
        after = self._begin(session) if self._after is None or not self._begun else self._after
        full = False
        if recent.since <= after:
            newer: Sequence[Told] = [one for one in recent.told if one.seq > after]
        else:
            after = self._after_gap(session, after)
            newer = following.page(session, after, ENTRIES_MOST)
            full = len(newer) == ENTRIES_MOST
        for told in newer:
            if not self.has_room:
                break
            self._pass(told)
        self.wake()
        return full and self.has_room

    def beat(self) -> bytes:
        """A comment that keeps the line open, with the number up to which there was nothing for this reader."""
        with self._lock:
            if self._ready or self._after is None or self._after <= self._said:
                return b": beat\n\n"
            self._said = self._after
            return f": beat\nid: {self._said}\n\n".encode()

    def _begin(self, session: Session) -> int:
        """Say where the stream begins, so that who is cut off before its first entry goes on from there."""
        self._begun = True
        after = session.ledger.last() if self._after is None else self._after
        self._lay(f"retry: {RETRY_MS}\nid: {after}\n\n".encode(), after)
        return self._after_gap(session, after)

    def _after_gap(self, session: Session, after: int) -> int:
        if not following.has_gaps(session, after):
            return after
        last = session.ledger.last()
        self._lay(event(json.dumps({"after": after, "last": last}), id_=last, kind="reset"), last)
        return last

    def _pass(self, told: Told) -> None:
        if following.is_wanted(told, self._wanted):
            self._lay(event(told.text, id_=told.seq), told.seq)
        else:
            with self._lock:
                self._after = told.seq

    def _lay(self, piece: bytes, seq: int) -> None:
        # In one breath: a beat that knew of a number whose entry does not lie ready yet would lose that entry.
        with self._lock:
            self._ready.append(piece)
            self._bytes += len(piece)
            self._after = self._said = seq


class LogFeed(Feed):
    """What a run writes from a position on, as bytes or as server-sent events, until the run ends.

    Without an attempt's number it goes on with the next attempt's output, from its begin.
    """

    def __init__(self, wake: Wake, run: Run, *, folder: Path | None, attempt: int | None, position: int) -> None:
        super().__init__(wake)
        self._run = run
        self._folder = folder
        self._attempt = attempt
        self._position = position
        self.looked = False
        """How the run stands was seen since the reader came."""

    def look(self, session: Session, run_folder: Path) -> None:
        """See how the run stands now."""
        self.looked = True
        run = session.runs.by_id(self._run.id)
        if run is None:
            self.end()
            return
        anew = self._folder is None or run.fence != self._run.fence
        if self._attempt is None and run.attempt and anew:
            self._folder = folders.folder_of(run_folder, run.id, run.fence)
            self._position = 0
        self._run = run

    def fill(self, store: Store) -> bool:
        """Lay ready what was written since; says whether more may follow at once."""
        # Judged before reading, so that what was written up to the end is still read.
        over = self._run.state == "ended" or (self._attempt is not None and self._attempt != self._run.attempt)
        while self.has_room:
            piece = None if self._folder is None else outputs.read(store, self._folder, self._position)
            if piece is None or not piece.data:
                self.wake()
                if over:
                    self.end()
                return False
            self.put(piece.data)
            self._position = piece.next
        self.wake()
        return True


def event(data: str, *, id_: int, kind: str | None = None) -> bytes:
    """Write one server-sent event; its data is one line of JSON."""
    named = "" if kind is None else f"event: {kind}\n"
    return f"id: {id_}\n{named}data: {data}\n\n".encode("ascii")
