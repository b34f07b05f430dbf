"""A place whose config names a scripted agent, and what the tests of agents by real servers share."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from process_scene import Place, wait_for

SCRIPTED = Path(__file__).parents[1] / "agents" / "acp_agent.py"


class Agents:
    """A place whose config names one scripted agent."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.script = place.home / "script.json"
        self.witness = place.home / "agent-witness"
        self.config = place.home / ".config" / "duly" / "config.toml"
        self.config.parent.mkdir(parents=True)
        command = json.dumps([sys.executable, "-S", str(SCRIPTED), str(self.script), str(self.witness)])
        self.config.write_text(
            f'[agents.scripted]\nkind = "acp"\ncommand = {command}\nenv = {{ KEY = "${{TOKEN}}" }}\n'
            '[secrets]\nTOKEN = "very-secret-word"\n'
        )

    def writes(self, *turns: Sequence[dict[str, Any]], **more: Any) -> None:
        self.script.write_text(json.dumps({"turns": list(turns), **more}))

    def add(self, *words: str, name: str = "ask", prompt: str = "Do it.") -> None:
        self.place.duly("add", name, "--when", "manual", "--agent", "scripted", "--prompt", prompt, *words)

    def seen(self, what: str) -> list[dict[str, Any]]:
        if not self.witness.exists():
            return []
        lines: list[dict[str, Any]] = [json.loads(line) for line in self.witness.read_text().splitlines()]
        return [line for line in lines if line["what"] == what]

    def ledger(self, run: str) -> list[str]:
        return [row[0] for row in self.place.rows("SELECT kind FROM ledger WHERE run = ? ORDER BY seq", run)]


def say(text: str) -> dict[str, Any]:
    return {"do": "say", "text": text}


def wait_for_turn(agents: Agents, turns: int = 1) -> dict[str, Any]:
    """Wait until the agent was prompted so often, and give what it wrote of the last prompt."""
    return dict(wait_for(lambda: (seen := agents.seen("prompt"))[turns - 1 :] and seen[turns - 1]))
