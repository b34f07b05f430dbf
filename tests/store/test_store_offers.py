"""Offers: what people answer to missed occurrences, once each, and what becomes of those that nobody answers."""

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from store_offers import accept, again, closed, decline, offered, refused
from store_people import switch, unpause
from store_scene import DAY, HOUR, MINUTE, NINE, TICK, Scene, hourly, scene, without

from duly.core import offers
from duly.errors import DulyError, Refused
from duly.holder.planner import Planner
from duly.operations import missed as answers
from duly.operations import runs as asks
from duly.store import missed as statements


def told(s: Scene, kind: str) -> list[tuple[object, ...]]:
    return [(one.run, one.occurrence, one.by, one.count) for one in s.entries() if one.kind == kind]


def test_an_accepted_offer_opens_a_run_for_the_newest_of_its_count_whatever_its_age(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        one = offered(s, count=5, max_age=MINUTE)
        s.at(s.clock.moment + 2 * DAY)
        done = accept(s, one)
        run = s.run(done.run.id)
        assert (run.occurrence, run.due_at) == ("at:2026-03-02T14:00:00Z", NINE + 5 * HOUR)
        assert (run.opened_by, run.opened_by_whom, run.state) == ("offer", "bob", "waiting")
        stands = again(s, one)
        assert (stands.state, stands.run, stands.decided_by, stands.decided_at) == (
            "accepted",
            run.id,
            "bob",
            s.clock.moment,
        )
        assert told(s, "accepted") == [(run.id, run.occurrence, "bob", 5)]
        (won,) = s.claim()
        assert won.run.id == run.id, "no policy and no age is asked"
        s.settle(won)
        assert s.run(run.id).outcome == "succeeded"
        s.plan()
        assert s.faults() == []


@pytest.mark.parametrize("first", [accept, decline])
@pytest.mark.parametrize("second", [accept, decline])
def test_a_second_answer_is_refused_with_who_gave_the_first_and_when(
    tmp_path: Path, first: Callable[..., object], second: Callable[..., object]
) -> None:
    with scene(tmp_path) as s:
        one = offered(s)
        first(s, one, by="ann")
        at, before = s.clock.moment, (s.entries(), s.runs(), again(s, one))
        s.at(at + HOUR)
        no = refused(lambda: second(s, one, by="bob"))
        assert no.reason == "already_answered"
        assert no.message.startswith(f"ann {'accepted' if first is accept else 'declined'} it at {at:%Y-%m-%d %H:%M}")
        assert no.details["decided_by"] == "ann"
        assert (s.entries(), s.runs(), again(s, one)) == before


def test_a_declined_offer_keeps_who_when_and_why_and_opens_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        one = offered(s)
        decline(s, one, by="ann", note="it was a holiday")
        stands = again(s, one)
        assert (stands.state, stands.decided_by, stands.note) == ("declined", "ann", "it was a holiday")
        assert s.runs() == []
        assert told(s, "declined") == [(None, one.occurrence, "ann", 5)]
        assert "it was a holiday" in refused(lambda: accept(s, one)).message
        assert s.faults() == []


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("verbs", [("accept", "accept"), ("accept", "decline")])
def test_of_two_answers_at_once_over_two_connections_one_wins_and_the_other_is_told_so(
    tmp_path: Path, order: tuple[int, int], verbs: tuple[str, str]
) -> None:
    with scene(tmp_path) as s:
        one = offered(s)
        stores = [s.connect(), s.connect()]
        barrier = threading.Barrier(2)
        got: dict[int, object] = {}

        def answer(at: int) -> None:
            verb = answers.accept if verbs[at] == "accept" else answers.decline
            barrier.wait()
            try:
                got[at] = verb(stores[at], one.id, by=f"person {at}")
            except DulyError as error:
                got[at] = error

        threads = [threading.Thread(target=answer, args=(at,)) for at in order]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        lost = [at for at, came in got.items() if isinstance(came, Refused)]
        assert len(got) == 2
        assert len(lost) == 1, got
        won = 1 - lost[0]
        no = got[lost[0]]
        assert isinstance(no, Refused)
        assert (no.reason, no.details["decided_by"]) == ("already_answered", f"person {won}")
        assert again(s, one).decided_by == f"person {won}"
        assert len(s.runs()) == (verbs[won] == "accept")
        assert s.faults() == []


def test_an_answer_that_was_read_before_another_came_is_not_written(tmp_path: Path) -> None:
    """The guard is the state in the write; without it the later answer would stand over the earlier one."""
    with scene(tmp_path) as s:
        stale = offered(s)
        accept(s, stale, by="ann")
        late = offers.declined(stale, by="bob", note=None, now=s.clock.moment)
        with s.connect().write() as session:
            assert not session.missed.decide(stale, late)
        assert again(s, stale).decided_by == "ann"
        with without(statements.DECIDE, "missed.state = ?", "? IS NOT NULL"), s.connect().write() as session:
            assert session.missed.decide(stale, late)
        assert again(s, stale).decided_by == "bob", "so much for the guard"


def test_an_offer_that_nobody_answers_is_over_at_its_end_and_the_planner_writes_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        one = offered(s, lasts=2 * HOUR)
        end = one.expires_at
        assert end is not None
        with s.store.read() as session:
            at = Planner("hld_a").soonest(session)
            assert at is not None
            assert at <= end
        s.sql("UPDATE tasks SET next_due_us = NULL, next_start_us = NULL")
        with s.store.read() as session:
            assert Planner("hld_a").soonest(session) == end, "a holder that waits is called by it"
        s.at(end - TICK)
        s.plan()
        assert again(s, one).state == "open"
        s.at(end)
        s.plan()
        stands = again(s, one)
        assert (stands.state, stands.decided_by, stands.decided_at) == ("expired", None, end)
        assert told(s, "expired") == [(None, one.occurrence, None, 5)]
        s.plan()
        assert len(told(s, "expired")) == 1


def test_an_answer_after_the_end_finds_the_offer_over_though_nobody_serves(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        one = offered(s, lasts=HOUR)
        s.at(s.clock.moment + HOUR)
        with s.store.read() as session:
            assert session.missed.open(session.now) == []
            assert session.missed.open_counts(session.now) == {}
            (shown,), _ = answers.listed(session, task=None, only_open=False, cursor=None, most=5)
        assert shown["state"] == "expired", "reading tells it, and writes nothing"
        assert again(s, one).state == "open"
        no = refused(lambda: decline(s, one))
        assert no.reason == "already_answered"
        assert "nobody answered it" in no.message
        assert accept(s, one).run.opened_by == "offer", "it never ran, so it may still be wanted"


def test_what_was_skipped_or_coalesced_may_be_accepted_and_has_nothing_to_decline(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        one = closed(s)
        no = refused(lambda: decline(s, one))
        assert (no.reason, no.details["state"]) == ("already_answered", "closed")
        assert "missed_skip" in no.message
        assert accept(s, one).run.occurrence == "at:2026-03-02T14:00:00Z"
        assert again(s, one).state == "accepted"
        assert s.faults() == []


def test_an_accepted_run_waits_for_the_seat_of_the_run_that_has_it_and_is_not_skipped(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        one = offered(s, count=1)
        s.at(NINE + 2 * HOUR)
        s.plan()
        (live,) = s.claim()
        run = accept(s, one).run
        assert s.claim() == []
        assert s.run(run.id).state == "waiting"
        s.settle(live)
        (won,) = s.claim()
        assert won.run.id == run.id
        assert s.faults() == []


@pytest.mark.parametrize("state", ["waiting", "held", "ended"])
def test_an_occurrence_that_has_a_run_is_refused_with_that_run(tmp_path: Path, state: str) -> None:
    with scene(tmp_path) as s:
        one = closed(s, count=1)
        run = accept(s, one).run
        won = s.claim() if state != "waiting" else []
        if state == "ended":
            s.settle(won[0])
        s.sql("UPDATE missed SET state = 'closed', run = NULL, decided_by = NULL")
        no = refused(lambda: accept(s, one))
        words = {"waiting": "already_waiting", "held": "already_running", "ended": "already_ended"}
        assert (no.reason, no.details["run"]) == (words[state], run.id)
        assert len(s.runs()) == 1


def test_offers_of_a_disabled_task_are_accepted_and_of_a_paused_one_only_anyway(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        one, two = offered(s), offered(s, "two")
        switch(s, "disable")
        run = accept(s, one).run
        assert [won.run.id for won in s.claim()] == [run.id]
        switch(s, "pause", "two")
        no = refused(lambda: accept(s, two))
        assert (no.reason, no.hint) == ("paused", "--anyway runs it all the same")
        assert again(s, two).state == "open"
        other = accept(s, two, anyway=True).run
        assert [won.run.id for won in s.claim()] == [other.id]


def test_a_run_of_an_offer_accepted_before_a_pause_waits_for_its_end(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run = accept(s, offered(s)).run
        switch(s, "pause")
        assert s.claim() == []
        assert s.run(run.id).state == "waiting", "what a person asked for stays"
        unpause(s)
        assert [won.run.id for won in s.claim()] == [run.id]


def test_removing_a_task_ends_what_is_asked_of_it_and_no_answer_brings_it_back(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        one = offered(s)
        switch(s, "remove")
        stands = again(s, one)
        assert (stands.state, stands.decided_by) == ("closed", "ann")
        assert [(entry.reason, entry.by) for entry in s.entries() if entry.kind == "expired"] == [
            ("task_removed", "ann")
        ]
        assert refused(lambda: accept(s, one)).reason == "unknown_task"
        assert "ann removed its task" in refused(lambda: decline(s, one)).message
        with s.store.read() as session:
            assert session.missed.open_counts(session.now) == {}


def test_newer_offers_leave_older_ones_and_each_is_answered_by_itself(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        old = offered(s, count=2)
        s.at(s.clock.moment + 3 * HOUR)
        s.plan()
        with s.store.read() as session:
            new, kept = session.missed.listed()
        assert (kept.id, new.count) == (old.id, 3)
        assert accept(s, new).run.due_at == NINE + 5 * HOUR
        assert accept(s, old).run.due_at == NINE + 2 * HOUR
        assert s.faults() == []


@pytest.mark.parametrize(
    "word", ["mis_", "nothing", "run_00000000000000000000000000", "mis_zzzzzzzzzzzzzzzzzzzzzzzzzz"]
)
def test_an_unknown_id_is_told_so_and_where_ids_are_found(tmp_path: Path, word: str) -> None:
    with scene(tmp_path) as s:
        offered(s)
        for ask in (answers.accept, answers.decline):
            no = refused(lambda ask=ask: ask(s.store, word, by="bob"))  # type: ignore[misc]
            assert (no.reason, no.hint) == ("unknown_id", "duly missed")


def test_a_run_by_hand_is_not_in_the_way_of_an_offer_nor_the_other_way_round(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        one = offered(s, overlap="queue")
        hand = asks.run_now(s.store, "one", by="ann")
        run = accept(s, one).run
        assert len({hand.occurrence, run.occurrence}) == 2
        (first,) = s.claim()
        s.settle(first)
        (second,) = s.claim()
        assert {first.run.id, second.run.id} == {hand.id, run.id}


def test_only_so_many_offers_run_out_in_one_look_and_the_rest_in_the_next(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        one = offered(s)
        with s.store.write() as session:
            from dataclasses import replace

            session.missed.insert(replace(one, id=f"mis_{number:026d}") for number in range(150))
        s.at(s.clock.moment + 8 * DAY)
        with s.store.write() as session:
            from duly.store.offers import expire

            assert [len(expire(session)) for _ in range(3)] == [100, 51, 0]


def test_a_task_with_offers_still_opens_what_is_due(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        offered(s, count=3)
        s.at(NINE + 4 * HOUR + timedelta(seconds=1))
        assert [run.opened_by for run in s.plan()] == ["schedule"]
        s.add("three", hourly())
        assert s.faults() == []
