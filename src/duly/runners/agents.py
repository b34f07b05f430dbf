"""The runner for agents: finds the one that an action names among those of this host, and talks to it in its protocol.

What can be known beforehand is said before anything is started: an agent that this host does not name, a model that
it does not list, a secret or a folder that is missing, a prompt that cannot be read.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from duly.core.agent_config import Agent
from duly.core.questions import Answered, Asked
from duly.core.reasons import Refusal
from duly.errors import Invalid
from duly.ports import Assignment, Busy, Came, Detached, How, NothingToResume, Outcome, Parked
from duly.runners import bound, worktrees
from duly.runners.nurseries import Nursery
from duly.runners.opencode.servers import Servers
from duly.runners.prompting import not_begun
from duly.runners.streams import Streams
from duly.runners.webhook.reach import Reach
from duly.secrets import Secrets

Facts = Mapping[str, object]
TAKEN_AWAY = frozenset({"lease_lost", "fence_lost"})
"""Ends after which somebody else may go on with the attempt."""
OF_OPENCODE = ("profile", "variant", "archive", "goal")
"""Fields of an action that mean something to this kind of agent alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agents:
    """The agents of this host, what resolves their secrets, the loop in which all are spoken to, and their servers."""

    known: Mapping[str, Agent] = field(default_factory=dict)
    faults: Mapping[str, Invalid] = field(default_factory=dict)
    """Those that cannot be used as the config has them, and why."""
    secrets: Secrets = field(default_factory=Secrets)
    streams: Streams = field(default_factory=Streams)
    servers: Servers = field(default_factory=Servers)
    reach: Reach = field(default_factory=Reach)
    """How far this host lets webhooks go."""


class Prompted:
    """Performs one attempt of a prompt. `stop` may come before, during and after `perform`, from any thread."""

    attended = True
    """Its work needs its holder: what is left of it when that is gone is ended, and never adopted."""

    def __init__(self, nursery: Nursery, agents: Agents) -> None:
        from duly.runners.acp.runner import Acp
        from duly.runners.opencode.runner import OpenCode

        self._agents = agents
        self._wish: How | None = None
        self._acp = Acp(nursery, agents.secrets, agents.streams)
        self._opencode = OpenCode(nursery, agents.secrets, agents.streams, agents.servers)
        self.on_told: Callable[[Facts], None] = lambda _facts: None
        self.on_asked: Callable[[Asked], None] = lambda _asked: None

    def check(self, action: Mapping[str, object]) -> Refusal | None:
        """Say what is known beforehand to be wrong; starts nothing."""
        fault = self._fault(action)
        return None if fault is None else Refusal(reason="runner_unavailable", sentence=fault)

    def perform(self, assignment: Assignment, checkpoint: Mapping[str, object] | None) -> Came | Detached:
        """Prompt the agent and stay until its turn and its process have ended."""
        assert checkpoint is None, "what needs its holder is never adopted"
        fault = self._fault(assignment.action)
        if fault is not None:
            return not_begun("preflight", fault)
        session = bound.bound(assignment)
        if session is None:
            return _apart(assignment, self._performed(assignment, None))
        assignment = bound.begun(assignment)
        with bound.Use(assignment, session, lambda: self._wish) as use:
            refused = bound.taken(use, assignment)
            return self._performed(assignment, use) if refused is None else refused

    def _performed(self, assignment: Assignment, use: bound.Use | None) -> Came:
        agent = self._agents.known[str(assignment.action["agent"])]
        if agent.kind == "opencode":
            return self._opencode.perform(agent, assignment, use, self.on_told)
        return self._acp.perform(agent, assignment, use, self.on_told, self.on_asked)

    def answer(self, given: Answered) -> None:
        """Pass on the answer to what the work has asked."""
        self._acp.answer(given)

    def stop(self, how: How) -> None:
        """Ask for the end; what cannot be handed over is ended where it is to be let go."""
        self._wish = "detach" if self._wish == "detach" else how
        for one in (self._acp, self._opencode):
            one.stop("kill" if how == "kill" else "term")

    def _fault(self, action: Mapping[str, object]) -> str | None:
        return fault_of(action, self._agents.known, self._agents.faults)


def _apart(assignment: Assignment, outcome: Came) -> Came:
    """Leave the worktree of an attempt of which nothing lives, and tell of one that stays."""
    if isinstance(outcome, Parked | Busy) or not assignment.action.get("worktree"):
        return outcome
    if isinstance(outcome, Outcome) and (not outcome.confirmed or outcome.reason in TAKEN_AWAY):
        return outcome
    stays = worktrees.leave(assignment)
    if stays is None or isinstance(outcome, NothingToResume):
        return outcome
    return replace(outcome, details={**outcome.details, "worktree": str(stays.path), "branch": stays.branch})


def fault_of(action: Mapping[str, object], known: Mapping[str, Agent], faults: Mapping[str, Invalid]) -> str | None:
    """Say why an action cannot be performed with these agents; None where nothing is known against it."""
    name, model = str(action.get("agent")), action.get("model")
    if name in faults:
        return f"the agent {name} cannot be used: {faults[name].field}: {faults[name].message}"
    agent = known.get(name)
    if agent is None:
        there = f"; there are {', '.join(sorted(known))}" if known else ""
        return f"the config of this host names no agent {name}: it wants a section [agents.{name}]{there}"
    if model is not None and agent.models and model not in agent.models:
        return f"the agent {name} has no model {model} here; its models are {', '.join(agent.models)}"
    asked = [one for one in OF_OPENCODE if action.get(one) is not None]
    if agent.kind == "acp" and asked:
        return f"the agent {name} is spoken to by ACP, which has no {asked[0]}; an agent of kind opencode has"
    return None
