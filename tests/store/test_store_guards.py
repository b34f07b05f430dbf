"""The facts and conditions that carry the safety, each shown to hold and shown to be what holds."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from store_scene import (
    HOUR,
    LEASE_US,
    MINUTE,
    NINE,
    SECOND,
    SUCCEEDED,
    Scene,
    hourly,
    minutely,
    scene,
    without,
)

from duly.core import lifecycle
from duly.core.run import Run, Step
from duly.core.task import Task
from duly.errors import StoreAway
from duly.holder.dispatcher import Won
from duly.holder.settling import Interrupted, Returned
from duly.operations import tasks as task_operations
from duly.store import Store, runs, steps, tasks
from duly.store.plans import write_plans
from duly.store.runs import Claim

A, B = "hld_a", "hld_b"


def claim_of(run: Run, *, holder: str, seat: int = 1, token: str = "token") -> Claim:
    return Claim(
        run=run,
        holder=holder,
        token=token,
        lease_end_us=1_000_000_000 + LEASE_US,
        lease_boot="boot-one",
        seat=seat,
        definition_version=1,
        started_at=NINE,
    )


def write_claims(store: Store, claims: Sequence[Claim], *, raise_by: int = 1) -> list[Run]:
    with store.write() as session:
        for task in {claim.run.task for claim in claims}:
            session.tasks.raise_fences([(task, raise_by)])
        return session.runs.claim(claims)


def move(store: Store, step: Step, *, naming_lease: bool = False) -> set[str]:
    with store.write() as session:
        return session.runs.move([step], naming_lease=naming_lease)


def waiting_two(s: Scene) -> tuple[Run, Run]:
    """Two waiting runs of one task."""
    task = s.add("one", minutely(), grace=HOUR, overlap="queue")
    s.at(NINE + 2 * MINUTE)
    first, second = [run for run in s.plan() if run.task == task.id]
    return first, second


def end(s: Scene, won: Won, holder: str = A) -> None:
    assert s.settle(won, SUCCEEDED, holder=holder).run is not None


# The occurrence index


def test_one_occurrence_opens_one_run_even_where_every_other_guard_is_gone(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        s.at(NINE + HOUR)
        (run,) = s.plan()
        double = replace(run, id="run_double")
        with pytest.raises(StoreAway, match=r"runs\.task, runs\.occurrence"), s.store.write() as session:
            session.runs.insert([double])
        assert len(s.runs()) == 1

        s.sql("DROP INDEX runs_occurrence")
        with s.connect().write() as session:
            session.runs.insert([double])
        assert len(s.runs()) == 2, "the index is what holds it"


def test_the_same_key_of_two_tasks_is_two_occurrences(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        s.add("two", hourly())
        s.at(NINE + HOUR)
        opened = s.plan()
        assert len(opened) == 2
        assert len({run.occurrence for run in opened}) == 1


# The seat index


@pytest.mark.parametrize("state", ["held", "parked"])
def test_one_seat_holds_one_live_attempt_a_parked_one_too(tmp_path: Path, state: str) -> None:
    with scene(tmp_path) as s:
        first, second = waiting_two(s)
        assert write_claims(s.store, [claim_of(first, holder=A)])
        s.sql("UPDATE runs SET state = ? WHERE id = ?", state, first.id)
        with pytest.raises(StoreAway, match=r"runs\.task, runs\.seat"):
            write_claims(s.connect(), [claim_of(second, holder=B)])
        assert s.run(second.id).state == "waiting"
        assert s.task(first.task).fence == 1, "the whole transaction was undone"

        s.sql("DROP INDEX runs_seat")
        assert write_claims(s.connect(), [claim_of(second, holder=B)]), "the index is what holds it"
        assert ("P2" in dict(s.faults())) or ("P4" in dict(s.faults()))


def test_a_seat_index_that_forgets_parked_runs_would_let_the_seat_be_taken(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        first, second = waiting_two(s)
        write_claims(s.store, [claim_of(first, holder=A)])
        s.sql("UPDATE runs SET state = 'parked', holder = NULL WHERE id = ?", first.id)
        s.sql("DROP INDEX runs_seat")
        s.sql("CREATE UNIQUE INDEX runs_seat ON runs (task, seat) WHERE state = 'held'")
        assert write_claims(s.connect(), [claim_of(second, holder=B)])


def test_a_step_cannot_take_a_seat_that_is_taken_either(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        first, second = waiting_two(s)
        write_claims(s.store, [claim_of(first, holder=A)])
        intruder = Step(
            before=second, after=replace(second, version=2, state="held", seat=1, holder=B, fence=9), entries=()
        )
        with pytest.raises(StoreAway, match=r"runs\.task, runs\.seat"):
            move(s.connect(), intruder)
        assert s.run(second.id) == second


def test_ended_and_waiting_runs_hold_no_seat(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        first, second = waiting_two(s)
        write_claims(s.store, [claim_of(first, holder=A)])
        done = lifecycle.settle(s.run(first.id), "succeeded", now=NINE)
        assert move(s.store, done)
        assert write_claims(s.connect(), [claim_of(second, holder=B)])


# The version in every step and claim


def test_of_two_claims_of_one_run_one_wins_and_the_loser_writes_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        first, _ = waiting_two(s)
        other = s.connect()
        (won,) = write_claims(s.store, [claim_of(first, holder=A)])
        before = s.run(first.id)
        assert write_claims(other, [claim_of(first, holder=B)]) == []
        assert s.run(first.id) == before == won


def test_a_claim_names_the_version_it_read(tmp_path: Path) -> None:
    """Held by A and given back meanwhile: waiting again, but not as B read it."""
    with scene(tmp_path) as s:
        first, _ = waiting_two(s)
        write_claims(s.store, [claim_of(first, holder=A)])
        assert move(s.store, lifecycle.give_back(s.run(first.id), now=NINE, why="x"))
        assert s.run(first.id).state == "waiting"
        assert write_claims(s.connect(), [claim_of(first, holder=B)]) == []
        with without(runs.CLAIM, "runs.version = v.was_version"):
            assert write_claims(s.connect(), [claim_of(first, holder=B)]), "the version is what refuses it"


def test_a_claim_takes_only_what_waits(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        as_it_stands = s.run(won.run.id)
        assert write_claims(s.connect(), [claim_of(as_it_stands, holder=B)]) == []
        with without(runs.CLAIM, "runs.state = ?", "? = 'waiting'"):
            assert write_claims(s.connect(), [claim_of(as_it_stands, holder=B)]), "the state is what refuses it"


def test_a_step_that_names_an_old_version_changes_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        asked = lifecycle.ask_cancel(won.run, by="ann", now=NINE)
        assert move(s.connect(), asked)
        stale = lifecycle.settle(won.run, "succeeded", now=NINE)
        before = s.run(won.run.id)
        assert move(s.store, stale) == set()
        assert s.run(won.run.id) == before
        with without(steps.STEP, "runs.version = v.was_version"):
            assert move(s.store, stale), "the version is what refuses it"
        assert s.run(won.run.id).cancel_asked_at is None, "and without it the wish to cancel is wiped"


@pytest.mark.parametrize(
    ("column", "value", "guard"),
    [
        ("holder", B, "runs.holder IS v.was_holder"),
        ("fence", 77, "runs.fence = v.was_fence"),
        ("state", "waiting", "runs.state = v.was_state"),
    ],
)
def test_a_settle_names_state_holder_and_fence_beside_the_version(
    tmp_path: Path, column: str, value: object, guard: str
) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        s.sql(f"UPDATE runs SET {column} = ? WHERE id = ?", value, won.run.id)
        done = lifecycle.settle(won.run, "succeeded", now=NINE)
        assert move(s.store, done) == set()
        with without(steps.STEP, guard):
            assert move(s.store, done), "this condition is what refuses it"


@pytest.mark.parametrize("edge", ["settle", "give back", "hand over", "interrupt"])
def test_after_a_take_over_nothing_that_the_former_holder_decided_is_written(tmp_path: Path, edge: str) -> None:
    with scene(tmp_path) as s:
        won = s.held(on_interrupt="retry")
        over = lifecycle.take_over(
            won.run, holder=B, token="t", lease_end_us=9, boot="boot-one", now=NINE, why="holder_died"
        )
        assert move(s.connect(), over, naming_lease=True)
        late = {
            "settle": lifecycle.settle(won.run, "succeeded", now=NINE),
            "give back": lifecycle.give_back(won.run, now=NINE, why="x"),
            "hand over": lifecycle.hand_over(won.run, place="here", lease_end_us=9, now=NINE),
            "interrupt": lifecycle.interrupted(
                won.run,
                won.definition.rules,
                why="lease_lost",
                now=NINE,
                ended_at=NINE,
                following=None,
                by=A,
            ),
        }[edge]
        before = s.run(won.run.id)
        assert move(s.store, late) == set()
        assert s.run(won.run.id) == before


def test_a_woken_holder_settles_nothing_and_leaves_one_line_that_says_so(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        over = lifecycle.take_over(
            won.run, holder=B, token="t", lease_end_us=9, boot="boot-one", now=NINE, why="lease_over"
        )
        with s.connect().write() as session:
            assert session.runs.move([over], naming_lease=True)
            session.ledger.add(over.entries)
        before = s.run(won.run.id)
        settled = s.settle(won, SUCCEEDED)
        assert settled.run is None
        assert s.run(won.run.id) == before
        told = s.entries()[-1]
        assert (told.kind, told.reason, told.holder, told.details["fence"]) == ("fence_lost", "fence_lost", A, 1)
        assert s.task(won.run.task).runs == 0, "a loser counts no end"
        assert s.faults() == []


def test_a_woken_holder_changes_nothing_after_its_successor_has_ended_the_run(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held(on_interrupt="retry")
        swept = lifecycle.interrupted(
            won.run, won.definition.rules, why="lease_lost", now=s.clock.now(), ended_at=s.clock.now(),
            following=None, by=B,
        )  # fmt: skip
        with s.connect().write() as session:
            assert session.runs.move([swept], naming_lease=True)
            session.ledger.add(swept.entries)
        (again,) = s.claim(holder=B)
        assert again.run.fence > won.run.fence
        end(s, again, holder=B)
        before = s.run(won.run.id)
        assert s.settle(won, replace(SUCCEEDED, word="failed", exit_code=3)).run is None
        assert s.settle(won, Returned(why="x")).run is None
        assert s.run(won.run.id) == before
        assert s.faults() == []


@pytest.mark.parametrize("what", ["gave the run back", "tries it again"])
@pytest.mark.parametrize("paused", [False, True])
def test_a_woken_holder_says_so_even_where_its_successor_gave_the_run_back(
    tmp_path: Path, what: str, paused: bool
) -> None:
    """The run waits with the woken holder's own fence and attempt, yet it was not the woken one who let it go."""
    with scene(tmp_path) as s:
        won = s.held(on_interrupt="retry")
        over = lifecycle.take_over(
            won.run, holder=B, token="t", lease_end_us=9, boot="boot-one", now=NINE, why="lease_over"
        )
        with s.connect().write() as session:
            assert session.runs.move([over], naming_lease=True)
            session.ledger.add(over.entries)
        taken = Won(run=over.after, task=won.task, definition=won.definition)
        verdict = Returned(why="x") if "back" in what else Interrupted(why="lease_lost", ended_at=s.clock.now())
        s.settle(taken, verdict, holder=B)
        assert s.run(won.run.id).state == "waiting"
        if paused:
            task_operations.pause(s.store, "task", "one", until=None, note=None, by="ann")
        before = s.run(won.run.id)
        assert s.settle(won, SUCCEEDED).run is None
        assert s.run(won.run.id) == before
        assert s.kinds()[-1] == "fence_lost"
        assert s.faults() == []


def test_a_wish_to_cancel_that_came_between_does_not_lose_the_outcome(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        assert move(s.connect(), lifecycle.ask_cancel(won.run, by="ann", now=NINE))
        settled = s.settle(won, SUCCEEDED)
        assert settled.run is not None
        run = s.run(won.run.id)
        assert (run.outcome, run.cancel_asked_by) == ("succeeded", "ann")


# The fence


def test_claims_of_one_task_carry_rising_fences_over_runs_and_attempts(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", minutely(), overlap="queue", on_interrupt="retry")
        fences = []
        for minute in range(1, 6):
            s.at(NINE + minute * MINUTE)
            s.plan()
            (won,) = s.claim()
            fences.append(won.run.fence)
            s.settle(won, Returned(why="x"))
            (won,) = s.claim(holder=B)
            fences.append(won.run.fence)
            end(s, won, holder=B)
        assert fences == list(range(1, 11))
        assert s.task(s.runs()[0].task).fence == 10


def test_two_claims_in_one_statement_never_carry_one_fence(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        first, second = waiting_two(s)
        won = write_claims(s.store, [claim_of(first, holder=A, seat=1), claim_of(second, holder=A, seat=2)], raise_by=2)
        assert len({run.fence for run in won}) == len(won), "of one task with two seats"


def test_a_fence_counted_from_what_was_read_would_be_given_twice(tmp_path: Path) -> None:
    """Both holders read fence 0; the statement adds to what stands, not to what was read."""
    with scene(tmp_path) as s:
        first, second = waiting_two(s)
        other = s.connect()
        (one,) = write_claims(s.store, [claim_of(first, holder=A, seat=1)])
        with without(tasks.RAISE_FENCE, '(tasks.fence + v."by")', 'v."by"'):
            (two,) = write_claims(other, [claim_of(second, holder=B, seat=2)])
        assert (one.fence, two.fence) == (1, 1), "adding in the statement is what keeps them apart"


def test_claims_of_two_holders_who_read_the_same_fence_get_two(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        first, second = waiting_two(s)
        other = s.connect()
        assert s.task(first.task).fence == 0
        (one,) = write_claims(s.store, [claim_of(first, holder=A, seat=1)])
        (two,) = write_claims(other, [claim_of(second, holder=B, seat=2)])
        assert (one.fence, two.fence) == (1, 2)


def test_a_claim_takes_its_fence_from_the_task_and_not_from_the_run(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        end(s, won)
        s.at(s.clock.moment + HOUR)
        s.plan()
        (next_,) = s.claim(holder=B)
        assert next_.run.fence == won.run.fence + 1
        assert next_.run.attempt == 1


def test_a_run_is_not_claimed_before_its_time(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        s.at(NINE + HOUR)
        (run,) = s.plan()
        s.sql("UPDATE runs SET not_before_us = not_before_us + 1 WHERE id = ?", run.id)
        assert s.claim() == []
        with s.store.read() as session:
            assert session.runs.soonest_not_before_us(session.now) is not None, "and somebody will look again"
        with without(runs.CLAIMABLE, "runs.not_before_us <= ?", "? IS NOT NULL"):
            assert len(s.claim()) == 1, "this condition is what keeps it waiting"


# Beats and sweeps


def beat(s: Scene, store: Store, pairs: list[tuple[str, int]], *, holder: str, end_us: int) -> set[tuple[str, int]]:
    with store.write() as session:
        return session.runs.beat(pairs, holder=holder, boot="boot-one", end_us=end_us)


def test_a_beat_extends_only_what_is_held_by_this_holder_with_this_fence(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        run = won.run
        assert run.lease_end_us is not None
        later = run.lease_end_us + 50
        assert beat(s, s.store, [(run.id, run.fence)], holder=B, end_us=later) == set()
        assert beat(s, s.store, [(run.id, run.fence + 1)], holder=A, end_us=later) == set()
        assert s.run(run.id) == run
        assert beat(s, s.store, [(run.id, run.fence)], holder=A, end_us=later) == {(run.id, run.fence)}
        assert s.run(run.id) == replace(run, lease_end_us=later), "the version stays"


@pytest.mark.parametrize(
    ("guard", "holder", "fence"),
    [("runs.holder = v.holder", B, 1), ("runs.fence = v.fence", A, 2)],
)
def test_holder_and_fence_are_what_keeps_a_beat_from_anothers_lease(
    tmp_path: Path, guard: str, holder: str, fence: int
) -> None:
    with scene(tmp_path) as s:
        run = s.held().run
        assert run.fence == 1
        assert beat(s, s.store, [(run.id, fence)], holder=holder, end_us=9 * LEASE_US) == set()
        with without(runs.BEAT, guard):
            beat(s, s.store, [(run.id, fence)], holder=holder, end_us=10**12)
        assert s.run(run.id).lease_end_us == 10**12


def test_a_late_beat_never_lowers_a_lease(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run = s.held().run
        assert run.lease_end_us is not None
        pair = [(run.id, run.fence)]
        assert beat(s, s.store, pair, holder=A, end_us=run.lease_end_us - 10) == set(pair)
        assert s.run(run.id).lease_end_us == run.lease_end_us
        greatest = "CASE WHEN (runs.lease_end_us > v.end_us) THEN runs.lease_end_us ELSE v.end_us END"
        with without(runs.BEAT, greatest, "v.end_us"):
            beat(s, s.store, pair, holder=A, end_us=run.lease_end_us - 10)
        assert s.run(run.id).lease_end_us == run.lease_end_us - 10, "taking the greater is what keeps it"


def test_a_beat_never_brings_back_what_was_swept(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run = s.held(on_interrupt="retry").run
        swept = lifecycle.interrupted(
            run, s.task(run.task).definition.rules, why="lease_lost", now=s.clock.now(), ended_at=NINE,
            following=None, by=B,
        )  # fmt: skip
        assert move(s.connect(), swept, naming_lease=True)
        before = s.run(run.id)
        assert beat(s, s.store, [(run.id, run.fence)], holder=A, end_us=10**12) == set()
        assert s.run(run.id) == before
        with (
            without(runs.BEAT, "runs.state = ?", "? = 'held'"),
            without(runs.BEAT, "runs.holder = v.holder"),
            without(runs.BEAT, "runs.lease_boot = v.boot"),
        ):
            assert beat(s, s.store, [(run.id, run.fence)], holder=A, end_us=10**12)
        assert s.run(run.id).lease_end_us == 10**12, "state and holder are what keeps it"


def test_a_beat_of_another_boot_extends_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run = s.held().run
        with s.store.write() as session:
            assert session.runs.beat([(run.id, run.fence)], holder=A, boot="boot-two", end_us=10**12) == set()


def test_a_sweep_loses_to_a_beat_that_came_between(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run = s.held().run
        assert run.lease_end_us is not None
        other = s.connect()
        with other.read() as session:
            (read,) = session.runs.held_by_others(B, 10)
        beat(s, s.store, [(run.id, run.fence)], holder=A, end_us=run.lease_end_us + 1)
        over = lifecycle.take_over(read, holder=B, token="t", lease_end_us=9, boot="b", now=NINE, why="lease_over")
        assert move(other, over, naming_lease=True) == set()
        assert s.run(run.id).holder == A
        with without(steps.STEP_NAMING_LEASE, "runs.lease_end_us IS v.was_lease_end_us"):
            assert move(other, over, naming_lease=True), "naming the end that was read is what lets the beat win"
        assert s.run(run.id).holder == B


def test_of_two_sweeps_one_takes_the_run(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        run = s.held().run
        one, two = s.connect(), s.connect()
        took = [
            move(store, lifecycle.take_over(
                run, holder=holder, token=holder, lease_end_us=9, boot="b", now=NINE, why="holder_died"
            ), naming_lease=True)
            for store, holder in ((one, "hld_b"), (two, "hld_c"))
        ]  # fmt: skip
        assert took == [{run.id}, set()]
        assert s.run(run.id).holder == "hld_b"
        assert s.run(run.id).fence == run.fence


# The cursor in the planner's write


def read_due(store: Store) -> list[Task]:
    with store.read() as session:
        return session.tasks.due(session.now, 100)


def plan_what_was_read(store: Store, due: Sequence[Task], holder: str) -> list[Run]:
    with store.write() as session:
        return write_plans(session, due, holder=holder)


def test_of_two_planners_that_read_the_same_tasks_one_opens_and_the_other_writes_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", minutely())
        s.add("two", minutely(), on_missed="skip")
        s.at(NINE + 10 * MINUTE + 50 * SECOND)
        other = s.connect()
        stale = read_due(other)
        assert len(s.plan()) == 1
        before = (s.entries(), s.runs(), s.sql("SELECT * FROM missed"), s.sql("SELECT * FROM tasks"))
        assert plan_what_was_read(other, stale, B) == []
        assert (s.entries(), s.runs(), s.sql("SELECT * FROM missed"), s.sql("SELECT * FROM tasks")) == before
        assert s.faults() == []


def test_a_late_loser_still_loses_after_a_fast_winners_run_has_ended_and_even_been_forgotten(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        s.at(NINE + HOUR)
        other = s.connect()
        stale = read_due(other)
        (run,) = s.plan()
        end(s, s.claim()[0])
        assert plan_what_was_read(other, stale, B) == []
        # Even where nothing is left of the run: the cursor remembers.
        s.sql("DELETE FROM runs")
        assert plan_what_was_read(other, stale, B) == []
        with without(tasks.PLANNED, "tasks.planned_until_us = v.was_planned_until_us"):
            doubled = plan_what_was_read(other, stale, B)
        assert [one.occurrence for one in doubled] == [run.occurrence], "the cursor is what remembers it"


def test_without_the_cursor_the_occurrence_index_still_refuses_the_double_and_undoes_all_of_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        s.at(NINE + HOUR)
        other = s.connect()
        stale = read_due(other)
        s.plan()
        entries = s.entries()
        with (
            without(tasks.PLANNED, "tasks.planned_until_us = v.was_planned_until_us"),
            pytest.raises(StoreAway, match=r"runs\.task, runs\.occurrence"),
        ):
            plan_what_was_read(other, stale, B)
        assert s.entries() == entries
        assert len(s.runs()) == 1


def test_a_planner_that_read_before_an_edit_plans_nothing_by_the_old_definition(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        s.at(NINE + HOUR)
        stale = read_due(s.store)
        s.sql("UPDATE tasks SET definition_version = 2 WHERE id = ?", task.id)
        assert plan_what_was_read(s.store, stale, B) == []
        with without(tasks.PLANNED, "tasks.definition_version = v.was_definition_version"):
            assert len(plan_what_was_read(s.store, stale, B)) == 1, "the version is what refuses it"


def test_the_cursor_never_moves_back_in_the_store(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        with s.store.write() as session:
            back = tasks.CursorMove(
                task=task,
                planned_until=task.planned_until - HOUR,
                next_due_at=None,
                next_start_at=None,
                done=False,
            )
            assert session.tasks.move_cursors([back]) == set()
        assert s.task(task.id).planned_until == task.planned_until
        with without(tasks.PLANNED, "tasks.planned_until_us <= v.planned_until_us"), s.store.write() as session:
            assert session.tasks.move_cursors([back]) == {task.id}


@pytest.mark.parametrize("back", [timedelta(minutes=1), timedelta(hours=5), timedelta(days=400)])
def test_a_store_whose_clock_stepped_back_opens_nothing_twice_and_goes_on_where_it_was(
    tmp_path: Path, back: timedelta
) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", minutely())
        s.at(NINE + 3 * MINUTE)
        s.plan()
        s.at(NINE + 3 * MINUTE - back)
        assert s.plan() == []
        s.sql("UPDATE tasks SET next_start_us = 0, next_due_us = 0")  # even if something made it look due
        assert s.plan() == []
        assert s.task(task.id).planned_until == NINE + 3 * MINUTE
        s.at(NINE + 4 * MINUTE)
        assert [run.due_at for run in s.plan()] == [NINE + 4 * MINUTE]
        assert s.faults() == []


def test_an_open_a_claim_and_an_end_are_each_counted_once_by_holder_and_task(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        end(s, won)
        s.settle(won, SUCCEEDED)  # its answer was lost, say: told again
        task = s.task(won.run.task)
        assert (task.runs, task.failures_in_a_row, task.last_run) == (1, 0, won.run.id)
        assert s.kinds().count("ended") == 1


@pytest.mark.parametrize("count", [1, 2, 4, 5, 20, 70])
def test_any_number_of_ends_is_counted_in_one_write(tmp_path: Path, count: int) -> None:
    with scene(tmp_path) as s:
        made = [s.add(f"task {number}", hourly()) for number in range(count)]
        s.at(NINE + HOUR)
        s.plan()
        won = s.claim(free=count)
        assert len(won) == count
        failed = replace(SUCCEEDED, word="failed", reason="exit_status", exit_code=3)
        with s.store.write() as session:
            settled = s.settler().step(session, [s.delivery(one, failed) for one in won])
        assert len(settled) == count
        assert {(s.task(task.id).runs, s.task(task.id).failures_in_a_row) for task in made} == {(1, 1)}


def test_two_ends_of_one_task_in_one_write_are_both_counted_in_their_order(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", hourly())
        with s.store.write() as session:
            session.tasks.count_end(
                [
                    (task.id, "run_a", tasks.SUCCESS),
                    (task.id, "run_b", tasks.FAILURE),
                    (task.id, "run_c", tasks.NEITHER),
                ]
            )
        after = s.task(task.id)
        assert (after.runs, after.failures_in_a_row, after.last_run) == (3, 1, "run_c")


def test_a_dispatcher_that_loses_a_seat_writes_nothing_for_it_and_claims_the_rest(tmp_path: Path) -> None:
    """The seat is taken under it: that claim alone is undone, fence and all, quiet and counted."""
    with scene(tmp_path) as s:
        other_task = s.add("other", minutely())
        first, _ = [run for run in waiting_two(s) if run.task != other_task.id]
        dispatcher = s.dispatcher(B)
        with s.store.write() as session:
            chosen = []
            for id_ in (first.task, other_task.id):
                task = session.tasks.by_id(id_)
                assert task is not None
                chosen.append(Won(run=session.runs.waiting_of(id_)[0], task=task, definition=task.definition))
            session.line.raw.execute(
                "UPDATE runs SET state = 'parked', seat = 1 WHERE task = ? AND id != ?", (first.task, chosen[0].run.id)
            )
            won = dispatcher._claim(session, chosen)
        assert [one.task.id for one in won] == [other_task.id]
        assert dispatcher.lost == 1
        assert s.task(first.task).fence == 0
        assert s.run(chosen[0].run.id).state == "waiting"
        assert [one.task for one in s.entries() if one.kind == "claimed"] == [other_task.id]


def test_what_is_due_is_judged_by_the_clock_after_the_lock_was_had(tmp_path: Path) -> None:
    """A writer that waited for the lock must not judge by the moment at which it began to wait."""
    with scene(tmp_path) as s:
        asked: list[bool] = []
        raw = s.store._line.raw
        now = s.clock.now

        def look() -> datetime:
            asked.append(raw.in_transaction)
            return now()

        s.clock.now = look  # type: ignore[method-assign]
        with s.store.write():
            pass
        assert asked == [True]
