"""What a store is set to, over HTTP: projects, limits, budgets, default rules and holds."""

from collections.abc import Iterator
from typing import Any

import pytest
from web_scene import Web, web_over
from work_scene import added, of


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with web_over(tmp_path_factory.mktemp("settings")) as made:
        yield made


def refused(site: Web, method: str, path: str, bodies: list[Any]) -> None:
    before = site.dump()
    for body in bodies:
        answer = site.ask(method, path, json=body)
        assert answer.status_code == 422, (body, answer.text)
    assert site.dump() == before


def test_a_project_is_made_gets_a_folder_and_is_removed_when_it_has_no_tasks(site: Web) -> None:
    made = site.ask("PUT", "/projects/Shop", json={"dir": "/srv/shop"})
    assert (made.status_code, made.json()["name"], made.json()["dir"]) == (200, "Shop", "/srv/shop")
    assert site.ask("PUT", "/projects/shop", json={}).json()["dir"] == "/srv/shop"
    action = {"kind": "command", "argv": ["true"]}
    added(site, "there", project="shop", action=action)
    assert site.ask("GET", "/projects/shop").json()["in_its_folder"] == 1
    left = site.ask("PUT", "/projects/shop", json={"dir": None})
    assert (left.status_code, left.json()["errors"][0]["pointer"]) == (422, "/dir")
    busy = site.ask("DELETE", "/projects/shop")
    assert (busy.status_code, busy.json()["reason"]) == (409, "already_exists")
    assert site.ask("DELETE", "/tasks/there").status_code == 204
    assert site.ask("DELETE", "/projects/shop").status_code == 204
    assert site.ask("GET", "/projects/shop").status_code == 404
    assert site.ask("DELETE", "/projects/shop").status_code == 404
    refused(site, "PUT", "/projects/new", [{"dir": "relative"}, {"dir": 7}, {"folder": "/srv"}, {"dir": "/a\0b"}])
    assert site.ask("PUT", "/projects/-x", json={}).status_code == 422


def test_a_limit_is_set_seen_and_goes_back(site: Web) -> None:
    done = site.ask("PUT", "/limits/gpu", json={"n": 3, "per": "10/1m"}).json()
    assert (done["n"], done["per"], done["set_by"]) == (3, {"starts": 10, "within": "1m"}, "t0")
    same = site.ask("PUT", "/limits/gpu", json={"n": 2, "per": {"starts": 5, "within": "1h"}}).json()
    assert site.ask("GET", "/limits/gpu").json() == same
    heavy = site.ask("POST", "/tasks", json=of("heavy", rules={"limits": {"gpu": 3}}))
    assert (heavy.status_code, heavy.json()["errors"][0]["pointer"]) == (422, "/rules/limits/gpu")
    added(site, "light", rules={"limits": {"gpu": 2}})
    low = site.ask("PUT", "/limits/gpu", json={"n": 1})
    assert (low.status_code, low.json()["reason"]) == (409, "limit_reached")
    bad: list[Any] = [{}, {"n": 0}, {"n": "3"}, {"n": 3, "per": "often"}, {"n": 3, "per": {"starts": 1}}, {"n": True}]
    refused(site, "PUT", "/limits/gpu", [*bad, {"n": 3, "per": 7}, {"n": 3, "rate": 1}, {"n": 10**40}][:-1])
    assert site.ask("DELETE", "/tasks/light").status_code == 204
    assert site.ask("DELETE", "/limits/gpu").status_code == 204
    assert site.ask("DELETE", "/limits/gpu").status_code == 404
    assert site.ask("GET", "/limits/gpu").status_code == 404


def test_a_limit_may_have_a_slash_in_its_name(site: Web) -> None:
    assert site.ask("PUT", "/limits/db%2Fwrites", json={"n": 2}).json()["key"] == "db/writes"
    assert site.ask("GET", "/limits/db%2Fwrites").json()["n"] == 2
    assert site.ask("DELETE", "/limits/db%2Fwrites").status_code == 204


def test_a_budget_is_set_for_the_store_and_for_a_project(site: Web) -> None:
    site.ask("PUT", "/projects/spender", json={})
    done = site.ask("PUT", "/budgets/project:spender", json={"usd": "2.50", "runs": 4, "per": "day"}).json()
    assert (done["scope"], done["limit"]) == ("project:spender", {"runs": 4, "tokens": None, "usd": 2.5})
    assert site.ask("GET", "/budgets/project:spender").json()["set_by"] == "t0"
    assert [one["scope"] for one in site.ask("GET", "/budgets").json()["items"]] == ["project:spender"]
    bad: list[Any] = [{}, {"per": "day"}, {"runs": 1}, {"runs": 1, "per": "week"}, {"runs": -1, "per": "day"}]
    refused(site, "PUT", "/budgets/store", [*bad, {"usd": "much", "per": "day"}, {"euro": 1, "per": "day"}])
    assert site.ask("PUT", "/budgets/planet", json={"runs": 1, "per": "day"}).status_code == 422
    assert site.ask("PUT", "/budgets/project:nobody", json={"runs": 1, "per": "day"}).status_code == 404
    assert site.ask("DELETE", "/budgets/project:spender").status_code == 204
    assert site.ask("GET", "/budgets/project:spender").status_code == 404


def test_default_rules_are_written_whole_and_taken_away(site: Web) -> None:
    task = added(site, "plain")
    done = site.ask("PUT", "/defaults", json={"max_age": "12h", "retries": 2}).json()
    assert done["rules"] == {"max_age": "12h", "retries": 2}
    shown = site.ask("GET", f"/tasks/{task}").json()
    assert (shown["rules"]["max_age"], shown["inherited_rules"]["max_age"]) == ("12h", "store")
    site.ask("PUT", "/projects/own", json={})
    site.ask("PUT", "/defaults?project=own", json={"max_age": "1h"})
    listed = site.ask("GET", "/defaults").json()["items"]
    assert [(one["rule"], one["project"]) for one in listed if one["rule"] == "max_age"] == [
        ("max_age", None),
        ("max_age", "own"),
    ]
    anew = site.ask("PUT", "/defaults", json={"retries": 1}).json()
    assert anew["rules"] == {"retries": 1}
    refused(site, "PUT", "/defaults", [{"max": "1h"}, {"max_age": 7}, {"times": 3}, {"overlap": "maybe"}])
    assert site.ask("DELETE", "/defaults?rule=max_age").status_code == 422
    assert site.ask("DELETE", "/defaults?rule=retries").json()["rules"] == {}
    assert site.ask("DELETE", "/defaults?project=own").json() == {"project": "own", "rules": {}, "tasks": 0}
    assert site.ask("PUT", "/defaults?project=nobody", json={}).status_code == 404


def test_holds_of_task_project_and_store_are_made_listed_and_lifted(site: Web) -> None:
    added(site, "held", project="holding")
    for scope, target in (("task", "held"), ("project", "holding"), ("store", None)):
        made = site.ask("POST", "/pauses", json={"scope": scope, "target": target, "note": scope})
        assert (made.status_code, made.json()["scope"]) == (200, scope)
    listed = site.ask("GET", "/pauses").json()["items"]
    assert [(one["scope"], one["target"]) for one in listed][:2] == [("task", "holding/held"), ("project", "holding")]
    assert len(site.ask("GET", "/tasks/held").json()["paused"]) == 3
    assert site.ask("DELETE", "/pauses?scope=store").json()["pause"]["note"] == "store"
    assert site.ask("DELETE", "/pauses?scope=store").json() == {"pause": None, "tasks": 0}
    assert site.ask("DELETE", "/pauses?scope=project&target=holding").json()["tasks"] == 1
    assert site.ask("DELETE", "/pauses?scope=task&target=held").json()["tasks"] == 1
    bad: list[Any] = [{}, {"scope": "world"}, {"scope": "task"}, {"scope": "store", "target": "x"}, {"scope": 1}]
    refused(site, "POST", "/pauses", [*bad, {"scope": "store", "note": "two\nlines"}, {"scope": "store", "until": "x"}])
    assert site.ask("DELETE", "/pauses").status_code == 422
