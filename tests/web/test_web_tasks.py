"""Tasks over HTTP: listed, defined, changed as they were seen, removed."""

import json
from collections.abc import Iterator

import pytest
from web_scene import API, Web, web_over
from work_scene import added, of


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with web_over(tmp_path_factory.mktemp("tasks")) as made:
        yield made


def test_a_task_is_defined_whole_and_found_where_the_answer_says(site: Web) -> None:
    made = site.ask("POST", "/tasks", json=of("made", description="once more", labels={"team": "data"}))
    told = made.json()
    assert (made.status_code, made.headers["etag"]) == (201, '"v1"')
    assert made.headers["location"] == f"{API}/tasks/{told['id']}"
    assert (told["source"]["kind"], told["created_by"], told["warnings"]) == ("api", "t0", [])
    assert [one["local"][11:] for one in told["upcoming"]] == ["09:00:00"] * 3
    found = site.client.get(made.headers["location"], headers=site.as_("read"))
    assert (found.json()["name"], found.headers["etag"]) == ("made", '"v1"')
    assert site.ask("GET", "/tasks/MADE").json()["id"] == told["id"]


def test_a_dry_run_judges_a_definition_and_keeps_nothing(site: Web) -> None:
    before = site.dump()
    told = site.ask("POST", "/tasks?dry_run=true", json=of("dry"))
    assert (told.status_code, told.json()["dry_run"]) == (200, True)
    assert site.ask("POST", "/tasks?dry_run=true", json=of("dry", triggers=["daily 25:00"])).status_code == 422
    assert site.dump() == before


def test_all_faults_of_a_definition_are_told_at_once_with_where_they_are(site: Web) -> None:
    before = site.dump()
    told = site.ask("POST", "/tasks", json=of("bad", rules={"retrys": 1, "overlap": "maybe"}, colour="red"))
    assert (told.status_code, told.headers["content-type"]) == (422, "application/problem+json")
    found = {one["pointer"]: one["allowed"] for one in told.json()["errors"]}
    assert found.keys() == {"/rules/retrys", "/rules/overlap", "/colour"}
    assert found["/rules/overlap"] == ["skip", "queue", "cancel_running", "kill_running"]
    assert site.dump() == before


def test_work_needs_a_folder_of_its_own_or_of_its_project(site: Web) -> None:
    bare = of("bare", project="roofed", action={"kind": "command", "argv": ["true"]})
    refused = site.ask("POST", "/tasks", json=bare)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/action/cwd")
    assert site.ask("PUT", "/projects/roofed", json={"dir": "/srv"}).status_code == 200
    assert site.ask("POST", "/tasks", json=bare).json()["action"]["cwd"] == "/srv"


def test_a_call_becomes_no_command_without_a_folder(site: Web) -> None:
    id_ = added(site, "called", action={"kind": "call", "function": "os:getpid"})
    command = {"kind": "command", "argv": ["true"], "function": None}
    for cwd, status in ((None, 422), ("/srv", 200)):
        told = site.ask("PATCH", f"/tasks/{id_}", json={"action": {**command, "cwd": cwd}})
        assert told.status_code == status, told.text
        assert status == 200 or told.json()["errors"][0]["pointer"] == "/action/cwd"


def test_a_taken_name_is_refused(site: Web) -> None:
    added(site, "taken")
    refused = site.ask("POST", "/tasks", json=of("TAKEN"))
    assert (refused.status_code, refused.json()["reason"]) == (409, "already_exists")


def test_a_list_asks_for_some_and_goes_on_where_its_link_says(site: Web) -> None:
    for name in ("l1", "l2", "l3"):
        added(site, name, project="listed", labels={"team": "data"} if name != "l2" else {})
    page = site.ask("GET", "/tasks?project=listed&limit=2")
    assert [one["name"] for one in page.json()["items"]] == ["l1", "l2"]
    address, _, rest = page.headers["link"].partition(">")
    assert rest == '; rel="next"'
    last = site.client.get(address.removeprefix("<"), headers=site.as_())
    assert [one["name"] for one in last.json()["items"]] == ["l3"]
    assert last.json()["next"] is None
    assert "link" not in last.headers
    labelled = site.ask("GET", "/tasks?project=listed&label=team%3Ddata&label=team").json()
    assert [one["name"] for one in labelled["items"]] == ["l1", "l3"]
    assert site.ask("GET", "/tasks?q=LISTED/l2").json()["items"][0]["name"] == "l2"
    assert site.ask("GET", "/tasks?project=listed&state=disabled").json()["items"] == []
    for query in ("state=tired", "limit=0", "limit=201", "limit=two", "cursor=nonsense", "label==x"):
        assert site.ask("GET", f"/tasks?{query}").status_code == 422, query


def test_who_writes_a_task_over_names_the_version_that_they_saw(site: Web) -> None:
    id_ = added(site, "seen", description="first")
    anew = of("seen", description="second")
    assert site.ask("PUT", f"/tasks/{id_}", json=anew).status_code == 428
    for stale in ('"v9"', 'W/"v1"', '"other"', '"v8", "v9"'):
        refused = site.ask("PUT", f"/tasks/{id_}", json=anew, headers={"If-Match": stale})
        assert (refused.status_code, refused.json()["reason"]) == (412, "version_conflict"), stale
    for broken in ("v1", '"v1', '"v1",', ""):
        assert site.ask("PUT", f"/tasks/{id_}", json=anew, headers={"If-Match": broken}).status_code == 400, broken
    assert site.ask("GET", f"/tasks/{id_}").json()["description"] == "first"
    done = site.ask("PUT", f"/tasks/{id_}", json=anew, headers={"If-Match": '"v8", "v1"'})
    assert (done.status_code, done.headers["etag"]) == (200, '"v2"')
    assert done.json()["changes"] == [{"field": "description", "old": "first", "new": "second"}]
    assert site.ask("PUT", f"/tasks/{id_}", json=anew, headers={"If-Match": "*"}).json()["changes"] == []


def test_a_put_takes_what_the_definition_says_and_leaves_out_what_it_does_not(site: Web) -> None:
    id_ = added(site, "whole", rules={"retries": 2}, triggers=["every 2h"])
    shown = site.ask("GET", f"/tasks/{id_}/definition")
    same = site.ask("PUT", f"/tasks/{id_}", json=shown.json(), headers={"If-Match": shown.headers["etag"]})
    assert (same.json()["changes"], same.headers["etag"]) == ([], '"v1"')
    bare = {key: value for key, value in shown.json().items() if key != "rules"}
    done = site.ask("PUT", f"/tasks/{id_}", json=bare, headers={"If-Match": '"v1"'}).json()
    assert done["changes"] == [{"field": "rules.retries", "old": 2, "new": None}]
    assert done["triggers"] == shown.json()["triggers"]


def test_a_patch_is_a_merge_patch_in_which_null_goes_back_to_the_default(site: Web) -> None:
    id_ = added(site, "patched", description="old", rules={"retries": 2, "max_age": "1h"}, labels={"a": "1", "b": "2"})
    headers = {"Content-Type": "application/merge-patch+json", "If-Match": '"v1"'}
    patch = {"description": None, "rules": {"retries": None, "max_age": "2h"}, "labels": {"a": None, "c": "3"}}
    done = site.ask("PATCH", f"/tasks/{id_}", json=patch, headers=headers).json()
    assert (done["description"], done["labels"]) == ("", {"b": "2", "c": "3"})
    assert (done["rules"]["retries"], done["rules"]["max_age"], done["own_rules"]) == (0, "2h", ["max_age"])
    assert site.ask("PATCH", f"/tasks/{id_}", json=patch, headers=headers).status_code == 412
    faults: list[dict[str, object]] = [{"name": None}, {"action": None}, {"rules": []}, {"id": "x"}, {"project": 7}]
    for bad in faults:
        assert site.ask("PATCH", f"/tasks/{id_}", json=bad).status_code == 422, bad
    assert site.ask("PATCH", f"/tasks/{id_}", json={}).json()["version"] == 2
    dry = site.ask("PATCH", f"/tasks/{id_}?dry_run=true", json={"enabled": False}).json()
    assert (dry["dry_run"], [one["field"] for one in dry["changes"]]) == (True, ["enabled"])
    assert site.ask("GET", f"/tasks/{id_}").json()["enabled"] is True


def test_a_task_is_removed_only_as_it_was_seen_and_its_story_stays(site: Web) -> None:
    id_ = added(site, "leaving")
    site.ask("POST", f"/tasks/{id_}/run")
    assert site.ask("DELETE", f"/tasks/{id_}", headers={"If-Match": '"v3"'}).status_code == 412
    gone = site.ask("DELETE", f"/tasks/{id_}", headers={"If-Match": '"v1"'})
    assert (gone.status_code, gone.content) == (204, b"")
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/run"), ("GET", "/next"), ("POST", "/enable")):
        again = site.ask(method, f"/tasks/{id_}{path}")
        assert (again.status_code, again.json()["reason"]) == (404, "unknown_task"), path
    told = site.ask("GET", f"/ledger?task={id_}").json()["items"]
    assert [one["kind"] for one in told] == ["defined", "opened", "skipped", "removed"]
    assert site.ask("GET", f"/tasks/{id_}/why").status_code == 200
    run = next(one["run"] for one in told if one["run"] is not None)
    assert [one["id"] for one in site.ask("GET", f"/runs?task={id_}").json()["items"]] == [run]


def test_a_task_is_found_by_its_project_and_name_in_an_address(site: Web) -> None:
    wanted = added(site, "of two", project="first")
    added(site, "of two")
    unclear = site.ask("GET", "/tasks/of two")
    assert (unclear.status_code, unclear.json()["reason"]) == (422, "invalid")
    assert set(unclear.json()["details"]["candidates"]) == {"first/of two", "default/of two"}
    assert site.ask("GET", "/tasks/first%2fof two").json()["id"] == wanted
    assert site.ask("POST", "/tasks/first%2Fof%20two/pause").json()["target"] == "first/of two"
    assert site.ask("GET", "/tasks/default%2Fof%20two/why").json()["subject"]["project"] == "default"
    assert site.ask("GET", "/tasks/first/of two").status_code == 404
    assert site.ask("GET", "/tasks/second%2Fof%20two").json()["reason"] == "unknown_task"


def test_a_body_says_that_it_is_utf_8_with_or_without_quotes(site: Web) -> None:
    for number, kind in enumerate(("UTF-8", '"utf-8"')):
        headers = {"Content-Type": f"application/json; charset={kind}"}
        body = json.dumps(of(f"in utf-8 {number}"))
        assert site.ask("POST", "/tasks", content=body, headers=headers).status_code == 201, kind
