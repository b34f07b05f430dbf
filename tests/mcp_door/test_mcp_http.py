"""The door for agents inside of the interface, asked in this process: who is let in, and who is not."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

import databases
from by_hand import dump_of
from duly import clock
from duly.app.agents_web import with_door
from duly.definitions import read_definition
from duly.operations import tasks, tokens
from duly.store import Store
from duly.store.pool import Pool
from duly.web.frame import COOKIE, House
from duly.web.making import make_app
from duly.web.reach import Reach

URL = "http://127.0.0.1:7433"
ASK = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


class Outside:
    """The interface over a store, and who asks at its door for agents."""

    def __init__(self, client: TestClient, store: Store) -> None:
        self.client = client
        self.store = store
        self.names = 0

    def token(self, *rights: str, projects: tuple[str, ...] = ()) -> str:
        self.names += 1
        return tokens.create(self.store, f"t{self.names}", rights=rights, projects=projects, by="ann").secret

    def post(self, told: object, secret: str | None, **headers: str) -> Any:
        given = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        return self.client.post("/mcp/", content=json.dumps(told), headers={**ASK, **given, **headers})

    def call(self, tool: str, secret: str, **given: Any) -> Any:
        """Call a tool as clients of the older protocol do, of which each request stands by itself."""
        told = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": tool, "arguments": given}}
        answered = self.post(told, secret, **{"MCP-Protocol-Version": "2025-06-18"})
        assert answered.status_code == 200, answered.text
        return answered.json()["result"]


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    folder = tmp_path_factory.mktemp("outside")
    environ = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    store = Store.open(databases.unmade(folder), environ, create=True)
    for name in ("here", "shop/there"):
        project, _, last = name.rpartition("/")
        wanted = {"name": last, "project": project or "default", "triggers": ["daily 09:00"], "zone": "UTC"}
        action = {"kind": "command", "argv": ["true"], "cwd": str(folder)}
        read = read_definition({**wanted, "action": action}, now=clock.now(), default_zone=None)
        tasks.add(store, read.definition, by="ann", source={"kind": "cli"})
    pool = Pool(store)
    house = House(pool=pool, tell=lambda *_: None, reach=Reach(), environ=environ)
    try:
        with TestClient(make_app(with_door(house)), base_url=URL, follow_redirects=False) as client:
            yield Outside(client, store)
    finally:
        pool.close()
        store.close()


def test_who_has_no_token_or_a_wrong_or_revoked_one_is_not_let_in_and_hears_nothing(outside: Outside) -> None:
    gone = outside.token("read")
    tokens.revoke(outside.store, f"t{outside.names}", by="ann")
    before = dump_of(outside.store.address)
    for secret in (None, "duly_tok_nobody_x", gone):
        no = outside.post(HELLO, secret)
        assert no.status_code == 401, secret
        assert "here" not in no.text
        assert no.headers["www-authenticate"].startswith("Bearer")
    assert outside.client.get("/mcp/").status_code == 401
    assert dump_of(outside.store.address) == before


def test_a_browser_that_is_logged_in_is_not_let_in_by_its_cookie(outside: Outside) -> None:
    made = tokens.log_in(outside.store, tokens.begin_login(outside.store, by="ann").secret)
    assert made is not None
    cookie = f"{COOKIE}={made.secret}"
    assert outside.client.get("/api/v1/status", headers={"Cookie": cookie}).status_code == 200
    assert outside.post(HELLO, None, Cookie=cookie, Origin=URL).status_code == 401


def test_a_foreign_host_or_page_is_not_let_in_even_with_a_token(outside: Outside) -> None:
    secret = outside.token("read")
    assert outside.post(HELLO, secret, Host="evil.example").status_code == 421
    assert outside.post(HELLO, secret, Origin="https://evil.example").status_code == 403
    assert outside.post(HELLO, secret).json()["result"]["serverInfo"]["name"] == "duly"


def test_a_tool_is_used_by_the_rights_and_in_the_projects_of_the_token(outside: Outside) -> None:
    seen = outside.call("schedule_list", outside.token("read", projects=("shop",)))
    assert [one["name"] for one in seen["structuredContent"]["items"]] == ["shop/there"]
    other = outside.call("schedule_get", outside.token("read", projects=("shop",)), task="here")
    weaker = outside.call("run_now", outside.token("read"), task="here")
    for no in (other, weaker):
        assert (no["isError"], no["structuredContent"]["reason"]) == (True, "not_allowed")
    assert not outside.call("schedule_pause", outside.token("admin"), task="here", note="x").get("isError")


def test_bodies_of_any_shape_are_answered_and_never_as_a_fault_of_ours(outside: Outside) -> None:
    secret = outside.token("read")
    for body in ("", "{", "[]", "null", '"x"', "[" * 5_000, '{"jsonrpc": "2.0"}', "\\u0000", '{"a": 1e999}'):
        answered = outside.client.post("/mcp/", content=body, headers={**ASK, "Authorization": f"Bearer {secret}"})
        assert 400 <= answered.status_code < 500, (body[:20], answered.status_code)
    calls: list[tuple[str, dict[str, Any]]] = [("nothing", {}), ("schedule_get", {"task": 5})]
    for tool, given in [*calls, ("schedule_get", {"task": "\0"})]:
        assert outside.call(tool, secret, **given)["isError"], tool
