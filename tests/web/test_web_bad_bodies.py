"""Bodies of any shape: each route refuses what it cannot read with where it is, and writes nothing half."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from web_scene import Web, web_over
from work_scene import added, asking, offered

BROKEN: dict[str, bytes] = {
    "no JSON": b"{",
    "not UTF-8": b'{"note": "\xff"}',
    "half a character": b'{"note": "\\ud800"}',
    "a key twice": b'{"note": "a", "note": "b"}',
    "no number": b'{"note": NaN}',
    "endless": b'{"n": 1e999}',
    "a long number": b'{"n": ' + b"9" * 5_000 + b"}",
    "deep": b'{"x": ' + b"[" * 2_000 + b"]" * 2_000 + b"}",
}
WRONG: dict[str, bytes] = {
    "a list": b"[]",
    "a text": b'"x"',
    "nothing known": b'{"colour": "red"}',
    "an empty key": b'{"": 1}',
    "NUL": b'{"\\u0000": "\\u0000"}',
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with web_over(tmp_path_factory.mktemp("bodies")) as made:
        yield made


@pytest.fixture(scope="module")
def routes(site: Web) -> list[tuple[str, str]]:
    task = added(site, "one")
    run, question = asking(site, added(site, "two"))
    with site.store.read() as session:
        due = session.now.replace(microsecond=0) - timedelta(days=1)
    missed = offered(site, task, due)
    verbs = ("run", "enable", "disable", "pause", "unpause", "skip", "backfill")
    return [
        ("POST", "/tasks"),
        ("PUT", f"/tasks/{task}"),
        ("PATCH", f"/tasks/{task}"),
        *(("POST", f"/tasks/{task}/{verb}") for verb in verbs),
        *(("POST", f"/runs/{run}/{verb}") for verb in ("cancel", "retry")),
        *(("POST", f"/missed/{missed}/{verb}") for verb in ("accept", "decline")),
        ("POST", f"/questions/{question}/answer"),
        ("POST", "/events/deploy"),
        ("POST", "/pauses"),
        ("POST", "/preview"),
        *(("PUT", path) for path in ("/projects/p", "/limits/k", "/budgets/store", "/defaults")),
    ]


def test_what_cannot_be_read_is_refused_by_every_route_and_nothing_is_written(
    site: Web, routes: list[tuple[str, str]]
) -> None:
    before = site.dump()
    for method, path in routes:
        for what, status in [*((one, 400) for one in BROKEN), *((one, 422) for one in WRONG)]:
            body = (BROKEN | WRONG)[what]
            headers = {"If-Match": "*", "Content-Type": "application/json"}
            told = site.ask(method, path, content=body, headers=headers)
            assert told.status_code == status, (method, path, what, told.text)
            assert told.headers["content-type"] == "application/problem+json"
            assert told.json()["reason"] == "invalid"
            assert told.json()["errors"], (method, path, what)
    assert site.dump() == before


def test_a_body_that_says_it_is_something_else_is_not_looked_at(site: Web, routes: list[tuple[str, str]]) -> None:
    before = site.dump()
    for method, path in routes:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1"):
            headers = {"If-Match": "*", "Content-Type": kind}
            told = site.ask(method, path, content=b"{}", headers=headers)
            assert told.status_code == 415, (method, path, kind, told.text)
    assert site.dump() == before


HOSTILE = (
    "%00",
    "a%00b",
    "%ff%fe",
    "..%2f..%2fetc",
    "'; DROP TABLE runs;--",
    "%",
    "_" * 26,
    "x" * 400,
    "💥",
    "tsk_",
    "%25",
)


@pytest.mark.parametrize("word", HOSTILE)
def test_hostile_words_in_addresses_and_queries_mean_nothing(
    site: Web, routes: list[tuple[str, str]], word: str
) -> None:
    before = site.dump()
    paths = [f"/{noun}/{word}" for noun in ("tasks", "runs", "events", "questions", "projects", "limits", "budgets")]
    lists = ("tasks?cursor", "tasks?q", "runs?cursor", "runs?task", "missed?cursor", "ledger?cursor", "events?source")
    paths += [f"/{noun}={word}" for noun in (*lists, "questions?task", "runs?since", "holders?cursor", "outages?since")]
    for path in paths:
        told = site.ask("GET", path)
        assert told.status_code in (200, 400, 404, 422), (path, told.text)
    assert site.dump() == before


def test_hostile_keys_and_versions_in_headers_are_refused(site: Web, routes: list[tuple[str, str]]) -> None:
    before = site.dump()
    (_, task), *_ = [one for one in routes if one[0] == "PATCH"]
    for key in ("k" * 201, "\x1b[2J", "a\tb"):
        told = site.ask("POST", "/events/deploy", json={}, headers={"Idempotency-Key": key})
        assert told.status_code in (400, 422), (key, told.text)
    for match in ('"v1" OR 1=1', '"' * 9, "v1", '"v1",,"v2"', '"v' + "9" * 3_000 + '"'):
        told = site.ask("PATCH", task, json={"description": "x"}, headers={"If-Match": match})
        assert told.status_code in (400, 412), (match, told.text)
    assert site.dump() == before
