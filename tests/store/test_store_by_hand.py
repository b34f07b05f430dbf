"""Runs by hand beside those of time."""

from pathlib import Path

import pytest
from store_people import by_hand
from store_scene import (
    HOUR,
    NINE,
    hourly,
    scene,
)

from duly.core.triggers import Once
from duly.errors import Refused
from duly.holder.settling import Interrupted, Returned
from duly.operations import runs as run_operations


def test_a_run_by_hand_neither_eats_nor_doubles_the_occurrence_of_the_same_instant(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly(), overlap="queue")
        s.at(NINE + HOUR)
        hand = by_hand(s)
        assert s.task(task.id).planned_until == NINE
        assert [run.occurrence for run in s.plan()] == ["at:2026-03-02T10:00:00Z"]
        assert hand.occurrence.startswith("manual:")
        (first,) = s.claim()
        assert first.run.id == hand.id, "by hand goes first"
        s.settle(first)
        (second,) = s.claim()
        s.settle(second)
        assert [run.outcome for run in s.runs()] == ["succeeded", "succeeded"]
        s.at(NINE + 2 * HOUR)
        assert len(s.plan()) == 1, "the next is not moved"
        assert s.faults() == []


def test_a_run_by_hand_does_not_use_up_a_once(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Once(at=NINE + HOUR))
        by_hand(s)
        s.settle(s.claim()[0])
        assert not s.task(task.id).done
        s.at(NINE + HOUR)
        assert len(s.plan()) == 1
        assert s.task(task.id).done


def test_a_run_by_hand_does_not_cancel_a_pending_retry(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held("one", on_interrupt="retry")
        s.settle(won, Interrupted(why="holder_died", ended_at=s.clock.now()))
        assert s.run(won.run.id).state == "waiting"
        hand = by_hand(s)
        (claimed,) = s.claim(holder="hld_b")
        assert claimed.run.id == hand.id
        s.claim(holder="hld_b")  # a turn in which the seat is taken
        assert s.run(won.run.id).state == "waiting", "the retry waits for its seat"
        s.settle(claimed, holder="hld_b")
        (again,) = s.claim(holder="hld_b")
        assert (again.run.id, again.run.attempt) == (won.run.id, 2)


def test_the_same_key_answers_with_the_first_run_and_with_another_input_is_refused(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        s.add("two", hourly())
        first = by_hand(s, key="k", input_="a")
        other = s.connect()
        again = run_operations.run_now(other, "one", by="bob", key="k", input_="a")
        assert again == first
        with pytest.raises(Refused) as caught:
            by_hand(s, key="k", input_="b")
        assert caught.value.reason == "key_reused"
        with pytest.raises(Refused):
            by_hand(s, key="k")
        assert len(s.runs()) == 1
        s.settle(s.claim()[0])
        assert by_hand(s, key="k", input_="a").id == first.id, "after its end too"
        assert by_hand(s, "two", key="k", input_="b").id != first.id, "a key is of one task"
        assert by_hand(s).id != by_hand(s, queue=True).id, "without a key each ask is new"


def test_a_run_by_hand_is_refused_with_the_holders_name_or_waits_where_asked(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held("one")
        before = (s.entries(), s.runs())
        with pytest.raises(Refused, match="hld_a") as caught:
            by_hand(s)
        assert caught.value.reason == "already_running"
        assert caught.value.details["run"] == won.run.id
        assert (s.entries(), s.runs()) == before
        hand = by_hand(s, queue=True)
        s.claim()
        assert s.run(hand.id).state == "waiting", "what a person asked for is never skipped for its seat"


def test_a_cancelled_waiting_run_ends_even_if_the_wish_is_older_than_its_waiting(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held("one")
        run_operations.cancel(s.store, won.run.id, by="ann")
        s.settle(won, Returned(why="it had not begun"))
        assert s.claim() == [], "a cancelled run is not started again"
        run = s.run(won.run.id)
        assert (run.state, run.outcome) == ("ended", "cancelled")
        assert s.faults() == []
