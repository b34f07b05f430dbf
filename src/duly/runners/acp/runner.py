"""One attempt of a prompt by the Agent Client Protocol: process, conversation, judgement, confirmed end."""

import importlib
import threading
from collections.abc import Callable, Mapping
from typing import Literal

from duly.core.agent_config import Agent
from duly.core.questions import Answered, Asked
from duly.ports import Assignment, Came, Outcome
from duly.runners import command, prompting, turn_file
from duly.runners.acp.conversation import Conversation
from duly.runners.agent_process import Process
from duly.runners.bound import Use
from duly.runners.nurseries import Forbidden, NotStarted, Nursery
from duly.runners.prompting import not_begun
from duly.runners.streams import Streams
from duly.secrets import Secrets


class Acp:
    """Performs one attempt; `stop` may come before, during and after `perform`, from any thread."""

    def __init__(self, nursery: Nursery, secrets: Secrets, streams: Streams) -> None:
        self._nursery = nursery
        self._secrets = secrets
        self._streams = streams
        self._lock = threading.Lock()
        self._wish: Literal["term", "kill"] | None = None
        self._conversation: Conversation | None = None
        self._process: Process | None = None

    def perform(
        self,
        agent: Agent,
        assignment: Assignment,
        use: Use | None,
        on_told: Callable[[Mapping[str, object]], None],
        on_asked: Callable[[Asked], None],
    ) -> Came:
        """Prompt the agent, and come back when its turn is judged and its process has ended."""
        importlib.import_module("acp.connection")  # here, so that nobody waits for it in the loop of all
        prepared = prompting.prepared(agent, assignment, self._secrets, use)
        if isinstance(prepared, Outcome):
            return prompting.masked(prepared, self._secrets)
        talk, given = prepared
        env = command.as_utf8(prompting.around() | given | command.told(assignment))
        process = Process(self._nursery, assignment)
        if not self._begins(process):
            return not_begun("cancelled_by_hand", "it was cancelled before it began", word="cancelled")
        pipes = process.start(agent.command, talk.cwd, env)
        if isinstance(pipes, Forbidden):
            return not_begun("fence_lost", "the attempt was taken away before it began", word="abandoned")
        if isinstance(pipes, NotStarted):
            return not_begun("preflight", pipes.why)
        conversation = Conversation(
            pipes,
            talk,
            keep=lambda left: turn_file.write(assignment.folder, left),
            on_told=on_told,
            on_asked=on_asked,
            mask=self._secrets.mask,
            longest=self._secrets.longest,
        )
        self._speaks(conversation)
        heeded = self._streams.run(conversation.run()).result()
        return prompting.finished(assignment, process, heeded, self._secrets)

    def answer(self, given: Answered) -> None:
        """Pass on an answer to the agent that waits for it."""
        with self._lock:
            conversation = self._conversation
        if conversation is not None:
            self._streams.call(lambda: conversation.answer(given))

    def stop(self, how: Literal["term", "kill"]) -> None:
        """Ask the agent to end its turn; or end its process, at once."""
        with self._lock:
            self._wish = "kill" if "kill" in (how, self._wish) else how
            conversation, process = self._conversation, self._process
        if conversation is not None:
            self._streams.call(lambda: conversation.end("cancel"))
        if how == "kill" and process is not None:
            process.kill()

    def _begins(self, process: Process) -> bool:
        """Whether nobody wished for the end before there was anything to end."""
        with self._lock:
            self._process = process
            return self._wish is None

    def _speaks(self, conversation: Conversation) -> None:
        with self._lock:
            self._conversation = conversation
            if self._wish is not None:
                conversation.end("cancel")
