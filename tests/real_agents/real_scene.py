"""What the tests of real agents share: where the real OpenCode is, and surroundings in which it reaches nobody."""

import json
import os
import platform
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fake_model import FakeModel

HERE = Path(__file__).parent
BINARY = HERE / "node_modules" / "opencode-linux-x64" / "bin" / "opencode"
FITS = sys.platform == "linux" and platform.machine() == "x86_64"
NOWHERE = "http://127.0.0.1:9/"
VARIABLES = ("PATH", "LANG", "LC_ALL", "TMPDIR")
"""What real agents see of our own environment."""


def real_opencode() -> Path:
    """Give the program; skips where it cannot be had, and fails where it only was not installed."""
    if BINARY.exists():
        return BINARY
    if not FITS:
        pytest.skip("the real OpenCode of these tests is for Linux on x86-64")
    if shutil.which("npm") is None:
        pytest.skip("npm is not here, by which `make test` installs the real OpenCode")
    pytest.fail("the real OpenCode is not installed, and npm is here: run `make agents`", pytrace=False)


def scrub(patch: pytest.MonkeyPatch) -> None:
    """Leave of our own environment what a program needs to run at all."""
    for name in list(os.environ):
        if name not in VARIABLES and not name.startswith("PYTEST"):
            patch.delenv(name)


def settings(model: FakeModel, **more: Any) -> dict[str, Any]:
    """Give OpenCode's own settings: one model, of ours; nothing is shared, fetched or brought up to date."""
    one = {
        "name": "Fake One",
        "tool_call": True,
        "limit": {"context": 32000, "output": 4096},
        "cost": {"input": 1.0, "output": 2.0},
        "variants": {"high": {"reasoningEffort": "high"}},
    }
    return {
        "autoupdate": False,
        "share": "disabled",
        "model": "fake/fake-1",
        "small_model": "fake/fake-1",
        "enabled_providers": ["fake"],
        "provider": {
            "fake": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "Fake",
                "options": {"baseURL": model.url, "apiKey": "not-a-key"},
                "models": {"fake-1": one},
            }
        },
        "permission": {"bash": "ask", "edit": "ask", "webfetch": "deny"},
        **more,
    }


def surroundings(home: Path, settings: Mapping[str, Any]) -> dict[str, str]:
    """Give the variables with which OpenCode lives in this folder and asks nobody outside of this machine."""
    home.mkdir(exist_ok=True)
    return {
        "HOME": str(home),
        "OPENCODE_CONFIG_CONTENT": json.dumps(settings),
        "OPENCODE_DB": str(home / "opencode.db"),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "npm_config_offline": "true",
        "npm_config_registry": NOWHERE,
    }
