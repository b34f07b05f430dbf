"""What a webhook sends, and what its attempt comes to."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from webhook_scene import PATIENCE_S, Receiver, Sender, in_a_thread, nobody_listens

from duly.core import signing
from duly.core.events import Event
from duly.core.successes import Success
from duly.ports import Outcome
from duly.runners.webhook import exchange

EVENT = Event(
    id="evt_1", source="git", key="k1", body='{"who": "O\\"Hara", "n": 3, "tags": ["a"]}', at=datetime.now(UTC), by="x"
)


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "QUICK_AFTER_S", (0.0, 0.0))


def test_a_webhook_tells_its_run_by_headers_and_as_json(receiver: Receiver, sender: Sender) -> None:
    outcome = sender.send(receiver.url(), input="now", event=EVENT, task_name="räumen")
    assert (outcome.word, outcome.reason, outcome.error) == ("succeeded", None, None)
    [sent] = receiver.sent
    assert (sent.method, sent.path, sent.headers["content-type"]) == ("POST", "/hook", "application/json")
    assert sent.headers["idempotency-key"] == sent.headers["duly-run"] == "run_00000000000000000000000001"
    told = ("duly-attempt", "duly-fence", "duly-occurrence", "duly-due-at", "duly-opened-by", "duly-event-key")
    assert [sent.headers[name] for name in told] == [
        "2",
        "7",
        "at:2026-12-01T08:00:00Z",
        "2026-12-01T08:00:00Z",
        "schedule",
        "k1",
    ]
    assert sent.headers["duly-task"] == "r%C3%A4umen"
    body = sent.json()
    assert (body["task"], body["input"], body["event"]["data"]["n"]) == ("räumen", "now", 3)
    assert outcome.details["http"]["status"] == 200  # type: ignore[index]


def test_what_was_answered_is_kept_in_the_log_with_its_status_and_headers(receiver: Receiver, sender: Sender) -> None:
    receiver.answer("/made", 201, b"made it\n", X_Kind="answer", Set_Cookie="id=17")
    outcome = sender.send(receiver.url("/made"))
    log = sender.log()
    assert "> POST http://127.0.0.1" in log
    assert "< 201 Created" in log
    assert "< x-kind: answer" in log
    assert log.endswith("\n\nmade it\n")
    assert "id=17" not in log
    assert outcome.log_bytes == len(log.encode())


def test_secrets_stand_in_address_and_headers_by_name_and_are_masked_where_they_are_told(
    receiver: Receiver, sender: Sender
) -> None:
    receiver.answer("/s3cret-token", 403, b"bad token s3cret-token")
    action = {"headers": {"Authorization": "Bearer ${TOKEN}"}}
    outcome = sender.send(receiver.url("/${TOKEN}"), action=action)
    [sent] = receiver.sent
    assert (sent.path, sent.headers["authorization"]) == ("/s3cret-token", "Bearer s3cret-token")
    assert outcome.error == "the server answered 403 Forbidden: bad token ${TOKEN}"
    assert "s3cret" not in sender.log()
    assert "/${TOKEN} (" in sender.log()


def test_a_secret_that_is_missing_sends_nothing(receiver: Receiver, sender: Sender) -> None:
    outcome = sender.send(receiver.url(), action={"headers": {"X": "${NONE}"}})
    assert (outcome.word, outcome.reason, outcome.side_effect, outcome.unseen) == ("failed", "preflight", False, False)
    assert "the header X: the secret NONE is neither in [secrets]" in str(outcome.error)
    assert not receiver.sent


def test_a_signed_webhook_can_be_checked_by_whoever_has_the_secret(receiver: Receiver, sender: Sender) -> None:
    sender.send(receiver.url(), action={"sign": "KEY", "body": "hello"})
    [sent] = receiver.sent
    id_, stamp, given = (sent.headers[name] for name in (signing.ID, signing.TIMESTAMP, signing.SIGNATURE))
    assert id_ == sent.headers["duly-run"]
    assert signing.is_standard("signing-key", id_=id_, stamp=stamp, body=sent.body, given=given)
    assert not signing.is_standard("signing-key", id_=id_, stamp=stamp, body=b"hallo", given=given)
    assert not signing.is_standard("another-key", id_=id_, stamp=stamp, body=sent.body, given=given)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ('{"run": "{{run}}", "by": "{{event.who}}", "n": {{event.n}}}', {"run": "RUN", "by": 'O"Hara', "n": 3}),
        ('{"all": {{event}}, "said": "{{input}}"}', {"all": json.loads(EVENT.body), "said": 'a "b"\n'}),
        ('{"\\"": "{{event.tags}}", "not": "{{event.none}}"}', {'"': '["a"]', "not": "{{event.none}}"}),
    ],
)
def test_a_body_of_json_stays_json_whatever_is_put_into_it(
    receiver: Receiver, sender: Sender, body: str, wanted: object
) -> None:
    sender.send(receiver.url(), action={"body": body}, event=EVENT, input='a "b"\n')
    [sent] = receiver.sent
    assert json.loads(sent.body.decode().replace(sent.headers["duly-run"], "RUN")) == wanted


def test_a_body_of_text_is_sent_as_it_is_written(receiver: Receiver, sender: Sender) -> None:
    sender.send(receiver.url(), action={"method": "PUT", "body": "due {{due_at:%d.%m.}}: {{event.who}}"}, event=EVENT)
    [sent] = receiver.sent
    assert (sent.method, sent.body, sent.headers["content-type"]) == (
        "PUT",
        b'due 01.12.: O"Hara',
        "text/plain; charset=utf-8",
    )


def test_a_get_carries_no_body(receiver: Receiver, sender: Sender) -> None:
    assert sender.send(receiver.url(), action={"method": "GET"}).word == "succeeded"
    [sent] = receiver.sent
    assert (sent.method, sent.body) == ("GET", b"")


def test_a_header_of_the_task_stands_in_the_place_of_the_usual_one(receiver: Receiver, sender: Sender) -> None:
    given = {"accept": "application/json", "user-agent": "me"}
    sender.send(receiver.url(), action={"method": "GET", "headers": given})
    [sent] = receiver.sent
    assert (sent.headers["accept"], sent.headers["user-agent"]) == ("application/json", "me")


@pytest.mark.parametrize("status", [400, 404, 409, 429, 500, 503])
def test_a_status_that_is_no_success_is_a_failure_that_is_not_sent_again_by_itself(
    receiver: Receiver, sender: Sender, status: int
) -> None:
    outcome = sender.send(receiver.answer(f"/{status}", status, b"no\nmore"))
    assert (outcome.word, outcome.reason, outcome.unseen, outcome.side_effect) == ("failed", "exit_status", False, True)
    assert str(outcome.error).startswith(f"the server answered {status} ")
    assert str(outcome.error).endswith(": no more")
    assert len(receiver.sent) == 1


def test_a_redirect_is_not_followed(receiver: Receiver, sender: Sender) -> None:
    outcome = sender.send(receiver.answer("/moved", 302, Location=receiver.url("/inside")))
    assert (outcome.word, outcome.reason) == ("failed", "exit_status")
    assert f"sends on to {receiver.url('/inside')}, which is not followed" in str(outcome.error)
    assert [sent.path for sent in receiver.sent] == ["/moved"]


def test_what_the_task_calls_a_success_is_asked_of_the_answer(receiver: Receiver, sender: Sender) -> None:
    url = receiver.answer("/said", 200, b'{"status": "queued"}')
    assert sender.send(url, success_when=Success(matches='"status": *"queued"')).word == "succeeded"
    outcome = sender.send(url, success_when=Success(matches='"status": *"done"'))
    assert (outcome.word, outcome.reason) == ("failed", "success_rule")
    assert "nothing in the answer matches" in str(outcome.error)


def test_where_nobody_listens_it_is_tried_three_times_and_may_be_sent_again_later(sender: Sender) -> None:
    outcome = sender.send(nobody_listens())
    assert (outcome.word, outcome.reason, outcome.side_effect, outcome.unseen) == ("failed", "preflight", False, True)
    assert "the server cannot be reached" in str(outcome.error)
    assert outcome.details["http"]["tries"] == 3  # type: ignore[index]
    assert sender.log().count("tried again") == 2


def test_an_answer_that_breaks_off_is_a_failure_after_which_nothing_is_sent_again(
    receiver: Receiver, sender: Sender
) -> None:
    outcome = sender.send(receiver.url("/broken"))
    assert (outcome.word, outcome.reason, outcome.unseen, outcome.side_effect) == ("failed", "cut_off", False, True)
    assert len(receiver.sent) == 1


def test_a_timeout_hangs_up_and_says_that_it_was_sent(receiver: Receiver, sender: Sender) -> None:
    outcome = sender.send(receiver.hang("/slow"), timeout=timedelta(seconds=1))
    assert (outcome.word, outcome.reason, outcome.side_effect) == ("timed_out", "timeout", True)
    assert outcome.error == "its timeout of 1s was over before it was answered"


def test_an_idle_timeout_ends_a_server_that_says_nothing(receiver: Receiver, sender: Sender) -> None:
    outcome = sender.send(receiver.hang("/silent"), idle_timeout=timedelta(seconds=1))
    assert (outcome.word, outcome.reason, outcome.error) == ("timed_out", "idle", "the server was silent for 1 s")


def test_a_cancel_hangs_up_at_once(receiver: Receiver, sender: Sender) -> None:
    runner, assignment = sender.runner(), sender.assignment(receiver.hang("/never"))
    wait = in_a_thread(lambda: runner.perform(assignment, None))
    while not any(sent.path == "/never" for sent in receiver.sent):
        assert receiver.came.acquire(timeout=PATIENCE_S)
    runner.stop("term")
    outcome = wait()
    assert (outcome.word, outcome.reason, outcome.side_effect, outcome.confirmed) == (
        "cancelled",
        "cancelled_by_hand",
        True,
        True,
    )


def test_a_cancel_before_the_start_sends_nothing(receiver: Receiver, sender: Sender) -> None:
    runner = sender.runner()
    runner.stop("kill")
    outcome = runner.perform(sender.assignment(receiver.url()), None)
    assert isinstance(outcome, Outcome)
    assert (outcome.word, outcome.side_effect) == ("cancelled", False)
    assert not receiver.sent


def test_of_a_long_answer_the_beginning_is_kept_and_the_rest_counted(
    receiver: Receiver, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "KEPT_BYTES", 1000)
    outcome = sender.send(receiver.answer("/long", 200, b"x" * 5000))
    assert outcome.log_cut == 4000
    assert outcome.log_bytes == len(sender.log()) + 4000
    assert sender.log().endswith("\n\n" + "x" * 1000)


def test_an_answer_without_end_is_hung_up_on(
    receiver: Receiver, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "HEARD_BYTES", 10_000)
    outcome = sender.send(receiver.answer("/endless", 200, b"x" * 5_000_000))
    assert outcome.word == "succeeded"
    assert outcome.details["http"]["answer_bytes"] < 5_000_000  # type: ignore[index]
    assert "it was hung up on after" in sender.log()
