"""What the tests of the real OpenCode server share: one server for a module, its model, and attempts at it."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
from fake_model import FakeModel, Step
from real_scene import real_opencode, settings, surroundings

from duly.core.agent_config import Agent
from duly.ports import Assignment, NothingToResume, Outcome, Resumption
from duly.runners import logs, processes
from duly.runners.agents import Agents, Prompted
from duly.runners.nurseries import Nursery
from duly.runners.opencode import servers
from duly.runners.opencode.servers import Server
from duly.runners.turn_file import Left, read
from duly.secrets import Secrets

WITHIN_S = 90.0


class OpenCodeScene:
    """One holder's agents, of which `opencode` is the real one, started at the first need."""

    def __init__(self, folder: Path, model: FakeModel, **more: Any) -> None:
        self.folder = folder
        self.model = model
        self.work = folder / "work"
        self.work.mkdir()
        self.nursery = Nursery()
        self.secrets = Secrets({"TOKEN": "very-secret-word"}, {})
        self.env = surroundings(folder / "home", settings(model, **more))
        self.agent = Agent(name="opencode", kind="opencode", command=(str(real_opencode()), "serve"), env=self.env)
        self.agents = Agents(known={"opencode": self.agent}, secrets=self.secrets)
        self.told: list[Mapping[str, object]] = []
        self.runs = 0
        self.last: Assignment | None = None

    def runner(self) -> Prompted:
        """Make the runner of one attempt."""
        runner = Prompted(self.nursery, self.agents)
        runner.on_told = self.told.append
        return runner

    def assign(self, prompt: str, **changes: Any) -> Assignment:
        """Make an assignment in a folder of its own."""
        self.runs += 1
        action: dict[str, Any] = {"kind": "agent", "agent": "opencode", "prompt": prompt, "cwd": str(self.work)}
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
            "zone": "Europe/Berlin",
            "opened_by": "schedule",
            "action": action | changes.pop("action", {}),
            "input": None,
            "timeout": timedelta(seconds=90),
            "idle_timeout": timedelta(seconds=60),
            "folder": self.folder / "attempts" / f"{run}.3",
        }
        self.last = Assignment(**(told | changes))
        return self.last

    def perform(self, *steps: Step, name: str | None = None, **changes: Any) -> Outcome:
        """Perform one attempt to its end, in which the model answers by these steps."""
        name = name or f"{self.folder.name} {self.runs + 1}"
        self.name = name
        assignment = self.assign(self.model.writes(name, *steps) if steps else f"[[{name}]]", **changes)
        outcome = self.runner().perform(assignment, None)
        assert isinstance(outcome, Outcome)
        return outcome

    def resume(self, session: str, *, prompted: bool = True, name: str | None = None) -> Outcome | NothingToResume:
        """Perform an attempt that goes on in this session; the model goes on with the script of the last."""
        resumes = Resumption(session=session, prompted=prompted, why="interrupted")
        done = self.runner().perform(self.assign(f"[[{name or self.name}]]", attempt=2, resumes=resumes), None)
        assert isinstance(done, Outcome | NothingToResume)
        return done

    @contextmanager
    def performing(self, *steps: Step, **changes: Any) -> Iterator[tuple[Prompted, "Future[Any]"]]:
        """Perform one attempt in a thread; what still runs in the end is cancelled."""
        self.name = f"{self.folder.name} {self.runs + 1}"
        runner, assignment = self.runner(), self.assign(self.model.writes(self.name, *steps), **changes)
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(runner.perform, assignment, None)
            try:
                yield runner, future
            finally:
                runner.stop("kill")
                self.model.frees(self.name)

    @property
    def calls(self) -> int:
        """How often the model was asked in the last attempt."""
        return len(self.model.calls(self.name))

    @property
    def log(self) -> str:
        """What the log of the last attempt says."""
        assert self.last is not None
        return logs.read(self.last.folder, most=10_000_000).data.decode()

    @property
    def left(self) -> Left:
        """What the last attempt left of its turn."""
        assert self.last is not None
        found = read(self.last.folder)
        assert found is not None
        return found

    @property
    def server(self) -> Server:
        """The server that is there."""
        found = servers._read(Path(self.env["OPENCODE_DB"] + servers.SUFFIX))
        assert found is not None
        return found[0]

    def ask(self, method: str, path: str, **body: Any) -> Any:
        """Ask the server by ourselves."""
        server = self.server
        answer = httpx2.request(
            method,
            f"{server.url}{path}",
            params={"directory": str(self.work)},
            auth=("opencode", server.password or ""),
            json=body or None,
            timeout=20,
            trust_env=False,
        )
        return json.loads(answer.text) if answer.text else None

    def session(self, outcome: Outcome) -> dict[str, Any]:
        """Give the session of an attempt as the server has it."""
        found: dict[str, Any] = self.ask("GET", f"/session/{outcome.agent['session']}")
        return found

    def until(self, condition: Callable[[], object]) -> None:
        """Wait for a condition."""
        end = time.monotonic() + WITHIN_S
        while not condition():
            assert time.monotonic() < end, "it did not come true in time"
            time.sleep(0.02)

    def close(self) -> None:
        """Leave the server, and end the loop in which it was spoken to."""
        self.agents.servers.close()
        self.agents.streams.close()
        self.nursery.close()


def lives(pid: int) -> bool:
    """Say whether the process is there and no zombie."""
    found = processes.read(pid)
    return found is not None and found.state not in processes.DEAD


def pid_of(server: Server) -> int:
    """Give the number of a server's own process."""
    port = server.url.rpartition(":")[2]
    for one in processes.table().values():
        line = Path(f"/proc/{one.pid}/cmdline")
        if (
            one.state not in processes.DEAD
            and line.exists()
            and line.read_bytes().split(b"\0")[-2:-1] == [port.encode()]
        ) and b"serving.py" not in line.read_bytes():
            return one.pid
    raise AssertionError("there is no server")
