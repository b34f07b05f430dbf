"""Tokens that are held to projects: of others they see nothing, change nothing, and do not learn what there is."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from web_scene import Web, web_over
from work_scene import added, asking, claimed, of, offered


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with web_over(tmp_path_factory.mktemp("held")) as made:
        yield made


class Two:
    """A task of one's own project and one of another, each with a run, a question, an offer and a hold."""

    def __init__(self, site: Web) -> None:
        self.ids = {name: self._filled(site, name) for name in ("mine", "theirs-kept-quiet")}
        self.mine, self.theirs = self.ids.values()
        self.all = [id_ for id_ in self.theirs.values() if id_]
        site.ask("PUT", "/limits/shared", json={"n": 1})

    def _filled(self, site: Web, name: str) -> dict[str, str]:
        task = added(site, f"task of {name}", project=name, rules={"limits": {"shared": 1}} if name == "mine" else {})
        run, question = asking(site, added(site, f"question of {name}", project=name))
        with site.store.read() as session:
            due = session.now.replace(microsecond=0) - timedelta(days=1)
        site.ask("POST", "/pauses", json={"scope": "project", "target": name})
        site.ask("DELETE", f"/pauses?scope=project&target={name}")
        site.ask("POST", "/pauses", json={"scope": "task", "target": task, "note": name})
        site.ask("PUT", f"/budgets/project:{name}", json={"runs": 9, "per": "day"})
        site.ask("PUT", f"/defaults?project={name}", json={"max_age": "1h"})
        return {"task": task, "run": run, "question": question, "missed": offered(site, task, due)}


@pytest.fixture(scope="module")
def two(site: Web) -> Two:
    return Two(site)


LISTS = (
    "/tasks",
    "/runs",
    "/missed",
    "/questions",
    "/ledger?limit=200",
    "/projects",
    "/pauses",
    "/budgets",
    "/defaults",
)


@pytest.mark.parametrize("path", LISTS)
def test_lists_have_what_is_of_ones_own_projects_alone(site: Web, two: Two, path: str) -> None:
    told = site.ask("GET", path, headers=site.as_(projects=("mine",)))
    assert told.status_code == 200, told.text
    assert told.json()["items"]
    assert "theirs-kept-quiet" not in told.text
    assert not [id_ for id_ in two.all if id_ in told.text]
    assert "theirs-kept-quiet" in site.ask("GET", path).text or [
        id_ for id_ in two.all if id_ in site.ask("GET", path).text
    ]


WHOLE = (
    "/events",
    "/holders",
    "/outages",
    "/next",
    "/limits",
    "/limits/shared",
    "/budgets/store",
    "/status",
    "/tokens",
)


@pytest.mark.parametrize("path", WHOLE)
def test_what_is_of_the_whole_store_is_not_for_them(site: Web, two: Two, path: str) -> None:
    refused = site.ask("GET", path, headers=site.as_(projects=("mine",)))
    assert (refused.status_code, refused.json()["reason"]) == (403, "not_allowed")


def test_nothing_of_another_project_is_told_or_changed_by_any_route(site: Web, two: Two) -> None:
    before = site.dump()
    task, run, question, missed = (two.theirs[name] for name in ("task", "run", "question", "missed"))
    anew = of("moved", project="theirs-kept-quiet")
    seen = {"If-Match": "*"}
    asked: list[tuple[str, str, object]] = [
        *(("GET", f"/tasks/{task}{rest}", None) for rest in ("", "/definition", "/next", "/why", "/fence?fence=1")),
        *(("POST", f"/tasks/{task}/{verb}", {}) for verb in ("run", "enable", "disable", "pause", "unpause")),
        ("POST", f"/tasks/{task}/skip", {"next": True}),
        ("POST", f"/tasks/{task}/backfill", {"from": "7d", "to": "now"}),
        ("PUT", f"/tasks/{task}", of("mine now", project="mine")),
        ("PUT", f"/tasks/{two.mine['task']}", anew),
        ("PATCH", f"/tasks/{task}", {"project": "mine"}),
        ("PATCH", f"/tasks/{two.mine['task']}", {"project": "Theirs-Kept-Quiet"}),
        ("PATCH", f"/tasks/{two.mine['task']}", {"project": None}),
        ("DELETE", f"/tasks/{task}", None),
        ("POST", "/tasks", anew),
        ("POST", "/tasks", of("of no project")),
        *(("GET", f"/runs/{run}{rest}", None) for rest in ("", "/why")),
        *(("POST", f"/runs/{run}/{verb}", {}) for verb in ("cancel", "retry")),
        ("GET", f"/questions/{question}", None),
        ("POST", f"/questions/{question}/answer", {"answer": "allow"}),
        *(("POST", f"/missed/{missed}/{verb}", {}) for verb in ("accept", "decline")),
        *(("GET", f"/{noun}?task={task}", None) for noun in ("runs", "missed", "questions", "ledger")),
        ("GET", f"/ledger?run={run}", None),
        ("POST", "/events/deploy", {}),
        ("POST", "/pauses", {"scope": "store"}),
        ("POST", "/pauses", {"scope": "project", "target": "theirs-kept-quiet"}),
        ("POST", "/pauses", {"scope": "task", "target": task}),
        ("DELETE", f"/pauses?scope=task&target={task}", None),
        ("GET", "/projects/theirs-kept-quiet", None),
        ("PUT", "/projects/theirs-kept-quiet", {"dir": "/srv"}),
        ("DELETE", "/projects/theirs-kept-quiet", None),
        ("PUT", "/limits/shared", {"n": 9}),
        ("DELETE", "/limits/shared", None),
        ("PUT", "/budgets/store", {"runs": 1, "per": "day"}),
        ("PUT", "/budgets/project:theirs-kept-quiet", {"runs": 1, "per": "day"}),
        ("DELETE", "/budgets/project:theirs-kept-quiet", None),
        ("PUT", "/defaults", {"retries": 9}),
        ("PUT", "/defaults?project=theirs-kept-quiet", {"retries": 9}),
        ("DELETE", "/defaults?project=theirs-kept-quiet", None),
    ]
    for method, path, body in asked:
        refused = site.ask(method, path, json=body, headers={**site.as_(projects=("mine",)), **seen})
        assert refused.status_code == 403, (method, path, refused.text)
        assert not [id_ for id_ in (*two.all, "theirs-kept-quiet", "of theirs") if id_ in refused.text], path
    assert site.dump() == before


def test_a_word_that_means_nothing_tells_no_names_that_are_like_it(site: Web, two: Two) -> None:
    refused = site.ask("GET", "/tasks/task of theirs-kept-quie", headers=site.as_(projects=("mine",)))
    assert (refused.status_code, refused.json()["details"]) == (404, {})
    assert "kept-quiet" in site.ask("GET", "/tasks/task of theirs-kept-quie").text


def test_who_takes_a_limit_that_one_waits_for_is_named_only_where_one_sees_them(site: Web, two: Two) -> None:
    taker = added(site, "taker", project="theirs-kept-quiet", rules={"limits": {"shared": 1}})
    site.ask("POST", f"/tasks/{taker}/run")
    claimed(site)
    why = f"/tasks/{two.mine['task']}/why"
    assert "the limit shared is full: 1 of 1 taken, by run" in site.ask("GET", why).text
    told = site.ask("GET", why, headers=site.as_(projects=("mine",))).text
    assert "taken" in told
    assert "taker" not in told
    assert "theirs-kept-quiet" not in told


def test_within_ones_own_project_everything_goes_as_it_does_for_others(site: Web, two: Two) -> None:
    held = site.as_(projects=("mine",))
    made = site.ask("POST", "/tasks", json=of("new here", project="MINE"), headers=held)
    assert made.status_code == 201, made.text
    id_ = made.json()["id"]
    assert site.ask("POST", f"/tasks/{id_}/run", headers=held).status_code == 202
    assert site.ask("PATCH", f"/tasks/{id_}", json={"description": "x"}, headers=held).status_code == 200
    assert site.ask("POST", "/pauses", json={"scope": "project", "target": "mine"}, headers=held).status_code == 200
    assert site.ask("DELETE", "/pauses?scope=project&target=mine", headers=held).status_code == 200
    assert site.ask("PUT", "/defaults?project=mine", json={"retries": 1}, headers=held).status_code == 200
    assert site.ask("DELETE", f"/tasks/{id_}", headers=held).status_code == 204
