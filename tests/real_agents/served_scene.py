"""A place whose config names a real OpenCode with our model, served by `duly serve`."""

import json
import sys
from pathlib import Path
from typing import Any

import httpx2
from fake_model import FakeModel, Step
from real_scene import real_opencode, settings, surroundings

sys.path.append(str(Path(__file__).parents[1] / "processes"))
from process_scene import Place, wait_for

from duly.runners.opencode import servers

__all__ = ["Served", "wait_for"]


class Served:
    """A place whose config names the real OpenCode with our model, and one task that prompts it."""

    def __init__(self, home: Path, model: FakeModel, kind: str = "opencode", word: str = "serve") -> None:
        self.place = Place(home)
        self.model = model
        self.name = home.name
        env = surroundings(home / "opencode", settings(model))
        self.record = Path(env["OPENCODE_DB"])
        config = home / ".config" / "duly" / "config.toml"
        config.parent.mkdir(parents=True)
        lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in env.items())
        command = json.dumps([str(real_opencode()), word])
        config.write_text(f'[agents.opencode]\nkind = "{kind}"\ncommand = {command}\n[agents.opencode.env]\n{lines}\n')

    def begins(self, *words: str, steps: tuple[Step, ...]) -> str:
        """Add the task and run it; gives the run."""
        prompt = self.model.writes(self.name, *steps)
        place = self.place
        place.duly("add", "ask", "--when", "manual", "--agent", "opencode", "--prompt", prompt, *words)
        run: str = place.json("run", "ask")["id"]
        return run

    @property
    def calls(self) -> int:
        """How often the model was asked."""
        return len(self.model.calls(self.name))

    def server(self) -> servers.Server:
        """The server that has been started for this place."""
        found = servers._read(Path(f"{self.record}{servers.SUFFIX}"))
        assert found is not None
        return found[0]

    def under_way(self) -> dict[str, Any]:
        """The sessions whose turns the server has not ended."""
        server = self.server()
        asked = {"directory": str(self.place.home)}
        auth = ("opencode", server.password or "")
        answer = httpx2.get(f"{server.url}/session/status", params=asked, auth=auth, timeout=20, trust_env=False)
        found: dict[str, Any] = json.loads(answer.text)
        return found
