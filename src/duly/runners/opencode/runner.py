"""One attempt of a prompt to an OpenCode server: the server, the turn and what watches over it, a confirmed end."""

import importlib
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from duly import clock, zones
from duly.core.action_fields import OBJECTIVE_MOST
from duly.core.agent_config import Agent
from duly.core.titles import title
from duly.ports import Assignment, Busy, Came, NothingToResume, Outcome, Parked
from duly.prompts import commands as slash
from duly.prompts import goals
from duly.prompts.goals import Goal
from duly.runners import command, processes, prompting, turn_file
from duly.runners.agent_process import Process
from duly.runners.bound import Use, patient, waited
from duly.runners.nurseries import Forbidden, NotStarted, Nursery
from duly.runners.opencode import closing, opening, servers, warden
from duly.runners.opencode.api import Away, Strange, Told
from duly.runners.opencode.opening import Wish
from duly.runners.opencode.servers import Server, Servers, Unready
from duly.runners.opencode.turn import Speaking
from duly.runners.prompt_texts import Unread, text_of
from duly.runners.prompting import not_begun
from duly.runners.streams import Streams
from duly.secrets import Missing, Secrets

SHELLS_WITHIN_S = 3.0
SHELLS_GRACE_S = 0.5
LOOK_EVERY_S = 0.05
BUSY_EVERY_S = 1.0


class OpenCode:
    """Performs one attempt; `stop` may come before, during and after `perform`, from any thread."""

    def __init__(self, nursery: Nursery, secrets: Secrets, streams: Streams, shared: Servers) -> None:
        self._nursery = nursery
        self._secrets = secrets
        self._streams = streams
        self._servers = shared
        self._lock = threading.Lock()
        self._wish: Literal["term", "kill"] | None = None
        self._speaking: Speaking | None = None

    def perform(
        self, agent: Agent, assignment: Assignment, use: Use | None, on_told: Callable[[Mapping[str, object]], None]
    ) -> Came:
        """Prompt the agent, and come back when its turn is judged and over."""
        importlib.import_module("httpx2")  # here, so that nobody waits for it in the loop of all
        prepared = prompting.prepared(agent, assignment, self._secrets, use)
        if isinstance(prepared, Outcome):
            return prompting.masked(prepared, self._secrets)
        talk, given = prepared
        try:
            server = self.lend(agent, given)
        except Unready as unready:
            return prompting.masked(
                not_begun("preflight", f"the agent {agent.name} cannot be used: {unready}"), self._secrets
            )
        alone = None
        try:
            outcome = self._at(server, assignment, talk, on_told)
        finally:
            alone = self._servers.give_back(server)
        if isinstance(outcome, NothingToResume | Busy):
            return outcome
        if isinstance(outcome, Parked):
            if alone:
                end_shells(server)
            return outcome
        return prompting.masked(self._cleared(server, outcome, alone=alone), self._secrets)

    def lend(self, agent: Agent, given: dict[str, str]) -> Server:
        """Give the server of an agent: one of this host, started where it is not there, or the one it names."""
        if agent.url is None:
            around = prompting.around() | given
            return self._servers.lend(self._nursery, agent.command, around, given)
        try:
            password = None if agent.password is None else self._secrets.fill(agent.password)
        except Missing as missing:
            raise Unready(str(missing)) from missing
        return Server(url=agent.url, password=password)

    def stop(self, how: Literal["term", "kill"]) -> None:
        """Ask the server to end the turn; it is told the same either way, as others may work there too."""
        with self._lock:
            self._wish = "kill" if "kill" in (how, self._wish) else how
            speaking = self._speaking
        if speaking is not None:
            self._streams.call(lambda: speaking.end("cancel"))

    def _at(
        self,
        server: Server,
        assignment: Assignment,
        talk: prompting.Talk,
        on_told: Callable[[Mapping[str, object]], None],
    ) -> Came:
        refused = self._waited(server, assignment, talk)
        if refused is not None:
            return refused
        try:
            if slash.call_of(talk.prompt) is not None:
                known = self._streams.run(closing.commands(server, talk.cwd)).result()
                talk = replace(talk, prompt=text_of(assignment, known).prompt)
        except (Away, Told, Strange, Unread) as error:
            return not_begun("preflight", f"the agent's commands cannot be read: {error}")
        wish = wish_of(assignment, talk.prompt)
        if wish.goal is not None:
            length = len(wish.goal.objective)
            if length > OBJECTIVE_MOST:
                told = f"its goal has {length:,} characters with all put into it, and {OBJECTIVE_MOST:,} are allowed"
                return not_begun("preflight", told)
            talk = replace(talk, prompt=goals.asked(wish.goal))
        process = Process(self._nursery, assignment)
        if self._wished():
            return not_begun("cancelled_by_hand", "it was cancelled before it began", word="cancelled")
        env = command.as_utf8(command.told(assignment))
        pipes = process.start((sys.executable, "-I", "-S", warden.__file__), talk.cwd, env)
        if isinstance(pipes, Forbidden):
            return not_begun("fence_lost", "the attempt was taken away before it began", word="abandoned")
        if isinstance(pipes, NotStarted):
            return not_begun("preflight", pipes.why)
        speaking = Speaking(
            server,
            pipes,
            talk,
            wish,
            keep=lambda left: turn_file.write(assignment.folder, left),
            on_told=on_told,
            clear=lambda: self._servers.is_alone(server) and end_shells(server),
            mask=self._secrets.mask,
            longest=self._secrets.longest,
        )
        with self._lock:
            self._speaking = speaking
            if self._wish is not None:
                speaking.end("cancel")
        heeded = self._streams.run(speaking.run()).result()
        gone = heeded.turn.end == "gone" and heeded.turn.ours is None and not servers.is_alive(server)
        heeded = replace(heeded, cut=gone and heeded.unfit is None and heeded.not_resumed is None)
        outcome = prompting.finished(assignment, process, heeded, self._secrets)
        if isinstance(outcome, NothingToResume | Parked):
            return outcome
        # The exit of what watches over the turn is ours, and says nothing about the agent.
        outcome = replace(outcome, exit_code=None, signal=None)
        session = heeded.left.session
        if outcome.word == "succeeded" and session is not None and assignment.action.get("archive") == "on_success":
            why = self._streams.run(closing.archive(server, talk.cwd, session)).result()
            outcome = replace(outcome, details={**outcome.details, "archived": why or True})
        return outcome if speaking.confirmed else replace(outcome, confirmed=False)

    def _waited(self, server: Server, assignment: Assignment, talk: prompting.Talk) -> Outcome | Busy | None:
        """See that nobody is at work in the session that is gone on in, a person neither; gives why it is not used."""
        resumes = talk.resumes
        if talk.use is None:
            return None
        of, session = talk.use.of, talk.use.of.session
        if resumes is not None and resumes.session is not None:
            if resumes.answer is None or resumes.session != session:
                return None
            of = patient(of)  # its own turn was ended before a person was asked

        def is_free() -> bool:
            return not self._streams.run(opening.is_busy(server, talk.cwd, session)).result()

        try:
            return waited(is_free, of, assignment, talk.use.wished, every_s=BUSY_EVERY_S)
        except (Away, Told, Strange) as error:
            told = f"whether its session is busy cannot be told: {error}"
            return replace(not_begun("agent_error", told), unseen=resumes is None or not resumes.prompted)
        except prompting.Unfit as unfit:
            return not_begun(unfit.reason, str(unfit))

    def _wished(self) -> bool:
        with self._lock:
            return self._wish is not None

    def _cleared(self, server: Server, outcome: Outcome, *, alone: bool) -> Outcome:
        """End what the turn left at a server of ours that nobody else uses, and the server if it does not obey."""
        if not alone:
            return outcome
        if not outcome.confirmed:
            self._servers.end(server)
            return replace(outcome, confirmed=not servers.is_alive(server))
        left = end_shells(server)
        names = sorted({one.name for one in left})
        details = {**outcome.details, "leftovers": names} if names else outcome.details
        return replace(outcome, details=details, confirmed=not servers.shells(server))


def end_shells(server: Server) -> list[processes.Process]:
    """End what tools left running at a server, TERM before KILL; gives what there was."""
    import signal

    first = servers.shells(server)
    if not first:
        return []
    began = clock.monotonic_s()
    processes.ask_to_end(first)
    while (found := servers.shells(server)) and clock.monotonic_s() < began + SHELLS_WITHIN_S:
        if clock.monotonic_s() > began + SHELLS_GRACE_S:
            for one in found:
                processes.send(one, signal.SIGKILL)
        clock.pause(LOOK_EVERY_S)
    return first


def wish_of(assignment: Assignment, prompt: str) -> Wish:
    """Give what the action asks of an OpenCode beside its prompt, and what its session shall tell of the run."""
    action = assignment.action
    profile, variant, goal = action.get("profile"), action.get("variant"), action.get("goal")
    due = None if assignment.due_at is None else assignment.due_at.astimezone(zones.zone(assignment.zone))
    return Wish(
        title=title(assignment.task_name, due),
        run=assignment.run,
        profile=profile if isinstance(profile, str) else None,
        variant=variant if isinstance(variant, str) else None,
        metadata={
            "task": assignment.task,
            "name": assignment.task_name,
            "run": assignment.run,
            "attempt": assignment.attempt,
            "occurrence": assignment.occurrence,
        },
        patience_s=0.0,
        goal=Goal(objective=prompt, tokens=int(goal["tokens"])) if isinstance(goal, Mapping) else None,
    )
