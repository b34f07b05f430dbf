"""What is done to tasks and runs over HTTP: run, switched, held, skipped, filled, ended, done again."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from web_scene import API, Web, web_over
from work_scene import MAY_I, WHICH, added, asking, claimed, offered, settled

from duly.core.run import Run
from duly.ports import Outcome
from duly.store.secrets_made import make_in


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with web_over(tmp_path_factory.mktemp("acts")) as made:
        yield made


def run_of(site: Web, id_: str) -> Run:
    with site.store.read() as session:
        found = session.runs.by_id(id_)
    assert found is not None
    return found


def test_a_run_by_hand_is_answered_with_where_it_is(site: Web) -> None:
    task = added(site, "asked for")
    made = site.ask("POST", f"/tasks/{task}/run", json={"input": "May", "args": ["--all"]})
    run = made.json()
    assert (made.status_code, made.headers["location"]) == (202, f"{API}/runs/{run['id']}")
    assert (run["state"], run["opened_by"], run["opened_by_whom"]) == ("waiting", "manual", "t0")
    assert (run["input"], run["args"]) == ("May", ["--all"])
    shown = site.client.get(made.headers["location"], headers=site.as_("read")).json()
    assert (shown["id"], shown["task_name"]) == (run["id"], "asked for")
    refused = site.ask("POST", f"/tasks/{task}/run")
    assert (refused.status_code, refused.json()["reason"]) == (409, "already_waiting")
    assert refused.json()["details"]["run"] == run["id"]
    assert site.ask("POST", f"/tasks/{task}/run", json={"queue": True}).status_code == 202


def test_the_same_key_opens_one_run_and_another_input_under_it_is_refused(site: Web) -> None:
    task = added(site, "keyed")
    given = {"json": {"input": "x"}, "headers": {"Idempotency-Key": "k-1"}}
    answers = [site.ask("POST", f"/tasks/{task}/run", **given) for _ in range(3)]
    assert {one.status_code for one in answers} == {202}
    assert len({one.json()["id"] for one in answers}) == 1
    assert site.ask("POST", f"/tasks/{task}/run", json={"input": "x", "key": "k-1"}).json() == answers[0].json()
    other = site.ask("POST", f"/tasks/{task}/run", json={"input": "y", "key": "k-1"})
    assert (other.status_code, other.json()["reason"]) == (409, "key_reused")
    differing = site.ask("POST", f"/tasks/{task}/run", json={"key": "k-2"}, headers={"Idempotency-Key": "k-3"})
    assert (differing.status_code, differing.json()["errors"][0]["pointer"]) == (422, "/key")


def test_a_task_is_switched_and_held_and_let_go(site: Web) -> None:
    task = added(site, "switched")
    off = site.ask("POST", f"/tasks/{task}/disable")
    assert (off.status_code, off.json()["enabled"], off.json()["next_due_at"]) == (200, False, None)
    on = site.ask("POST", f"/tasks/{task}/enable")
    assert (on.json()["enabled"], on.headers["etag"]) == (True, f'"v{on.json()["version"]}"')
    held = site.ask("POST", f"/tasks/{task}/pause", json={"until": "2h", "note": "full disk"}).json()
    assert (held["scope"], held["note"], held["by"], held["tasks"]) == ("task", "full disk", "t0", 1)
    assert site.ask("GET", f"/tasks/{task}").json()["paused"][0]["note"] == "full disk"
    refused = site.ask("POST", f"/tasks/{task}/run")
    assert (refused.status_code, refused.json()["reason"]) == (409, "paused")
    assert site.ask("POST", f"/tasks/{task}/run", json={"anyway": True}).status_code == 202
    assert site.ask("POST", f"/tasks/{task}/unpause").json()["pause"]["note"] == "full disk"
    assert site.ask("POST", f"/tasks/{task}/unpause").json() == {"pause": None, "tasks": 0}
    for until in ("yesterday", "2020-01-01T00:00:00Z", ""):
        bad = site.ask("POST", f"/tasks/{task}/pause", json={"until": until})
        assert (bad.status_code, bad.json()["errors"][0]["pointer"]) == (422, "/until"), until


def test_what_is_to_come_is_skipped_and_seen_as_skipped(site: Web) -> None:
    task = added(site, "skipped")
    done = site.ask("POST", f"/tasks/{task}/skip", json={"next": True, "note": "holiday"}).json()
    assert done["count"] == 1
    first, second = site.ask("GET", f"/tasks/{task}/next?n=2").json()["items"]
    assert first["due_at"] == done["first"]
    assert (first["skipped"], second["skipped"]) == ({"by": "t0", "note": "holiday"}, None)
    at = site.ask("POST", f"/tasks/{task}/skip", json={"at": second["due_at"]}).json()
    assert (at["first"], at["already"]) == (second["due_at"], False)
    assert site.ask("POST", f"/tasks/{task}/skip", json={"before": "30d"}).json()["count"] >= 25
    for body in ({}, {"next": True, "at": "now"}, {"next": "yes"}, {"at": "2h"}, {"before": 7}):
        assert site.ask("POST", f"/tasks/{task}/skip", json=body).status_code == 422, body


def test_the_past_is_filled_once_and_a_dry_run_opens_nothing(site: Web) -> None:
    task = added(site, "filled")
    span = {"from": "7d", "to": "now"}
    dry = site.ask("POST", f"/tasks/{task}/backfill", json={**span, "dry_run": True}).json()
    assert (dry["dry_run"], dry["runs"], dry["count"] in (7, 8)) == (True, [], True)
    done = site.ask("POST", f"/tasks/{task}/backfill", json=span).json()
    assert len(done["runs"]) == done["count"]
    again = site.ask("POST", f"/tasks/{task}/backfill", json=span).json()
    assert (again["runs"], again["ran"]) == ([], done["count"])
    for body in ({"from": "7d"}, {"to": "now"}, {"from": "now", "to": "7d"}, {**span, "overlap": "never"}):
        assert site.ask("POST", f"/tasks/{task}/backfill", json=body).status_code == 422, body


def test_a_run_is_ended_and_done_again_by_name_of_the_one_before(site: Web) -> None:
    task = added(site, "ended")
    run = site.ask("POST", f"/tasks/{task}/run", json={"input": "once"}).json()["id"]
    early = site.ask("POST", f"/runs/{run}/retry")
    assert (early.status_code, early.json()["reason"]) == (409, "already_waiting")
    ended = site.ask("POST", f"/runs/{run}/cancel")
    assert (ended.status_code, ended.json()["outcome"]) == (202, "cancelled")
    again = site.ask("POST", f"/runs/{run}/cancel")
    assert (again.status_code, again.json()["reason"]) == (409, "already_ended")
    retried = site.ask("POST", f"/runs/{run}/retry")
    assert (retried.status_code, retried.json()["retry_of"], retried.json()["input"]) == (202, run, "once")
    assert retried.headers["location"] == f"{API}/runs/{retried.json()['id']}"


def test_the_wish_to_end_a_live_run_is_on_record_at_once_and_its_fence_can_be_asked(site: Web) -> None:
    task = added(site, "live")
    run = site.ask("POST", f"/tasks/{task}/run").json()["id"]
    (won,) = [one for one in claimed(site) if one.run.id == run]
    now = site.ask("GET", f"/tasks/{task}/fence?fence={won.run.fence}").json()
    assert (now["current"], now["run"], now["holder"]) == (True, run, "hld_a")
    asked = site.ask("POST", f"/runs/{run}/cancel")
    assert (asked.status_code, asked.json()["state"]) == (202, "running")
    assert run_of(site, run).cancel_asked_at is not None
    settled(site, won, Outcome(word="succeeded", exit_code=0))
    over = site.ask("GET", f"/tasks/{task}/fence?fence={won.run.fence}").json()
    assert (over["current"], over["reason"]) == (False, "already_ended")
    assert site.ask("GET", f"/tasks/{task}/fence").status_code == 422


def test_what_was_missed_is_accepted_or_declined_once(site: Web) -> None:
    task = added(site, "late")
    with site.store.read() as session:
        now = session.now.replace(microsecond=0)
    wanted, unwanted = (offered(site, task, now - timedelta(days=days)) for days in (1, 2))
    listed = site.ask("GET", f"/missed?open=true&task={task}").json()["items"]
    assert {one["id"] for one in listed} == {wanted, unwanted}
    taken = site.ask("POST", f"/missed/{wanted}/accept")
    assert (taken.status_code, taken.json()["opened_by"], taken.json()["missed"]["state"]) == (202, "offer", "accepted")
    declined = site.ask("POST", f"/missed/{unwanted}/decline", json={"note": "too late"}).json()
    assert (declined["state"], declined["note"], declined["decided_by"]) == ("declined", "too late", "t0")
    for id_, verb in ((wanted, "accept"), (wanted, "decline"), (unwanted, "accept"), (unwanted, "decline")):
        again = site.ask("POST", f"/missed/{id_}/{verb}")
        assert (again.status_code, again.json()["reason"]) == (409, "already_answered")
    assert site.ask("GET", f"/missed?open=true&task={task}").json()["items"] == []
    assert len(site.ask("GET", f"/missed?task={task}").json()["items"]) == 2
    for state, ids in (("accepted", [wanted]), ("declined", [unwanted]), ("open", [])):
        found = site.ask("GET", f"/missed?task={task}&state={state}").json()["items"]
        assert [one["id"] for one in found] == ids, state
    assert site.ask("GET", f"/missed/{unwanted}").json()["note"] == "too late"
    assert site.ask("GET", "/missed?state=done").status_code == 422


def test_a_question_is_answered_once_by_who_may_answer_alone(site: Web) -> None:
    run, permission = asking(site, added(site, "asks leave"), MAY_I)
    _, question = asking(site, added(site, "asks which"), WHICH)
    open_ = site.ask("GET", "/questions?open=true").json()["items"]
    assert {one["id"] for one in open_} == {permission, question}
    assert site.ask("GET", f"/questions/{permission}").json()["run"] == run
    answered = {"json": {"answer": "allow", "note": "clean"}}
    strangers = site.as_("read", "run", "write")
    assert site.ask("POST", f"/questions/{permission}/answer", headers=strangers, **answered).status_code == 403
    wrong = [
        (permission, {"text": "yes"}),
        (permission, {}),
        (question, {"answer": "allow"}),
        (question, {"text": " "}),
    ]
    for id_, body in wrong:
        assert site.ask("POST", f"/questions/{id_}/answer", json=body).status_code == 422, body
    done = site.ask("POST", f"/questions/{permission}/answer", headers=site.as_("answer"), **answered).json()
    assert (done["state"], done["answer"], done["note"]) == ("answered", "allow", "clean")
    said = site.ask("POST", f"/questions/{question}/answer", json={"text": "next"}).json()
    assert (said["answer"], said["answered_by"]) == ("next", "t0")
    again = site.ask("POST", f"/questions/{permission}/answer", json={"answer": "deny"})
    assert (again.status_code, again.json()["reason"]) == (409, "already_answered")


def test_the_work_of_a_run_does_not_pass_a_hold_that_it_may_not_lift(site: Web) -> None:
    asks = added(site, "asks for others")
    site.ask("POST", f"/tasks/{asks}/run")
    held = added(site, "waits for a person")
    with site.store.write() as session:
        (own,) = session.runs.waiting_of(asks)
        may = frozenset({"read", "run"})
        made = make_in(session, kind="run", name="w", rights=may, by="w", projects=frozenset({"default"}), run=own.id)
        missed = session.now.replace(microsecond=0) - timedelta(days=1)
    assert made is not None
    done = site.ask("POST", f"/tasks/{held}/run").json()["id"]
    site.ask("POST", f"/runs/{done}/cancel")
    site.ask("POST", f"/tasks/{held}/pause", json={"note": "made in a run: a person lets it start"})
    work = {"Authorization": f"Bearer {made.secret}"}
    late = offered(site, held, missed)
    span = {"from": "3d", "to": "now", "anyway": True}
    ways = [
        (f"/tasks/{held}/run", {"anyway": True}),
        (f"/tasks/{held}/backfill", span),
        (f"/runs/{done}/retry", {"anyway": True}),
        (f"/missed/{late}/accept", {"anyway": True}),
    ]
    before = site.dump()
    for path, body in ways:
        refused = site.ask("POST", path, json=body, headers=work)
        assert (refused.status_code, refused.json()["reason"]) == (403, "not_allowed"), path
    assert site.dump() == before
    assert site.ask("POST", f"/tasks/{held}/run", json={"anyway": True}).status_code == 202
