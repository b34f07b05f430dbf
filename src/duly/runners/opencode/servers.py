"""The OpenCode servers of this host: one for each database, started at the first need, and shared by all who use it.

Beside the database lies a folder with what is shared: a lock under which a server is started or ended, the file that
everybody holds who uses it, and where the server is. It ends when the last who used it leaves; and where that one was
killed, a while later by itself.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from duly import chance, clock
from duly.runners import command, folders, keeping, logs, nurseries, processes
from duly.runners.ask import Ask
from duly.runners.nurseries import Nursery, Started
from duly.runners.opencode import serving

READY = b"opencode server listening on "
READY_WITHIN_S = 60.0
LOCKED_WITHIN_S = 90.0
LOOK_EVERY_S = 0.05
TRIES = 3
AGAIN_AFTER_S = (0.5, 2.0)
"""How long to wait before a server that did not start is tried again."""
LINGER_S = 60.0
"""A server that nobody uses ends by itself after so long: who serves next after a crash may still find it."""
GRACE_S = 3.0
LISTENS_WITHIN_S = 2.0
ENDED_WITHIN_S = 10.0
HOLDER = "server"
SUFFIX = ".duly"


class Unready(Exception):
    """There is no server to be had; in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server as it is used: where it is, its password, and, where it is ours, the folder of its keeper."""

    url: str
    password: str | None
    kept: Path | None = None


class Servers:
    """This process's uses of servers; safe from any thread. `close` ends those that nobody else uses."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: dict[Path, int] = {}
        self._turns: dict[Path, int] = {}

    def lend(self, nursery: Nursery, argv: tuple[str, ...], env: Mapping[str, str], given: Mapping[str, str]) -> Server:
        """Give the server that this command and these variables make, started where it is not there; or Unready."""
        database = database_of(env)
        place = database.with_name(database.name + SUFFIX)
        mark = hashlib.sha256(json.dumps([argv, sorted(given.items())]).encode()).hexdigest()
        if shutil.which(argv[0], path=env.get("PATH")) is None:
            raise Unready(f"the program {argv[0]} was not found")
        with self._lock:
            try:
                place.mkdir(mode=0o700, parents=True, exist_ok=True)
                with _locked(place):
                    if place not in self._used:
                        self._used[place] = _shared(place)
                    server = self._found(place, mark) or _started(nursery, place, argv, env, mark)
            except OSError as error:
                raise Unready(f"its database {database} cannot be used: {error}") from error
            assert server.kept is not None
            self._turns[server.kept] = self._turns.get(server.kept, 0) + 1
            return server

    def give_back(self, server: Server) -> bool:
        """Let go of it after a turn; says whether nobody else uses it now, so that what works there is of that turn."""
        with self._lock:
            if server.kept is None:
                return False
            self._turns[server.kept] -= 1
            place = _place(server)
            with _locked(place):
                return self._turns[server.kept] == 0 and _alone(self._used[place])

    def is_alone(self, server: Server) -> bool:
        """Whether the one turn that uses it is the only one, here and in other processes."""
        with self._lock:
            if server.kept is None or self._turns.get(server.kept, 0) != 1:
                return False
            place = _place(server)
            with _locked(place):
                return _alone(self._used[place])

    def end(self, server: Server) -> None:
        """End a server of ours with all that works there; who uses it next has a new one."""
        if server.kept is not None:
            _end(server.kept)

    def close(self) -> None:
        """Let go of all, and end those that nobody else uses."""
        with self._lock:
            for place, descriptor in self._used.items():
                with contextlib.suppress(OSError, Unready), _locked(place):
                    if _alone(descriptor) and (found := _read(place)) is not None:
                        _end(found[0].kept)
                os.close(descriptor)
            self._used.clear()

    def _found(self, place: Path, mark: str) -> Server | None:
        """The server that is there, if it is the one that is wanted; another's is ended where nobody uses it."""
        found = _read(place)
        if found is None:
            return None
        server, its = found
        if not is_alive(server):
            return None
        if not _listens(server):
            _end(server.kept)  # it was killed this instant, and its keeper is about to end what it left
            return None
        if its == mark:
            return server
        if not _alone(self._used[place]) or self._turns.get(server.kept or place, 0):
            raise Unready(
                "its database is served by an OpenCode of another command or with other variables, which is in use;"
                " a database of its own is named by OPENCODE_DB in env"
            )
        _end(server.kept)
        return None


def database_of(env: Mapping[str, str]) -> Path:
    """Give the database that an OpenCode with these variables uses."""
    if given := env.get("OPENCODE_DB"):
        return Path(given).absolute()
    home = Path(env.get("HOME") or Path.home())
    return Path(env.get("XDG_DATA_HOME") or home / ".local" / "share").absolute() / "opencode" / "opencode.db"


def is_alive(server: Server) -> bool:
    """Whether its process lives, as far as its keeper knows; of one elsewhere that is not known."""
    return server.kept is None or isinstance(keeping.look(server.kept), keeping.KeeperAlive | keeping.KeeperStopped)


def last_words(server: Server) -> str:
    """Give the last line that a server of ours wrote."""
    lines = [] if server.kept is None else logs.tail(server.kept).decode("utf-8", "replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def shells(server: Server) -> list[processes.Process]:
    """Give what tools have started there: what is below its keeper, and not of the server's own session."""
    if server.kept is None:
        return []
    with folders.opened(server.kept) as descriptor:
        mark = None if descriptor is None else folders.read_mark(descriptor)
    if not mark or not isinstance(mark.get("keeper"), list | tuple):
        return []
    keeper = int(mark["keeper"][0])  # type: ignore[index]
    everybody = processes.table()
    return [one for one in processes.below([keeper], everybody) if one.session != keeper]


def _started(nursery: Nursery, place: Path, argv: tuple[str, ...], env: Mapping[str, str], mark: str) -> Server:
    """Start it, and wait until it says that it listens; what fails is tried again after a while."""
    said = ""
    for tried in range(TRIES):
        if tried:
            clock.pause(AGAIN_AFTER_S[tried - 1])
        shutil.rmtree(place / "attempts", ignore_errors=True)  # under the lock, and what was there has ended
        kept = place / "attempts" / f"srv_{chance.token_bytes(10).hex()}.1"
        folders.make_folder(kept)
        server = Server(url=f"http://127.0.0.1:{_free_port()}", password=chance.token_bytes(24).hex(), kept=kept)
        started = nursery.start(kept, _ask(place, server, argv, env))
        if not isinstance(started, Started):
            raise Unready(f"its server cannot be started: {getattr(started, 'why', 'its start was forbidden')}")
        try:
            if _is_ready(server):
                _write(place, server, mark)
                return server
        finally:
            if started.channel is not None:
                started.channel.close()
        _end(kept)
        said = last_words(server)
    raise Unready(f"its server did not start in {TRIES} tries" + (f"; its last line: {said}" if said else ""))


def _ask(place: Path, server: Server, argv: tuple[str, ...], env: Mapping[str, str]) -> Ask:
    assert server.kept is not None
    run, fence = folders.attempt_of(server.kept)
    own = {"DULY_RUN": run, "DULY_FENCE": str(fence), "OPENCODE_SERVER_PASSWORD": str(server.password)}
    port = server.url.rpartition(":")[2]
    above = [sys.executable, "-I", "-S", serving.__file__, str(place / "users"), f"{LINGER_S:g}"]
    return Ask(
        run=run,
        fence=fence,
        holder=HOLDER,
        argv=[*above, *argv, "--hostname", "127.0.0.1", "--port", port],
        cwd=str(place),
        env=command.as_utf8({**env, **own}),
        timeout_s=None,
        idle_s=None,
        leave=False,
        grace_s=GRACE_S,
        spoken=False,
        starter=nurseries.this_process(),
    )


def _is_ready(server: Server) -> bool:
    """Wait for its word; a request that came sooner would never be answered."""
    assert server.kept is not None
    until = clock.monotonic_s() + READY_WITHIN_S
    while clock.monotonic_s() < until:
        if READY in logs.read(server.kept).data:
            return True
        if not is_alive(server):
            return False
        clock.pause(LOOK_EVERY_S)
    return False


def _end(kept: Path | None) -> None:
    """End a server whole, and wait for that."""
    if kept is None:
        return
    run, fence = folders.attempt_of(kept)
    until = clock.monotonic_s() + ENDED_WITHIN_S
    keeping.send_end(kept, holder=HOLDER, fence=fence, how="term")
    while isinstance(keeping.look(kept), keeping.KeeperAlive | keeping.KeeperStopped):
        if clock.monotonic_s() > until:
            keeping.kill_keeper(kept)
            keeping.wait_swept(kept, within_s=GRACE_S)
            keeping.end_strays(kept, run)
            return
        clock.pause(LOOK_EVERY_S)


def _listens(server: Server) -> bool:
    try:
        socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), LISTENS_WITHIN_S).close()
    except OSError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _read(place: Path) -> tuple[Server, str] | None:
    with contextlib.suppress(OSError, ValueError), folders.opened(place) as descriptor:
        found = None if descriptor is None else processes.read_whole(descriptor, "server")
        if found is not None:
            kept = Path(str(found["kept"]))
            return Server(url=str(found["url"]), password=str(found["password"]), kept=kept), str(found["mark"])
    return None


def _write(place: Path, server: Server, mark: str) -> None:
    with folders.opened(place) as descriptor:
        assert descriptor is not None
        fields = {"url": server.url, "password": server.password, "kept": str(server.kept), "mark": mark}
        processes.write_whole(descriptor, "server", fields)


def _place(server: Server) -> Path:
    assert server.kept is not None
    return server.kept.parent.parent


def _shared(place: Path) -> int:
    """Hold a share of its use, until the descriptor is closed."""
    descriptor = os.open(place / "users", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def _alone(descriptor: int) -> bool:
    """Whether nobody else holds a share; ours stays. Under the lock of the place."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        # To ask for more lets go of what one had, where it is not given.
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        return False
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return True


@contextlib.contextmanager
def _locked(place: Path) -> Iterator[None]:
    """Hold the lock of a place, under which its server is started and ended."""
    descriptor = os.open(place / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        until = clock.monotonic_s() + LOCKED_WITHIN_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if clock.monotonic_s() > until:
                    raise Unready("another process has been starting its server for too long") from None
                clock.pause(LOOK_EVERY_S)
        yield
    finally:
        os.close(descriptor)
