"""The routes that stream, log and measure, as programs ask them."""

import os
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as read_metrics
from stream_scene import Reader, stream_scope
from web_scene import API, Web, web_over
from work_scene import added as add
from work_scene import claimed, settled

from duly.core.run import Entry
from duly.operations import tokens
from duly.ports import Outcome
from duly.runners import processes
from duly.runners.folders import folder_of
from duly.web import tail

SUCCEEDED = Outcome(word="succeeded", exit_code=0)
NUMBERS = count(1)


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """One interface for all tests here: making it costs more than asking it."""
    with web_over(tmp_path_factory.mktemp("web")) as made:
        for name in ("home", "work"):
            assert made.ask("PUT", f"/projects/{name}", json={}).status_code < 300
        yield made


def added(web: Web, name: str, **more: Any) -> str:
    """The id of a new task, whose name no other test has taken."""
    return add(web, f"{name}-{next(NUMBERS)}", **more)


def reading(
    web: Web, path: str, enough: Callable[[Reader], bool], query: str = "", *, secret: str | None = None, **headers: str
) -> Reader:
    """Ask for what streams, with every right unless another token is given."""
    given = {"authorization": f"Bearer {secret or web.secret()}", **headers}
    return Reader(web.client.app, stream_scope(API + path, query, **given), enough).read()


def told(web: Web, many: int = 1, task: str | None = None) -> list[int]:
    with web.store.write() as session:
        before = session.ledger.last()
        session.ledger.add(Entry(kind="defined", at=session.now, by="ann", task=task) for _ in range(many))
        return [one.seq for one in session.ledger.after(before)]


def written(web: Web, text: bytes, *, task: str | None = None) -> tuple[str, Any]:
    """A run that is held and has written something; and its claim."""
    run = web.ask("POST", f"/tasks/{task or added(web, 'writer')}/run").json()["id"]
    (won,) = [one for one in claimed(web) if one.run.id == run]
    folder = folder_of(web.store.run_folder, run, won.run.fence)
    folder.mkdir(parents=True)
    (folder / "log").write_bytes(text)
    return run, won


# The stream


def test_the_stream_goes_on_after_the_last_event_id_or_after_the_number_in_the_query(web: Web) -> None:
    web.secret()
    seqs = told(web, 5)
    whole = reading(web, "/stream", lambda one: len(one.heard.seqs) >= 5, f"after={seqs[0] - 1}")
    assert whole.status == 200
    assert whole.heard.seqs == seqs
    assert whole.headers["content-type"].startswith("text/event-stream")
    again = reading(
        web, "/stream", lambda one: len(one.heard.seqs) >= 2, "after=0", last_event_id=whole.heard.events[2].id or ""
    )
    assert again.heard.seqs == seqs[3:]


@pytest.mark.parametrize("given", ["x", "-1", "1.5", "1 2", "9" * 19, "１", "١٢"])
def test_a_last_event_id_that_is_none_of_ours_is_refused(web: Web, given: str) -> None:
    answered = web.ask("GET", "/stream", headers={"Last-Event-ID": given.encode()})
    assert (answered.status_code, answered.json()["reason"]) == (400, "invalid")
    assert web.ask("GET", "/stream", params={"after": given}).status_code == 422


def test_a_token_that_is_held_to_projects_hears_of_no_other(web: Web) -> None:
    mine, other = added(web, "mine", project="home"), added(web, "other", project="work")
    held = web.secret("read", projects=("home",))
    before = told(web)[0]
    own = told(web, 2, mine)
    told(web, 3, other)
    told(web, 1)
    last = told(web, 1, mine)[0]
    heard = reading(web, "/stream", lambda one: last in one.heard.seqs, f"after={before}", secret=held).heard
    assert heard.seqs == [*own, last]
    asked = {"Authorization": f"Bearer {held}"}
    for query in ({"project": "work"}, {"task": other}, {"task": "work/nothing"}):
        refused = web.client.get(f"{API}/stream", params=query, headers=asked)
        assert refused.status_code in {403, 404}, query
        assert other not in refused.text


def test_the_stream_of_one_task_or_project_leaves_out_the_others(web: Web) -> None:
    one, other = added(web, "one", project="home"), added(web, "other", project="work")
    name = web.ask("GET", f"/tasks/{one}").json()["name"]
    before = told(web)[0]
    told(web, 2, other)
    last = told(web, 1, one)[0]
    for query in (f"task={one}", f"task=home/{name}", "project=HOME"):
        heard = reading(web, "/stream", lambda one: bool(one.heard.seqs), f"after={before}&{query}").heard
        assert heard.seqs == [last]


def test_a_stream_ends_when_its_token_is_revoked(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "STILL_EVERY_S", 0.0)
    made = tokens.create(web.store, "gone", rights=["read"], projects=[], by="ann")

    def begun(reader: Reader) -> bool:
        if reader.raw and not reader.ended:
            web.ask("DELETE", "/tokens/gone")
        return False

    assert reading(web, "/stream", begun, secret=made.secret).ended


@pytest.mark.parametrize("path", ["/stream", "/runs/run_x/log", "/runs/run_x/log?follow=1"])
def test_who_has_no_token_or_one_without_the_right_gets_no_byte_of_a_stream(web: Web, path: str) -> None:
    told(web, 2)
    dump = web.dump()
    assert web.client.get(API + path).status_code == 401
    assert web.client.get(API + path, headers={"Authorization": "Bearer no"}).status_code == 401
    assert web.dump() == dump
    assert web.client.get(API + path, headers=web.as_("run")).status_code == 403
    foreign = web.ask("GET", path, headers={"Host": "evil.example"})
    assert foreign.status_code == 421


# Logs


def test_a_log_is_given_byte_for_byte_with_its_length(web: Web) -> None:
    text = "first\nümlaut\n".encode() + b"\xff\x00last"
    run, won = written(web, text)
    running = web.ask("GET", f"/runs/{run}/log")
    assert (running.status_code, running.content) == (200, text)
    assert "content-length" not in running.headers, "it still grows"
    settled(web, won, SUCCEEDED)
    ended = web.ask("GET", f"/runs/{run[-8:]}/log")
    assert (ended.content, ended.headers["content-length"]) == (text, str(len(text)))
    assert (ended.headers["duly-log-bytes"], ended.headers["duly-log-cut"]) == (str(len(text)), "0")
    assert ended.headers["content-type"] == "text/plain; charset=utf-8"
    assert ended.headers["x-content-type-options"] == "nosniff"
    assert web.ask("GET", f"/runs/{run}/log?after=6").content == text[6:]
    assert web.ask("GET", f"/runs/{run}/log?after=999").content == b""


@pytest.mark.parametrize(
    ("asked", "begin", "end"),
    [
        ("bytes=0-4", 0, 5),
        ("bytes=5-", 5, 100),
        ("bytes=-7", 93, 100),
        ("bytes=90-500", 90, 100),
        ("bytes=-500", 0, 100),
    ],
)
def test_a_range_of_a_log_is_given_with_where_it_lies(web: Web, asked: str, begin: int, end: int) -> None:
    text = bytes(range(100))
    run, won = written(web, text)
    live = web.ask("GET", f"/runs/{run}/log", headers={"Range": asked})
    settled(web, won, SUCCEEDED)
    part = web.ask("GET", f"/runs/{run}/log", headers={"Range": asked})
    assert (live.status_code, part.status_code) == (206, 206)
    assert live.content == part.content == text[begin:end]
    assert live.headers["content-range"] == f"bytes {begin}-{end - 1}/*"
    assert part.headers["content-range"] == f"bytes {begin}-{end - 1}/100"


def test_positions_of_a_range_count_what_was_cut_out_of_the_middle(web: Web) -> None:
    run, won = written(web, b"HEAD" + b"TAIL")
    folder = folder_of(web.store.run_folder, run, won.run.fence)
    settled(web, won, SUCCEEDED)
    folder.mkdir(exist_ok=True)
    (folder / "log").write_bytes(b"HEAD" + b"TAIL")
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    processes.write_whole(descriptor, "cut", {"at": 4, "bytes": 100})
    os.close(descriptor)

    def part(asked: str) -> tuple[int, bytes, str]:
        found = web.ask("GET", f"/runs/{run}/log", headers={"Range": asked})
        return found.status_code, found.content if found.status_code == 206 else b"", found.headers["content-range"]

    whole = web.ask("GET", f"/runs/{run}/log")
    assert (whole.content, whole.headers["duly-log-bytes"], whole.headers["duly-log-cut"]) == (
        b"HEADTAIL",
        "108",
        "100",
    )
    assert whole.headers["content-length"] == "8"
    assert part("bytes=2-") == (206, b"AD", "bytes 2-3/108")
    assert part("bytes=50-") == (206, b"TAIL", "bytes 104-107/108")
    assert part("bytes=-2") == (206, b"IL", "bytes 106-107/108")
    assert part("bytes=10-20") == (416, b"", "bytes */108")
    assert part("bytes=108-") == (416, b"", "bytes */108")


@pytest.mark.parametrize("asked", ["bytes=", "bytes=-", "bytes=5-2", "lines=1-2", "bytes=0-1,4-5", "bytes=a-b", "\x00"])
def test_a_range_that_is_not_read_is_refused(web: Web, asked: str) -> None:
    run, _ = written(web, b"some text")
    answered = web.ask("GET", f"/runs/{run}/log", headers={"Range": asked})
    assert answered.status_code == 400
    assert web.ask("GET", f"/runs/{run}/log?follow=1", headers={"Range": "bytes=0-"}).status_code == 400


def test_a_log_is_followed_until_its_run_ends(web: Web) -> None:
    run, won = written(web, b"one\n")
    folder = folder_of(web.store.run_folder, run, won.run.fence)

    def enough(reader: Reader) -> bool:
        if reader.raw == b"one\n":
            with (folder / "log").open("ab") as log:
                log.write(b"two\n")
        elif reader.raw == b"one\ntwo\n" and not reader.ended:
            settled(web, won, SUCCEEDED)
        return False

    reader = reading(web, f"/runs/{run}/log", enough, "follow=1")
    assert (reader.raw, reader.ended) == (b"one\ntwo\n", True)
    late = reading(web, f"/runs/{run}/log", lambda _: False, "follow=1&after=4")
    assert (late.raw, late.ended) == (b"two\n", True)


def test_a_followed_log_that_is_larger_than_what_lies_ready_comes_whole(web: Web) -> None:
    text = bytes(range(256)) * 4_000
    run, won = written(web, text)
    settled(web, won, SUCCEEDED)
    assert reading(web, f"/runs/{run}/log", lambda _: False, "follow=1").raw == text
    assert web.ask("GET", f"/runs/{run}/log").content == text


def test_a_run_that_waits_is_followed_from_its_first_attempt_on(web: Web) -> None:
    task = added(web, "waits")
    run = web.ask("POST", f"/tasks/{task}/run").json()["id"]
    assert web.ask("GET", f"/runs/{run}/log").content == b""

    def enough(reader: Reader) -> bool:
        if reader.status == 200 and not reader.raw:
            (won,) = claimed(web)
            folder = folder_of(web.store.run_folder, run, won.run.fence)
            folder.mkdir(parents=True)
            (folder / "log").write_bytes(b"at last\n")
            settled(web, won, SUCCEEDED)
        return False

    assert reading(web, f"/runs/{run}/log", enough, "follow=1").raw == b"at last\n"


def test_the_log_of_an_attempt_is_asked_for_by_its_number(web: Web) -> None:
    run, _ = written(web, b"text")
    assert web.ask("GET", f"/runs/{run}/log?attempt=1").content == b"text"
    assert web.ask("GET", f"/runs/{run}/log?attempt=2").status_code == 422
    for bad in ("attempt=0", "attempt=x", "after=-1", "follow=perhaps", "after=1e30"):
        assert web.ask("GET", f"/runs/{run}/log?{bad}").status_code == 422, bad
    assert web.ask("GET", "/runs/run_nobody/log").status_code == 404


def test_the_log_of_another_project_is_none_of_a_tokens_business(web: Web) -> None:
    run, _ = written(web, b"secret figures", task=added(web, "other", project="work"))
    for query in ("", "?follow=1"):
        refused = web.client.get(f"{API}/runs/{run}/log{query}", headers=web.as_("read", projects=("home",)))
        assert refused.status_code in {403, 404}
        assert "figures" not in refused.text


# Health and metrics


def test_who_asks_whether_it_lives_or_is_ready_needs_no_token(web: Web) -> None:
    assert web.client.get("/healthz").json() == {"status": "ok"}
    ready = web.client.get("/readyz")
    assert (ready.status_code, ready.json()) == (200, {"status": "ok", "store": "ok", "loops": "ok"})
    assert web.client.get("/metrics").status_code == 401


def test_what_is_measured_is_told_to_who_may_read_the_whole_store(web: Web) -> None:
    def measured() -> Any:
        given = web.client.get("/metrics", headers=web.as_("read"))
        assert given.status_code == 200
        assert given.headers["content-type"].startswith("text/plain; version=0.0.4")
        found = {one.name + str(one.labels): one.value for family in read_metrics(given.text) for one in family.samples}
        return found["duly_ledger_entries_total{'kind': 'defined'}"], found["duly_tasks{'state': 'enabled'}"]

    told(web, 1)
    before = measured()
    added(web, "one")
    assert measured() == (before[0] + 1, before[1] + 1)
    assert web.client.get("/metrics", headers=web.as_("run")).status_code == 403
    assert web.client.get("/metrics", headers=web.as_("read", projects=("home",))).status_code == 403
