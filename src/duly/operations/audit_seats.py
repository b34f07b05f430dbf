"""What `verify` reads of seats: one seat held one live attempt at a time, and every claim had a higher fence (P2)."""

from collections.abc import Iterator, Mapping

from duly.operations.audit_fates import Finding


class Seats:
    """The seats of one task as the ledger tells of them, entry by entry, in its order."""

    def __init__(self, task: str) -> None:
        self._task = task
        self._live: dict[object, str | None] = {}
        self._highest = 0
        self._parked: set[str | None] = set()

    def claimed(self, run: str | None, details: Mapping[str, object]) -> Iterator[Finding]:
        """An attempt took a seat."""
        seat, fence = details.get("seat"), details.get("fence")
        goes_on = run in self._parked and self._live.get(seat) == run
        self._parked.discard(run)
        if seat in self._live and not goes_on:
            yield self._found(run, f"claimed seat {seat} while {self._live[seat]} had it")
        if not isinstance(fence, int) or fence <= self._highest:
            yield self._found(run, f"claimed with fence {fence} after fence {self._highest}")
        self._highest = max(self._highest, fence if isinstance(fence, int) else 0)
        self._live[seat] = run

    def passed(self, run: str, seat: object, fence: object) -> bool:
        """Say whether an attempt that took a seat and is over already did so rightly; if not, nothing was noted."""
        if seat in self._live or not isinstance(fence, int) or fence <= self._highest:
            return False
        if self._live and run in self._live.values():
            return False
        self._highest = fence
        return True

    def parked(self, run: str | None) -> None:
        """An attempt is over, and its run keeps the seat."""
        self._parked.add(run)

    def freed(self, run: str | None) -> None:
        """An attempt is over, or a run that kept its seat."""
        self._parked.discard(run)
        if run in self._live.values():
            self._live = {taken: holds for taken, holds in self._live.items() if holds != run}

    def _found(self, run: str | None, text: str) -> Finding:
        return Finding(promise="P2", task=self._task, run=run, text=text)
