"""Duly's own events over a real file: told with what causes them, to those that listen, and never round in a circle."""

from pathlib import Path

import pytest
from store_events import FAILED, emit, end_all, listen, of_task, opened, passed, suppressed
from store_scene import HOUR, MINUTE, NINE, SECOND, hourly, scene

from by_hand import plan_of, statements
from duly.core.events import CHAIN_MOST
from duly.errors import Invalid, StoreAway
from duly.operations import tasks as task_operations
from duly.store import events as store_events


def test_the_end_of_a_run_starts_who_listens_to_it_in_the_same_commit(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        work = s.held("work")
        watch = listen(s, "watch", "duly.run.ended where outcome=failed and task=WORK")
        listen(s, "other", "duly.run.ended where outcome=succeeded")
        s.settle(work, FAILED)
        (run,) = of_task(s, watch)
        assert run.occurrence == f"event:duly.run.ended:{work.run.id}"
        with s.store.read() as session:
            assert run.event is not None
            cause = session.events.by_id(run.event)
        assert cause is not None
        assert (cause.by, cause.through) == ("duly", (work.task.id,))
        assert [entry.run for entry in s.entries() if entry.kind in {"ended", "opened"}][-2:] == [work.run.id, run.id]
        assert len(s.runs()) == 2
        assert s.faults() == []


def test_a_commit_that_fails_tells_nothing(tmp_path: Path) -> None:
    from store_scene import losing

    with scene(tmp_path) as s:
        work = s.held("work")
        watch = listen(s, "watch", "duly.run.ended")
        with losing(s.store, before=True), pytest.raises(StoreAway):
            s.settle(work, FAILED)
        assert of_task(s, watch) == []
        s.settle(work, FAILED)
        assert len(of_task(s, watch)) == 1


def test_what_no_task_takes_is_not_kept(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        listen(s, "watch", "duly.run.ended where outcome=failed")
        s.settle(s.held("work"))
        assert s.sql("SELECT count(*) FROM events") == s.sql("SELECT count(*) FROM event_sources") == [(0,)]


def test_an_alert_for_every_failure_is_not_started_by_its_own(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        alert = listen(s, "alert", "duly.run.ended where outcome=failed")
        s.settle(s.held("work"), FAILED)
        assert end_all(s, FAILED) == ["alert"]
        assert end_all(s) == []
        (told,) = suppressed(s, alert)
        assert told["why"] == "the event came through this task already"
        assert s.faults() == []


def test_two_that_listen_to_all_ends_start_each_other_once_and_no_more(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        for name in ("one", "two"):
            listen(s, name, "duly.run.ended", overlap="queue", queue=100)
        emitted = listen(s, "first", "go")
        emit(s, "go")
        rounds = 0
        while end_all(s):
            rounds += 1
        assert rounds == 3
        ran = {name: len([run for run in s.runs() if run.task == task]) for name, task in tasks_of(s).items()}
        assert ran == {"first": 1, "one": 2, "two": 2}
        assert len(of_task(s, emitted)) == 1
        assert s.faults() == []


def tasks_of(s: object) -> dict[str, str]:
    with s.store.read() as session:  # type: ignore[attr-defined]
        return {task.definition.name: task.id for task in session.tasks.page()}


def test_a_chain_by_name_ends_at_ten_tasks(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        listen(s, "t0", "go")
        for number in range(1, 13):
            listen(s, f"t{number}", f"duly.run.ended where task=t{number - 1}")
        emit(s, "go")
        ran = []
        while names := end_all(s):
            ran += names
        assert ran == [f"t{number}" for number in range(CHAIN_MOST)]
        (told,) = [one for name, task in tasks_of(s).items() if name == "t10" for one in suppressed_of(s, task)]
        assert told["most"] == CHAIN_MOST
        assert s.faults() == []


def suppressed_of(s: object, task: str) -> list[dict[str, object]]:
    return [dict(one.details) for one in s.entries(task) if one.reason == "suppressed"]  # type: ignore[attr-defined]


def test_a_chain_goes_on_through_a_retry_and_keeps_its_event(tmp_path: Path) -> None:
    from duly.holder.settling import Interrupted

    with scene(tmp_path) as s:
        listen(s, "first", "go where a=b", on_interrupt="retry")
        last = listen(s, "last", "duly.run.ended where task=first")
        emit(s, "go", "k1", '{"a": "b"}')
        (won,) = s.claim()
        s.settle(won, Interrupted(why="holder_died", ended_at=s.clock.moment))
        (again,) = s.claim()
        assert again.run.event == won.run.event
        assert again.run.attempt == 2
        s.settle(again)
        (run,) = of_task(s, last)
        with s.store.read() as session:
            assert run.event is not None
            cause = session.events.by_id(run.event)
        assert cause is not None
        assert cause.through == (again.task.id,)
        assert s.faults() == []


@pytest.mark.parametrize(
    ("wheres", "spelled"),
    [
        ({"a": "task=a"}, '"a" → "a"'),
        ({"a": "task=b", "b": "task=a"}, '"b" → "a" → "b"'),
        ({"a": "task=b", "b": "task=c", "c": "task=A and outcome=failed"}, '"c" → "b" → "a" → "c"'),
    ],
)
def test_a_cycle_that_definitions_show_is_refused_when_it_is_written_and_spelled_out(
    tmp_path: Path, wheres: dict[str, str], spelled: str
) -> None:
    with scene(tmp_path) as s:
        *fine, last = wheres
        for name in fine:
            listen(s, name, f"duly.run.ended where {wheres[name]}")
        before = s.sql("SELECT count(*) FROM ledger")
        with pytest.raises(Invalid) as refused:
            listen(s, last, f"duly.run.ended where {wheres[last]}")
        assert spelled in refused.value.message
        assert refused.value.field == "triggers"
        assert refused.value.hint
        assert s.sql("SELECT count(*) FROM ledger") == before
        assert last not in tasks_of(s)


def test_a_cycle_through_a_removed_task_is_none(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        listen(s, "a", "duly.run.ended where task=b")
        task_operations.remove(s.store, "a", by="ann")
        listen(s, "b", "duly.run.ended where task=a")


def test_a_source_that_duly_never_emits_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        with pytest.raises(Invalid) as refused:
            listen(s, "a", "duly.run.end")
        assert refused.value.hint == "on duly.run.ended"
        assert "duly.run.ended" in str(refused.value.details["allowed"])


def test_missed_ones_holds_switches_and_removals_are_told(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        watch = listen(
            s,
            "watch",
            "duly.missed where reason=missed_skip",
            "duly.task.paused where task=work and note=soon",
            "duly.task.disabled",
            "duly.task.removed",
            "duly.project.paused where project=default",
            overlap="queue",
            queue=100,
        )
        s.add("work", hourly(), on_missed="skip")
        s.at(NINE + 3 * HOUR + 30 * MINUTE)
        s.plan()
        task_operations.pause(s.store, "task", "work", until=None, note="soon", by="ann")
        task_operations.pause(s.store, "task", "work", until=None, note="later", by="ann")
        task_operations.unpause(s.store, "task", "work", by="ann")
        task_operations.disable(s.store, "work", by="ann")
        task_operations.remove(s.store, "work", by="ann")
        sources = [run.occurrence.split(":")[1] for run in of_task(s, watch)]
        assert sources == ["duly.missed", "duly.task.paused", "duly.task.disabled", "duly.task.removed"]
        assert s.faults() == []


def test_a_run_that_never_started_ends_too(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        watch = listen(s, "watch", "duly.run.ended where reason=already_running")
        listen(s, "work", "go")
        emit(s, "go")
        s.claim()
        emit(s, "go")
        s.claim()
        assert len(of_task(s, watch)) == 1


def test_an_abandoned_run_starts_who_listens_for_that(tmp_path: Path) -> None:
    from duly.holder.settling import Interrupted

    with scene(tmp_path) as s:
        work = s.held("work")
        watch = listen(s, "watch", "duly.run.abandoned")
        s.settle(work, Interrupted(why="holder_died", ended_at=s.clock.moment))
        (run,) = of_task(s, watch)
        assert run.occurrence.startswith("event:duly.run.abandoned:")


def test_where_nobody_listens_to_duly_a_commit_asks_one_question_and_no_more(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        listen(s, "other", "deploy")
        work = s.held("work")
        with statements(s.store._line) as asked:
            s.settle(work, FAILED)
        about = [text for text in asked if "task_sources" in text or "events" in text.lower()]
        assert len(about) == 1


def test_a_pause_that_a_listener_waits_for_ends_what_it_had_opened_before(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        watch = listen(s, "watch", "duly.store.paused")
        task_operations.pause(s.store, "store", "", until=None, note=None, by="ann")
        assert of_task(s, watch) == [], "it is held itself"
        (entry,) = [one for one in s.entries(watch.id) if one.kind == "skipped"]
        assert entry.reason == "paused"


def test_the_question_who_listens_to_duly_is_answered_from_its_index(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) "
        s.sql(f"{many}INSERT INTO task_sources (task, source) SELECT 'tsk_' || i, 'source' || i FROM n")
        s.sql("ANALYZE task_sources")
        for statement, wanted in (
            (store_events.OUR_SOURCES, "task_sources_source"),
            (store_events.LISTENERS, "task_sources_source"),
            (store_events.BY_KEY, "events_key"),
            (store_events.RUNS_OF, "runs_event"),
        ):
            assert wanted in plan_of(s.store._line, statement, "x")


def test_who_emits_by_hand_begins_a_chain_of_its_own(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = listen(s, "one", "again", overlap="queue")
        for number in range(CHAIN_MOST + 2):
            s.at(NINE + number * SECOND)
            assert opened(emit(s, "again")) == ["one"]
            end_all(s)
        assert passed(emit(s, "again")) == {}
        assert len(of_task(s, task)) == CHAIN_MOST + 3
