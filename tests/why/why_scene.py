"""A stage for `why`: a real store on clocks that stand still, holders turned by hand, screens as people see them."""

import io
import itertools
import json
import random
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import databases
from by_hand import by_hand
from duly import ids
from duly.cli.frame import run as run_cli
from duly.clock import to_us
from duly.core import lifecycle
from duly.core.run import Run, RunOutcome
from duly.core.task import Definition, Rules, Task
from duly.core.when import read
from duly.holder.dispatcher import Dispatcher
from duly.holder.planner import Planner
from duly.holder.presence import Presence
from duly.operations import tasks
from duly.operations.why import why
from duly.operations.why_values import Why
from duly.store import Session, Store
from duly.store.rows import HolderRow
from duly.store.switches import move
from duly.zones import zone

BOOT = "boot-1"
LEASE = timedelta(seconds=100)
SLOTS = 4
ID = re.compile(r"(run|mis|hld|tsk|pau|evt)_[0-9a-z]{26}")


def instant(text: str) -> datetime:
    """Read `2026-12-01 08:00` as UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


class Hand:
    """A holder that is turned by hand."""

    def __init__(self, stage: "Stage", host: str, pid: int, labels: tuple[str, ...]) -> None:
        self.id = ids.new("hld")
        self._stage = stage
        stage.store.run_folder.mkdir(exist_ok=True)
        self.presence = Presence(stage.store.run_folder, self.id)
        self._planner = Planner(self.id)
        self._dispatcher = Dispatcher(
            self.id, BOOT, LEASE // timedelta(microseconds=1), lambda: {"command"}, labels=labels
        )
        with stage.store.write() as session:
            session.holders.insert(
                HolderRow(
                    id=self.id,
                    place="place",
                    boot=BOOT,
                    host=host,
                    pid=pid,
                    ticks=None,
                    started_at=session.now,
                    last_beat_at=session.now,
                    beat_lease_us=session.lease_us,
                    lease_for=LEASE,
                    state="alive",
                    slots=SLOTS,
                    labels=labels,
                    version="0",
                    zone_data="2026a",
                    claims=0,
                    claims_lost=0,
                )
            )
            session.crowd.set_labels(self.id, labels)

    def turn(self) -> list[Run]:
        """Plan what is due and claim what may start; gives what was claimed."""
        with self._stage.store.write() as session:
            self._planner.step(session)
            return [won.run for won in self._dispatcher.step(session, SLOTS).won]

    def plan(self) -> None:
        """Plan what is due, and claim nothing."""
        with self._stage.store.write() as session:
            self._planner.step(session)

    def beat(self) -> None:
        """Beat, and extend the leases of what is held."""
        with self._stage.store.write() as session:
            session.holders.beat(self.id, now=session.now, lease_us=session.lease_us, claims=0, claims_lost=0)
            held = [(run.id, run.fence) for run in session.runs.held_by(self.id)]
            end_us = session.lease_us + LEASE // timedelta(microseconds=1)
            session.runs.beat(held, holder=self.id, boot=BOOT, end_us=end_us)


class Stage:
    """One store; the machine's clocks say what the test says, and so do ids."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        databases.copy_blank(monkeypatch)
        self.now = instant("2026-12-01 08:00")
        self.folder = folder
        self.holders: list[Hand] = []
        draw = random.Random(7)
        monkeypatch.setattr("duly.clock.now", lambda: self.now)
        monkeypatch.setattr("duly.clock.lease_us", lambda: to_us(self.now) - to_us(instant("2026-01-01 00:00")))
        monkeypatch.setattr("duly.clock.boot_id", lambda: BOOT)
        for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "NO_COLOR", "FORCE_COLOR", "DULY_RUN"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(folder))
        monkeypatch.setenv("TZ", "Europe/Berlin")
        databases.by_this_clock(monkeypatch)
        self.place = databases.unmade(folder)
        monkeypatch.setenv("DULY_STORE", databases.given(self.place))
        self._patch = monkeypatch
        self.store = Store.open(self.place, {"HOME": str(folder)}, create=True)
        # Only now: how many draws it takes to make a store is of the database, and ids are the same on both.
        monkeypatch.setattr("duly.chance.token_bytes", draw.randbytes)

    def close(self) -> None:
        for hand in self.holders:
            hand.presence.leave()
        self.store.close()

    def at(self, text: str) -> None:
        """Let it be this instant, such as `2026-12-01 08:00` in UTC."""
        self.now = instant(text)

    def later(self, **span: float) -> None:
        """Let so much time pass."""
        self.now += timedelta(**span)

    def add(
        self,
        name: str,
        *when: str,
        zone_name: str = "Europe/Berlin",
        enabled: bool = True,
        project: str = "default",
        **rules: object,
    ) -> Task:
        """Add a task as Anna would have."""
        place = zone(zone_name)
        triggers = tuple(read(text, now=self.now, zone=place).trigger for text in when if text != "manual")
        definition = Definition(
            name=name,
            project=project,
            enabled=enabled,
            triggers=triggers,
            zone=zone_name,
            action={"kind": "command", "argv": ["./work.sh"]},
            rules=Rules(**rules),  # type: ignore[arg-type]
            own_rules=frozenset(rules),
        )
        return tasks.add(self.store, definition, by="anna", source={"kind": "cli"})

    def serve(self, host: str = "web1", pid: int = 4242, labels: tuple[str, ...] = ()) -> Hand:
        """Let a holder serve from now on."""
        hand = Hand(self, host, pid, labels)
        self.holders.append(hand)
        return hand

    def die(self, hand: Hand) -> None:
        """Let a holder die: its lock is free, its file stays."""
        hand.presence.release()
        self.holders.remove(hand)

    def settle(
        self,
        run: Run,
        outcome: RunOutcome = "succeeded",
        *,
        reason: str | None = None,
        error: str | None = None,
        exit_code: int | None = None,
    ) -> None:
        """End a run that is held."""
        with self.store.write() as session:
            held = session.runs.by_id(run.id)
            assert held is not None
            step = lifecycle.settle(held, outcome, now=session.now, reason=reason, error=error, exit_code=exit_code)
            assert move(session, [step])

    def fail(self, hand: Hand, run: Run, *, exit_code: int = 1, error: str = "no route to host") -> None:
        """Let an attempt fail; its run is tried again where its task has retries left."""
        from duly.core.retrying import retried

        with self.store.write() as session:
            held = session.runs.by_id(run.id)
            assert held is not None
            task = session.tasks.by_id(held.task)
            assert task is not None
            ended = lifecycle.settle(
                held, "failed", now=session.now, reason="exit_status", error=error, exit_code=exit_code
            )
            step = retried(ended, task.definition.rules, ended_at=session.now, draw=0.0)
            assert move(session, [step])

    def turn_and_end(self, hand: Hand, *, after_s: float = 12, **end: Any) -> Run:
        """Let a holder take what is due, and let the work end after some seconds."""
        (run,) = hand.turn()
        self.later(seconds=after_s)
        self.settle(run, **end)
        return run

    def session(self) -> Any:
        """See the store at this moment."""
        return self.store.read()

    def why(self, word: str, at: str | None = None) -> Why:
        """Ask in Python."""
        alive = {hand.id for hand in self.holders}
        with self.store.read() as session:
            return why(session, word, None if at is None else instant(at), alive=alive, boot=BOOT)

    def call(self, *args: str, columns: int = 80) -> str:
        """Ask on the command line, on a terminal of so many columns without colour; gives the screen."""
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COLUMNS", str(columns))
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            code = run_cli(args)
        texts = []
        for stream in (out, err):
            stream.flush()
            texts.append(stream.buffer.getvalue().decode())
        assert code == 0, texts[1]
        return texts[0]

    def json(self, *args: str) -> Any:
        """Ask on the command line for JSON."""
        return json.loads(self.call(*args, "--json"))

    def normal(self, text: str) -> str:
        """Give a screen whose ids are named in the order in which they were made: as wide, and the same everywhere."""
        with self.store.read() as session:
            named = _names(session)
        for id_, name in named.items():
            text = text.replace(id_, f"{id_[:4]}{name:0>26}").replace(id_[-8:], name)
        return text


def _names(session: Session) -> Mapping[str, str]:
    known: dict[str, str] = {}
    rows = itertools.chain.from_iterable(
        by_hand(session.line, f"SELECT id FROM {table} ORDER BY id") for table in ("tasks", "runs", "missed", "holders")
    )
    for (id_,) in rows:
        kind = id_[:3]
        number = 1 + sum(other.startswith(kind) for other in known)
        known[id_] = f"{kind}{number:05d}"
    return known
