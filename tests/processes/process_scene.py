"""Real `duly` processes on a real file, with a witness that the work writes itself."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import databases
import in_process
from by_hand import rows_on_server
from duly.clock import monotonic_s, pause
from duly.store.address import Address, ServerAddress, state_folder

WITHIN_S = 120.0
LEASE = "20s" if databases.ON_SERVER else "8s"
"""On a server work outlives its holder only until its keeper's deadline, which shall not come before the next holder
has started on a machine that has much else to do."""


def wait_for(what: Callable[[], Any], within_s: float = WITHIN_S) -> Any:
    """Ask again and again until the answer is true, and give it; fails when it never is."""
    until = monotonic_s() + within_s
    while not (found := what()):
        assert monotonic_s() < until, "it did not come true in time"
        pause(0.02)
    return found


class Place:
    """A home, a store and the processes a test starts on it; all of them are ended with it."""

    def __init__(self, home: Path, address: ServerAddress | None = None) -> None:
        self.home = home
        home.mkdir(exist_ok=True)
        if address is None and not databases.ON_SERVER:
            self.address: Address | ServerAddress = Address(path=home / "duly.db")
        else:
            self.address = address or databases.empty(home)
        self.store: Any = self.address.path if isinstance(self.address, Address) else self.address.url
        """What `--store` is given: the path of the file, or the URL of the database."""
        self.witness = home / "witness"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "DULY_SERVE_WEB": "no",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }
        self.served: list[subprocess.Popen[str]] = []
        self.ids: dict[int, str] = {}

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run any program to its end, in this home."""
        done = subprocess.run(
            words, env=self.env, cwd=self.home, capture_output=True, text=True, timeout=120, check=False
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def duly(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Type a command, and expect it to succeed; one that only asks is called in this process."""
        given = ("--store", str(self.store), *words)
        here = in_process.can_call(words, self.env)
        done = (
            in_process.call(given, env=self.env, cwd=self.home)
            if here
            else self.call(sys.executable, "-m", "duly", *given)
        )
        if check:
            assert done.returncode == 0, (words, done.returncode, done.stdout, done.stderr)
        return done

    def json(self, *words: str) -> Any:
        return json.loads(self.duly(*words, "--json").stdout)

    def serve(self, *flags: str, beat: str = "1s", lease: str = LEASE, drain: str = "2s") -> subprocess.Popen[str]:
        """Start a server and return when it is ready to claim."""
        words = ["serve", "--beat", beat, "--lease", lease, "--drain", drain, *flags]
        return self.program(sys.executable, "-m", "duly", "--store", str(self.store), *words)

    def program(self, *words: str) -> subprocess.Popen[str]:
        """Start any program that serves this store, and return when it is ready to claim."""
        with (self.home / f"serve-{len(self.served)}.err").open("w") as errors:
            process = subprocess.Popen(
                words,
                env=self.env,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.served.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(f"duly: serving {self.address} as hld_"), (line, self.errors())
        self.ids[process.pid] = line.split()[4]
        return process

    @property
    def run_folder(self) -> Path:
        """Where holders' locks and attempts of the store lie on this host; only once the store is made."""
        if isinstance(self.address, Address):
            return self.address.run_folder
        [(store,)] = self.rows("SELECT value FROM meta WHERE key = 'store_id'")
        return state_folder(self.env) / "run" / str(store)

    def id_of(self, process: subprocess.Popen[str]) -> str:
        """The holder's id of a server."""
        return self.ids[process.pid]

    def errors(self) -> str:
        return "\n".join(path.read_text() for path in sorted(self.home.glob("serve-*.err")))

    def rows(self, query: str, *given: object) -> list[tuple[Any, ...]]:
        if not isinstance(self.address, Address):
            return rows_on_server(self.address, query, *given)
        connection = sqlite3.connect(f"{self.store.as_uri()}?mode=ro", uri=True, timeout=30)
        try:
            return connection.execute(query, given).fetchall()
        finally:
            connection.close()

    def write(self, statement: str, *given: object) -> None:
        """Change rows by hand, as nothing of Duly would."""
        if not isinstance(self.address, Address):
            rows_on_server(self.address, statement, *given)
            return
        with contextlib.closing(sqlite3.connect(self.store, timeout=30)) as connection, connection:
            connection.execute(statement, given)

    def freeze(self, process: subprocess.Popen[str]) -> None:
        """Stop a server outside of any write: one that holds a file's only writer is ended by whoever is blocked."""

        def frozen() -> bool:
            os.kill(process.pid, signal.SIGSTOP)
            if not isinstance(self.address, Address) or self._may_write():
                return True
            os.kill(process.pid, signal.SIGCONT)
            return False

        wait_for(frozen)

    def _may_write(self) -> bool:
        with contextlib.closing(sqlite3.connect(self.store, timeout=0.5, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
            connection.execute("ROLLBACK")
            return True

    def ended(self) -> Any:
        """The first run that ends, as JSON has it; waits for it without a process a look."""
        wait_for(lambda: self.rows("SELECT 1 FROM runs WHERE state = 'ended'"))
        return next(one for one in self.json("runs")["items"] if one["state"] == "ended")

    def seen(self) -> list[list[str]]:
        """What the work wrote of itself, a line a start."""
        if not self.witness.exists():
            return []
        return [line.split() for line in self.witness.read_text().splitlines()]

    def close(self) -> None:
        for process in self.served:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        for pid in self.leftovers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def leftovers(self) -> list[int]:
        """Processes that still carry this home: what a test's work left behind."""
        found = []
        for path in Path("/proc").iterdir():
            if not path.name.isdecimal() or int(path.name) == os.getpid():
                continue
            try:
                environ = (path / "environ").read_bytes()
                state = (path / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if f"HOME={self.home}".encode() in environ.split(b"\0") and state not in "ZX":
                found.append(int(path.name))
        return found


def alive(pid: int) -> bool:
    """Whether a process lives; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
