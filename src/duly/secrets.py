"""The secrets of this host: named in the config, resolved only when an attempt starts, and masked wherever we write.

`[secrets]` of the config holds NAME = "value", { file = "PATH" } or { env = "VARIABLE" }; a name that is not there is
looked for in the environment. What was resolved once is known here and nowhere else.
"""

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path

from duly.core.agent_config import SECRET
from duly.core.reading import shown

FILE_MOST = 64 * 1024
"""Bytes of a file that holds a secret."""
MASKED_LEAST = 4
"""Characters of the shortest secret that is masked: a shorter one would be found in any text."""
OURS = "DULY_"


class Missing(Exception):
    """A secret that cannot be had: its name, and why, without any of its value."""


class Secrets:
    """Resolves names and masks what was resolved; safe from any thread."""

    def __init__(self, named: Mapping[str, object] | None = None, environ: Mapping[str, str] | None = None) -> None:
        self._named = dict(named or {})
        self._environ = os.environ if environ is None else environ
        self._known: dict[str, str] = {}
        self._lock = threading.Lock()

    def fill(self, text: str) -> str:
        """Give a variable's value: the secret that it names where it is `${NAME}` and nothing else, or Missing."""
        found = SECRET.fullmatch(text)
        return text if found is None else self.value(found[1])

    def value(self, name: str) -> str:
        """Resolve a secret anew, so that one which was changed counts from the next attempt on."""
        value = self._of_config(name, self._named[name]) if name in self._named else self._of_environment(name)
        if len(value) >= MASKED_LEAST:
            with self._lock:
                self._known[value] = name
                self._known[json.dumps(value)[1:-1]] = name  # as it stands inside a message
        return value

    def mask(self, text: str) -> str:
        """Give a text with each secret that was resolved so far replaced by its name."""
        with self._lock:
            known = sorted(self._known.items(), key=lambda one: -len(one[0]))
        for value, name in known:
            if value in text:
                text = text.replace(value, f"${{{name}}}")
        return text

    def longest(self) -> int:
        """How many characters the longest secret has that was resolved so far."""
        with self._lock:
            return max((len(value) for value in self._known), default=0)

    def _of_environment(self, name: str) -> str:
        if name.startswith(OURS) or name not in self._environ:
            raise Missing(f"the secret {name} is neither in [secrets] of the config nor in the environment")
        return self._environ[name]

    def _of_config(self, name: str, given: object) -> str:
        if isinstance(given, str):
            return given
        if isinstance(given, Mapping) and len(given) == 1:
            [(how, place)] = given.items()
            if how == "env" and isinstance(place, str):
                if place not in self._environ:
                    raise Missing(f"the secret {name} is to be in the variable {place}, which is not set here")
                return self._environ[place]
            if how == "file" and isinstance(place, str):
                return _of_file(name, Path(place).expanduser())
        raise Missing(
            f"the secret {name} is neither a text nor {{ file }} nor {{ env }} but {shown(type(given).__name__)}"
        )


def _of_file(name: str, path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(FILE_MOST + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no file's name"
        raise Missing(f"the secret {name} is to be in {path}, which cannot be read: {why}") from None
    if len(data) > FILE_MOST:
        raise Missing(f"the secret {name} is to be in {path}, which is larger than {FILE_MOST:,} bytes")
    try:
        return data.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise Missing(f"the secret {name} is to be in {path}, which is not UTF-8") from None
