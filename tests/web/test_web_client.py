"""The Python client asks every noun, page by page, and raises the errors of the house."""

from collections.abc import Iterator

import httpx2
import pytest
from web_scene import URL, Web, web_over
from work_scene import MAY_I, asking, claimed, of, settled

from duly.client import Client, Unreached, events
from duly.errors import Invalid, Refused
from duly.ports import Outcome
from duly.runners.folders import folder_of


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with web_over(tmp_path_factory.mktemp("web")) as made:
        yield made


@pytest.fixture(scope="module")
def client(web: Web) -> Client:
    return Client(URL, web.secret(), http=web.client)


def test_a_program_defines_changes_and_removes_tasks(client: Client) -> None:
    made = client.add(of("mine", project="shop"))
    assert client.task(made["id"])["name"] == client.task("shop/mine")["name"] == "mine"
    changed = client.change("shop/mine", {"description": "of the shop"}, version=made["version"])
    assert (changed["description"], changed["triggers"]) == ("of the shop", made["triggers"])
    with pytest.raises(Refused) as stale:
        client.replace(made["id"], of("mine", project="shop"), version=made["version"])
    assert stale.value.reason == "version_conflict"
    replaced = client.replace(made["id"], of("mine", project="shop"), version=changed["version"])
    assert not replaced["description"]
    assert client.disable(made["id"])["enabled"] is False
    assert client.enable(made["id"])["enabled"] is True
    client.pause(made["id"], note="stocktaking")
    assert client.task(made["id"])["paused"][0]["note"] == "stocktaking"
    client.unpause(made["id"])
    client.remove(made["id"])
    with pytest.raises(Refused) as gone:
        client.task("shop/mine")
    assert gone.value.reason == "unknown_task"


def test_lists_are_read_to_their_end_however_many_pages_they_have(client: Client) -> None:
    names = {client.add(of(f"many-{number}", project="many"))["name"] for number in range(5)}
    assert {one["name"] for one in client.tasks(project="many", limit="2")} == names
    assert client.status()["tasks"]["total"] >= 5


def test_a_program_runs_a_task_and_reads_its_log(web: Web, client: Client) -> None:
    client.add(of("runs"))
    run = client.run("runs", input="numbers of May", key="may")
    assert client.run("runs", input="numbers of May", key="may")["id"] == run["id"]
    with pytest.raises(Refused) as other:
        client.run("runs", input="of June", key="may")
    assert other.value.reason == "key_reused"
    (won,) = [one for one in claimed(web) if one.run.id == run["id"]]
    folder = folder_of(web.store.run_folder, run["id"], won.run.fence)
    folder.mkdir(parents=True)
    (folder / "log").write_bytes(b"done\n")
    assert client.get_run(run["id"])["state"] == "running"
    with pytest.raises(Refused):
        client.wait(run["id"], within_s=0)
    settled(web, won, Outcome(word="succeeded", exit_code=0))
    assert client.wait(run["id"])["outcome"] == "succeeded"
    assert client.log(run["id"]) == b"".join(client.follow(run["id"])) == b"done\n"
    assert [one["id"] for one in client.runs(task="runs")] == [run["id"]]
    again = client.retry(run["id"])
    assert again["retry_of"] == run["id"]
    assert client.cancel(again["id"])["id"] == again["id"]


def test_what_is_followed_may_be_silent_for_long_and_a_stream_may_not() -> None:
    waited: list[float | None] = []

    def answered(request: httpx2.Request) -> httpx2.Response:
        waited.append(request.extensions["timeout"]["read"])
        return httpx2.Response(200, content=iter([b'data: {"seq": 1}\n\n']))

    with Client(URL, "x", http=httpx2.Client(transport=httpx2.MockTransport(answered))) as client:
        assert b"".join(client.follow("run_1"))
        stream = client.stream()
        assert next(stream) == {"seq": 1}
        stream.close()  # type: ignore[attr-defined]
    assert waited[0] is None
    assert waited[1] is not None


def test_a_token_that_may_only_run_runs_a_task_of_a_project(web: Web, client: Client) -> None:
    client.add(of("for runners", project="yard"))
    assert Client(URL, web.secret("run"), http=web.client).run("yard/for runners")["state"] == "waiting"


def test_a_program_answers_questions_and_tells_of_events(web: Web, client: Client) -> None:
    asks = client.add(of("asks"))
    _, question = asking(web, asks["id"], MAY_I)
    assert [one["id"] for one in client.questions()] == [question]
    client.answer(question, "allow", note="go on")
    with pytest.raises(Refused) as twice:
        client.answer(question, "deny")
    assert twice.value.reason == "already_answered"
    client.emit("door.opened", {"door": "north"}, key="n1")
    with pytest.raises(Refused):
        client.emit("door.opened", {"door": "south"}, key="n1")
    assert list(client.missed()) == []
    assert client.why(asks["id"])


def test_what_is_not_valid_is_told_with_the_field(client: Client) -> None:
    with pytest.raises(Invalid) as invalid:
        client.add(of("bad", rules={"queue": "many"}))
    assert "queue" in str(invalid.value.field)
    with pytest.raises(Refused) as unknown:
        client.get_run("run_nobody")
    assert unknown.value.reason == "unknown_run"


def test_a_wrong_token_or_none_and_a_server_that_is_not_there_are_told(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Refused) as refused:
        Client(URL, "duly_tok_wrong", http=web.client).status()
    assert (refused.value.reason, refused.value.details["status"]) == ("not_allowed", 401)
    monkeypatch.delenv("DULY_TOKEN", raising=False)
    with pytest.raises(Invalid):
        Client(URL)

    def nobody(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused", request=request)

    with Client(URL, "x", http=httpx2.Client(transport=httpx2.MockTransport(nobody))) as away:
        with pytest.raises(Unreached):
            away.status()
        with pytest.raises(Unreached):
            next(away.stream())


def test_a_stream_that_is_cut_off_is_asked_for_again_after_the_last_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duly.client.calls.AGAIN_S", (0.0, 0.0))
    asked: list[str | None] = []
    answers = [
        b"retry: 1\nid: 4\n\n",
        b'id: 5\ndata: {"seq": 5}\n\nid: 6\ndata: {"se',
        b"",
        b'id: 6\ndata: {"seq": 6}\n\n',
    ]

    def answered(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.headers.get("last-event-id"))
        if not answers:
            return httpx2.Response(401, json={"reason": "not_allowed", "detail": "gone"})
        return httpx2.Response(200, content=iter([answers.pop(0)]))

    with Client(URL, "x", http=httpx2.Client(transport=httpx2.MockTransport(answered))) as client:
        stream = client.stream()
        assert [next(stream), next(stream)] == [{"seq": 5}, {"seq": 6}]
        with pytest.raises(Refused):
            next(stream)
    assert asked == [None, "4", "5", "5", "6"]


def test_events_are_read_whatever_the_pieces_they_come_in() -> None:
    text = "retry: 1\r\nid: 3\n\n: beat\n\nid: 4\nevent: reset\ndata: {\ndata: }\n\ndata: ü🕘\n\ndata: cut".encode()
    whole = list(events.read([text]))
    assert [(one.id, one.kind, one.data) for one in whole] == [
        ("3", "message", None),
        ("4", "reset", "{\n}"),
        ("4", "message", "ü🕘"),
    ]
    for size in (1, 2, 3, 7):
        assert list(events.read(text[at : at + size] for at in range(0, len(text), size))) == whole


def test_an_event_without_an_end_is_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "EVENT_MOST", 1_000)
    with pytest.raises(ValueError, match="more than"):
        list(events.read([b"x" * 600] * 3))
    with pytest.raises(ValueError, match="more than"):
        list(events.read([b"data: " + b"x" * 100 + b"\n"] * 20))
