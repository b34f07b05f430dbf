"""The skill file for agents: put where they look for it, stamped, and never over what others wrote."""

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

from duly import __version__
from duly.chance import token_bytes
from duly.errors import Invalid, Refused

NAME = "duly"
PLACES: Mapping[str, str] = {"shared": ".agents", "claude": ".claude", "opencode": ".opencode"}
"""Folders in which agents look for `skills/`, by the word for them."""
STAMP = re.compile(r'^  digest: "([0-9a-f]{64}|\{digest\})"$', re.MULTILINE)
MOST = 1024 * 1024
"""Bytes of a skill file that are read."""

State = Literal["missing", "current", "older", "changed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A skill file at its place: how it stands, and whether it was written just now."""

    path: Path
    state: State
    written: bool


def text() -> str:
    """Give the skill file of this version, with its stamp."""
    bare = (files("duly.app") / "SKILL.md").read_text(encoding="utf-8").replace("{version}", __version__)
    return bare.replace("{digest}", digest(bare))


def digest(found: str) -> str:
    """Give the stamp of a skill file, which its own stamp is no part of."""
    return hashlib.sha256(STAMP.sub('  digest: "{digest}"', found, count=1).encode()).hexdigest()


def look(folder: Path) -> Installed:
    """Say how the skill stands in a folder of skills: missing, as this version has it, older, or changed by others."""
    path = folder / NAME / "SKILL.md"
    try:
        with path.open("rb") as file:
            found = file.read(MOST).decode()
    except FileNotFoundError:
        return Installed(path=path, state="missing", written=False)
    except (OSError, UnicodeDecodeError):
        return Installed(path=path, state="changed", written=False)
    if found == text():
        return Installed(path=path, state="current", written=False)
    stamp = STAMP.search(found)
    ours = stamp is not None and stamp[1] == digest(found)
    return Installed(path=path, state="older" if ours else "changed", written=False)


def install(folder: Path, *, force: bool = False) -> Installed:
    """Write the skill where it is missing or older; refused `already_exists` where others changed it, unless forced."""
    found = look(folder)
    if found.state == "current":
        return found
    if found.state == "changed" and not force:
        raise Refused(
            "already_exists",
            f"{found.path} is not as Duly wrote it, and would be lost",
            details={"path": str(found.path)},
            hint="move it away, or --force",
        )
    aside = found.path.with_name(f".SKILL.md.{token_bytes(4).hex()}")
    try:
        found.path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(text(), encoding="utf-8")
        aside.replace(found.path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise Invalid(f"{found.path} cannot be written: {error.strerror}", field="--to") from error
    return Installed(path=found.path, state="current", written=True)


def folders(places: tuple[str, ...], *, here: bool, environ: Mapping[str, str] | None = None) -> list[Path]:
    """Give the folders of skills that are meant: in the home of this user, or in the folder where we were called."""
    environ = os.environ if environ is None else environ
    base = Path.cwd() if here else Path(environ.get("HOME") or Path.home())
    return [base / PLACES[place] / "skills" for place in places]
