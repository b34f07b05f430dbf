"""What is on record, over HTTP: runs, events, the ledger, who serves; why something ran, and what a WHEN means."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from web_scene import Web, web_over
from work_scene import added


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with web_over(tmp_path_factory.mktemp("records")) as made:
        yield made


def test_runs_are_listed_newest_first_by_what_is_asked_for(site: Web) -> None:
    task, other = added(site, "ran", project="shop"), added(site, "other")
    ids = [site.ask("POST", f"/tasks/{task}/run", json={"queue": True}).json()["id"] for _ in range(3)]
    site.ask("POST", f"/tasks/{other}/run")
    site.ask("POST", f"/runs/{ids[0]}/cancel")

    def listed(query: str) -> list[str]:
        found = site.ask("GET", f"/runs?{query}")
        assert found.status_code == 200, found.text
        return [one["id"] for one in found.json()["items"]]

    assert listed("project=SHOP") == ids[::-1] == listed(f"task={task}")
    assert listed("project=shop&state=waiting") == [ids[2], ids[1]]
    assert listed("outcome=cancelled") == [ids[0]]
    assert listed("project=shop&until=-1h") == []
    assert set(ids) < set(listed("since=1h&until=%2B1h"))
    page = site.ask("GET", "/runs?project=shop&limit=2")
    assert page.json()["next"] in page.headers["link"]
    assert listed(f"project=shop&cursor={page.json()['next']}") == [ids[0]]
    for query in (
        "state=held",
        "outcome=good",
        "since=soon",
        "cursor=tsk_x",
        "task=nobody",
        "colour=red",
        "stat=ended",
    ):
        assert site.ask("GET", f"/runs?{query}").status_code in (404, 422), query
    near = site.ask("GET", "/runs?stat=ended").json()
    assert near["details"]["hint"] == "state"


def test_an_event_is_kept_once_by_its_key_and_answers_as_the_first_time(site: Web) -> None:
    task = added(site, "deployed", triggers=["on deploy where branch=main"])
    given = {"json": {"data": {"branch": "main"}}, "headers": {"Idempotency-Key": "d-1"}}
    first = site.ask("POST", "/events/deploy", **given)
    assert (first.status_code, first.json()["again"]) == (202, False)
    assert [one["task"] for one in first.json()["runs"]] == [task]
    again = site.ask("POST", "/events/deploy", json={"key": "d-1", "data": {"branch": "main"}}).json()
    assert (again["again"], again["id"], again["runs"]) == (True, first.json()["id"], first.json()["runs"])
    other = site.ask("POST", "/events/deploy", json={"key": "d-1", "data": {"branch": "next"}})
    assert (other.status_code, other.json()["reason"]) == (409, "key_reused")
    assert len(site.ask("GET", f"/runs?task={task}").json()["items"]) == 1
    unmatched = site.ask("POST", "/events/deploy", json={"data": {"branch": "next"}}).json()
    assert unmatched["runs"] == []
    listed = site.ask("GET", "/events?source=deploy").json()["items"]
    assert [one["key"] for one in listed] == [None, "d-1"]
    assert "data" not in listed[0]
    shown = site.ask("GET", f"/events/{first.json()['id']}").json()
    assert (shown["data"], shown["runs"]) == ({"branch": "main"}, first.json()["runs"])
    assert site.ask("POST", "/events/duly.run.ended", json={}).status_code == 403
    for source in ("two words", "a..b", "-x", "ü b"):
        assert site.ask("POST", f"/events/{source}", json={}).status_code == 422, source
    assert site.ask("GET", "/events/evt_none").status_code == 404


def test_the_ledger_is_read_on_from_its_cursor_and_misses_nothing(site: Web) -> None:
    task = added(site, "told")
    run = site.ask("POST", f"/tasks/{task}/run").json()["id"]
    site.ask("POST", f"/runs/{run}/cancel")
    whole = site.ask("GET", "/ledger?limit=200").json()["items"]
    paged: list[object] = []
    cursor: str | None = ""
    while cursor is not None:
        page = site.ask("GET", f"/ledger?limit=7{cursor and f'&cursor={cursor}'}").json()
        paged += page["items"]
        cursor = page["next"]
    assert paged == whole
    story = site.ask("GET", f"/ledger?run={run}").json()["items"]
    assert [one["kind"] for one in story] == ["opened", "cancel_asked", "ended"]
    assert site.ask("GET", f"/ledger?task={task}").json()["items"] == [one for one in whole if one["task"] == task]
    assert site.ask("GET", "/ledger?cursor=-1").status_code == 422


def test_why_answers_for_a_task_an_instant_a_span_and_a_run(site: Web) -> None:
    task = added(site, "asked")
    now = site.ask("GET", f"/tasks/{task}/why").json()
    assert (now["subject"]["id"], now["upcoming"]["due"]) == (task, True)
    monday = site.ask("GET", f"/tasks/{task}/why?at=2030-01-07T08:00:00Z").json()
    assert (monday["due"], monday["local"]) == (True, "2030-01-07T09:00:00")
    assert site.ask("GET", f"/tasks/{task}/why?at=2030-01-07T08:01:00Z").json()["due"] is False
    since = site.ask("GET", f"/tasks/{task}/why?since=7d").json()
    assert (since["items"], since["next"], since["not_as_planned"]) == ([], None, 0)
    run = site.ask("POST", f"/tasks/{task}/run").json()["id"]
    assert site.ask("GET", f"/runs/{run}/why").json()["subject"]["id"] == run
    for query in ("at=sometime", "at=now&since=1h", "since="):
        assert site.ask("GET", f"/tasks/{task}/why?{query}").status_code == 422, query


def test_nobody_serves_and_nothing_was_out(site: Web) -> None:
    assert site.ask("GET", "/holders").json() == {"items": [], "next": None}
    assert site.ask("GET", "/outages").json() == {"items": [], "next": None}
    assert site.ask("GET", "/holders?state=tired").status_code == 422
    assert site.ask("GET", "/holders?cursor=tsk_x").status_code == 422


def test_what_is_next_is_as_many_as_one_asks_for_by_either_word(site: Web) -> None:
    task = added(site, "often", triggers=["every 1h"])
    for word in ("n", "limit"):
        assert len(site.ask("GET", f"/tasks/{task}/next?{word}=3").json()["items"]) == 3
        assert len(site.ask("GET", f"/next?{word}=2").json()["items"]) == 2


def test_what_is_next_of_all_tasks_is_told_in_its_order(site: Web) -> None:
    items = site.ask("GET", "/next?n=3").json()["items"]
    assert len(items) == 3
    assert [one["due_at"] for one in items] == sorted(one["due_at"] for one in items)
    assert site.ask("GET", "/next?n=0").status_code == 422


def test_a_preview_says_what_a_when_means_and_writes_nothing(site: Web) -> None:
    before = site.dump()
    asked = {"when": ["daily 02:30"], "zone": "Europe/Berlin", "after": "2026-03-28T12:00:00Z", "n": 2}
    found = site.ask("POST", "/preview", json=asked).json()
    assert (found["words"], found["canonical"]) == ("every day at 02:30", "daily 02:30")
    assert [(one["due_at"], one["note"]) for one in found["items"]] == [
        ("2026-03-29T01:00:00Z", "gap"),
        ("2026-03-30T00:30:00Z", None),
    ]
    as_object = {**asked, "when": [{"kind": "daily", "times": ["02:30"]}], "gap": "skip", "n": 1}
    assert site.ask("POST", "/preview", json=as_object).json()["items"][0]["due_at"] == "2026-03-30T00:30:00Z"
    bad = [{}, {"when": []}, {"when": ["never"]}, {"when": [7]}, {**asked, "n": 0}, {**asked, "zone": "Mars"}]
    bad += [{**asked, "when": ["every 15m"], "gap": "skip"}, {**asked, "after": "then"}, {"when": "manual", "fold": 1}]
    for body in bad:
        assert site.ask("POST", "/preview", json=body).status_code == 422, json.dumps(body)
    assert site.dump() == before


def test_every_instant_that_is_told_is_utc(site: Web) -> None:
    told = site.ask("GET", "/ledger?limit=5").json()["items"]
    assert all(datetime.fromisoformat(one["at"]).tzinfo == UTC for one in told)
