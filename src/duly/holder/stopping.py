"""Work that was asked to end and has not yet: the run says since when, and what is overdue is asked.

A command ends within its grace. A function in a thread of this process cannot be ended: its run stays running, keeps
seat and lease, and shows `stopping_since` until it returns.
"""

from datetime import timedelta

from duly import clock as machine
from duly.core import lifecycle
from duly.holder.holdings import Holding, Holdings
from duly.store import Store

NOTED_AFTER_S = 1.0
"""What ends sooner is not worth a write."""


class Stopping:
    """Looks at what this process holds; in the writer's thread."""

    def __init__(self, store: Store, holdings: Holdings) -> None:
        self._store = store
        self._holdings = holdings

    def step(self) -> None:
        """Ask what is overdue to end, and note on its run since when work has been asked."""
        for holding in self._holdings.all():
            if holding.done:
                continue
            asked_s = holding.asked_s
            if asked_s is None:
                if getattr(holding.runner, "overdue", False):
                    holding.stop("term", "timeout")
                continue
            ago_s = machine.monotonic_s() - asked_s
            if ago_s >= NOTED_AFTER_S and not holding.asked_noted:
                self._note(holding, timedelta(seconds=ago_s))
                holding.asked_noted = True

    def unended(self) -> bool:
        """Something works in a thread of this process, where nobody can end it and nobody else can take it over."""
        return any(not holding.kept and not holding.done for holding in self._holdings.all())

    def _note(self, holding: Holding, ago: timedelta) -> None:
        with self._store.write() as session:
            run = session.runs.by_id(holding.run.id)
            if run is None or run.claim_token != holding.run.claim_token or run.state != "held":
                return
            if run.stopping_since is None:
                session.runs.move([lifecycle.stopping(run, now=session.now - ago)])
