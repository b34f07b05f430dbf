"""Events from senders without a token of ours: what is taken, what is refused, and that each starts its task once."""

import hashlib
import hmac
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from web_scene import API, Web, web_over
from work_scene import added

from duly import clock
from duly.core import signing

SECRET = "a-secret-of-nobody-else"
BODY = json.dumps({"branch": "main", "n": 1}).encode()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with web_over(tmp_path_factory.mktemp("hooks")) as made:
        assert isinstance(made.house.environ, dict)
        made.house.environ.update(HOOK=SECRET, EMPTY="whsec_", BYTES="secret-\udcff")
        for name, body in (
            ("orders", {"hmac": "HOOK"}),
            ("repo", {"hmac": "${HOOK}", "preset": "github"}),
            ("alarms", {"token": "HOOK", "header": "X-Alarm"}),
            ("lost", {"hmac": "NOT_THERE"}),
            ("empty", {"hmac": "EMPTY"}),
            ("bytes", {"token": "BYTES"}),
            ("small", {"token": "HOOK", "queue": 1}),
        ):
            assert made.ask("PUT", f"/sources/{name}", json=body).status_code == 200
        for name in ("orders", "repo", "alarms", "lost", "small"):
            added(made, f"of {name}", triggers=[f"on {name}"], rules={"overlap": "queue"})
        added(made, "of pushes", triggers=["on repo where github.event=push and branch=main"])
        yield made


def send(site: Web, source: str, headers: dict[str, str], body: bytes = BODY) -> Any:
    return site.client.post(f"{API}/events/{source}", headers=headers, content=body)


def signed(key: str, body: bytes = BODY, *, secret: str = SECRET, at: datetime | None = None) -> dict[str, str]:
    return dict(signing.signed(secret, id_=key, at=at or clock.now(), body=body))


def from_github(key: str, body: bytes = BODY, *, secret: str = SECRET, event: str = "push") -> dict[str, str]:
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"X-Hub-Signature-256": f"sha256={signature}", "X-GitHub-Delivery": key, "X-GitHub-Event": event}


def runs_of(site: Web, task: str) -> list[Any]:
    found: list[Any] = site.ask("GET", "/runs", params={"task": task}).json()["items"]
    return found


def test_a_webhook_that_is_delivered_ten_times_opens_one_run_and_another_body_under_its_key_is_refused(
    site: Web,
) -> None:
    answers = [send(site, "orders", signed("delivery-1")) for _ in range(10)]
    assert [one.status_code for one in answers] == [202] * 10
    assert len({one.json()["id"] for one in answers}) == 1
    assert [one.json()["again"] for one in answers] == [False, *[True] * 9]
    [run] = runs_of(site, "of orders")
    assert (run["opened_by"], run["opened_by_whom"]) == ("event", "source orders")
    other = b'{"branch": "other"}'
    before = site.dump()
    reused = send(site, "orders", signed("delivery-1", other), other)
    assert (reused.status_code, reused.json()["reason"]) == (409, "key_reused")
    assert site.dump() == before


def test_a_secret_with_nothing_behind_its_prefix_lets_nobody_in(site: Web) -> None:
    answer = send(site, "empty", signed("forged", secret="whsec_"))
    assert (answer.status_code, answer.json()["reason"]) == (401, "not_allowed")


def test_an_event_with_two_keys_is_refused_as_it_could_not_be_known_again(site: Web) -> None:
    given = [("X-Alarm", SECRET), ("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    before = site.dump()
    assert site.client.post(f"{API}/events/alarms", headers=given, content=BODY).status_code == 422
    assert site.dump() == before


def test_a_secret_that_is_no_text_is_compared_all_the_same(site: Web) -> None:
    assert send(site, "bytes", {"Duly-Token": "x"}).status_code == 401


def test_who_proves_itself_is_told_nothing_of_the_tasks_that_took_the_event(site: Web) -> None:
    told = send(site, "orders", signed("delivery-quiet")).json()
    assert set(told) == {"id", "source", "key", "at", "again"}


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"webhook-id": "x", "webhook-timestamp": "1"},
        signed("wrong", secret="another"),
        signed("other body", b"{}"),
        signed("old", at=clock.now() - timedelta(hours=2)),
        signed("early", at=clock.now() + timedelta(hours=2)),
        signed("renamed") | {"webhook-id": "renamed-since"},
        signed("later") | {"webhook-timestamp": "99999999999"},
        signed("cut") | {"webhook-signature": "v1,"},
        signed("bare") | {"webhook-signature": ""},
        signed("v2") | {"webhook-signature": signed("v2")["webhook-signature"].replace("v1,", "v2,")},
        {"Duly-Token": SECRET},
        from_github("as github"),
    ],
)
def test_whatever_is_no_proof_is_refused_and_nothing_is_written(site: Web, given: dict[str, str]) -> None:
    before = site.dump()
    answer = send(site, "orders", given)
    assert (answer.status_code, answer.json()["reason"]) == (401, "not_allowed")
    assert SECRET not in answer.text
    assert site.dump() == before


def test_a_signature_given_twice_is_no_proof(site: Web) -> None:
    good = signed("twice")
    before = site.dump()
    pairs = [(name.encode(), text.encode()) for name, text in good.items()]
    pairs.append((b"webhook-signature", good["webhook-signature"].encode()))
    answer = site.client.post(f"{API}/events/orders", headers=pairs, content=BODY)
    assert answer.status_code == 401
    assert site.dump() == before


def test_github_is_heard_with_what_its_headers_say_happened(site: Web) -> None:
    assert send(site, "repo", from_github("d-1")).status_code == 202
    assert send(site, "repo", from_github("d-2", event="ping")).status_code == 202
    assert len(runs_of(site, "of repo")) == 2
    [run] = runs_of(site, "of pushes")
    event = site.ask("GET", f"/runs/{run['id']}").json()["occurrence"]
    assert event == "event:repo:d-1"


@pytest.mark.parametrize(
    ("given", "body", "status"),
    [
        (from_github("d-3", secret="another"), BODY, 401),
        ({"X-Hub-Signature": "sha1=00", "X-GitHub-Delivery": "d-4", "X-GitHub-Event": "push"}, BODY, 401),
        ({k: v for k, v in from_github("d-5").items() if k != "X-GitHub-Delivery"}, BODY, 422),
        (from_github("d-6", b"payload=%7B%7D"), b"payload=%7B%7D", 422),
        (from_github("d-7", b"[1]"), b"[1]", 422),
        (from_github("d-8", b"\xff"), b"\xff", 422),
    ],
)
def test_what_github_does_not_send_is_refused(site: Web, given: dict[str, str], body: bytes, status: int) -> None:
    before = site.dump()
    assert send(site, "repo", given, body).status_code == status
    assert site.dump() == before


def test_a_token_in_a_header_of_its_own_is_a_proof_and_a_wrong_one_is_none(site: Web) -> None:
    assert send(site, "alarms", {"X-Alarm": SECRET, "Idempotency-Key": "a-1"}).json()["key"] == "a-1"
    assert send(site, "alarms", {"X-Alarm": SECRET}, b"").json()["key"] is None
    for wrong in ({"X-Alarm": SECRET[:-1]}, {"X-Alarm": ""}, {"Duly-Token": SECRET}, {"X-Alarm": "\xe9"}):
        raw = [(name.encode(), text.encode("latin-1")) for name, text in wrong.items()]
        assert site.client.post(f"{API}/events/alarms", headers=raw, content=BODY).status_code == 401


def test_a_source_is_known_in_small_letters_and_in_capitals(site: Web) -> None:
    told = send(site, "Alarms", {"X-Alarm": SECRET, "Idempotency-Key": "capitals"}).json()
    assert (told["source"], told["key"]) == ("alarms", "capitals")


@pytest.mark.parametrize("source", ["lost", "nobody", "duly.run.ended", "no source at all"])
def test_a_source_without_a_secret_here_takes_nothing(site: Web, source: str) -> None:
    before = site.dump()
    answer = send(site, source, signed("x"))
    assert answer.status_code == (403 if source == "lost" else 401)
    assert site.dump() == before


def test_while_too_much_waits_more_is_refused_with_429_and_what_came_before_is_answered(site: Web) -> None:
    first = {"Duly-Token": SECRET, "Idempotency-Key": "s-1"}
    assert send(site, "small", first).status_code == 202
    before = site.dump()
    full = send(site, "small", {"Duly-Token": SECRET, "Idempotency-Key": "s-2"})
    assert (full.status_code, full.json()["reason"], full.headers["Retry-After"]) == (429, "rate_limited", "30")
    assert send(site, "small", first).json()["again"] is True
    assert site.dump() == before


def test_what_is_no_event_is_refused_after_the_proof(site: Web) -> None:
    for body in (b"{", b"\xff", b'{"a": NaN}', b"[" * 200 + b"]" * 200):
        answer = send(site, "orders", signed("bad", body), body)
        assert answer.status_code == 422, answer.text
    long = "k" * 201
    assert send(site, "orders", signed(long)).status_code == 422


def test_who_brings_a_token_of_ours_is_asked_for_that_alone(site: Web) -> None:
    both = signed("both") | {"Authorization": "Bearer wrong"}
    assert send(site, "orders", both).status_code == 401
    sent = site.ask("POST", "/events/orders", json={"key": "by-token", "data": {"a": 1}})
    assert (sent.status_code, sent.json()["by"]) == (202, "t0")


def test_a_source_shows_what_it_wants_and_never_a_secret(site: Web) -> None:
    shown = site.ask("GET", "/sources/repo").json()
    assert (shown["proof"], shown["secret"], shown["preset"], shown["within"]) == ("hmac", "HOOK", "github", None)
    assert site.ask("GET", "/sources/orders").json()["within"] == "5m"
    listed = site.ask("GET", "/sources")
    assert {"alarms", "lost", "orders", "repo", "small"} <= {one["name"] for one in listed.json()["items"]}
    assert SECRET not in listed.text


@pytest.mark.parametrize(
    "body",
    [
        {"hmac": "A", "token": "B"},
        {"hmac": "not a name"},
        {"hmac": 7},
        {"token": "A", "preset": "github"},
        {"hmac": "A", "preset": "gitlab"},
        {"hmac": "A", "header": "X"},
        {"token": "A", "header": "Authorization"},
        {"token": "A", "header": "a b"},
        {"token": "A", "within": "5m"},
        {"hmac": "A", "within": "5"},
        {"hmac": "A", "within": "48h"},
        {"hmac": "A", "queue": 0},
        {"hmac": "A", "queue": "many"},
        {"secret": "A"},
    ],
)
def test_a_source_that_means_nothing_is_refused(site: Web, body: dict[str, Any]) -> None:
    before = site.dump()
    assert site.ask("PUT", "/sources/new", json=body).status_code == 422
    assert site.dump() == before


def test_a_source_is_removed_and_then_wants_a_token_of_ours(site: Web) -> None:
    site.ask("PUT", "/sources/gone", json={"token": "HOOK"})
    assert send(site, "gone", {"Duly-Token": SECRET}).status_code == 202
    assert site.ask("DELETE", "/sources/gone").status_code == 204
    assert site.ask("DELETE", "/sources/gone").status_code == 404
    assert send(site, "gone", {"Duly-Token": SECRET}).status_code == 401
    assert site.ask("PUT", "/sources/duly.run", json={}).status_code == 403
    assert site.ask("GET", "/sources/never").status_code == 404
