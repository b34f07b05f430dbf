"""Several holders and people over one file, taking steps drawn from a seed."""

import random
from datetime import timedelta

import pytest
from store_scene import (
    HOUR,
    MINUTE,
    NINE,
    SECOND,
    SUCCEEDED,
    Scene,
    hourly,
    losing,
    minutely,
)

from duly.core import lifecycle
from duly.core.run import Run
from duly.core.task import Task
from duly.core.triggers import Cron, Once
from duly.errors import Invalid, Refused, StoreUnknown
from duly.holder.dispatcher import Won
from duly.holder.settling import Interrupted, NotNow, Returned, Verdict
from duly.operations import runs as run_operations
from duly.operations import tasks as task_operations
from duly.ports import Detached, Outcome
from duly.store import Store
from duly.store.plans import write_plans

FAILED = Outcome(word="failed", reason="exit_status", error="exit status 1", exit_code=1)
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
            FAILED,
            FAILED,
            NotNow(reason="gate_closed", told="the gate said not now", details={"exit_code": 1}),
            Outcome(word="timed_out", reason="timeout", error="ran longer than its timeout"),
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
        s.add("one", minutely(), grace=5 * MINUTE, overlap="queue", queue=2, on_interrupt="retry", retries=2),
        s.add("two", Cron(expression="*/5 * * * *"), on_missed="skip", on_interrupt="retry", retries=1, pause_after=3),
        s.add("three", hourly(), Once(at=NINE + 30 * MINUTE), max_age=2 * HOUR, retries=5, pause_after=1),
    ]


def failures_told(s: Scene, task: str) -> int:
    """Count a task's failures in a row by its story alone."""
    failures = 0
    for entry in s.entries(task):
        outcome = entry.details.get("outcome")
        if entry.kind == "unpaused" or outcome == "succeeded":
            failures = 0
        elif entry.kind == "ended" and outcome in {"failed", "timed_out", "abandoned"}:
            failures += 1
    return failures
