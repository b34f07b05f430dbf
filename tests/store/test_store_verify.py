"""`verify`: silent over what the house did, and naming what a hand or a missing guard did."""

import random
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest
from store_scene import (
    DAY,
    HOUR,
    MINUTE,
    NINE,
    SECOND,
    SUCCEEDED,
    Scene,
    hourly,
    losing,
    minutely,
    scene,
    without,
)

from duly.core import lifecycle
from duly.core.reasons import ENDED, NO_START
from duly.core.run import Run
from duly.core.task import Task
from duly.core.triggers import Cron, Once
from duly.errors import DulyError, Invalid, Refused, StoreUnknown
from duly.holder.dispatcher import Won
from duly.holder.settling import Interrupted, Returned, Verdict
from duly.operations import runs as run_operations
from duly.operations import tasks as task_operations
from duly.ports import Detached
from duly.store import Store, steps, switches, tasks
from duly.store.plans import write_plans


def lived(s: Scene) -> None:
    """A store with a past: runs that ended in several ways, missed ones, a retry, a pause, a run by hand."""
    s.add("one", minutely(), on_interrupt="retry", on_missed="skip", overlap="queue")
    s.at(NINE + 5 * MINUTE)
    s.plan()
    s.settle(s.claim()[0])
    s.at(NINE + 6 * MINUTE)
    s.plan()
    (won,) = s.claim()
    s.settle(won, Interrupted(why="holder_died", ended_at=s.clock.now()))
    (again,) = s.claim(holder="hld_b")
    s.settle(again, SUCCEEDED, holder="hld_b")
    task_operations.pause(s.store, "task", "one", until=None, note=None, by="ann")
    s.at(NINE + 9 * MINUTE)
    task_operations.unpause(s.store, "task", "one", by="ann")
    run_operations.run_now(s.store, "one", by="ann")
    s.settle(s.claim()[0])
    s.at(NINE + 10 * MINUTE)
    s.plan()


def test_a_store_that_the_house_has_kept_is_clean(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        assert s.faults() == []
        lived(s)
        assert s.faults() == []
        kinds = set(s.kinds())
        assert kinds >= {"opened", "missed", "claimed", "swept", "ended", "stretch", "paused", "unpaused"}


def first(s: Scene, where: str) -> int:
    return int(s.sql(f"SELECT seq FROM ledger WHERE {where} ORDER BY seq")[0][0])


def copied(s: Scene, where: str, **changes: object) -> None:
    """Write an entry like another one once more, changed."""
    columns = ["at_us", "kind", "task", "occurrence", "run", "attempt", "reason", "holder", '"by"', "count"]
    columns += ["until_us", "details"]
    taken = ", ".join("?" if column.strip('"') in changes else column for column in columns)
    values = [changes[column.strip('"')] for column in columns if column.strip('"') in changes]
    into = ", ".join(columns)
    s.sql(f"INSERT INTO ledger ({into}) SELECT {taken} FROM ledger WHERE seq = ?", *values, first(s, where))


def set_entry(s: Scene, where: str, change: str) -> None:
    s.sql(f"UPDATE ledger SET {change} WHERE seq = ?", first(s, where))


def drop(s: Scene, where: str) -> None:
    s.sql("DELETE FROM ledger WHERE seq = ?", first(s, where))


def claimed_twice(s: Scene) -> None:
    for number in (1, 2):
        details = f'{{"fence": {98 + number}, "seat": 1}}'
        copied(s, "kind = 'claimed'", run=f"run_{number}", details=details)


def by_sql(text: str) -> Callable[[Scene], None]:
    def plant(s: Scene) -> None:
        s.sql(text)

    return plant


PLANTED: dict[str, tuple[str, Callable[[Scene], None]]] = {
    "an occurrence that opened two runs": ("P1", lambda s: copied(s, "kind = 'opened'", run="run_double")),
    "a seat claimed while another run had it": ("P2", claimed_twice),
    "a fence given twice": (
        "P2",
        by_sql(
            "UPDATE ledger SET details = json_set(details, '$.fence', 1) WHERE kind = 'claimed' AND seq = "
            "(SELECT max(seq) FROM ledger WHERE kind = 'claimed')"
        ),
    ),
    "an end by a holder that had lost the run": (
        "P4",
        lambda s: set_entry(s, "kind = 'ended' AND attempt = 2", "holder = 'hld_a'"),
    ),
    "an end with an old fence": (
        "P4",
        lambda s: set_entry(s, "kind = 'ended' AND attempt = 2", "details = json_set(details, '$.fence', 2)"),
    ),
    "a run ended twice": ("P4", lambda s: copied(s, "kind = 'ended'")),
    "an outcome that the ledger does not tell": (
        "P4",
        by_sql("UPDATE runs SET outcome = 'failed' WHERE outcome = 'succeeded'"),
    ),
    "a fence on the row that the ledger does not tell": ("P4", by_sql("UPDATE runs SET fence = 50")),
    "a run brought back to waiting by hand": (
        "P4",
        by_sql("UPDATE runs SET state = 'waiting', outcome = NULL WHERE outcome = 'succeeded'"),
    ),
    "a run of which the ledger knows nothing": (
        "P4",
        by_sql("DELETE FROM ledger WHERE run = (SELECT min(id) FROM runs)"),
    ),
    "entries of a run that is not there": ("P6", by_sql("DELETE FROM runs WHERE attempt = 2")),
    "an occurrence without a fate": ("P6", lambda s: drop(s, "kind = 'missed'")),
    "an opened one without its entry": ("P6", lambda s: drop(s, "kind = 'opened' AND reason = 'schedule'")),
    "a stretch that counts too many": ("P6", lambda s: set_entry(s, "kind = 'missed'", "count = count + 1")),
    "a stretch that counts too few": ("P6", lambda s: set_entry(s, "kind = 'stretch'", "count = count - 1")),
    "a stretch that reaches over another fate": (
        "P6",
        lambda s: set_entry(s, "kind = 'missed'", "until_us = until_us + 60000000"),
    ),
    "two stretches of the same": ("P6", lambda s: copied(s, "kind = 'stretch'")),
    "a fate of an instant that is no occurrence": (
        "P6",
        lambda s: copied(s, "kind = 'missed'", occurrence="at:2026-03-02T09:03:30Z", count=1, until_us=None),
    ),
    "a fate beyond the cursor": (
        "P6",
        lambda s: copied(s, "kind = 'missed'", occurrence="at:2026-03-02T12:00:00Z", count=1, until_us=None),
    ),
    "a cursor moved on by hand": (
        "P6",
        by_sql("UPDATE tasks SET planned_until_us = planned_until_us + 600000000"),
    ),
    "a cursor moved back by hand": (
        "P6",
        by_sql("UPDATE tasks SET planned_until_us = planned_until_us - 600000000"),
    ),
    "a task without any version of its definition": ("P6", by_sql("DELETE FROM definitions")),
    "a task of which the ledger knows nothing": ("P6", by_sql("DELETE FROM ledger")),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_violation_planted_by_hand_is_named_with_its_promise(tmp_path: Path, planted: str) -> None:
    with scene(tmp_path) as s:
        lived(s)
        assert s.faults() == []
        promise, plant = PLANTED[planted]
        plant(s)
        found = s.faults()
        assert promise in {one for one, _ in found}, found
        assert all(text for _, text in found)


def test_two_live_attempts_of_one_seat_in_the_rows_are_named(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", minutely(), grace=HOUR, overlap="queue")
        s.at(NINE + 2 * MINUTE)
        s.plan()
        s.claim()
        s.sql("DROP INDEX runs_seat")
        s.sql("UPDATE runs SET state = 'held', seat = 1, holder = 'hld_b', fence = 1, attempt = 1")
        assert {promise for promise, _ in s.faults()} & {"P2", "P4"}


def test_what_the_missing_guards_let_through_is_named(tmp_path: Path) -> None:
    """The double that the cursor and the index keep out, let in: verify sees it as P1."""
    with scene(tmp_path) as s:
        s.add("one", hourly())
        s.at(NINE + HOUR)
        with s.store.read() as session:
            stale = session.tasks.due(session.now, 10)
        s.plan()
        s.sql("DROP INDEX runs_occurrence")
        with without(tasks.PLANNED, "tasks.planned_until_us = v.was_planned_until_us"), s.connect().write() as session:
            assert len(write_plans(session, stale, holder="hld_b")) == 1
        assert "P1" in {promise for promise, _ in s.faults()}


def test_verify_reads_one_moment_and_changes_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        lived(s)
        path = s.address.path
        before = path.read_bytes(), (path.parent / "duly.db-wal").read_bytes()
        s.faults()
        assert (path.read_bytes(), (path.parent / "duly.db-wal").read_bytes()) == before


def test_findings_have_an_end_however_broken_the_store(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("one", minutely(), grace=DAY)
        s.at(NINE + 1500 * MINUTE)
        for _ in range(16):
            s.plan()
        s.sql("UPDATE runs SET fence = 9")
        assert len(s.faults()) == 1000


# Random interleavings


OFTEN = {"pass_time", "plan", "plan_what_was_read_before", "claim", "settle", "settle_with_a_lost_answer", "unpause"}
OFTEN |= {"enable", "sweep"}


class Walk:
    """Several holders over one file, taking steps drawn from a seed; between any two of them anything may come."""

    def __init__(self, s: Scene, seed: int) -> None:
        self.s = s
        self.draw = random.Random(seed)
        self.stores: dict[str, Store] = {f"hld_{n}": s.connect() for n in range(self.draw.choice([2, 3]))}
        self.held: dict[str, list[Won]] = {holder: [] for holder in self.stores}
        self.stale: list[tuple[str, Run]] = []
        self.steps: list[str] = []

    def take(self, count: int) -> None:
        acts = {name.removeprefix("do_"): getattr(self, name) for name in dir(self) if name.startswith("do_")}
        weights = [4 if name in OFTEN else 1 for name in sorted(acts)]
        for _ in range(count):
            (name,) = self.draw.choices(sorted(acts), weights)
            holder = self.draw.choice(sorted(self.stores))
            self.steps.append(f"{name} {holder}")
            try:
                acts[name](holder, self.stores[holder])
            except (Refused, Invalid):
                continue

    def word(self) -> str:
        return self.draw.choice(["one", "two", "three"])

    def do_pass_time(self, _holder: str, _store: Store) -> None:
        span = self.draw.choice([SECOND, 20 * SECOND, MINUTE, 7 * MINUTE, HOUR, 7 * HOUR, -3 * MINUTE])
        self.s.clock.moment += span
        self.s.clock.lease += max(0, span // timedelta(microseconds=1))

    def do_plan(self, holder: str, store: Store) -> None:
        self.s.plan(store, holder)

    def do_plan_what_was_read_before(self, holder: str, store: Store) -> None:
        with store.read() as session:
            stale = session.tasks.due(session.now, 10)
        other = self.draw.choice(sorted(self.stores))
        self.s.plan(self.stores[other], other)
        with store.write() as session:
            write_plans(session, stale, holder=holder)

    def do_claim(self, holder: str, store: Store) -> None:
        self.held[holder] += self.s.claim(store, holder, free=self.draw.choice([1, 2, 5]))

    def do_settle(self, holder: str, store: Store) -> None:
        if self.held[holder]:
            won = self.held[holder].pop(self.draw.randrange(len(self.held[holder])))
            self.s.settle(won, self.verdict(), store, holder)

    def do_settle_with_a_lost_answer(self, holder: str, store: Store) -> None:
        if self.held[holder]:
            won = self.held[holder].pop()
            verdict = self.verdict()
            with losing(store, before=self.draw.random() < 0.5), pytest.raises(StoreUnknown):
                self.s.settle(won, verdict, store, holder)
            self.s.settle(won, verdict, store, holder)

    def verdict(self) -> Verdict:
        now = self.s.clock.now()
        kinds: list[Verdict] = [
            SUCCEEDED,
            Returned(why="it had not begun"),
            Interrupted(why="holder_died", ended_at=now),
            Detached(),
        ]
        return self.draw.choice(kinds)

    def do_sweep(self, holder: str, store: Store) -> None:
        """Take over what another holds, as if it were dead; it may still wake up and settle."""
        with store.read() as session:
            found = session.runs.held_by_others(holder, 10)
        if not found:
            return
        run = self.draw.choice(found)
        if self.draw.random() < 0.3:  # a beat comes between
            with store.write() as session:
                end_us = (run.lease_end_us or 0) + 1
                session.runs.beat([(run.id, run.fence)], holder=run.holder or "", boot="boot-one", end_us=end_us)
        with store.write() as session:
            over = lifecycle.take_over(
                run, holder=holder, token=f"{holder} {run.version}", lease_end_us=self.s.clock.lease, boot="boot-one",
                now=session.now, why="holder_died",
            )  # fmt: skip
            if session.runs.move([over], naming_lease=True):
                session.ledger.add(over.entries)
                task = session.tasks.by_id(run.task)
                assert task is not None
                self.held[holder].append(Won(run=over.after, task=task, definition=task.definition))

    def do_run_by_hand(self, _holder: str, store: Store) -> None:
        key = self.draw.choice([None, "a", "b"])
        run_operations.run_now(store, self.word(), by="ann", key=key, queue=self.draw.random() < 0.5, anyway=True)

    def do_cancel(self, _holder: str, store: Store) -> None:
        live = [run for run in self.s.runs() if run.state != "ended"]
        if live:
            run_operations.cancel(store, self.draw.choice(live).id, by="ann")

    def do_pause(self, _holder: str, store: Store) -> None:
        scope = self.draw.choice(["task", "project", "store"])
        target = {"task": self.word(), "project": "default", "store": ""}[scope]
        until = self.draw.choice([None, self.s.clock.now() + 5 * MINUTE, self.s.clock.now() + 5 * HOUR])
        task_operations.pause(store, scope, target, until=until, note=None, by="ann")

    def do_unpause(self, _holder: str, store: Store) -> None:
        scope = self.draw.choice(["task", "project", "store"])
        target = {"task": self.word(), "project": "default", "store": ""}[scope]
        task_operations.unpause(store, scope, target, by="ann")

    def do_disable(self, _holder: str, store: Store) -> None:
        task_operations.disable(store, self.word(), by="ann")

    def do_enable(self, _holder: str, store: Store) -> None:
        task_operations.enable(store, self.word(), by="ann")

    def do_remove_and_add_again(self, _holder: str, store: Store) -> None:
        if self.draw.random() < 0.3:
            word = self.word()
            task_operations.remove(store, word, by="ann")
            self.s.add(word, minutely(self.s.clock.now()))


def tasks_of_all_kinds(s: Scene) -> list[Task]:
    return [
        s.add("one", minutely(), grace=5 * MINUTE, overlap="queue", queue=2, on_interrupt="retry"),
        s.add("two", Cron(expression="*/5 * * * *"), on_missed="skip", on_interrupt="retry"),
        s.add("three", hourly(), Once(at=NINE + 30 * MINUTE), max_age=2 * HOUR),
    ]


@pytest.mark.parametrize("seed", range(10))
def test_whatever_several_holders_and_people_do_between_one_another_every_promise_is_kept(
    tmp_path: Path, seed: int
) -> None:
    with scene(tmp_path) as s:
        made = tasks_of_all_kinds(s)
        walk = Walk(s, seed)
        for _ in range(8):
            walk.take(15)
            assert s.faults() == [], (seed, walk.steps)
            for run in s.runs():
                assert (run.outcome is not None) == (run.ended_at is not None) == (run.state == "ended"), run
                known = {"skipped": NO_START, "succeeded": {None}}.get(run.outcome or "", ENDED)
                assert run.state != "ended" or run.reason in known, (seed, run)
        live = [(run.task, run.seat) for run in s.runs() if run.state in {"held", "parked"}]
        assert len(set(live)) == len(live)
        with s.store.read() as session:
            assert {task.definition.name for task in session.tasks.page()} == {"one", "two", "three"}
            for task in made:
                assert session.tasks.by_id(task.id) is not None, "a removed one keeps its row and its story"
                assert session.tasks.definition_text(task.id, 1) is not None
        assert s.store.quick_check() == "ok"


def weaken(s: Scene, guard: str, stack: ExitStack, patched: pytest.MonkeyPatch) -> None:
    """Take one guard away for a while."""
    match guard:
        case "cursor":
            s.sql("DROP INDEX runs_occurrence")
            stack.enter_context(without(tasks.PLANNED, "tasks.planned_until_us = v.was_planned_until_us"))
            stack.enter_context(without(tasks.PLANNED, "tasks.planned_until_us <= v.planned_until_us"))
        case "version, holder and fence":
            for condition in (
                "runs.version = v.was_version",
                "runs.state = v.was_state",
                "runs.holder IS v.was_holder",
                "runs.fence = v.was_fence",
            ):
                stack.enter_context(without(steps.STEP, condition))
        case "fence":
            stack.enter_context(without(tasks.RAISE_FENCE, '(tasks.fence + v."by")', 'v."by"'))
        case "plan first":
            patched.setattr(switches, "bring_up_to_now", lambda _session, task: task)
            patched.setattr(switches, "owed", lambda *_given: None)
        case _:
            raise AssertionError(guard)


@pytest.mark.parametrize("guard", ["cursor", "version, holder and fence", "fence", "plan first"])
def test_the_same_walks_find_each_guard_that_is_taken_away(
    tmp_path: Path, guard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(20):
        (tmp_path / str(seed)).mkdir()
        with scene(tmp_path / str(seed)) as s, ExitStack() as stack, monkeypatch.context() as patched:
            tasks_of_all_kinds(s)
            weaken(s, guard, stack, patched)
            walk = Walk(s, seed)
            try:
                walk.take(60)
            except (DulyError, AssertionError):
                return
            if s.faults():
                return
    raise AssertionError(f"no walk noticed that {guard} was missing")
