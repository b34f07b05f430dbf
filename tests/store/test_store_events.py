"""Events over a real file: kept before they are answered, one run a task and key, whoever emits how often."""

import json
import threading
from pathlib import Path

import pytest
from store_events import emit, end_all, listen, of_task, on, opened, passed
from store_scene import DAY, HOUR, MINUTE, NINE, hourly, losing, scene

from duly.core import events as judging
from duly.core.events import Event
from duly.core.task import Broken
from duly.core.triggers import Once
from duly.errors import Invalid, Refused, StoreUnknown, Taken
from duly.holder.planner import Planner
from duly.operations import tasks as task_operations


def test_an_event_opens_one_run_for_each_task_that_listens_and_no_other(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        one = listen(s, "one", "deploy")
        listen(s, "two", "deploy where branch=main", "deploy where branch=next")
        listen(s, "three", "other")
        s.add("four", hourly())
        answer = emit(s, "Deploy", "k1", '{"branch": "MAIN"}')
        assert opened(answer) == ["one", "two"]
        assert passed(answer) == {}
        (run,) = of_task(s, one)
        assert (run.occurrence, run.opened_by, run.opened_by_whom, run.due_at) == (
            "event:deploy:k1",
            "event",
            "eve",
            NINE,
        )
        assert run.event == answer.event.id
        assert s.kinds(one.id) == ["defined", "opened"]
        assert s.faults() == []


def test_a_task_of_events_alone_has_no_next_instant_is_never_planned_and_never_done(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = listen(s, "one", "deploy")
        for after in (0, 400):
            s.at(NINE + after * DAY)
            s.plan()
            stands = s.task(task.id)
            assert (stands.next_due_at, stands.next_start_at, stands.done) == (None, None, False)
        assert opened(emit(s, "deploy")) == ["one"]
        assert s.faults() == []


def test_a_task_with_times_and_events_is_started_by_both_and_lives_on_when_its_times_are_over(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", Once(at=NINE + HOUR), on("deploy", s), overlap="queue")
        s.at(NINE + HOUR)
        assert len(s.plan()) == 1
        assert not s.task(task.id).done
        assert opened(emit(s, "deploy")) == ["one"]
        assert [run.opened_by for run in of_task(s, task)] == ["schedule", "event"]
        assert s.faults() == []


def test_the_same_key_with_the_same_data_answers_as_the_first_time_and_changes_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        listen(s, "one", "deploy")
        listen(s, "off", "deploy")
        task_operations.disable(s.store, "off", by="ann")
        first = emit(s, "deploy", "k1", '{"a": 1, "b": 2}')
        before = s.sql("SELECT count(*) FROM ledger") + s.sql("SELECT * FROM event_sources")
        s.at(NINE + HOUR)
        task_operations.enable(s.store, "off", by="ann")
        listen(s, "new", "deploy")
        written = s.sql("SELECT count(*) FROM ledger")
        again = emit(s, "deploy", "k1", '{"b":2,  "a":1}')
        assert (again.again, again.event) == (True, first.event)
        assert [one.run.id for one in again.opened] == [one.run.id for one in first.opened]
        assert (passed(first), passed(again)) == ({"off": "disabled"}, {"off": "disabled"})
        assert s.sql("SELECT count(*) FROM ledger") == written
        assert s.sql("SELECT * FROM event_sources") == before[1:]
        assert len(s.runs()) == 1


def test_the_same_key_with_other_data_is_refused_and_another_source_has_keys_of_its_own(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        listen(s, "one", "deploy", "other")
        first = emit(s, "deploy", "k1", "1")
        with pytest.raises(Refused) as refused:
            emit(s, "deploy", "k1", "2")
        assert refused.value.reason == "key_reused"
        assert refused.value.details["event"] == first.event.id
        assert opened(emit(s, "other", "k1", "2")) == ["one"]
        assert len(s.runs()) == 2


def test_without_a_key_each_event_is_new_and_its_id_is_its_key(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        listen(s, "one", "deploy")
        first, second = emit(s, "deploy"), emit(s, "deploy")
        assert first.event.id != second.event.id
        assert {run.occurrence for run in s.runs()} == {f"event:deploy:{one.event.id}" for one in (first, second)}
        again = emit(s, "deploy", first.event.id)
        assert (again.again, again.event.id) == (True, first.event.id)
        assert len(s.runs()) == 2


def test_a_key_that_outlived_its_event_still_opens_one_run(tmp_path: Path) -> None:
    """Runs may be kept longer than events: what the key opened then is what it answers with now."""
    with scene(tmp_path) as s:
        listen(s, "one", "deploy")
        (first,) = [one.run.id for one in emit(s, "deploy", "k1").opened]
        end_all(s)
        s.sql("DELETE FROM events")
        (second,) = [one.run.id for one in emit(s, "deploy", "k1").opened]
        assert first == second
        assert len(s.runs()) == 1
        assert s.faults() == []


def test_emitters_with_one_key_at_once_open_one_run_and_all_but_one_are_told_so(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        for name in ("one", "two", "three"):
            listen(s, name, "deploy")
        stores = [s.connect() for _ in range(8)]
        gate = threading.Barrier(len(stores))
        again: list[bool] = []

        def work(number: int) -> None:
            gate.wait()
            answers = [emit(s, "deploy", f"k{key}", json.dumps({"n": key}), store=stores[number]) for key in range(20)]
            again.extend(answer.again for answer in answers)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(len(stores))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert again.count(False) == 20
        assert again.count(True) == 140
        assert s.sql("SELECT count(*) FROM events") == [(20,)]
        assert len(s.runs()) == 60
        assert s.faults() == []


def test_two_emitters_with_one_key_and_other_data_at_once_one_wins_and_the_other_is_refused(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        listen(s, "one", "deploy")
        stores = [s.connect(), s.connect()]
        gate = threading.Barrier(2)
        told: list[str] = []

        def work(number: int) -> None:
            for key in range(30):
                gate.wait()
                try:
                    emit(s, "deploy", f"k{key}", str(number), store=stores[number])
                except Refused as refused:
                    told.append(refused.reason)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert told == ["key_reused"] * 30
        assert len(s.runs()) == 30


def test_without_the_index_of_keys_an_event_could_be_kept_twice(tmp_path: Path) -> None:
    with scene(tmp_path) as s, s.store.write() as session:
        one = Event(id="evt_1", source="s", key="k", body="1", at=NINE, by="x")
        session.events.insert([one])
        with pytest.raises(Taken), session.line.savepoint():
            session.events.insert([Event(id="evt_2", source="s", key="k", body="2", at=NINE, by="x")])


def test_a_lost_answer_is_read_back(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        listen(s, "one", "deploy")
        with losing(s.store):
            answer = emit(s, "deploy")
        assert not answer.again
        assert opened(answer) == ["one"]
        with losing(s.store, before=True), pytest.raises(StoreUnknown):
            emit(s, "deploy")
        assert len(s.runs()) == 1


def test_nobody_but_duly_emits_what_begins_with_duly(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        for source in ("duly.run.ended", "Duly.x", "duly"):
            with pytest.raises(Refused) as refused:
                emit(s, source)
            assert refused.value.reason == "not_allowed"
        emit(s, "dulyx.run")
        assert s.sql("SELECT source FROM events") == [("dulyx.run",)]


@pytest.mark.parametrize(
    ("source", "key", "data", "field"),
    [
        ("a b", None, None, "source"),
        ("", None, None, "source"),
        ("a..b", None, None, "source"),
        ("5", None, None, "source"),
        ("x" * 121, None, None, "source"),
        ("deploy", "", None, "key"),
        ("deploy", "k" * 201, None, "key"),
        ("deploy", "a\nb", None, "key"),
        ("deploy", "\udcff", None, "key"),
        ("deploy", "k", "{", "data"),
        ("deploy", "k", "[NaN]", "data"),
        ("deploy", "k", '"' + "x" * 1024 * 1024 + '"', "data"),
    ],
)
def test_what_cannot_be_read_is_refused_and_nothing_is_kept(
    tmp_path: Path, source: str, key: str | None, data: str | None, field: str
) -> None:
    with scene(tmp_path) as s:
        listen(s, "one", "deploy")
        with pytest.raises(Invalid) as refused:
            emit(s, source, key, data)
        assert refused.value.field == field
        assert s.sql("SELECT count(*) FROM events") == s.sql("SELECT count(*) FROM event_sources") == [(0,)]
        assert s.runs() == []


def test_the_last_event_of_each_source_is_known_whether_any_task_took_it_or_not(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        listen(s, "one", "deploy where a=b")
        emit(s, "deploy", "k1", '{"a": "b"}')
        s.at(NINE + MINUTE)
        emit(s, "deploy", "k2")
        emit(s, "nobody.listens")
        with s.store.read() as session:
            known = {one.name: (one.last_at, one.last_key, one.received) for one in session.events.known()}
        at = NINE + MINUTE
        assert known == {"deploy": (at, "k2", 2), "nobody.listens": (at, None, 1)}


def test_a_disabled_or_paused_task_is_not_started_and_its_ledger_says_why(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        off = listen(s, "off", "deploy throttle 1h")
        held = listen(s, "held", "deploy", project="ops")
        task_operations.disable(s.store, "off", by="ann")
        task_operations.pause(s.store, "project", "ops", until=NINE + HOUR, note=None, by="ann")
        assert passed(emit(s, "deploy")) == {"off": "disabled", "held": "paused"}
        for task, reason in ((off, "disabled"), (held, "paused")):
            (entry,) = [entry for entry in s.entries(task.id) if entry.kind == "skipped"]
            assert (entry.reason, entry.run) == (reason, None)
        task_operations.enable(s.store, "off", by="ann")
        s.at(NINE + HOUR)  # nobody has looked since the hold's end
        assert opened(emit(s, "deploy")) == ["off", "held"], "and no window of the throttle had begun"
        assert s.faults() == []


def test_pausing_ends_what_events_opened_and_waits_and_starts_nothing_of_it_later(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        listen(s, "one", "deploy")
        emit(s, "deploy")
        task_operations.pause(s.store, "store", "", until=None, note=None, by="ann")
        (run,) = s.runs()
        assert (run.state, run.outcome, run.reason) == ("ended", "skipped", "paused")
        task_operations.unpause(s.store, "store", "", by="ann")
        assert s.claim() == []
        assert opened(emit(s, "deploy")) == ["one"]
        assert s.faults() == []


def test_a_removed_task_listens_no_more(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = listen(s, "one", "deploy")
        task_operations.remove(s.store, "one", by="ann")
        answer = emit(s, "deploy")
        assert (answer.opened, answer.not_opened) == ((), ())
        assert s.sql("SELECT * FROM task_sources WHERE task = ?", task.id) == []


def test_a_broken_task_is_put_aside_and_keeps_no_other_from_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scene(tmp_path) as s:
        broken = listen(s, "a-broken", "deploy")
        faulty = listen(s, "b-faulty", "deploy where a=b")
        listen(s, "c-sound", "deploy")
        s.sql("UPDATE tasks SET definition = 'no json' WHERE id = ?", broken.id)
        judge = judging.judge

        def sometimes(task: object, *given: object, **more: object) -> object:
            if task.id == faulty.id:  # type: ignore[attr-defined]
                raise ValueError("a fault of ours")
            return judge(task, *given, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(judging, "judge", sometimes)
        answer = emit(s, "deploy", data='{"a": "b"}')
        assert opened(answer) == ["c-sound"]
        assert passed(answer) == {"a-broken": None, "b-faulty": None}
        stands = s.task(faulty.id)
        assert stands.broken is not None
        assert "a fault of ours" in stands.broken.message
        assert opened(emit(s, "deploy")) == ["c-sound"]


def test_a_task_that_was_put_aside_and_still_reads_gets_its_run_which_waits_until_it_is_mended(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = listen(s, "one", "deploy")
        trouble = Broken(field="zone", message="its zone is unknown here")
        with s.store.write() as session:
            session.tasks.set_trouble(task.id, trouble)
        assert opened(emit(s, "deploy")) == ["one"]
        assert s.claim() == []
        with s.store.write() as session:
            Planner("hld_a").take_back(session)
        assert end_all(s) == ["one"]
        assert s.faults() == []
