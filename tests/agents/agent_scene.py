"""What the tests of agents share: a scripted agent, its witness, and attempts of prompts performed by themselves."""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from duly.core.agent_config import Agent
from duly.ports import Assignment, NothingToResume, Outcome, Resumption
from duly.runners import logs, processes
from duly.runners.agents import Agents, Prompted
from duly.runners.nurseries import Nursery
from duly.secrets import Secrets

SCRIPTED = Path(__file__).parent / "acp_agent.py"
WITHIN_S = 20.0
Step = Mapping[str, Any]


class Scene:
    """A folder with a script, a witness, and the agents and secrets of one holder."""

    def __init__(self, folder: Path, nursery: Nursery) -> None:
        self.folder = folder
        self.script = folder / "script.json"
        self.witness = folder / "witness"
        self.nursery = nursery
        self.secrets = Secrets({"TOKEN": "very-secret-word"}, {})
        self.env: dict[str, str] = {}
        self.models: tuple[str, ...] = ()
        self.command: tuple[str, ...] = (sys.executable, "-S", str(SCRIPTED), str(self.script), str(self.witness))
        self.told: list[Mapping[str, object]] = []
        self.runs = 0
        self.last: Assignment | None = None
        self.agents: Agents | None = None

    def writes(self, *turns: Sequence[Step], **more: Any) -> None:
        """Write the script: the steps of each turn, and what else the agent shall do."""
        self.script.write_text(json.dumps({"turns": [list(turn) for turn in turns], **more}))

    def runner(self) -> Prompted:
        """Make the runner of one attempt."""
        agent = Agent(name="scripted", command=self.command, env=self.env, models=self.models)
        if self.agents is None:
            self.agents = Agents(known={"scripted": agent}, secrets=self.secrets)
        runner = Prompted(self.nursery, self.agents)
        runner.on_told = self.told.append
        return runner

    def assign(self, prompt: str = "Do it.", **changes: Any) -> Assignment:
        """Make an assignment in a folder of its own."""
        self.runs += 1
        action: dict[str, Any] = {"kind": "agent", "agent": "scripted", "prompt": prompt, "cwd": str(self.folder)}
        action |= changes.pop("action", {})
        run = f"run_{self.folder.name[-12:]}{self.runs}"
        told: dict[str, Any] = {
            "run": run,
            "attempt": 1,
            "fence": 3,
            "holder": "hld_first",
            "task": "tsk_one",
            "task_name": "ask",
            "project": "house",
            "occurrence": "at:2026-12-01T08:00:00Z",
            "due_at": datetime(2026, 12, 1, 8, tzinfo=UTC),
            "opened_by": "schedule",
            "action": {name: value for name, value in action.items() if value is not None},
            "input": None,
            "timeout": timedelta(seconds=60),
            "idle_timeout": timedelta(seconds=60),
            "folder": self.folder / "attempts" / f"{run}.3",
        }
        self.last = Assignment(**(told | changes))
        return self.last

    def perform(self, prompt: str = "Do it.", **changes: Any) -> Outcome:
        """Perform one attempt to its end."""
        outcome = self.runner().perform(self.assign(prompt, **changes), None)
        assert isinstance(outcome, Outcome)
        return outcome

    def resuming(self, session: str, *, under_way: bool = True) -> Resumption:
        """Say where an attempt goes on."""
        return Resumption(session=session, prompted=under_way, why="interrupted")

    def resume(self, session: str, *, under_way: bool = True, **changes: Any) -> Outcome | NothingToResume:
        """Perform an attempt that goes on in a session."""
        resumes = self.resuming(session, under_way=under_way)
        done = self.runner().perform(self.assign("Do it.", attempt=2, resumes=resumes, **changes), None)
        assert isinstance(done, Outcome | NothingToResume)
        return done

    @contextmanager
    def performing(self, prompt: str = "Do it.", **changes: Any) -> Iterator[tuple[Prompted, "Future[Any]"]]:
        """Perform one attempt in a thread; what still runs in the end is killed."""
        runner = self.runner()
        runner.on_asked = changes.pop("on_asked", runner.on_asked)
        assignment = self.assign(prompt, **changes)
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(runner.perform, assignment, None)
            try:
                yield runner, future
            finally:
                runner.stop("kill")

    @property
    def log(self) -> str:
        """What the log of the last attempt says."""
        assert self.last is not None
        return logs.read(self.last.folder, most=10_000_000).data.decode()

    def seen(self, what: str) -> list[dict[str, Any]]:
        """Give what the agent wrote down of this kind."""
        if not self.witness.exists():
            return []
        lines: list[dict[str, Any]] = [json.loads(line) for line in self.witness.read_text().splitlines()]
        return [line for line in lines if line["what"] == what]

    def until(self, condition: Callable[[], object]) -> None:
        """Wait for a condition."""
        end = time.monotonic() + WITHIN_S
        while not condition():
            assert time.monotonic() < end, "it did not come true in time"
            time.sleep(0.01)

    def close(self) -> None:
        """End the loop in which agents were spoken to."""
        if self.agents is not None:
            self.agents.streams.close()
        assert not [one for one in threading.enumerate() if one.name == "agents"]


def say(text: str) -> Step:
    """The agent says this."""
    return {"do": "say", "text": text}


def lives(pid: int) -> bool:
    """Say whether the process is there and no zombie."""
    found = processes.read(pid)
    return found is not None and found.state not in processes.DEAD
