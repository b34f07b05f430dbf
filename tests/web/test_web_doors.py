"""Every door of the interface is shut for whom it is not meant: no byte of what is there, and nothing is changed."""

import asyncio
import re
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from web_scene import API, Web, web_over

from duly.core.task import Definition
from duly.operations import tasks, tokens
from duly.operations.askers import RIGHTS
from duly.operations.projects import set_project
from duly.web import guards
from duly.web.bodies import BODY_MOST
from duly.web.login import FORM
from duly.web.making import inner
from duly.web.pace import Pace
from duly.web.reach import Reach

ROOT = Path(__file__).parents[2]
TESTS = [path for folder in ("web", "processes", "cli") for path in (ROOT / "tests" / folder).glob("test_*.py")]
MARK = "zanzibar"
"""What stands in the name, the project and the command of the only task: no refusal may say it."""
FOREIGN_HOSTS = (
    "evil.example",
    "127.0.0.1.evil.example",
    "localhost.evil.example:7433",
    "",
    "a b",
    "10.0.0.1",
    "[::2]",
)
FOREIGN_ORIGINS = (
    "https://evil.example",
    "null",
    "http://127.0.0.1:3000",
    "http://localhost",
    "https://127.0.0.1:7433",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """A route: how it is asked, and the right it wants."""

    method: str
    path: str
    right: str | None


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with web_over(tmp_path_factory.mktemp("shop")) as web:
        for project in (MARK, "other"):
            set_project(web.store, project, folder=None, clear=False, by="ann")
        action = {"kind": "command", "argv": (MARK,), "cwd": "/"}
        definition = Definition(name=MARK, project=MARK, enabled=True, triggers=(), action=action)
        tasks.add(web.store, definition, by="ann", source={"kind": "cli"})
        web.secret()
        for wanted in RIGHTS:
            web.secret(*(right for right in RIGHTS if right not in {wanted, "admin"}))
        web.secret(*RIGHTS, projects=("other",))
        yield web


KNOWN: list[Door] = []


def doors(web: Web) -> list[Door]:
    """All routes there are, with the task's name wherever a path has a place for something; looked at once."""
    if not KNOWN:
        KNOWN.extend(found_doors(web))
    return KNOWN


def some(web: Web, all_of_them: bool) -> list[Door]:
    """All routes, or one of each method where the others have been tried by another word already."""
    return doors(web) if all_of_them else list({door.method: door for door in doors(web)}.values())


def found_doors(web: Web) -> list[Door]:
    found = []
    for path, methods in inner(web.house).openapi()["paths"].items():
        for method, told in methods.items():
            wanted = [one["token"][0] for one in told.get("security", []) if one.get("token")]
            filled = "/".join(MARK if part.startswith("{") else part for part in path.split("/"))
            found.append(Door(method=method.upper(), path=filled, right=wanted[0] if wanted else None))
    return found


def ask(web: Web, door: Door, headers: Mapping[str, str]) -> Any:
    """Ask a door with a body that is not even JSON, which nobody without the right gets to be told."""
    body = b"{" if door.method in {"POST", "PUT", "PATCH"} else None
    return web.client.request(door.method, door.path, content=body, headers=headers)


def test_every_route_says_which_right_it_needs_but_the_few_that_are_open(shop: Web) -> None:
    open_doors = {door.path for door in doors(shop) if door.right is None}
    assert open_doors <= {"/login", "/healthz", "/readyz", f"{API}/events/{MARK}"}
    assert len(doors(shop)) > 5


def test_without_a_token_or_with_a_wrong_one_every_route_is_shut(shop: Web) -> None:
    revoked = tokens.create(shop.store, "revoked", rights=RIGHTS, projects=[], by="ann")
    tokens.revoke(shop.store, "revoked", by="ann")
    wrong = shop.secret()[:-1] + ("a" if shop.secret()[-1] != "a" else "b")
    before = shop.dump()
    for door in doors(shop):
        if door.right is None:
            continue
        for headers in ({}, *({"Authorization": f"Bearer {one}"} for one in (wrong, revoked.secret))):
            answered = ask(shop, door, headers)
            assert (answered.status_code, MARK in answered.text) == (401, False), (door, answered.text)
    assert shop.dump() == before


def test_with_every_right_but_the_one_it_needs_a_route_is_shut(shop: Web) -> None:
    before = shop.dump()
    for door in doors(shop):
        if door.right is None:
            continue
        others = [right for right in RIGHTS if right not in {door.right, "admin"}]
        answered = ask(shop, door, shop.as_(*others))
        assert (answered.status_code, MARK in answered.text) == (403, False), (door, answered.text)
    assert shop.dump() == before


def test_a_token_of_another_project_is_told_nothing_of_a_task_wherever_it_asks(shop: Web) -> None:
    before = shop.dump()
    asked = [door for door in doors(shop) if door.right is not None and door.method == "GET"]
    asked += [door for door in doors(shop) if door.right is not None and MARK in door.path and door.method != "GET"]
    for door in asked:
        if door.path == f"{API}/events/{MARK}" or door.path.endswith("/stream"):
            continue  # a source of events is nobody's, and a stream goes on for as long as one listens
        answered = shop.client.request(
            door.method, door.path, headers=shop.as_(*RIGHTS, projects=("other",)) | {"If-Match": '"v1"'}
        )
        told = answered.text.replace(f'"word":"{MARK}"', "").replace(f'\\"{MARK}\\"', "")
        assert MARK not in told, (door, answered.text)
        if MARK in door.path:
            assert answered.status_code in {401, 403, 404, 405, 422, 428}, (door, answered.text)
    assert shop.dump() == before


def test_a_task_of_another_project_is_refused_and_not_shown(shop: Web) -> None:
    answered = shop.client.get(f"{API}/tasks/{MARK}", headers=shop.as_(*RIGHTS, projects=("other",)))
    assert (answered.status_code, MARK in answered.text) == (403, False)
    listed = shop.client.get(f"{API}/tasks", headers=shop.as_(*RIGHTS, projects=("other",)))
    assert (listed.status_code, listed.json()["items"]) == (200, [])


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_a_request_for_another_host_is_refused_whoever_asks(shop: Web, host: str) -> None:
    before = shop.dump()
    for door in (*some(shop, host == FOREIGN_HOSTS[0]), Door(method="GET", path="/docs", right=None)):
        answered = ask(shop, door, shop.as_() | {"Host": host})
        assert (answered.status_code, MARK in answered.text) == (421, False), (door, answered.text)
    assert shop.dump() == before


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
def test_a_page_of_another_origin_is_refused_whatever_it_brings(shop: Web, origin: str) -> None:
    before = shop.dump()
    for door in some(shop, origin == FOREIGN_ORIGINS[0]):
        answered = ask(shop, door, shop.as_() | {"Origin": origin})
        assert (answered.status_code, MARK in answered.text) == (403, False), (door, answered.text)
        assert "access-control-allow-origin" not in answered.headers
    assert shop.dump() == before


@pytest.mark.parametrize("host", ["127.0.0.1:7433", "localhost:7433", "LOCALHOST", "[::1]:7433", "127.0.0.1:9000"])
def test_the_names_of_this_machine_are_answered_at_any_port(shop: Web, host: str) -> None:
    answered = shop.client.get(f"{API}/status", headers=shop.as_() | {"Host": host, "Origin": f"http://{host}"})
    assert answered.status_code == 200


def test_behind_a_proxy_its_name_is_answered_and_an_outside_address_by_its_number(tmp_path: Path) -> None:
    reach = Reach(host="0.0.0.0", public_url="https://duly.example")
    with web_over(tmp_path, reach=reach) as web:
        for host, status in (("duly.example", 200), ("10.0.0.7:7433", 200), ("evil.example", 421)):
            assert web.client.get(f"{API}/status", headers=web.as_() | {"Host": host}).status_code == status
        own = {"Host": "duly.example", "Origin": "https://duly.example"}
        assert web.client.get(f"{API}/status", headers=web.as_() | own).status_code == 200


def test_a_body_that_is_too_large_is_refused_before_it_is_read_and_while_it_comes(shop: Web) -> None:
    before = shop.dump()
    large = b" " * (BODY_MOST + 1)
    said = shop.client.post(f"{API}/tokens", content=large, headers=shop.as_())
    streamed = shop.client.post(f"{API}/tokens", content=iter([large[: BODY_MOST // 2]] * 3), headers=shop.as_())
    lied = shop.client.post(f"{API}/tokens", content=b"{}", headers=shop.as_() | {"Content-Length": "9" * 20})
    assert (said.status_code, streamed.status_code, lied.status_code) == (413, 413, 413)
    assert shop.dump() == before


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"\xff\xfe{", "application/json", 400),
        (b'{"name": "\\ud800", "rights": ["read"]}', "application/json", 400),
        (b'{"name": "a", "name": "b"}', "application/json", 400),
        (b'{"name": NaN}', "application/json", 400),
        (b'{"name": 1e999}', "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'{"name": ' + b"1" * 10_000 + b"}", "application/json", 400),
        (b'{"name": "a", "rights": ["read"]}', "text/plain", 415),
        (b'{"name": "a", "rights": ["read"]}', "application/json; charset=utf-16", 415),
        (b"[]", "application/json", 422),
        (b"7", "application/json", 422),
        (b'{"name": "a", "rights": ["read"], "extra": 1}', "application/json", 422),
        (b'{"name": "a\\u0000", "rights": ["read"]}', "application/json", 422),
        (b'{"name": "a", "rights": "read"}', "application/json", 422),
        (b'{"name": "a", "rights": ["reed"]}', "application/json", 422),
        (b"", "application/json", 422),
    ],
)
def test_a_body_of_any_shape_is_refused_with_a_reason_and_nothing_is_written(
    shop: Web, body: bytes, kind: str, status: int
) -> None:
    before = shop.dump()
    answered = shop.client.post(f"{API}/tokens", content=body, headers=shop.as_() | {"Content-Type": kind})
    assert (answered.status_code, answered.json()["reason"]) == (status, "invalid"), answered.text
    assert shop.dump() == before


def test_wrong_tokens_are_answered_slower_after_many_and_a_right_one_passes(tmp_path: Path) -> None:
    with web_over(tmp_path, pace=Pace(failed=(3, 1e-9), asked=(4, 1e-9))) as web:
        wrong = {"Authorization": "Bearer duly_tok_x_y"}
        answered = [web.client.get(f"{API}/status", headers=wrong).status_code for _ in range(5)]
        assert answered == [401, 401, 401, 429, 429]
        fast = [web.client.get(f"{API}/status", headers=web.as_("read")) for _ in range(5)]
        assert [one.status_code for one in fast] == [200, 200, 200, 200, 429]
        assert int(fast[-1].headers["retry-after"]) >= 1


def test_every_answer_has_the_headers_that_keep_browsers_careful(shop: Web) -> None:
    for path in (f"{API}/status", "/login", "/docs", "/openapi.json", "/nowhere"):
        headers = shop.client.get(path, headers=shop.as_()).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers


def test_a_fault_of_ours_is_a_report_on_the_host_and_tells_nothing_outside(
    shop: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError(MARK)

    monkeypatch.setattr("duly.operations.standing.status", broken)
    answered = shop.client.get(f"{API}/status", headers=shop.as_())
    assert (answered.status_code, answered.json()["reason"], MARK in answered.text) == (500, "fault", False)
    [report] = (shop.folder / "state").rglob("reports/*.txt")
    text = report.read_text()
    assert (MARK in text, shop.secret() in text, report.stat().st_mode & 0o777) == (True, False, 0o600)
    assert shop.secret() not in str(shop.told)


def test_a_fault_of_ours_is_told_once_where_a_name_has_a_slash_too(shop: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError(MARK)

    monkeypatch.setattr("duly.operations.reaching.task", broken)
    before = len(shop.told)
    answered = shop.client.get(f"{API}/tasks/shop%2Fone", headers=shop.as_())
    assert (answered.status_code, answered.json()["reason"]) == (500, "fault")
    assert [event for event, _ in shop.told[before:]] == ["fault"]


def test_the_digest_of_a_wrong_token_is_compared_in_constant_time_known_or_not(
    shop: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways end in the one comparison that takes as long whatever it is given."""
    from hmac import compare_digest

    compared: list[tuple[int, int]] = []

    def noted(one: str, other: str) -> bool:
        compared.append((len(one), len(other)))
        return compare_digest(one, other)

    monkeypatch.setattr("duly.operations.tokens.hmac.compare_digest", noted)
    for secret in (shop.secret("read"), shop.secret("read")[:-1] + "!", "duly_tok_unknown_x", "nothing"):
        shop.client.get(f"{API}/status", headers={"Authorization": f"Bearer {secret}"})
    assert compared == [(64, 64)] * 4


def test_a_body_that_stops_coming_is_waited_for_no_longer(shop: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "BODY_WITHIN_S", 0)
    sent: list[MutableMapping[str, Any]] = []

    async def never() -> MutableMapping[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError("it never comes")

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"origin", b"http://127.0.0.1"), (b"content-type", FORM.encode())]
    scope = {"type": "http", "method": "POST", "path": "/login", "query_string": b"", "headers": headers}
    app: Any = shop.client.app
    asyncio.run(app(scope | {"http_version": "1.1", "scheme": "http", "server": ("127.0.0.1", 80)}, never, send))
    assert sent[0]["status"] == 408


def test_every_threat_of_the_page_names_tests_that_are_there() -> None:
    page = (ROOT / "docs" / "http.md").read_text()
    named = set(re.findall(r"`(test_\w+)`", page))
    there = set(re.findall(r"^def (test_\w+)", "\n".join(path.read_text() for path in TESTS), re.MULTILINE))
    assert len(named) > 20
    assert named - there == set()
