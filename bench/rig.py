"""What the benches share: stores filled in batches, work that leaves a mark, and what the kernel says of a process."""

import os
import struct
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median

from duly.clock import to_us
from duly.core.reasons import Refusal
from duly.core.run import Entry
from duly.core.task import Definition
from duly.core.triggers import Trigger
from duly.operations.tasks import first_version
from duly.ports import Assignment, How, Outcome
from duly.store import Session, Store
from duly.store.address import Address, ServerAddress

MARK = struct.Struct("d")
ROOT = Path(__file__).parent.parent
TASKS_A_WRITE = 2_000
MINUTE = timedelta(minutes=1)
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
DATABASE = "DULY_BENCH_DATABASE"
"""The URL of a party's database, where that is a server's."""
UNCOMPILED = "PYTHONDONTWRITEBYTECODE"
"""With this set, a start may measure how Python compiles its libraries: nothing a user waits for twice."""
ACTION: Mapping[str, object] = {"kind": "command", "argv": ["true"], "cwd": "/"}


class Marks:
    """A file to which each piece of work appends the instant of its start, by one write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def leave(self) -> None:
        os.write(self._descriptor, MARK.pack(time.time()))


class NoWork:
    """A runner whose whole work is its mark, in the carrier's thread."""

    kept = False
    at_once = True

    def __init__(self, marks: Marks) -> None:
        self._marks = marks

    def check(self, action: Mapping[str, object]) -> Refusal | None:  # noqa: ARG002 - the port's shape
        return None

    def perform(self, assignment: Assignment, checkpoint: Mapping[str, object] | None) -> Outcome:  # noqa: ARG002
        self._marks.leave()
        return Outcome(word="succeeded")

    def stop(self, how: How) -> None:
        """It has ended before anybody could ask."""


def read_marks(path: Path) -> list[float]:
    whole = path.read_bytes() if path.exists() else b""
    return [mark for (mark,) in MARK.iter_unpack(whole[: len(whole) // MARK.size * MARK.size])]


def new_store(path: Path) -> Store:
    """Make an empty store that leaves nothing in the user's home; in the server's database where one is named."""
    return Store.open(place(path), {"HOME": str(path.parent)}, create=True)


def open_store(path: Path) -> Store:
    """Open such a store again."""
    return Store.open(place(path), {"HOME": str(path.parent)})


def place(path: Path) -> Address | ServerAddress:
    """A store's address: this file, or the database that the environment names for this bench."""
    return ServerAddress(url=os.environ[DATABASE]) if DATABASE in os.environ else Address(path=path)


def fill(
    store: Store, triggers: Iterable[tuple[Trigger, ...]], *, zone: str = "UTC", before: datetime | None = None
) -> None:
    """Add a task for each of these triggers, many to a transaction; as of now or a minute before `before`."""
    left = [
        Definition(name=f"task-{number:06}", triggers=given, zone=zone, action=ACTION)
        for number, given in enumerate(triggers)
    ]
    while left:
        batch, left = left[:TASKS_A_WRITE], left[TASKS_A_WRITE:]
        with store.write() as session:
            session.projects.ensure("default", "default", session.now)
            for definition in batch:
                _add(session, definition, session.now if before is None else min(session.now, before - MINUTE))


def environment(folder: Path) -> dict[str, str]:
    """The environment of a child whose home is this folder and whose store is the one in it."""
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    given = {**os.environ, "HOME": str(folder), "DULY_STORE": str(folder / "duly.db"), "PYTHONPATH": paths}
    given.pop(UNCOMPILED, None)
    return given


def duly(*words: str) -> list[str]:
    """The command line of `duly` in this environment."""
    return [sys.executable, "-m", "duly", *words]


def cpu_s(pid: int) -> float:
    """Seconds of a core that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


def family_cpu_s(pid: int) -> float:
    """The same of a process and its children that live."""
    total = 0.0
    for one in Path("/proc").glob("[0-9]*"):
        try:
            fields = (one / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(one.name) == pid or int(fields[1]) == pid:
            total += (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND
    return total


def threads_cpu_s(pid: int) -> float:
    """The same of the threads that live, to the nanosecond."""
    return sum(int((one / "schedstat").read_text().split()[0]) for one in Path(f"/proc/{pid}/task").iterdir()) / 1e9


def rss_bytes(pid: int) -> int:
    """Memory of a process that is in RAM."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def wakeups(pid: int) -> int:
    """How often the threads of a process went to sleep by themselves, which is how often they were woken."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        for line in (task / "status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                total += int(line.split()[1])
    return total


def serve(folder: Path, *words: str) -> tuple[subprocess.Popen[str], float]:
    """Start `duly serve` and wait for its line; gives the process and the seconds that took."""
    began = time.perf_counter()
    child = subprocess.Popen(
        duly("serve", *words), env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert child.stdout is not None
    line = child.stdout.readline()
    took = time.perf_counter() - began
    if "serving" not in line:
        child.kill()
        raise RuntimeError(f"serve said {line!r}")
    return child, took


def end(child: subprocess.Popen[str]) -> None:
    """Stop a child that was started here and wait for it."""
    child.terminate()
    try:
        child.wait(timeout=30)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    if child.stdout is not None:
        child.stdout.close()


def middle(values: Sequence[float]) -> float:
    return float(median(values))


def _add(session: Session, definition: Definition, now: datetime) -> None:
    task = first_version(definition, now=now, by="bench", source={"kind": "bench"})
    session.tasks.insert(task)
    session.versions.insert(task, era_from_us=to_us(task.planned_until))
    session.ledger.add([Entry(kind="defined", at=now, task=task.id, by="bench", details={"version": 1})])
