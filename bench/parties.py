"""The parties of the burst, each in a process of its own: `python -m bench.parties NAME prepare|run FOLDER N DUE`.

`prepare` puts N no-op jobs that are due at one instant into the party's own durable store, `run` works them off. Each
job leaves one mark. All of them keep SQLite's WAL with `synchronous=FULL`; Huey's default sets no level, so SQLite's
own stands, which is FULL.
"""

import asyncio
import logging
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench import rig
from bench.rig import DATABASE, Marks, NoWork, fill, new_store, open_store
from duly.core.triggers import Once
from duly.holder.heart import Beaten
from duly.holder.holder import Holder
from duly.holder.wish import wish
from duly.runners.registry import Registry

FLOOR_BATCH = 100
BEATS = "beats"
BEAT, LEASE = timedelta(seconds=0.2), timedelta(seconds=10)
"""Beats that come often, to see whether one is late beside what computes."""
LOOK_EVERY_S = 0.1
"""How often PgQueuer looks for jobs whose time has come; by itself it does every 30 seconds."""
FLOOR_TABLES = """
CREATE TABLE schedules(id INTEGER PRIMARY KEY, spec TEXT NOT NULL, next_due REAL);
CREATE INDEX schedules_due ON schedules(next_due) WHERE next_due IS NOT NULL;
CREATE TABLE runs(id INTEGER PRIMARY KEY, schedule INTEGER NOT NULL, due REAL NOT NULL, state INTEGER NOT NULL,
    owner TEXT, lease REAL, started REAL, finished REAL, result TEXT, UNIQUE(schedule, due));
CREATE INDEX runs_live ON runs(lease) WHERE state = 1;
"""
MARKS: list[Marks] = []
"""The marks of this process: the others find their work by its module and name, and give it nothing."""


def work() -> None:
    """The work of the other parties."""
    MARKS[0].leave()


def spin() -> None:
    """Compute without an end, as a careless function in a thread does."""
    while True:
        sum(range(1000))


def prepare_duly(folder: Path, number: int, due: float) -> None:
    store = new_store(folder / "duly.db")
    at = datetime.fromtimestamp(due, UTC)
    fill(store, [(Once(at=at),) for _ in range(number)], before=at)
    store.close()


def run_duly(folder: Path, slots: int, *, beside: Callable[[], object] | None = None) -> None:
    """Serve with so many slots, and perhaps with something else that computes in the same process."""
    from duly.app.service import SWITCH_INTERVAL_S, stopped_by_signals

    marks = MARKS[0]
    store = open_store(folder / "duly.db")
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    registry = Registry({"command": lambda: NoWork(marks)})
    wished = wish(slots=slots) if beside is None else wish(slots=slots, beat=BEAT, lease=LEASE)
    holder = Holder(store, wished, registry, tell=lambda _event, _told: None)
    if beside is not None:
        _note_beats(holder, rig.Marks(folder / BEATS))
    with stopped_by_signals(holder.stop):
        holder.start()
        if beside is not None:
            threading.Thread(target=beside, daemon=True).start()
        holder.run()
    store.close()


def _note_beats(holder: Holder, marks: Marks) -> None:
    """Leave the instant at which each beat was answered."""
    step = holder.heart.step

    def noted() -> Beaten:
        answer = step()
        marks.leave()
        return answer

    holder.heart.step = noted  # type: ignore[method-assign]


def prepare_floor(folder: Path, number: int, due: float) -> None:
    line = _floor(folder)
    line.executescript(FLOOR_TABLES)
    line.execute("BEGIN")
    line.executemany("INSERT INTO schedules(spec, next_due) VALUES ('once', ?)", [(due,)] * number)
    line.execute("COMMIT")
    line.close()


def run_floor(folder: Path, due: float) -> None:
    """The least that a durable scheduler must do: a batch is claimed by one commit, and finished by another."""
    line = _floor(folder)
    time.sleep(max(0.0, due - time.time()))
    while True:
        now = time.time()
        line.execute("BEGIN IMMEDIATE")
        ready = line.execute(
            "SELECT id, next_due FROM schedules WHERE next_due <= ? ORDER BY next_due LIMIT ?", (now, FLOOR_BATCH)
        ).fetchall()
        claimed = []
        for schedule, at in ready:
            claim = "INSERT INTO runs(schedule, due, state, owner, lease, started) VALUES (?, ?, 1, 'me', ?, ?)"
            claimed.append(line.execute(claim, (schedule, at, now + 30, now)).lastrowid)
            line.execute("UPDATE schedules SET next_due = NULL WHERE id = ? AND next_due = ?", (schedule, at))
        line.execute("COMMIT")
        if not claimed:
            break
        for _ in claimed:
            work()
        line.execute("BEGIN IMMEDIATE")
        finish = "UPDATE runs SET state = 2, finished = ?, result = 'ok' WHERE id = ? AND owner = 'me' AND state = 1"
        line.executemany(finish, [(time.time(), claim) for claim in claimed])
        line.execute("COMMIT")
    line.close()


def prepare_huey(folder: Path, number: int, due: float) -> None:
    _, task = _huey(folder)
    at = datetime.fromtimestamp(due, UTC)
    for _ in range(number):
        task.schedule(eta=at)


def run_huey(folder: Path) -> None:
    logging.getLogger("huey").setLevel(logging.CRITICAL)
    queue, _ = _huey(folder)
    queue.create_consumer(workers=1, worker_type="thread").run()


def prepare_apscheduler(folder: Path, number: int, due: float) -> None:
    _prepare_apscheduler(folder, number, due, {"misfire_grace_time": None})


def prepare_apscheduler_by_default(folder: Path, number: int, due: float) -> None:
    _prepare_apscheduler(folder, number, due, {})


def _prepare_apscheduler(folder: Path, number: int, due: float, rules: dict[str, Any]) -> None:
    from apscheduler.schedulers.background import BackgroundScheduler

    scheduler = BackgroundScheduler(jobstores={"default": _jobs(folder)}, timezone=UTC)
    scheduler.start(paused=True)
    at = datetime.fromtimestamp(due, UTC)
    for one in range(number):
        scheduler.add_job("bench.parties:work", "date", run_date=at, id=f"job-{one}", **rules)
    scheduler.shutdown(wait=False)


def run_apscheduler(folder: Path) -> None:
    from apscheduler.schedulers.blocking import BlockingScheduler

    logging.basicConfig(level=logging.CRITICAL)
    BlockingScheduler(jobstores={"default": _jobs(folder)}, timezone=UTC).start()


def run_apscheduler_each_second(folder: Path, number: int) -> None:
    from apscheduler.schedulers.blocking import BlockingScheduler

    logging.basicConfig(level=logging.CRITICAL)
    scheduler = BlockingScheduler(jobstores={"default": _jobs(folder)}, timezone=UTC)
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=3)
    for one in range(number):
        scheduler.add_job("bench.parties:work", "interval", seconds=1, start_date=at, id=f"job-{one}")
    scheduler.start()


def due_again(folder: Path, due: float) -> None:
    """Let all that the floor has be due once more, as its next batch of a schedule that goes on would."""
    line = _floor(folder)
    line.execute("UPDATE schedules SET next_due = ?", (due,))
    line.close()


def _floor(folder: Path) -> sqlite3.Connection:
    line = sqlite3.connect(folder / "floor.db", isolation_level=None)
    line.execute("PRAGMA journal_mode=WAL")
    line.execute("PRAGMA synchronous=FULL")
    return line


def _huey(folder: Path) -> tuple[Any, Any]:
    from huey import SqliteHuey

    queue = SqliteHuey("bench", filename=str(folder / "huey.db"), timeout=30, utc=True)
    return queue, queue.task(name="work")(work)


def _jobs(folder: Path) -> Any:
    from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore

    url = os.environ.get(DATABASE, f"sqlite:///{folder / 'jobs.db'}")
    return SQLAlchemyJobStore(url=url.replace("postgresql:", "postgresql+psycopg:"))


async def _pgqueuer() -> Any:
    import asyncpg
    from pgqueuer import AsyncpgDriver

    return AsyncpgDriver(await asyncpg.connect(os.environ[DATABASE]))


def prepare_pgqueuer(_folder: Path, number: int, due: float) -> None:
    from pgqueuer import Queries

    async def fill_queue() -> None:
        queries = Queries(await _pgqueuer())
        await queries.install()
        wait = timedelta(seconds=due - time.time())
        await queries.enqueue(["work"] * number, [None] * number, [0] * number, [wait] * number)

    asyncio.run(fill_queue())


def run_pgqueuer(batch: int) -> None:
    """Claim and perform so many at a time, as its own `batch_size` says; its default is 10."""
    from pgqueuer import PgQueuer

    async def serve() -> None:
        queue = PgQueuer(await _pgqueuer())

        async def perform(_job: object) -> None:
            work()

        queue.entrypoint("work")(perform)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, queue.shutdown.set)
        await queue.run(batch_size=batch, dequeue_timeout=timedelta(seconds=LOOK_EVERY_S))

    logging.basicConfig(level=logging.CRITICAL)
    asyncio.run(serve())


PREPARE: dict[str, Callable[[Path, int, float], None]] = {
    "duly 4": prepare_duly,
    "duly 64": prepare_duly,
    "floor": prepare_floor,
    "huey": prepare_huey,
    "apscheduler 3": prepare_apscheduler,
    "apscheduler 3 by default": prepare_apscheduler_by_default,
    "pgqueuer 10": prepare_pgqueuer,
    "pgqueuer 100": prepare_pgqueuer,
    "duly 64 spinning": prepare_duly,
    "duly 256": prepare_duly,
    "duly 256 twice": prepare_duly,
}


def run(name: str, folder: Path, due: float) -> None:
    if name.startswith("duly"):
        run_duly(folder, int(name.split()[1]), beside=spin if name.endswith("spinning") else None)
    elif name == "floor":
        run_floor(folder, due)
    elif name == "huey":
        run_huey(folder)
    elif name.startswith("pgqueuer"):
        run_pgqueuer(int(name.split()[1]))
    else:
        run_apscheduler(folder)


def main() -> None:
    name, verb, folder, number, due = sys.argv[1:]
    if verb == "prepare":
        PREPARE[name](Path(folder), int(number), float(due))
        return
    MARKS.append(Marks(Path(folder) / "marks"))
    sys.modules["bench.parties"] = sys.modules["__main__"]  # work that is found by name finds these marks
    run(name, Path(folder), float(due))


if __name__ == "__main__":
    main()
