"""Budgets as claims see them: set aside, settled, given back, and never overspent over several connections."""

import threading
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from store_scene import HOUR, MINUTE, NINE, Scene, definition, minutely, scene

from duly.clock import to_us
from duly.core import lifecycle
from duly.core.amounts import Allowance, Amounts
from duly.core.budgets import Standing
from duly.core.run import Run
from duly.core.task import Task
from duly.errors import Invalid, Refused
from duly.holder.dispatcher import Dispatcher, Won
from duly.holder.settling import Delivery, Interrupted
from duly.operations import budgets as budget_operations
from duly.operations import edits
from duly.operations import tasks as task_operations
from duly.operations.pruning import prune, wish
from duly.operations.runs import run_now
from duly.operations.telling import waiting_for
from duly.ports import Outcome
from duly.store.glances import glance, soonest

DAY = timedelta(days=1)


def set_budget(s: Scene, key: str = "store", runs: int = 3, per: str = "day") -> Standing:
    return budget_operations.set_budget(s.store, key, Allowance(per=per, runs=runs), by="ann").standing  # type: ignore[arg-type]


def standing(s: Scene, name: str = "store") -> tuple[int, int]:
    """How many runs are spent and set aside."""
    with s.store.read() as session:
        [one] = [one for one in budget_operations.standing(session) if one.name == name]
    return one.standing.spent.runs, one.standing.reserved.runs


def due(s: Scene, number: int, project: str = "default") -> None:
    """So many tasks of a project, each with one run that waits now."""
    for n in range(number):
        s.add(f"{project}-{n}", minutely(s.clock.moment), project=project, max_age=10 * DAY)
    s.at(s.clock.moment + MINUTE)
    s.plan()


def waits(s: Scene, run: Run) -> tuple[object, object, object]:
    with s.store.read() as session:
        found = waiting_for(session, run)
    assert found is not None
    return found["what"], found["key"], found["until"]


def left(s: Scene) -> list[Run]:
    return [run for run in s.runs() if run.state == "waiting"]


def test_as_many_runs_start_in_a_day_as_its_budget_says_and_the_rest_wait_for_the_next_day(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        begins = set_budget(s, runs=3).until
        due(s, 5)
        won = s.claim()
        assert (len(won), standing(s)) == (3, (0, 3))
        for one in won:
            s.settle(one)
        assert standing(s) == (3, 0)
        assert s.claim(s.connect(), holder="hld_b") == []
        assert {waits(s, run)[:2] for run in left(s)} == {("budget", "store")}
        assert datetime.fromisoformat(str(waits(s, left(s)[0])[2])) == begins
        with s.store.read() as session:
            assert session.budgets.soonest_us(session.now) == to_us(begins)
            found = soonest(glance(session, "2026a"))
            assert found is not None
            assert found <= begins
        s.at(begins - timedelta(seconds=1))
        assert s.claim() == []
        s.at(begins)
        assert len(s.claim()) == 2
        assert standing(s) == (0, 2)
        assert s.faults() == []


def test_what_waits_for_a_budget_keeps_nothing_else_from_starting(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.add("first", project="poor")
        set_budget(s, "project:poor", runs=0)
        due(s, 40, "poor")
        due(s, 2, "rich")
        assert {one.definition.project for one in s.claim(free=2)} == {"rich"}
        with s.store.write() as session:
            assert session.waiting.claimable(session.now, 100, holder="hld_a") == []


def test_a_budget_of_a_project_and_one_of_the_store_hold_at_once(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        due(s, 3, "reports")
        due(s, 3, "builds")
        set_budget(s, "project:reports", runs=1)
        set_budget(s, "store", runs=3)
        won = s.claim(free=64)
        assert sorted(one.definition.project for one in won) == ["builds", "builds", "reports"]
        assert (standing(s), standing(s, "project:reports")) == ((0, 3), (0, 1))
        [claim] = [one for one in s.entries() if one.run == won[-1].run.id and one.kind == "claimed"]
        assert claim.details["budgets"]["store"]["runs"] == {"spent": 0, "reserved": 3, "limit": 3}  # type: ignore[index]


def test_several_attempts_of_a_run_are_one_run_and_a_claim_that_is_given_back_is_none(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_budget(s, runs=1)
        s.add("one", minutely(), retries=5, retry_after=MINUTE)
        s.at(NINE + MINUTE)
        s.plan()
        [won] = s.claim()
        with s.store.write() as session:
            back = lifecycle.give_back(won.run, now=session.now, why="it never began")
            session.runs.move([back])
            session.ledger.add(back.entries)
        assert standing(s) == (0, 0)
        for _ in range(3):
            [won] = s.claim()
            assert standing(s)[1] == (1 if won.run.attempt == 2 else 0)
            s.settle(won, Outcome(word="failed", reason="exit_status", exit_code=1))
            assert standing(s) == (1, 0)
            s.at(s.run(won.run.id).not_before)
        assert [run.attempt for run in s.runs()] == [4]
        assert s.faults() == []


def test_a_death_settles_what_was_set_aside_once(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_budget(s, runs=2)
        won = s.held("one")
        verdict = Interrupted(why="holder_died", ended_at=s.clock.moment)
        s.settle(won, verdict)
        assert standing(s) == (1, 0)
        s.settle(won, verdict)
        assert standing(s) == (1, 0)
        assert s.faults() == []


def test_a_settle_whose_answer_was_lost_books_nothing_twice(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_budget(s, runs=5)
        won = s.held("one")
        delivery = s.delivery(won)
        for store in (s.store, s.connect(), s.store):
            with store.write() as session:
                s.settler().step(session, [Delivery(holding=delivery.holding, verdict=delivery.verdict)])
        assert standing(s) == (1, 0)
        assert s.sql("SELECT count(*) FROM charges") == [(1,)]


def test_over_several_connections_that_claim_at_once_a_budget_is_never_overspent(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        due(s, 60)
        set_budget(s, runs=23)
        stores = [s.connect() for _ in range(4)]
        won: list[str] = []
        begin = threading.Barrier(4)

        def claims(number: int) -> None:
            dispatcher = Dispatcher(f"hld_{number}", s.clock.boot, 10**9, lambda: {"command"})
            begin.wait(20)
            for _ in range(20):
                with stores[number].write() as session:
                    won.extend(one.run.id for one in dispatcher.step(session, 2).won)

        threads = [threading.Thread(target=claims, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(won) == len(set(won)) == 23
        assert standing(s) == (0, 23)
        assert s.faults() == []


def test_a_bound_may_be_set_below_what_is_spent_and_removed_again(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_budget(s, runs=5)
        due(s, 4)
        for one in s.claim(free=3):
            s.settle(one)
        set_budget(s, runs=2)
        assert (s.claim(), standing(s)) == ([], (3, 0))
        budget_operations.remove_budget(s.store, "store", by="ann")
        assert len(s.claim()) == 1
        with pytest.raises(Refused) as refused:
            budget_operations.remove_budget(s.store, "store", by="ann")
        assert refused.value.reason == "unknown_id"
        told = [entry.details["change"] for entry in s.entries() if "budget" in entry.details]
        assert told == ["set", "set", "removed"]


def test_a_run_by_hand_is_refused_with_the_figures_or_waits_where_it_was_asked_to(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one")
        set_budget(s, runs=1)
        run_now(s.store, "one", by="ann")
        s.settle(s.claim()[0])
        with pytest.raises(Refused) as refused:
            run_now(s.store, "one", by="ann")
        assert refused.value.reason == "budget_exceeded"
        assert "1 of 1 runs a day are taken" in refused.value.message
        assert refused.value.details["budget"]["limit"]["runs"] == 1  # type: ignore[index]
        run = run_now(s.store, "one", by="ann", queue=True)
        assert waits(s, run)[:2] == ("budget", "store")
        assert len(s.runs(task.id)) == 2


@pytest.mark.parametrize("key", ["", "shop", "project:", "project:nowhere", "task:one", "task:nothing", "store:x"])
def test_a_key_that_is_no_budgets_is_refused_and_nothing_is_written(tmp_path: Path, key: str) -> None:
    with scene(tmp_path) as s:
        s.add("one")
        before = s.kinds()
        with pytest.raises((Invalid, Refused)):
            set_budget(s, key)
        assert (s.kinds(), s.sql("SELECT count(*) FROM budgets")) == (before, [(0,)])


def test_a_budget_bounds_something(tmp_path: Path) -> None:
    with scene(tmp_path) as s, pytest.raises(Invalid):
        budget_operations.set_budget(s.store, "store", Allowance(per="day"), by="ann")


def test_verify_names_a_claim_beyond_its_budget_and_what_is_set_aside_for_nothing(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_budget(s, runs=1)
        won = s.held("one")
        s.settle(won)
        assert s.faults() == []
        s.sql("UPDATE charges SET live = 1")
        s.sql("UPDATE ledger SET details = replace(details, '\"reserved\":1', '\"reserved\":2') WHERE kind = 'claimed'")
        texts = [text for promise, text in s.faults() if promise == "P8"]
        assert texts == [
            "claimed with 2 runs charged to the budget store, and 1 are allowed",
            "its attempt 1 has set something aside in budgets, and is not live",
        ]


def test_charges_are_kept_as_long_as_a_month_may_ask_for_them(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_budget(s, runs=9, per="month")
        s.settle(s.held("one"))
        for days, there in ((60, 1), (130, 0)):
            s.at(NINE + HOUR + days * DAY)
            with s.store.read() as session:
                wanted = wish(session, 40 * DAY)
            prune(s.store, wanted, take=True)
            assert s.sql("SELECT count(*) FROM charges") == [(there,)]


DOLLAR = 1_000_000


def prompted(s: Scene, name: str, **rules: Any) -> Task:
    """A task whose work is an agent's."""
    action = {"kind": "agent", "agent": "scripted", "prompt": "Do it."}
    made = replace(definition(name, minutely(s.clock.moment), limits={}, **rules), action=action)
    return task_operations.add(s.store, made, by="ann", source={"kind": "cli"})


def claim_agents(s: Scene, free: int = 8) -> list[Won]:
    with s.store.write() as session:
        dispatcher = Dispatcher("hld_a", s.clock.boot, 10**9, lambda: {"agent", "command"})
        return list(dispatcher.step(session, free).won)


def cost(tokens: int, usd: float, **more: Any) -> Outcome:
    """An agent's success that tells what it cost."""
    usage = {"tokens_in": tokens - 10, "tokens_out": 10, "cost_usd": usd}
    return replace(Outcome(word="succeeded", agent={"session": "ses_1", "usage": usage}), **more)


def amounts(s: Scene, name: str) -> tuple[Amounts, Amounts]:
    """What is spent of a budget, and what is set aside."""
    with s.store.read() as session:
        [one] = [one for one in budget_operations.standing(session) if one.name == name]
    return one.standing.spent, one.standing.reserved


def test_what_an_agent_told_takes_the_place_of_what_was_set_aside(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        budget = Allowance(per="day", usd_micro=DOLLAR, tokens=1000)
        prompted(s, "one", budget=budget, estimate=Amounts(tokens=300, usd_micro=DOLLAR // 4))
        s.at(NINE + MINUTE)
        s.plan()
        [won] = claim_agents(s)
        assert amounts(s, "task:one") == (Amounts(), Amounts(runs=1, tokens=300, usd_micro=DOLLAR // 4))
        s.settle(won, cost(120, 0.05))
        assert amounts(s, "task:one") == (Amounts(runs=1, tokens=120, usd_micro=50_000), Amounts())
        assert s.faults() == []


def test_agents_that_start_at_one_instant_never_set_aside_more_than_there_is(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_amounts(s, usd_micro=DOLLAR)
        for n in range(6):
            prompted(s, f"a{n}", estimate=Amounts(usd_micro=300_000))
        with s.store.write() as session:
            session.crowd.set(replace(session.crowd.by_keys(["agents:default"])["agents:default"], most=50))
        s.at(NINE + MINUTE)
        s.plan()
        won = claim_agents(s)
        assert len(won) == 3, "a fourth would come to 1.20"
        s.settle(won[0], cost(10, 0.10))
        assert len(claim_agents(s)) == 1, "0.10 spent, 0.60 and 0.30 set aside"
        assert {waits(s, run)[:2] for run in left(s)} == {("budget", "store")}
        assert s.faults() == []


def set_amounts(s: Scene, **bounds: int) -> None:
    budget_operations.set_budget(s.store, "store", Allowance(per="day", **bounds), by="ann")


def test_what_is_told_beyond_the_estimate_is_charged_and_nothing_that_spends_starts_any_more(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_amounts(s, usd_micro=DOLLAR)
        prompted(s, "one")
        s.add("command", minutely(), max_age=10 * DAY)
        s.at(NINE + MINUTE)
        s.plan()
        agent, command = sorted(claim_agents(s), key=lambda one: one.definition.name == "command")
        s.settle(agent, cost(10, 1.75))
        s.settle(command)
        assert amounts(s, "store")[0].usd_micro == 1_750_000
        s.at(NINE + 2 * MINUTE)
        s.plan()
        assert [one.definition.name for one in claim_agents(s)] == ["command"], "it costs none of it"
        [run] = left(s)
        assert waits(s, run)[:2] == ("budget", "store")


def test_of_an_agent_that_tells_nothing_the_estimate_stays_and_a_death_costs_what_it_told(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_amounts(s, tokens=10_000)
        for name in ("quiet", "died"):
            prompted(s, name, estimate=Amounts(tokens=500), max_age=DAY)
        s.at(NINE + MINUTE)
        s.plan()
        quiet, died = sorted(claim_agents(s), key=lambda one: one.definition.name == "died")
        s.settle(quiet, Outcome(word="succeeded", agent={"session": "ses_1", "prompted": True}))
        assert amounts(s, "store") == (Amounts(runs=1, tokens=500), Amounts(runs=1, tokens=500))
        told = {"usage": {"tokens_in": 70, "tokens_out": 7}}
        s.settle(died, Interrupted(why="holder_died", ended_at=s.clock.moment, agent=told))
        assert amounts(s, "store") == (Amounts(runs=2, tokens=577), Amounts())


def test_an_agent_that_could_not_be_prompted_costs_nothing_but_its_run(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_amounts(s, tokens=10_000)
        prompted(s, "one", estimate=Amounts(tokens=500), retries=2, retry_after=MINUTE)
        s.at(NINE + MINUTE)
        s.plan()
        for agent, spent in (({}, 0), ({"session": "ses_1"}, 0), ({"session": "ses_2", "prompted": True}, 500)):
            [won] = claim_agents(s)
            s.settle(won, Outcome(word="failed", reason="preflight", error="it is not there", agent=agent))
            assert amounts(s, "store") == (Amounts(runs=1, tokens=spent), Amounts())
            s.at(s.run(won.run.id).not_before)


def test_each_attempt_of_a_run_is_charged_with_its_own_share(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        set_amounts(s, tokens=10_000, runs=5)
        prompted(s, "one", retries=3, retry_after=MINUTE, estimate=Amounts(tokens=50))
        s.at(NINE + MINUTE)
        s.plan()
        for tokens, sum_ in ((100, 100), (40, 140)):
            [won] = claim_agents(s)
            failed = cost(tokens, 0, word="failed", reason="agent_error", error="no")
            s.settle(won, failed)
            assert amounts(s, "store") == (Amounts(runs=1, tokens=sum_), Amounts())
            s.at(s.run(won.run.id).not_before)


def test_a_tasks_own_budget_follows_its_definition_and_goes_with_it(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        task = s.add("one", minutely(), budget=Allowance(per="day", runs=1), max_age=10 * DAY)
        s.at(NINE + MINUTE)
        s.plan()
        s.settle(s.claim()[0])
        run = run_now(s.store, "one", by="ann", queue=True)
        assert s.claim() == []
        assert waits(s, run)[:2] == ("budget", f"task:{task.id}")
        edits.edit(s.store, "one", {"rules": {"budget": {"runs": 2, "per": "day"}}}, by="ann")
        assert len(s.claim()) == 1, "what was spent stays spent, and one more fits"
        edits.edit(s.store, "one", {"rules": {"budget": None}}, by="ann")
        assert s.sql("SELECT count(*) FROM budgets") == [(0,)]
        edits.edit(s.store, "one", {"rules": {"budget": {"runs": 2, "per": "day"}}}, by="ann")
        task_operations.remove(s.store, "one", by="ann")
        assert s.sql("SELECT count(*) FROM budgets") == [(0,)]
