"""The frame around all routes: who asks, with which right, and how an error is answered."""

import pytest
from web_scene import API, Web

from duly.operations import tokens


def test_who_brings_a_token_with_the_right_is_answered(web: Web) -> None:
    answered = web.client.get(f"{API}/status", headers=web.as_("read"))
    assert answered.status_code == 200
    assert answered.json()["tasks"]["total"] == 0


@pytest.mark.parametrize("given", [None, "Bearer", "Bearer wrong", "Basic YTpi", "Bearer duly_tok_x_y", "Bearer {}x"])
def test_who_brings_no_token_or_a_wrong_one_is_told_nothing(web: Web, given: str | None) -> None:
    secret = web.secret("read")
    headers = {} if given is None else {"Authorization": given.format(secret)}
    answered = web.client.get(f"{API}/tasks", headers=headers)
    assert answered.status_code == 401
    assert answered.headers["content-type"] == "application/problem+json"
    assert answered.headers["www-authenticate"].startswith("Bearer")
    assert answered.json()["reason"] == "not_allowed"


def test_a_weaker_token_is_refused_with_the_right_that_it_lacks(web: Web) -> None:
    answered = web.client.get(f"{API}/tokens", headers=web.as_("read", "run", "answer", "write"))
    assert (answered.status_code, answered.json()["details"]["right"]) == (403, "admin")


def test_a_revoked_token_counts_no_longer_from_the_next_request_on(web: Web) -> None:
    made = tokens.create(web.store, "gone", rights=["read"], projects=[], by="ann")
    asked = {"Authorization": f"Bearer {made.secret}"}
    assert web.client.get(f"{API}/tasks", headers=asked).status_code == 200
    assert web.ask("DELETE", "/tokens/gone").json()["revoked_by"] == "t0"
    assert web.client.get(f"{API}/tasks", headers=asked).status_code == 401


def test_a_token_is_told_once_and_the_store_keeps_no_secret(web: Web) -> None:
    made = web.ask("POST", "/tokens", json={"name": "ci", "rights": ["read"]})
    secret = made.json()["secret"]
    assert (made.status_code, made.headers["location"]) == (201, f"{API}/tokens/{made.json()['id']}")
    assert web.client.get(f"{API}/tasks", headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    assert secret not in web.ask("GET", "/tokens").text
    assert secret.rpartition("_")[2] not in str(web.dump())


def test_an_address_that_is_not_there_and_a_method_it_does_not_know_are_problems_too(web: Web) -> None:
    nowhere, deaf = web.ask("GET", "/nowhere"), web.ask("DELETE", "/status")
    assert (nowhere.status_code, nowhere.json()["reason"]) == (404, "unknown_id")
    assert (deaf.status_code, deaf.headers["allow"]) == (405, "GET")
