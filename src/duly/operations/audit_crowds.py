"""What `verify` reads of limits: the counters count what is taken, and no claim saw more taken than was allowed."""

from collections import Counter
from collections.abc import Iterator, Mapping

from duly.core.run import Entry
from duly.operations.audit_fates import Finding
from duly.store import Session

FREES = frozenset({"ended", "returned"})


class Crowds:
    """The crowd that the ledger tells of, entry by entry: who holds what of each limit."""

    def __init__(self) -> None:
        self._live: dict[str, Mapping[str, int]] = {}
        self.found: list[Finding] = []

    def read(self, entry: Entry) -> None:
        """Take one more entry, in the order of the ledger."""
        if entry.run is None:
            return
        if entry.kind == "claimed":
            self._claimed(entry, entry.run)
        elif entry.kind in FREES or (entry.kind == "swept" and entry.details.get("next") == "retry"):
            self._live.pop(entry.run, None)

    def _claimed(self, entry: Entry, run: str) -> None:
        told = entry.details.get("limits")
        limits = told if isinstance(told, Mapping) else {}
        self._live[run] = {key: _number(figures, "weight") for key, figures in limits.items()}
        for key, figures in limits.items():
            used, most = _number(figures, "used"), _number(figures, "most")
            if used > most:
                self._find(entry, f"claimed with {used} of {key} taken, and {most} is allowed")
            taken = sum(weights.get(key, 0) for weights in self._live.values())
            if taken > used:
                self._find(entry, f"claimed with {taken} of {key} taken by what was live, and its claim tells {used}")

    def _find(self, entry: Entry, text: str) -> None:
        self.found.append(Finding(promise="P8", task=entry.task, run=entry.run, text=text))


def counters(session: Session) -> Iterator[Finding]:
    """P8: what each limit counts as taken is what live runs take of it, and not more than it allows."""
    taken: Counter[str] = Counter()
    for run in session.runs.live(most=1_000_000):
        taken.update(run.taken)
    limits = {limit.key: limit for limit in session.crowd.all()}
    for key in sorted(taken.keys() | limits.keys()):
        limit = limits.get(key)
        used = 0 if limit is None else limit.used
        if used != taken[key]:
            text = f"limit {key} counts {used} taken, and live runs take {taken[key]}"
            yield Finding(promise="P8", task=None, run=None, text=text)
        if limit is not None and taken[key] > limit.most:
            text = f"limit {key} allows {limit.most}, and live runs take {taken[key]}"
            yield Finding(promise="P8", task=None, run=None, text=text)


def _number(figures: object, name: str) -> int:
    value = figures.get(name) if isinstance(figures, Mapping) else None
    return value if isinstance(value, int) else 0
