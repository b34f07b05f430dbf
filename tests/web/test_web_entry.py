"""Connections to the interface: how many there may be, and what becomes of those that only stand there."""

import asyncio
import resource
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

import databases
from duly.app.entry import MOST, Entry, most_inside
from duly.app.interface import Interface, Listening, check
from duly.errors import Invalid
from duly.store import Store
from duly.web import connections

PATIENCE_S = 60.0
DATA = Path(__file__).parents[1] / "data"
CERT, KEY, LOCKED = (DATA / name for name in ("tls-cert.pem", "tls-key.pem", "tls-key-locked.pem"))


def entry(most: int) -> Entry:
    made = Entry(socket.AF_INET, socket.SOCK_STREAM, 0, most=most)
    made.bind(("127.0.0.1", 0))
    made.listen(8)
    return made


def coming(to: socket.socket) -> socket.socket:
    return socket.create_connection(to.getsockname(), PATIENCE_S)


def test_of_too_many_connections_the_newest_is_cut_until_one_leaves() -> None:
    with entry(2) as door, coming(door), coming(door), coming(door) as third:
        first, second = door.accept()[0], door.accept()[0]
        with pytest.raises(ConnectionAbortedError):
            door.accept()
        assert third.recv(1) == b""
        first.close()
        with coming(door), door.accept()[0]:
            second.close()


@pytest.mark.parametrize(
    ("files", "most"), [(1_024, 512), (256, 128), (1_000_000, MOST), (resource.RLIM_INFINITY, MOST)]
)
def test_connections_leave_runs_at_least_half_of_the_files_that_may_be_open(
    files: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duly.app.entry.resource.getrlimit", lambda _: (files, files))
    assert most_inside() == most


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "])
def test_a_connection_without_the_headers_of_a_request_is_cut(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADERS_WITHIN_S", 0)

    async def app(_scope: object, _receive: object, _send: object) -> None:
        raise AssertionError("there is no request")

    async def cut() -> bytes:
        config = Config(app, log_config=None, lifespan="off")
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: connections.Connection(config, ServerState(), {}, loop), "127.0.0.1", 0
        )
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(sent)
            try:
                return await asyncio.wait_for(reader.read(), PATIENCE_S)
            except ConnectionResetError:
                return b""
            finally:
                writer.close()

    assert asyncio.run(cut()) == b""


def test_where_the_interface_cannot_begin_its_port_is_given_back_and_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise RuntimeError("it cannot begin")

    monkeypatch.setattr("duly.web.making.make_app", broken)
    told: list[str] = []
    holder: Any = SimpleNamespace(id="hld_x")
    environ = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    store = Store.open(databases.unmade(tmp_path), environ, create=True)
    door = entry(2)
    place = door.getsockname()
    interface = Interface(
        store,
        Listening(host="127.0.0.1", port=place[1], chosen=True),
        door,
        lambda event, _: told.append(event),
        holder=holder,
        environ=environ,
    )
    try:
        interface.start()
        interface._thread.join(PATIENCE_S)
        assert told == ["web ended"]
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(place, PATIENCE_S)
    finally:
        interface.stop()
        store.close()


@pytest.mark.parametrize(("cert", "key"), [(KEY, KEY), (CERT, CERT), (CERT, LOCKED), (Path(__file__), KEY)])
def test_what_tls_cannot_be_spoken_with_is_refused_and_no_passphrase_is_asked_for(cert: Path, key: Path) -> None:
    with pytest.raises(Invalid, match="cannot be used for TLS"):
        check(Listening(host="127.0.0.1", port=0, chosen=True, tls_cert=cert, tls_key=key))


@pytest.mark.parametrize("url", ["duly.example", "ftp://duly.example", "https://", "https://[bad", "http://a:99999"])
def test_a_public_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(Invalid, match="is no URL"):
        check(Listening(host="127.0.0.1", port=0, chosen=True, public_url=url))


@pytest.mark.parametrize("host", ["a..b", "x" * 70])
def test_what_cannot_be_the_name_of_a_host_is_refused(host: str) -> None:
    from duly.app.interface import _bound

    with pytest.raises(Invalid, match="without TLS"):
        check(Listening(host=host, port=0, chosen=True))
    with pytest.raises(Invalid, match="no name of a host"):
        _bound(Listening(host=host, port=0, chosen=True, without_tls=True), lambda *_: None)
