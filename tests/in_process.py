"""The command line called in the process of a test: what a person types costs half a second as a process of its own."""

import contextlib
import io
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from duly.cli.frame import run

# fmt: off
ASKS = frozenset({
    "accept", "add", "answer", "backfill", "budget", "cancel", "decline", "default", "disable", "emit", "enable",
    "holders", "ledger", "limit", "list", "log", "missed", "next", "outages", "pause", "project", "questions",
    "retry", "run", "runs", "show", "skip", "source", "status", "token", "unpause", "verify", "why",
})
# fmt: on
"""Commands that ask, or write a few rows, and are over."""
WAITS = frozenset({"--wait", "-f", "--follow"})


def can_call(words: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether a call may be made here: it is over at once, and its Python would be this one with these modules."""
    typed = words[: words.index("--")] if "--" in words else words
    python = {name: value for name, value in env.items() if name.startswith("PYTHON") and value}
    return (
        bool(words)
        and words[0] in ASKS
        and not WAITS & set(typed)
        and python == {name: os.environ[name] for name in python if name in os.environ}
        and threading.current_thread() is threading.main_thread()
    )


def call(words: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Call the command line here, as if it were a process in this environment and this folder."""
    out, err = _stream(), _stream()
    with _as_if(env, cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words)
    return subprocess.CompletedProcess(list(words), code, _text(out), _text(err))


@contextlib.contextmanager
def _as_if(env: Mapping[str, str], cwd: Path) -> Iterator[None]:
    kept, folder = dict(os.environ), Path.cwd()
    try:
        _put(env)
        os.chdir(cwd)
        yield
    finally:
        os.chdir(folder)
        _put(kept)


def _put(env: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(env)


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    raw = stream.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode(errors="surrogateescape")
