"""What whoever asks may not do to those who ask beside it, to the process that serves, or after its right has ended."""

import asyncio
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request
from web_scene import API, Web, web_over

from duly.operations import tokens
from duly.operations.askers import Asker
from duly.store.address import Address
from duly.store.pool import Pool
from duly.web import frame, guards, streams
from duly.web.pace import Pace
from duly.web.reach import Reach

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """One interface for all tests here, with one connection to the store at a time."""
    with web_over(tmp_path_factory.mktemp("web"), room=asyncio.Semaphore(1)) as made:
        assert made.ask("PUT", "/sources/orders", json={"token": "HOOK"}).status_code == 200
        yield made


def asked(path: str, **headers: str) -> dict[str, Any]:
    """A request to post JSON, whose body is still to come."""
    given = {"host": "127.0.0.1:7433", "content-type": "application/json", **headers}
    return {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": API + path,
        "raw_path": (API + path).encode(),
        "query_string": b"",
        "headers": [(name.encode(), text.encode()) for name, text in given.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 7433),
    }


@contextmanager
def sending_slowly(web: Web, scope: dict[str, Any]) -> Iterator[Any]:
    """Somebody whose request is waited for: its headers are there, and of its body nothing comes."""
    waits = threading.Event()

    async def never() -> MutableMapping[str, Any]:
        waits.set()
        await asyncio.Event().wait()
        raise AssertionError("it never comes")

    async def send(message: MutableMapping[str, Any]) -> None:
        """Nobody reads what it is answered."""

    app: Any = web.client.app
    assert web.client.portal is not None
    slow = web.client.portal.start_task_soon(app, scope, never, send)
    try:
        assert waits.wait(PATIENCE_S)
        yield slow
    finally:
        slow.cancel()


def test_who_sends_a_body_slowly_takes_no_connection_to_the_store_from_others(web: Web) -> None:
    for scope in (asked("/events/orders"), asked("/tokens", authorization=f"Bearer {web.secret()}")):
        with sending_slowly(web, scope) as slow:
            assert web.ask("GET", "/status").status_code == 200
            assert not slow.done(), "it was answered while the other was still waited for"


@pytest.mark.parametrize("given", [{}, {"authorization": "Bearer wrong"}])
def test_who_shows_nothing_is_refused_before_a_body_is_read(web: Web, given: dict[str, str]) -> None:
    sent: list[MutableMapping[str, Any]] = []

    async def unread() -> MutableMapping[str, Any]:
        raise AssertionError("nobody reads it")

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    app: Any = web.client.app
    assert web.client.portal is not None
    web.client.portal.call(app, asked("/events/nobody", **given), unread, send)
    assert sent[0]["status"] == 401


def test_a_body_that_comes_in_small_pieces_for_ever_is_waited_for_no_longer(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards, "BODY_WHOLE_WITHIN_S", 0)
    sent: list[MutableMapping[str, Any]] = []

    async def piece() -> MutableMapping[str, Any]:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b" ", "more_body": True}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    app: Any = web.client.app
    assert web.client.portal is not None
    web.client.portal.call(app, asked("/tokens", authorization=f"Bearer {web.secret()}"), piece, send)
    assert sent[0]["status"] == 408


def test_a_stream_ends_with_its_token_however_many_wrong_ones_come_from_its_address(web: Web) -> None:
    made = tokens.create(web.store, "reader", rights=["read"], projects=[], by="ann")
    house = replace(web.house, pace=Pace(failed=(0, 1e-9), asked=(0, 1e-9)))
    ask = frame.Ask(asker=Asker(name="reader", rights=frozenset({"read"})), store=web.store, house=house)
    still = streams.still_allowed(ask, Request(asked("/stream", authorization=f"Bearer {made.secret}")))
    assert still(web.store), "to be looked at again is no request of its own"
    tokens.revoke(web.store, "reader", by="ann")
    assert not still(web.store)


def test_a_sender_is_told_nothing_of_a_config_that_cannot_be_read(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    environ: Any = web.house.environ
    config = web.folder / "zanzibar.toml"
    config.write_text("[secrets\n")
    monkeypatch.setitem(environ, "DULY_CONFIG", str(config))
    refused = web.client.post(f"{API}/events/orders", headers={"Duly-Token": "x"}, content=b"{}")
    assert (refused.status_code, refused.json()["reason"]) == (403, "not_allowed")
    assert not any(word in refused.text for word in ("zanzibar", "TOML", "config"))
    assert "secrets of sources cannot be looked up" in [event for event, _ in web.told]


@pytest.mark.file("vanished")
def test_a_store_whose_file_is_gone_is_read_no_more_until_it_is_back(web: Web) -> None:
    assert web.ask("GET", "/status").status_code == 200
    place = web.store.address
    assert isinstance(place, Address)
    aside = place.path.with_name("aside")
    place.path.rename(aside)
    for _ in range(2):
        away = web.ask("GET", "/status")
        assert (away.status_code, away.json()["reason"]) == (503, "store_away")
    aside.rename(place.path)
    assert web.ask("GET", "/status").status_code == 200


def test_after_a_connection_failed_none_of_those_kept_is_lent_again(web: Web) -> None:
    pool = Pool(web.store)
    kept, failed = pool.take(), pool.take()
    pool.give(kept)
    pool.give(failed, sound=False)
    fresh = pool.take()
    assert fresh is not kept
    pool.give(fresh)
    assert pool.take() is fresh
    fresh.close()


def test_a_connection_that_a_thread_may_be_at_work_with_is_not_closed_at_a_stop(web: Web) -> None:
    """SQLite ends the whole process when a connection is closed while a statement runs on it in another thread."""
    house = replace(web.house, pool=Pool(web.store), room=asyncio.Semaphore(1))

    async def cut() -> Any:
        async with frame.lent(house) as store:
            lent.append(store)
            raise asyncio.CancelledError

    lent: list[Any] = []
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cut())
    with lent[0].read() as session:
        assert session.ledger.last() >= 0
    lent[0].close()


@pytest.mark.parametrize("secret", ["duly_tok_\0_x", "duly_tok_a\x7fb_x", "duly_tok_é_x", "x" * 300])
def test_what_cannot_be_a_secret_is_not_even_looked_for(secret: str) -> None:
    def by_id(_: str) -> None:
        raise AssertionError("a database may take its characters amiss")

    session: Any = SimpleNamespace(tokens=SimpleNamespace(by_id=by_id))
    assert tokens.asker_of(session, secret) is None


def test_this_machine_is_never_told_to_be_asked_by_tls_alone() -> None:
    """A browser would do so for a year, with all that answers there at any port."""
    reach = Reach(tls=True, host="0.0.0.0")
    assert [reach.keeps_to_tls(host) for host in ("duly.example:7433", "localhost:7433", "127.0.0.1", "[::1]", "")] == [
        True,
        False,
        False,
        False,
        False,
    ]


def test_the_own_page_is_known_where_the_url_names_a_port_that_goes_without_saying() -> None:
    for url, origin in (("https://duly.example:443", "https://duly.example"), ("http://a.b:80/", "http://a.b")):
        Reach(public_url=url).check_origin([origin], "127.0.0.1:7433")
