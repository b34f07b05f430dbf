"""Work that lives while a person is asked: its slot is somebody else's, and it gets the answer when it has one again.

Where nobody answers in time its work is denied, or asked to end, as its rules had it when it asked.
"""

from duly.core import questions
from duly.core.values import changed
from duly.holder.carrier import Carriers
from duly.holder.holdings import Holding, Holdings
from duly.holder.settling import UNANSWERED
from duly.store import Store


class Attending:
    """Looks at what this process holds; in the writer's thread."""

    def __init__(self, store: Store, holdings: Holdings, carriers: Carriers) -> None:
        self._store = store
        self._holdings = holdings
        self._carriers = carriers

    def step(self) -> None:
        """Pass on the answers that have come, as far as there are slots for work that goes on with them."""
        asking = [holding for holding in self._holdings.all() if holding.asking and not holding.done]
        if not asking:
            return
        with self._store.read() as session:
            found = session.questions.by_ids(id_ for holding in asking for id_ in holding.asking)
        for holding in asking:
            for id_ in list(holding.asking):
                one = found.get(id_)
                if one is not None and one.state != "open":
                    self._pass_on(holding, one)

    def _pass_on(self, holding: Holding, one: questions.Question) -> None:
        """Give the work its answer; what nobody has answered ends it."""
        if one.state == "expired":
            del holding.asking[one.id]
            holding.stop("term", UNANSWERED)
        elif self._carriers.step_back(holding):
            asked = holding.asking.pop(one.id)
            try:
                holding.runner.answer(changed(questions.given(one), asked=asked))  # type: ignore[attr-defined]
            except Exception:  # noqa: BLE001 - a runner's fault must not take its holder along
                holding.stop("term", "agent_error")
