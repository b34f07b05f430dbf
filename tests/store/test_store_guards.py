"""The facts and conditions that carry the safety, each shown to hold and shown to be what holds."""

from dataclasses import replace
from pathlib import Path

import pytest
from store_claims import A, B, claim_of, end, move, waiting_two, write_claims
from store_scene import (
    HOUR,
    MINUTE,
    NINE,
    SUCCEEDED,
    hourly,
    minutely,
    scene,
    without,
)

from duly.core import interrupting, lifecycle
from duly.core.run import Step
from duly.errors import StoreAway
from duly.holder.dispatcher import Won
from duly.holder.settling import Interrupted, Returned
from duly.operations import tasks as task_operations
from duly.store import steps, tasks, waiting


def test_one_occurrence_opens_one_run_even_where_every_other_guard_is_gone(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", hourly())
        s.at(NINE + HOUR)
        (run,) = s.plan()
        double = replace(run, id="run_double")
        with (
            pytest.raises(StoreAway, match=r"runs\.task, runs\.occurrence|runs_occurrence"),
            s.store.write() as session,
        ):
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
        with pytest.raises(StoreAway, match=r"runs\.task, runs\.seat|runs_seat"):
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
        with pytest.raises(StoreAway, match=r"runs\.task, runs\.seat|runs_seat"):
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
        with without(waiting.CLAIM, "runs.version = v.was_version"):
            assert write_claims(s.connect(), [claim_of(first, holder=B)]), "the version is what refuses it"


def test_a_claim_takes_only_what_waits(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        as_it_stands = s.run(won.run.id)
        assert write_claims(s.connect(), [claim_of(as_it_stands, holder=B)]) == []
        with without(waiting.CLAIM, "runs.state = 'waiting'"):
            assert write_claims(s.connect(), [claim_of(as_it_stands, holder=B)]), "the state is what refuses it"


def test_a_step_that_names_an_old_version_changes_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        asked = lifecycle.ask_cancel(won.run, by="ann", now=NINE)
        assert move(s.connect(), asked)
        before = s.run(won.run.id)
        end = lifecycle.settle(won.run, "succeeded", now=NINE)
        back = lifecycle.give_back(won.run, now=NINE, why="x")
        for stale in (end, back):
            assert move(s.store, stale) == set()
            assert s.run(won.run.id) == before
        with without(steps.STEP, "runs.version = v.was_version"):
            assert move(s.store, back), "the version is what refuses it"
        assert s.run(won.run.id).cancel_asked_at is None, "and without it the wish to cancel is wiped"


def test_an_end_that_names_an_old_version_changes_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held()
        assert move(s.connect(), lifecycle.ask_cancel(won.run, by="ann", now=NINE))
        end = lifecycle.settle(won.run, "succeeded", now=NINE)
        assert move(s.store, end) == set()
        with without(steps.END, "runs.version = v.was_version"):
            assert move(s.store, end), "the version is what refuses it"


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
        with without(steps.END, guard):
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
            "interrupt": interrupting.interrupted(
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
        swept = interrupting.interrupted(
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
        with without(waiting.CLAIMABLE, "runs.not_before_us <= ?", "? IS NOT NULL"):
            assert len(s.claim()) == 1, "this condition is what keeps it waiting"
