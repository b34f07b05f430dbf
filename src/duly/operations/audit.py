"""`verify`: were the promises kept? Read from the rows and the ledger alone, so that any store can be asked.

All of it is read at one moment, page by page: what is kept meanwhile grows with what is live, not with what was.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, pairwise

from duly.core.ledger import ATTACHED, NEXT, PARKED
from duly.core.task import Task
from duly.operations.audit_answers import answered
from duly.operations.audit_crowds import budgets, counters, crowds
from duly.operations.audit_events import event_fates, fates_twice
from duly.operations.audit_fates import Fate, Finding, Later, fate_of, fate_of_opened, fates
from duly.operations.audit_questions import asked
from duly.operations.audit_runs import DETAILS, KIND, OCCURRENCE, RUN, Runs, is_one_story, stands_as_told
from duly.operations.audit_seats import Seats
from duly.store import Session, Store
from duly.store.auditing import ENTRY, Auditing, TaskLine, Told
from duly.store.rows import mapping

FINDINGS_MOST = 1_000
Tell = Callable[[int, int], None]
"""How far it is: so many of so many entries looked at."""
NOTHING: Mapping[str, object] = {}


def verify(store: Store, tell: Tell | None = None) -> list[Finding]:
    """Check P1, P2, P4, P6 and the limits of P8 on the whole store, as it stands at one moment; changes nothing."""
    with store.read() as session:
        return list(islice(_Verifying(session, tell).found(), FINDINGS_MOST))


class _Verifying:
    """One look at a whole store, and how far it has come."""

    def __init__(self, session: Session, tell: Tell | None) -> None:
        self._session = session
        self._audit = Auditing(session.line)
        self._tell = tell
        self._done = 0
        self._of = 0

    def found(self) -> Iterator[Finding]:
        """Give what is found, as it is found."""
        self._of = self._audit.entries() if self._tell is not None else 0
        self._looked(0)
        yield from self._opened_twice()
        yield from crowds(self._audit)
        yield from counters(self._session)
        yield from budgets(self._audit, FINDINGS_MOST)
        for id_ in self._audit.tasks():
            yield from self._task(id_)
        for run, task in self._audit.untold(FINDINGS_MOST):
            yield Finding(promise="P4", task=task, run=run, text="the ledger tells nothing of it")
        yield from event_fates(self._session, self._audit)
        yield from asked(self._session)
        self._looked(self._of)

    def _looked(self, more: int) -> None:
        if self._tell is not None:
            self._done = min(self._done + more, self._of)
            self._tell(self._done, self._of)

    def _opened_twice(self) -> Iterator[Finding]:
        """P1: one occurrence opened at most one run; and no event has two fates."""
        for task, occurrence in self._audit.twice(FINDINGS_MOST):
            told = self._audit.of_occurrence(task, occurrence, FINDINGS_MOST)
            runs = [run for kind, run, _, _ in told if kind == "opened"]
            for before, run in pairwise(runs):
                text = f"{occurrence} opened {before} and {run}"
                yield Finding(promise="P1", task=task, run=run, text=text)
            yield from fates_twice(task, told)

    def _task(self, id_: str) -> Iterator[Finding]:
        """All that is asked of one task: its entries are read once, and again only what lies far out of order."""
        task = self._session.tasks.by_id(id_)
        reading = _Reading(self._session, self._audit, id_, task)

        def once() -> Iterator[Fate]:
            for page in self._audit.of_task(id_):
                yield from reading.page(page)
                reading.settle()
                self._looked(len(page))

        def again() -> Iterator[Fate]:
            lines = (TaskLine._make(row[:ENTRY]) for page in self._audit.of_task(id_) for row in page)
            return (fate for fate in map(fate_of, lines) if fate is not None)

        told = once()
        judged = [] if task is None else fates(self._session, task, told, again, most=FINDINGS_MOST)
        for _ in told:
            pass  # what no fate is asked of is looked at all the same
        reading.end()
        yield from reading.found
        yield from judged
        if task is not None:
            yield from answered(self._audit, task)


class _Reading:
    """What a task's entries tell besides the fates of its occurrences, taken in their order."""

    def __init__(self, session: Session, audit: Auditing, id_: str, task: Task | None) -> None:
        self.found: list[Finding] = []
        self._seats = Seats(id_)
        self._runs = Runs(session, audit)
        self._later = None if task is None else Later(session, task)

    def page(self, rows: Sequence[Told]) -> Iterator[Fate]:
        """Take some more entries, and give the fates that they tell."""
        at = 0
        while at < len(rows):
            if rows[at][KIND] == "opened" and self._is_plain(rows[at : at + 3]):
                fate = fate_of_opened(rows[at][0], rows[at][OCCURRENCE])
                at += 3
            else:
                line = TaskLine._make(rows[at][:ENTRY])
                self._read(line)
                fate = fate_of(line)
                at += 1
            if fate is not None:
                yield fate

    def _is_plain(self, rows: Sequence[Told]) -> bool:
        """Take three entries at once that are the whole story of a run, the commonest; False: they are not."""
        if len(rows) < 3 or not is_one_story(*rows):
            return False
        took, told = mapping(rows[1][DETAILS]), mapping(rows[2][DETAILS])
        run, fence = rows[0][RUN], took.get("fence")
        if not self._runs.is_new(run) or not stands_as_told(rows[1], rows[2], fence, told):
            return False
        if not self._seats.passed(run, took.get("seat"), fence):
            return False
        self._runs.passed(run)
        return True

    def _read(self, line: TaskLine) -> None:
        kind, run = line.kind, line.run
        # Of what opened a run, its occurrence says all.
        details = NOTHING if kind == "opened" or line.details is None else mapping(line.details)
        if kind == "claimed":
            self._find(self._seats.claimed(run, details))
        elif kind == "parked" or (kind == "returned" and details.get(PARKED)):
            if not details.get(ATTACHED):
                self._seats.parked(run)
        elif kind in {"ended", "returned"} or (kind == "swept" and details.get("next") in NEXT):
            self._seats.freed(run)
        elif kind == "opened" and self._later is not None and self._later.is_asked(line):
            self._find(self._later.read(line))
        if run is not None:
            self._runs.read(line, run, details)

    def settle(self) -> None:
        """Look at the runs that have ended since."""
        self._find(self._runs.settle())

    def end(self) -> None:
        """Look at what is left."""
        self._find(self._runs.end())

    def _find(self, found: Iterator[Finding]) -> None:
        if len(self.found) < FINDINGS_MOST:
            self.found.extend(found)
