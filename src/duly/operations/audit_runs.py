"""What `verify` reads of runs: each row is what its entries tell, and each was written by who held it (P4).

A run is looked at when the ledger tells of its end; what it tells of it later makes it be looked at again, whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from duly.core.ledger import Folded, fold
from duly.core.run import Entry
from duly.operations.audit_fates import ASKED_LATER, BEFORE_ALL, Finding
from duly.store import Session
from duly.store.auditing import ENTRY, Auditing, Ended, RunRow, TaskLine, Told

LATE = frozenset({"fence_lost", "outcome_late"})
"""What the ledger is told by who has lost a run, whatever became of it since."""
ENDS = frozenset({"ended", "skipped"})
KIND, OCCURRENCE, RUN, ATTEMPT, REASON, HOLDER, DETAILS = (
    TaskLine._fields.index(name) for name in ("kind", "occurrence", "run", "attempt", "reason", "holder", "details")
)
STANDS_FOR = Ended._fields.index("occurrence")


Story = list[tuple[TaskLine, Mapping[str, object]]]
"""The entries of one run, each with its details."""


class Runs:
    """The runs of one task as the ledger tells of them, entry by entry; those that have not ended are kept."""

    def __init__(self, session: Session, audit: Auditing) -> None:
        self._session = session
        self._audit = audit
        self._open: dict[str, Story] = {}
        self._over: dict[str, Story] = {}
        self._passed: set[str] = set()
        """Runs whose whole story was taken at once."""
        self._again: set[str] = set()
        self._named: set[str] = set()
        """Runs of which something was found: it is said once."""

    def read(self, line: TaskLine, run: str, details: Mapping[str, object]) -> None:
        """Take one more entry."""
        one = line, details
        if line.kind == "opened" and self.is_new(run):
            self._open[run] = [one]
            return
        story = self._open.get(run)
        if story is None:
            self._again.add(run)
            return
        story.append(one)
        if line.kind in ENDS:
            self._over[run] = self._open.pop(run)

    def is_new(self, run: str) -> bool:
        """Nothing was told of it lately."""
        return run not in self._open and run not in self._over and run not in self._passed and run not in self._again

    def passed(self, run: str) -> None:
        """Note that the whole story of a run was told at once, and that it stands so."""
        self._passed.add(run)

    def settle(self) -> Iterator[Finding]:
        """Look at the runs that have ended since the last time."""
        over, again = self._over, self._again
        self._over, self._again, self._passed = {}, set(), set()
        rows = self._audit.rows([*over])
        for run, story in over.items():
            row = rows.get(run)
            if run not in again and row is not None and (is_plain(row, story) or not list(_told(row, story))):
                continue
            again.add(run)
        for run in sorted(again):
            yield from self._whole(run)

    def end(self) -> Iterator[Finding]:
        """Look at those that have not ended."""
        self._over, self._open = {**self._over, **self._open}, {}
        yield from self.settle()

    def _whole(self, run: str) -> Iterator[Finding]:
        """P4 of one run, and P6 where there is none: by all that the ledger tells of it."""
        if run in self._named:
            return
        row = self._audit.rows([run]).get(run)
        entries = [one.entry for one in self._session.ledger.of_run(run)]
        if row is None and entries and not _came_late(self._session, entries):
            self._named.add(run)
            text = "the ledger tells of a run that is not there"
            yield Finding(promise="P6", task=entries[0].task, run=run, text=text)
        if row is None:
            return
        found = list(told_right(row, entries))
        if found:
            self._named.add(run)
        yield from found


def told_right(row: RunRow, entries: Sequence[Entry]) -> Iterator[Finding]:
    """P4: the row is what its entries tell, and each was written by the attempt that held it."""
    folded = fold(entries)
    for fault in folded.faults:
        yield Finding(promise="P4", task=row.task, run=row.id, text=fault)
    opened = next((entry.occurrence for entry in entries if entry.kind == "opened"), row.occurrence)
    if opened != row.occurrence:
        text = f"it is of {row.occurrence}, and the ledger tells that {opened} opened it"
        yield Finding(promise="P4", task=row.task, run=row.id, text=text)
    stands = Folded(
        state=row.state,
        outcome=row.outcome,
        reason=row.reason,
        attempt=row.attempt,
        fence=row.fence,
        seat=folded.seat,
        answered=folded.answered,
        holder=folded.holder if row.state != "held" else row.holder,
    )
    if replace(folded, faults=()) != stands:
        differing = [
            f"{name} is {getattr(stands, name)!r} and the ledger tells {getattr(folded, name)!r}"
            for name in ("state", "outcome", "reason", "attempt", "fence", "holder")
            if getattr(stands, name) != getattr(folded, name)
        ]
        yield Finding(promise="P4", task=row.task, run=row.id, text="; ".join(differing))


def is_one_story(opened: Told, claimed: Told, ended: Told) -> bool:
    """Say of three entries whether they tell that a run was opened in its time, claimed and ended, and nothing else."""
    return (
        claimed[KIND] == "claimed"
        and ended[KIND] == "ended"
        and opened[RUN] is not None
        and opened[RUN] == claimed[RUN] == ended[RUN]
        and opened[REASON] not in ASKED_LATER
        and opened[OCCURRENCE] == ended[ENTRY + STANDS_FOR]
    )


def stands_as_told(claimed: Told, ended: Told, fence: object, told: Mapping[str, object]) -> bool:
    """Say whether the row of that run is what they tell, and its end was written by who held it."""
    state, outcome, reason, attempt, highest, _ = ended[ENTRY:]
    last = told.get("fence")
    return (
        state == "ended"
        and type(fence) is int
        and type(last) is int
        and 0 < fence == last == highest
        and claimed[ATTEMPT] == attempt > 0
        and claimed[HOLDER] == ended[HOLDER]
        and told.get("outcome") == outcome
        and ended[REASON] == reason
    )


def is_plain(row: RunRow, story: Story) -> bool:
    """Say of the commonest story, opened, claimed and ended, that there is nothing to find; of any other, nothing.

    Folding tells the same, at many times the cost.
    """
    if row.state != "ended" or len(story) != 3:
        return False
    (opened, _), (claimed, took), (ended, told) = story
    if opened.kind != "opened" or claimed.kind != "claimed" or ended.kind != "ended":
        return False
    fence, last = took.get("fence"), told.get("fence")
    return (
        type(fence) is int
        and type(last) is int
        and 0 < fence == last == row.fence
        and claimed.attempt == row.attempt > 0
        and claimed.holder == ended.holder
        and str(told.get("outcome")) == row.outcome
        and ended.reason == row.reason
        and opened.occurrence == row.occurrence
    )


def _told(row: RunRow, story: Story) -> Iterator[Finding]:
    entries = [
        # Folding asks nothing of the moments.
        Entry(
            kind=line.kind,
            at=BEFORE_ALL,
            occurrence=line.occurrence,
            attempt=line.attempt,
            reason=line.reason,
            holder=line.holder,
            details=details,
        )
        for line, details in story
    ]
    return told_right(row, entries)


def _came_late(session: Session, entries: Sequence[Entry]) -> bool:
    """Say whether this is all that came of a run after it was pruned: the words of a holder that had lost it."""
    if not all(entry.kind in LATE for entry in entries):
        return False
    task = session.tasks.by_id(entries[0].task or "")
    return task is None or task.pruned_until is not None
