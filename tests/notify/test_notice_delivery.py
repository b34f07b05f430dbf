"""From the ledger to a receiver: what is told, once, together, again where it was not taken, and by whom."""

import base64
import hashlib
import hmac
from datetime import timedelta

from notify_scene import FAILED, SUCCEEDED, Post, Told
from store_scene import MINUTE, SECOND, Scene

from duly.core.channels import CLAIMED_FOR
from duly.operations import channels, listing, tasks
from duly.ports import Outcome


def test_a_first_failure_and_the_recovery_are_told_and_what_lies_between_is_not(told: Told, post: Post) -> None:
    told.channel()
    for outcome in (SUCCEEDED, FAILED, FAILED, FAILED, SUCCEEDED, SUCCEEDED):
        told.run("backup", outcome)
        told.deliver()
    assert post.kinds == [["failing"], ["recovered"]]
    failing, recovered = (body["notices"][0] for body in post.bodies)
    assert failing["title"] == "backup failed"
    assert failing["text"] == "failed: exit 3: no such bucket"
    assert failing["task"]["name"] == "backup"
    assert failing["run"].startswith("run_")
    assert recovered["title"] == "backup succeeds again"
    assert "after 3 failures since" in recovered["text"]


def test_notify_after_tells_of_that_many_failures_in_a_row_and_of_no_fewer(told: Told, post: Post) -> None:
    told.channel()
    for outcome in (FAILED, FAILED, SUCCEEDED, FAILED, FAILED, FAILED, FAILED):
        told.run("flaky", outcome, notify_after=3)
        told.deliver()
    assert post.kinds == [["failing"]]
    assert post.bodies[0]["notices"][0]["title"] == "flaky failed 3 times in a row"


def test_an_abandoned_run_is_told_at_once_whatever_notify_after_says(told: Told, post: Post) -> None:
    told.channel()
    gone = Outcome(word="abandoned", reason="holder_died", error="the process that held the run died")
    told.run("import", gone, notify_after=10)
    told.deliver()
    assert post.kinds == [["abandoned"]]


def test_what_comes_together_goes_together(told: Told, post: Post) -> None:
    told.channel()
    for name in ("one", "two", "three"):
        told.run(name)
    told.deliver()
    assert post.kinds == [["failing", "failing", "failing"]]
    assert post.bodies[0]["title"].startswith("3 notices: one failed")
    assert post.bodies[0]["severity"] == "failure"


def test_a_channel_hears_one_message_in_the_span_that_it_was_set_for(told: Told, post: Post, s: Scene) -> None:
    told.channel(every="1m")
    told.run("one")
    told.deliver(SECOND)
    for name in ("two", "three"):
        s.add(name)
        with s.store.write() as session:
            fail(session, name)
        told.deliver(SECOND)
    assert post.kinds == [["failing"]]
    told.deliver(MINUTE)
    assert post.kinds == [["failing"], ["failing", "failing"]]


def test_a_message_that_is_not_taken_is_sent_again_later_and_its_run_says_so(told: Told, post: Post, s: Scene) -> None:
    told.channel()
    told.run("backup")
    post.status = 500
    told.deliver()
    told.deliver(SECOND)
    assert len(post.got) == 1, "it waits before it is tried again"
    [run] = s.runs()
    assert states(s, run.id) == [("ops", "waiting", 1, "it answered 500")]
    post.status = 200
    told.deliver(MINUTE)
    assert states(s, run.id) == [("ops", "sent", 2, None)]
    assert post.bodies[0]["id"] == post.bodies[1]["id"], "whoever took it unseen knows it again"
    assert s.run(run.id).outcome == "failed", "what becomes of a notice is nothing to its run"
    assert [event for event, _ in told.log] == ["channel failed", "channel back"]


def test_a_receiver_says_itself_how_long_to_wait(told: Told, post: Post) -> None:
    told.channel()
    told.run("backup")
    post.status, post.headers = 429, {"Retry-After": "600"}
    told.deliver()
    told.deliver(5 * MINUTE)
    assert len(post.got) == 1
    told.deliver(6 * MINUTE)
    assert len(post.got) == 2


def test_what_nobody_took_for_a_day_is_given_up_and_said_to_be(told: Told, post: Post, s: Scene) -> None:
    told.channel()
    told.run("backup")
    post.status = 503
    told.deliver()
    told.deliver(timedelta(hours=25))
    assert told.states() == [("failing", "failed")]
    with s.store.read() as session:
        assert channels.shape(channels.one(session, "ops"))["failures"] == 2


def test_two_that_serve_one_store_send_each_notice_once(told: Told, post: Post, s: Scene) -> None:
    told.channel()
    others = [Told(s, post, who=f"hld_{n}") for n in range(3)]
    for number in range(6):
        told.run(f"task{number}")
        for one in (told, *others):
            one.gather()
        s.at(s.clock.moment + 5 * SECOND)
        for one in (told, *others):
            one.delivering.step(s.store)
        for one in (told, *others):
            one.settle()
    ids = [one["id"] for body in post.bodies for one in body["notices"]]
    assert len(ids) == len(set(ids)) == 6


def test_what_was_claimed_by_one_that_died_is_sent_by_another_once_the_claim_is_over(
    told: Told, post: Post, s: Scene
) -> None:
    told.channel()
    told.run("backup")
    told.gather()
    s.at(s.clock.moment + 5 * SECOND)
    with s.store.write() as session:
        [channel] = session.channels.all()
        assert told.delivering._claim(session, channel) is not None  # and then it dies
    other = Told(s, post, who="hld_b")
    other.send()
    assert post.got == []
    other.deliver(CLAIMED_FOR)
    assert post.kinds == [["failing"]]


def test_a_receiver_that_does_not_answer_keeps_nothing_from_another(told: Told, post: Post, s: Scene) -> None:
    slow = Post()
    try:
        slow.may_answer.clear()
        told.channel("slow", url=slow.url)
        told.channel("ops")
        told.run("backup")
        told.gather()
        s.at(s.clock.moment + 5 * SECOND)
        told.delivering.step(s.store)
        until_taken(post)
        told.run("other")  # and the store is free meanwhile
        assert [run.outcome for run in s.runs()] == ["failed", "failed"]
        slow.may_answer.set()
        told.settle()
        assert set(told.states()) >= {("failing", "sent")}
    finally:
        slow.close()


def test_a_message_is_signed_by_a_secret_that_is_only_named_and_kept_out_of_all_that_is_told(
    told: Told, post: Post, s: Scene
) -> None:
    s.environ["HOOK_KEY"] = "whsec_" + base64.b64encode(b"the key of the hook").decode()
    s.environ["PASS"] = "hunter22"
    told.channel(url=post.url + "?key=${PASS}", secret="HOOK_KEY")
    told.run("backup", Outcome(word="failed", reason="exit_status", exit_code=1, error="hunter22 was refused"))
    told.deliver()
    [(headers, body)] = post.got
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = base64.b64encode(hmac.new(b"the key of the hook", signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{digest}"
    assert b"hunter22" not in body
    assert b"${PASS} was refused" in body
    post.status = 500
    told.run("backup2")
    told.deliver()
    with s.store.read() as session:
        shown = str(channels.shape(channels.one(session, "ops")))
    assert "hunter22" not in shown + str(told.log)


def test_a_secret_that_is_not_there_is_the_channels_trouble_and_nobody_elses(told: Told, post: Post, s: Scene) -> None:
    told.channel("broken", url="https://${NOWHERE}/hook")
    told.channel("ops")
    told.run("backup")
    told.deliver()
    assert post.kinds == [["failing"]]
    with s.store.read() as session:
        error = str(channels.shape(channels.one(session, "broken"))["error"])
    assert "NOWHERE" in error


def test_a_redirection_is_not_followed(told: Told, post: Post) -> None:
    other = Post()
    try:
        told.channel()
        post.status, post.headers = 307, {"Location": other.url}
        told.run("backup")
        told.deliver()
        assert (len(post.got), other.got) == (1, [])
    finally:
        other.close()


def test_who_takes_the_task_in_hand_before_it_is_told_is_not_told(told: Told, post: Post, s: Scene) -> None:
    told.channel()
    told.run("backup")
    told.gather()
    with s.store.read() as session:
        task = session.tasks.by_name("default", "backup")
    assert task is not None
    tasks.disable(s.store, task.id, by="ann")
    told.deliver()
    assert post.got == []
    assert told.states() == [("failing", "quiet")]


def test_a_task_names_who_is_told_of_it_or_that_nobody_is(told: Told, post: Post) -> None:
    other = Post()
    try:
        told.channel("ops")
        told.channel("dba", url=other.url, only_named=True)
        told.run("plain")
        told.run("dump", notify=("dba",))
        told.run("noise", notify=())
        told.run("orphan", notify=("gone",))
        told.deliver()
        assert [one["title"] for one in post.bodies[0]["notices"]] == ["plain failed", "orphan failed"]
        assert [one["title"] for one in other.bodies[0]["notices"]] == ["dump failed"]
    finally:
        other.close()


def test_a_channel_hears_nothing_of_what_was_before_it(told: Told, post: Post) -> None:
    told.run("backup")
    told.channel()
    told.deliver()
    assert post.got == []
    told.run("backup")
    told.deliver()
    assert post.kinds == [["failing"]]


def test_what_is_sent_links_to_where_there_is_more(told: Told, post: Post, s: Scene) -> None:
    s.environ["DULY_PUBLIC_URL"] = "https://duly.example.org/"
    told.channel()
    told.run("backup")
    told.deliver()
    [notice] = post.bodies[0]["notices"]
    assert notice["url"] == f"https://duly.example.org/api/v1/runs/{notice['run']}"
    assert notice["url"] in post.bodies[0]["text"]


def fail(session: object, name: str) -> None:
    """Tell the ledger that a run of this task failed just now."""
    from duly.core.run import Entry

    known = session.tasks.by_name("default", name)  # type: ignore[attr-defined]
    session.ledger.add(  # type: ignore[attr-defined]
        [Entry(kind="ended", at=session.now, task=known.id, reason="timeout", details={"outcome": "timed_out"})]  # type: ignore[attr-defined]
    )


def states(s: Scene, run: str) -> list[tuple[object, ...]]:
    """The notices of a run as its shape tells them."""
    with s.store.read() as session:
        found = session.runs.by_id(run)
        assert found is not None
        shape = listing.run_shape(session, found, session.tasks.by_id(found.task))
    return [(one["channel"], one["state"], one["tries"], one["error"]) for one in shape["notices"]]  # type: ignore[attr-defined]


def until_taken(post: Post) -> None:
    from duly.clock import monotonic_s, pause

    until = monotonic_s() + 60
    while not post.got:
        assert monotonic_s() < until
        pause(0.01)
