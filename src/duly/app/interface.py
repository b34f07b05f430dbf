"""The HTTP interface inside `serve`: its address, its thread, and how others on this host find it."""

import asyncio
import contextlib
import ipaddress
import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from duly.app.entry import Entry, most_inside
from duly.core.reading import shown
from duly.errors import Invalid, StoreAway
from duly.operations.serving import holders_alive
from duly.store import Store
from duly.store.pool import Pool

if TYPE_CHECKING:
    from duly.holder.holder import Holder, Tell
    from duly.web.frame import House

FOLDER = "web"
"""Where in the run folder each holder that has an interface says how it is reached."""
BACKLOG = 128
ENDS_WITHIN_S = 2
"""For so long what is being answered may go on at a stop; streams are cut then."""
JOIN_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where the interface listens: by TLS where there is a certificate, outside of this machine only if so wished."""

    host: str
    port: int
    chosen: bool
    """A person named the port: then it is an error that somebody else has it."""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    without_tls: bool = False
    public_url: str | None = None


@contextmanager
def served(
    store: Store, listening: Listening | None, tell: "Tell", *, holder: "Holder", environ: Mapping[str, str]
) -> Iterator[str | None]:
    """Answer by HTTP while inside, at the URL that is given; None where there is no interface.

    Invalid where the address cannot be listened on; where it is the usual one and somebody else has it, there is no
    interface, and that is told.
    """
    bound = None if listening is None else _bound(listening, tell)
    if listening is None or bound is None:
        yield None
        return
    interface = Interface(store, listening, bound, tell, holder=holder, environ=environ)
    try:
        interface.start()
        with _known(store.run_folder, holder.id, listening.public_url or interface.url):
            yield interface.url
    finally:
        interface.stop()


def urls(run_folder: Path) -> list[str]:
    """Give the URLs of the interfaces on this host that serve the store of a run folder, as browsers reach them."""
    found = []
    for holder in sorted(holders_alive(run_folder)):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            told = json.loads((run_folder / FOLDER / holder).read_text(encoding="utf-8"))
            found.append(str(told["url"]))
    return found


class Interface:
    """uvicorn in a thread of its own, without signals of its own and without a word to the log of others."""

    def __init__(
        self,
        store: Store,
        listening: Listening,
        bound: socket.socket,
        tell: "Tell",
        *,
        holder: "Holder",
        environ: Mapping[str, str],
    ) -> None:
        self._listening = listening
        self._socket = bound
        self._tell = tell
        self._holder = holder
        self._environ = environ
        self._pool = Pool(store)
        self._closing = threading.Event()
        self._server: Any = None
        self._thread = threading.Thread(target=self._run, name="web", daemon=True)
        host = listening.host
        address = "127.0.0.1" if host in {"0.0.0.0", ""} else "[::1]" if host == "::" else host
        shown = f"[{address}]" if ":" in address and not address.startswith("[") else address
        scheme = "http" if listening.tls_cert is None else "https"
        self.url = f"{scheme}://{shown}:{bound.getsockname()[1]}"

    def start(self) -> None:
        """Begin to answer; what comes before the thread is ready waits for it."""
        self._thread.start()

    def stop(self) -> None:
        """Answer no more, and give everything back."""
        self._closing.set()
        if self._server is not None:
            self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(JOIN_WITHIN_S)
        self._socket.close()
        self._pool.close()

    def _run(self) -> None:
        try:
            import uvicorn

            from duly.web.connections import Connection
            from duly.web.making import make_app

            config = uvicorn.Config(
                make_app(self._house()),
                http=Connection,
                ws="none",
                loop="asyncio",
                lifespan="on",
                log_config=None,
                log_level="critical",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=BACKLOG,
                timeout_graceful_shutdown=ENDS_WITHIN_S,
                ssl_certfile=self._listening.tls_cert,
                ssl_keyfile=self._listening.tls_key,
            )
            self._server = uvicorn.Server(config)
            if not self._closing.is_set():
                asyncio.run(self._server.serve(sockets=[self._socket]))
        except BaseException as fault:  # noqa: BLE001 - the interface ends, and what is served goes on without it
            from duly.operations import reports

            path = None
            with contextlib.suppress(OSError):
                path = str(reports.write(fault, "the interface", self._environ))
            self._tell("web ended", {"kind": type(fault).__name__, "report": path})
        finally:
            self._socket.close()  # who asks now is refused, and does not wait for an answer that never comes

    def _house(self) -> "House":
        from duly.app import loops
        from duly.app.agents_web import with_door
        from duly.holder import pulse
        from duly.web.frame import House
        from duly.web.reach import Reach

        house = House(
            pool=self._pool,
            tell=self._tell,
            reach=Reach(
                host=self._listening.host,
                port=self._socket.getsockname()[1],
                tls=self._listening.tls_cert is not None,
                public_url=self._listening.public_url,
            ),
            environ=self._environ,
            switch=loops.switch,
            holder=self._holder.id,
            closing=self._closing,
            trouble=lambda: pulse.trouble(self._holder),
        )
        return with_door(house)


def check(listening: Listening) -> None:
    """Refuse (Invalid) to listen where others could read along, unless that was said to be wished."""
    if (listening.tls_cert is None) != (listening.tls_key is None):
        raise Invalid(
            "a certificate and its key go together", field="--tls-cert", hint="--tls-cert FILE --tls-key FILE"
        )
    for path in (listening.tls_cert, listening.tls_key):
        if path is not None and not path.is_file():
            raise Invalid(f"there is no file {path}", field="--tls-cert" if path == listening.tls_cert else "--tls-key")
    _check_tls(listening.tls_cert, listening.tls_key)
    _check_public_url(listening.public_url)
    if listening.tls_cert is None and not listening.without_tls and not _is_loopback(listening.host):
        raise Invalid(
            f"{listening.host} is reached from other machines, and without TLS everybody on the way reads the tokens",
            field="--host",
            hint="--tls-cert FILE --tls-key FILE, or --listen-without-tls where something in front of it has TLS",
        )


def _check_tls(cert: Path | None, key: Path | None) -> None:
    """Refuse what TLS cannot be spoken with; a key with a passphrase too, which nobody is here to type."""
    if cert is None or key is None:
        return
    import ssl

    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(cert, key, password="")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Invalid(
            f"{cert} and {key} cannot be used for TLS: {why}",
            field="--tls-cert",
            hint="PEM files that this user may read; the key without a passphrase, and of this certificate",
        ) from error


def _check_public_url(url: str | None) -> None:
    if url is None:
        return
    try:
        parts = urlsplit(url)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise Invalid(f"{shown(url)} is no URL", field="public_url", hint="such as https://duly.example.org")


def _is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address; a name must mean nothing else."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return bool(host) and all(ipaddress.ip_address(str(one[4][0]).partition("%")[0]).is_loopback for one in found)


def _bound(listening: Listening, tell: "Tell") -> socket.socket | None:
    check(listening)
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            listening.host, listening.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = Entry(family, kind, proto, most=most_inside())
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no name of a host"
        raise Invalid(f"{shown(listening.host)} is no address of this machine: {why}", field="--host") from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        if not listening.chosen:
            tell("no web", {"host": listening.host, "port": listening.port, "why": error.strerror})
            return None
        raise Invalid(
            f"port {listening.port} of {listening.host} cannot be listened on: {error.strerror}",
            field="--port",
            hint="another --port, or --no-web",
        ) from error
    return bound


@contextmanager
def _known(run_folder: Path, holder: str, url: str) -> Iterator[None]:
    """Say in the run folder how the interface is reached, while inside; what the dead said is cleared away."""
    folder = run_folder / FOLDER
    path = folder / holder
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        alive = holders_alive(run_folder)
        for one in folder.iterdir():
            if one.name not in alive:
                one.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(json.dumps({"url": url}))
    except OSError as error:
        raise StoreAway(f"the run folder {run_folder} cannot be used: {error.strerror}") from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
