"""The thread that tells, Apprise, budgets, and offers that somebody takes before anybody was told of them."""

import threading
from collections.abc import Mapping
from datetime import timedelta

import pytest
from notify_scene import FAILED, WITHIN_S, Post, Told
from store_scene import HOUR, Scene, hourly

from duly.clock import monotonic_s
from duly.core.amounts import Allowance
from duly.core.channels import Channel
from duly.errors import StoreSilent
from duly.notify import notifying, trying
from duly.notify.notifying import Notifying
from duly.operations import budgets, missed

OLD_MODULE = pytest.mark.filterwarnings("ignore:.imghdr. is deprecated:DeprecationWarning")
"""What Apprise imports on the oldest Python."""


def test_the_thread_tells_what_happens_while_it_lives_and_what_has_just_ended_before_it_ends(
    told: Told, post: Post, s: Scene
) -> None:
    log: list[tuple[str, Mapping[str, object]]] = []
    thread = Notifying(s.store, s.environ, lambda event, figures: log.append((event, figures)), who="hld_a")
    told.channel()
    thread.start()
    try:
        told.run("backup")
        s.at(s.clock.moment + timedelta(seconds=5))
        until = monotonic_s() + WITHIN_S
        while not post.got:
            assert monotonic_s() < until
            threading.Event().wait(0.02)
            s.at(s.clock.moment + timedelta(seconds=5))
        told.run("other")
    finally:
        thread.stop()
    assert [kind for kinds in post.kinds for kind in kinds] == ["failing", "failing"]
    assert told.states() == [("failing", "sent")] * 2
    assert not log


@OLD_MODULE
def test_people_are_told_through_apprise_with_the_severity(told: Told, post: Post) -> None:
    told.channel("people", url=post.url.replace("http://", "json://"))
    told.run("backup")
    told.deliver()
    [body] = post.bodies
    assert (body["title"], body["message"], body["type"]) == (
        "backup failed",
        "failed: exit 3: no such bucket",
        "failure",
    )
    assert told.states() == [("failing", "sent")]
    post.status = 500
    told.run("other")
    told.deliver()
    assert told.states()[1] == ("failing", "waiting")


@OLD_MODULE
def test_an_address_that_apprise_does_not_know_is_told_as_the_channels_error(told: Told, s: Scene) -> None:
    told.channel("people", url="nosuchservice://token")
    with s.store.read() as session:
        channel = session.channels.by_name("people")
    assert channel is not None
    assert trying.attempt(s.store, channel, s.environ) == "Apprise knows no such address"


def test_a_test_notice_goes_out_at_once_and_leaves_no_trace_in_the_outbox(told: Told, post: Post, s: Scene) -> None:
    told.channel()
    with s.store.read() as session:
        channel = session.channels.by_name("ops")
    assert channel is not None
    assert trying.attempt(s.store, channel, s.environ) is None
    assert (post.kinds, told.states()) == ([["test"]], [])
    post.status = 404
    assert trying.attempt(s.store, channel, s.environ) == "it answered 404"


def test_a_budget_of_which_nothing_is_left_is_told_once_a_period(told: Told, post: Post, s: Scene) -> None:
    told.channel()
    budgets.set_budget(s.store, "store", Allowance(per="day", runs=2), by="ann")
    told.run("one")
    told.deliver()
    told.run("two")
    told.deliver()
    told.deliver()
    assert post.kinds == [["failing"], ["failing", "budget"]]
    text = post.bodies[1]["notices"][1]["text"]
    assert text.startswith("2 of 2 runs a day are taken; it begins anew at")
    s.at(s.clock.moment + timedelta(days=1))
    told.deliver()
    assert len(post.got) == 2, "the next day has room"
    for name in ("three", "four"):
        told.run(name)
    told.deliver()
    assert post.kinds[2] == ["failing", "failing", "budget"]


def test_an_offer_that_was_decided_before_it_was_told_is_not_told(told: Told, post: Post, s: Scene) -> None:
    told.channel()
    for name in ("taken", "left"):
        s.add(name, hourly(s.clock.moment), on_missed="offer")
    s.at(s.clock.moment + HOUR + timedelta(minutes=30))
    s.plan()
    told.gather()
    with s.store.read() as session:
        taken = session.tasks.by_name("default", "taken")
        assert taken is not None
        [offer] = session.missed.open_of(taken.id)
    missed.decline(s.store, offer.id, by="ann", note=None)
    told.deliver()
    assert [one["title"] for one in post.bodies[0]["notices"]] == ["left missed its time: run it?"]
    [notice] = post.bodies[0]["notices"]
    assert f"duly accept {notice['subject'][-8:]}" in notice["text"]
    assert sorted(told.states()) == [("offer", "quiet"), ("offer", "sent")]


def test_a_store_that_is_away_for_long_is_told_of_past_its_outbox_once(post: Post, s: Scene) -> None:
    thread = Notifying(s.store, s.environ, lambda event, figures: None, who="hld_a")
    thread._open = [Channel(name="ops", url=post.url, set_at=s.clock.moment, set_by="ann", next_at=s.clock.moment)]
    thread._away(StoreSilent("the server does not answer"))
    assert post.got == [], "a moment is no news"
    assert thread._away_s is not None
    thread._away_s -= notifying.AWAY_TOLD_AFTER_S
    for _ in range(3):
        thread._away(StoreSilent("the server does not answer"))
    until = monotonic_s() + WITHIN_S
    while not post.got or any(one.name == "duly-notice" for one in threading.enumerate()):
        assert monotonic_s() < until
        threading.Event().wait(0.02)
    assert post.kinds == [["store_away"]]
    assert "the server does not answer" in post.bodies[0]["text"]


def test_a_run_that_nobody_is_told_of_costs_no_write(told: Told, s: Scene) -> None:
    told.channel()
    told.run("backup", FAILED)
    told.gather()
    before = s.sql("SELECT told FROM notice_states WHERE subject = ''")
    for _ in range(3):
        told.run("fine", outcome=FAILED.__class__(word="succeeded", exit_code=0))
        assert told.gather() == 0
    assert s.sql("SELECT told FROM notice_states WHERE subject = ''") == before
