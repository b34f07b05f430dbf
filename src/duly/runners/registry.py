"""Which runner performs which kind of action: the built-in ones first, then what is installed beside us."""

import threading
from collections.abc import Mapping
from importlib.metadata import entry_points

from duly.core.task import Gate
from duly.ports import Runner, RunnerFactory
from duly.runners.agents import Agents, Prompted
from duly.runners.call import Call
from duly.runners.command import Command
from duly.runners.faulty import Faulty
from duly.runners.gates import Asking
from duly.runners.nurseries import Nursery
from duly.runners.webhook.runner import Webhook

GROUP = "duly.runners"


class Registry:
    """One process's runners; it owns the nursery that all of them share. Safe from any thread."""

    def __init__(self, extra: Mapping[str, RunnerFactory] | None = None, agents: Agents | None = None) -> None:
        self.nursery = Nursery()
        self.agents = agents or Agents()
        self._lock = threading.Lock()
        self._at_once: dict[str, bool] = {}
        self._known: dict[str, RunnerFactory | None] = {
            "command": lambda: Command(self.nursery, secrets=self.agents.secrets),
            "call": lambda: Call(self.nursery, self.agents.secrets),
            "agent": lambda: Prompted(self.nursery, self.agents),
            "http": lambda: Webhook(self.agents.secrets, self.agents.streams, self.agents.reach),
            **(extra or {}),
        }

    def factory(self, kind: str) -> RunnerFactory | None:
        """Give what makes a runner for one attempt of this kind, or None for a kind nobody here can perform."""
        with self._lock:
            if kind not in self._known:
                self._known[kind] = _installed(kind)
            return self._known[kind]

    def make(self, kind: str) -> Runner | None:
        """Make a runner for one attempt: one that fails it and says why where that of its kind cannot be made.

        None for a kind nobody here can perform.
        """
        try:
            factory = self.factory(kind)
            return None if factory is None else factory()
        except Exception as error:  # noqa: BLE001 - what others wrote must not keep anybody else from their work
            return Faulty(error)

    def asking(self, gate: Gate) -> Asking:
        """Give what asks this gate for one attempt."""
        return Asking(self.nursery, gate)

    def kinds(self) -> list[str]:
        """Name the kinds that can be performed here, without loading what is installed beside us."""
        with self._lock:
            known = {kind for kind, factory in self._known.items() if factory is not None}
        return sorted(known | {point.name for point in entry_points(group=GROUP)})

    def starts_at_once(self, kind: str) -> bool:
        """Whether work of this kind needs nothing but this machine, as its runner says itself."""
        if kind not in self._at_once:
            self._at_once[kind] = bool(getattr(self.make(kind), "at_once", False))
        return self._at_once[kind]

    def close(self) -> None:
        """Hang up on the nursery; work that lives goes on under its keeper."""
        self.agents.servers.close()
        self.agents.streams.close()
        self.nursery.close()


def _installed(kind: str) -> RunnerFactory | None:
    for point in entry_points(group=GROUP, name=kind):
        loaded: RunnerFactory = point.load()
        return loaded
    return None
