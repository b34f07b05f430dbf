"""What tests of routes let happen in a store that nobody serves: tasks, runs that are held, ask or were missed."""

from datetime import datetime, timedelta
from typing import Any

from web_scene import Web

from duly import ids
from duly.core.questions import Asked
from duly.core.run import Missed
from duly.holder.assignments import hold
from duly.holder.dispatcher import Dispatcher, Won
from duly.holder.settling import Delivery, Settler, Verdict
from duly.ports import Parked

LEASE_US = 100_000_000
MAY_I = Asked(kind="permission", text="execute: make clean", about={"tool": "execute"})
WHICH = Asked(kind="question", text="Which branch?", options=("main", "next"))
SPOKEN = {"session": "ses_1", "prompted": True, "usage": {"tokens_in": 10, "tokens_out": 5}}


class Idle:
    """A runner that is never asked to do anything."""

    def check(self, action: object) -> None:
        return None

    def perform(self, assignment: object, checkpoint: object) -> Any:
        raise AssertionError("these tests start no work")

    def stop(self, how: object) -> None:
        return None


def of(name: str, **more: Any) -> dict[str, Any]:
    """A definition as JSON has it, of a task that is due each morning."""
    action = {"kind": "command", "argv": ["true"], "cwd": "/"}
    return {"name": name, "triggers": ["daily 09:00"], "zone": "Europe/Berlin", "action": action, **more}


def added(web: Web, name: str, **more: Any) -> str:
    """The id of a new task."""
    made = web.ask("POST", "/tasks", json=of(name, **more))
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def claimed(web: Web) -> list[Won]:
    """Claim what waits, as a holder would."""
    with web.store.write() as session:
        boot = web.store.clock.boot_id()
        return list(Dispatcher("hld_a", boot, LEASE_US, lambda: frozenset({"command"})).step(session, 8).won)


def settled(web: Web, won: Won, verdict: Verdict) -> None:
    """Write what became of an attempt."""
    trust = web.store.clock.lease_us() + LEASE_US
    holding = hold(won.run, won.definition, runner=Idle(), run_folder=web.store.run_folder, trust_end_us=trust)
    with web.store.write() as session:
        Settler("hld_a", "here", 600_000_000).step(session, [Delivery(holding=holding, verdict=verdict)])


def asking(web: Web, task: str, asked: Asked = MAY_I) -> tuple[str, str]:
    """A run of a task that has asked, and its question."""
    run = web.ask("POST", f"/tasks/{task}/run").json()["id"]
    (won,) = [one for one in claimed(web) if one.run.id == run]
    settled(web, won, Parked(asked=asked, agent=SPOKEN))
    with web.store.read() as session:
        (question,) = session.questions.open_of(run)
    return run, question.id


def offered(web: Web, task: str, due: datetime) -> str:
    """A missed occurrence of a task that is offered."""
    with web.store.write() as session:
        one = Missed(
            id=ids.new("mis"),
            task=task,
            occurrence=f"at:{due:%Y-%m-%dT%H:%M:%SZ}",
            due_at=due,
            until_at=due,
            count=1,
            reason="missed_offer",
            noticed_at=session.now,
            holder="hld_a",
            state="open",
            expires_at=session.now + timedelta(days=7),
        )
        session.missed.insert([one])
    return one.id
