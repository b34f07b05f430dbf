"""Events in number: throttles, queues, events of a time in which nobody served, and what verify says of them."""

from datetime import timedelta
from pathlib import Path

import pytest
from store_events import FAILED, emit, end_all, listen, of_task, opened, passed, suppressed
from store_scene import HOUR, MINUTE, NINE, SECOND, TICK, scene, without

import databases
from by_hand import file_line
from duly.core import events as judging
from duly.store import events as store_events


def test_a_throttle_is_durable_and_lets_the_next_through_at_the_end_of_its_window(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = listen(s, "one", "alarm throttle 10m by host", overlap="queue", queue=100)
        assert opened(emit(s, "alarm", data='{"host": "db 1"}')) == ["one"]
        s.at(NINE + 4 * MINUTE)
        other = s.connect()  # as another process, or the same one after a restart
        late = emit(s, "alarm", data='{"host": "DB  27"}', store=other)
        assert passed(late) == {"one": "suppressed"}
        assert opened(emit(s, "alarm", data='{"host": "web"}')) == ["one"]
        s.at(NINE + 10 * MINUTE - TICK)
        assert passed(emit(s, "alarm", data='{"host": "db 3"}')) == {"one": "suppressed"}
        s.at(NINE + 10 * MINUTE)
        assert opened(emit(s, "alarm", data='{"host": "db 4"}')) == ["one"]
        told = suppressed(s, task)
        assert [one["until"] for one in told] == ["2026-03-02T09:10:00Z"] * 2
        assert [one["alike"] for one in told] == [["db #"]] * 2
        assert len(of_task(s, task)) == 3
        assert s.faults() == []


def test_a_window_that_was_not_kept_would_let_every_event_through(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = listen(s, "one", "alarm throttle 10m", overlap="queue", queue=100)
        with without(store_events.WINDOW, "throttles.task = ?", "throttles.task = ? || 'x'"):
            for _ in range(3):
                emit(s, "alarm")
        assert len(of_task(s, task)) == 3


@pytest.mark.slow
def test_a_thousand_events_each_have_one_run_that_ends_or_a_reason(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        if not databases.ON_SERVER:
            file_line(s.store).raw.execute("PRAGMA synchronous=OFF")  # a thousand commits are not what is asked here
        queueing = listen(s, "queue", "order", overlap="queue", queue=1000, seats=40)
        skipping = listen(s, "skip", "order")
        throttled = listen(s, "throttle", "order throttle 1m", overlap="queue", queue=1000)
        for number in range(1000):
            s.at(NINE + number * SECOND)
            emit(s, "order", f"o{number}")
            if number % 40 == 39:
                won = s.claim(free=100)
                s.claim(free=100)  # what finds its seat taken is judged now
                for one in won:
                    s.settle(one)
        while end_all(s):
            pass
        runs = of_task(s, queueing)
        assert len(runs) == 1000
        assert {run.outcome for run in runs} == {"succeeded"}
        assert len({run.occurrence for run in runs}) == 1000
        fates = [run.outcome for run in of_task(s, skipping)]
        assert len(fates) == 1000
        assert (fates.count("succeeded"), fates.count("skipped")) == (25, 975)
        assert len(of_task(s, throttled)) == 17
        assert len(suppressed(s, throttled)) == 983
        assert s.faults() == []


def test_the_oldest_event_makes_room_where_a_queue_is_full_and_both_are_named(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = listen(s, "one", "order", overlap="queue", queue=2)
        emit(s, "order", "o0")
        s.claim()
        for number in range(1, 5):
            emit(s, "order", f"o{number}")
        ended = [run for run in of_task(s, task) if run.state == "ended"]
        assert [(run.occurrence, run.reason) for run in ended] == [
            ("event:order:o1", "queue_full"),
            ("event:order:o2", "queue_full"),
        ]
        (last,) = [run for run in of_task(s, task) if run.occurrence == "event:order:o4"]
        told = [entry.details.get("made_room_for") for entry in s.entries(task.id) if entry.reason == "queue_full"]
        assert told[-1] == last.id
        assert s.faults() == []


def test_a_run_of_an_event_that_nobody_served_in_time_ends_stale_and_starts_just_before(tmp_path: Path) -> None:
    for late, outcome in ((timedelta(0), "succeeded"), (TICK, "skipped")):
        (tmp_path / outcome).mkdir()
        with scene(tmp_path / outcome) as s:
            listen(s, "one", "deploy", max_age=6 * HOUR)
            emit(s, "deploy")
            s.at(NINE + 6 * HOUR + late)
            end_all(s)
            (run,) = s.runs()
            assert (run.outcome, run.reason) == (outcome, None if outcome == "succeeded" else "stale")
            assert s.faults() == []


def test_a_task_that_never_ran_is_caught_up_with_the_events_of_the_time_nobody_served(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        listen(s, "one", "deploy", overlap="queue")
        for key in ("k1", "k2"):
            emit(s, "deploy", key)
        s.at(NINE + 5 * HOUR)
        assert end_all(s) == ["one"]
        assert end_all(s) == ["one"]
        assert [run.outcome for run in s.runs()] == ["succeeded", "succeeded"]


def test_verify_names_an_event_without_a_fate_and_one_with_two(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        listen(s, "one", "deploy where a=b")
        s.at(NINE + SECOND)
        lost, twice = (emit(s, "deploy", key, '{"a": "b"}').event.id for key in ("k1", "k2"))
        emit(s, "deploy", "k3", '{"a": "c"}')
        listen(s, "later", "deploy")
        assert s.faults() == []
        s.sql("DELETE FROM ledger WHERE occurrence = 'event:deploy:k1'")
        s.sql("DELETE FROM runs WHERE occurrence = 'event:deploy:k1'")
        columns = "at_us, kind, task, occurrence, reason, details"
        s.sql(
            f"INSERT INTO ledger ({columns}) SELECT at_us, 'skipped', task, occurrence, 'suppressed', details"
            " FROM ledger WHERE occurrence = 'event:deploy:k2'"
        )
        assert s.faults() == [("P6", f"{twice} has 2 fates"), ("P6", f"no fate for {lost} of deploy")]


def test_an_event_of_a_chain_that_cannot_be_told_changes_nothing_of_what_caused_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of ours among listeners must never keep a run from its end."""
    with scene(tmp_path) as s:
        work = s.held("work")
        watch = listen(s, "watch", "duly.run.ended")

        def fail(*_given: object, **_more: object) -> None:
            raise LookupError("a fault of ours")

        monkeypatch.setattr(judging, "opened", fail)
        settled = s.settle(work, FAILED)
        assert settled.run is not None
        assert s.run(work.run.id).outcome == "failed"
        stands = s.task(watch.id)
        assert stands.broken is not None
        assert "a fault of ours" in stands.broken.message
        assert s.faults() == []
