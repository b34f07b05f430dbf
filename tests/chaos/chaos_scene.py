"""A home with a store, real servers on it, and a witness that the work writes of itself; all is ended with it."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import databases
from by_hand import is_locked, locked, rows_at
from duly.clock import monotonic_s, pause
from duly.runners import processes
from duly.store.address import Address, Place, state_folder

WITHIN_S = 60.0
BEAT, LEASE, DRAIN = "1s", "6s", "1s"
NURSERY, KEEPER = "duly-nursery", "duly-keeper"

# Every line is one write with O_APPEND. The work tells first who it is and when it began, and whether the last one of
# its task still lives, known by number and start ticks; then that it lives, ten times a second; and then its end.
WORK = r"""
say() { echo "$1 $DULY_TASK $DULY_RUN $DULY_OCCURRENCE $DULY_ATTEMPT $DULY_FENCE $$ $(date +%s%N)" >> "$HOME/witness"; }
say B
if [ -e "$HOME/last.$DULY_TASK" ]; then
  read -r pid ticks < "$HOME/last.$DULY_TASK"
  if [ -r "/proc/$pid/stat" ]; then
    set -- $(cat "/proc/$pid/stat")
    [ "$3" != Z ] && [ "${22}" = "$ticks" ] && say O
  fi
fi
set -- $(cat /proc/$$/stat); echo "$$ ${22}" > "$HOME/last.$DULY_TASK"
echo "begun $DULY_RUN $DULY_ATTEMPT"
n=0; while [ $n -lt TENTHS ]; do sleep 0.1; n=$((n+1)); [ TENTHS -gt 5 ] && say T; done
echo "ended $DULY_RUN $DULY_ATTEMPT"
say E
exit STATUS
"""


def wait_for(what: Callable[[], Any], within_s: float = WITHIN_S, told: object = "") -> Any:
    """Ask again and again until the answer is true, and give it; fails when it never is."""
    until = monotonic_s() + within_s
    while not (found := what()):
        assert monotonic_s() < until, f"it did not come true in time: {told() if callable(told) else told}"
        pause(0.02)
    return found


def work(tenths: int, status: int = 0) -> str:
    """A shell line that goes on for so many tenths of a second and ends with this status."""
    return WORK.replace("TENTHS", str(tenths)).replace("STATUS", str(status)).strip()


@dataclass(frozen=True, slots=True)
class Said:
    """One line of the witness."""

    what: str
    task: str
    run: str
    occurrence: str
    attempt: int
    fence: int
    pid: int
    at_ns: int


@dataclass(slots=True)
class Served:
    """One server that the test has started, and what was done to it."""

    process: subprocess.Popen[bytes]
    log: Path
    told: Path
    killed: bool = False
    stopped: bool = False
    termed: bool = False

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def lives(self) -> bool:
        return self.process.poll() is None

    @property
    def holder(self) -> str | None:
        """The id under which it serves, once it does."""
        line = self.told.read_text()
        return line.split()[4] if line.endswith("\n") else None

    def send(self, number: int) -> None:
        """Send it a signal, and remember that its end may come of that."""
        self.killed |= number == signal.SIGKILL
        self.termed |= number == signal.SIGTERM
        self.stopped = number == signal.SIGSTOP or (self.stopped and number not in (signal.SIGCONT, signal.SIGKILL))
        self.process.send_signal(number)

    def wake(self) -> None:
        """Let it go on, if it still lives."""
        if self.lives:
            self.send(signal.SIGCONT)


class Arena:
    """A home, a store and the servers of one test."""

    def __init__(self, home: Path, place: Place | None = None, hosts: int = 1) -> None:
        self.home = home
        self.place = place or databases.unmade(home)
        self.hosts = hosts
        """How many run folders the servers have by turns, as if they were on so many hosts of one database."""
        # Every process of ours, nurseries too, is known again by the first folder of its PATH.
        self.mark = f"PATH={home}/bin:"
        self.env = {
            "PATH": f"{home}/bin:{os.environ['PATH']}",
            "HOME": str(home),
            "DULY_SERVE_WEB": "no",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }
        self.served: list[Served] = []
        self.unproven: set[str] = set()
        """Holders whose lock file a test has deleted."""
        self.undo: list[Callable[[], object]] = []

    def duly(self, *words: str, codes: tuple[int, ...] = (0,)) -> subprocess.CompletedProcess[str]:
        """Run a command of Duly's to its end; fails unless it exits with one of these codes."""
        done = subprocess.run(
            [sys.executable, "-m", "duly", "--store", databases.given(self.place), *words],
            env=self.env,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert "Traceback" not in done.stderr, (words, done.stderr)
        assert done.returncode in codes, (words, done.returncode, done.stdout, done.stderr)
        return done

    def add(self, name: str, *flags: str, tenths: int = 1, status: int = 0, when: str = "* * * * * *") -> None:
        """Add a task whose work writes the witness."""
        self.duly("add", name, "--when", when, *flags, "--shell", work(tenths, status))

    def serve(self, *flags: str, lease: str = LEASE, drain: str = DRAIN, ready: bool = True) -> Served:
        """Start a server; returns when it is ready to claim, unless that is not to be waited for."""
        number = len(self.served)
        log, told = self.home / f"serve-{number}.err", self.home / f"serve-{number}.out"
        words = ["serve", "--beat", BEAT, "--lease", lease, "--drain", drain, *flags]
        env = dict(self.env)
        if self.hosts > 1:
            env["XDG_STATE_HOME"] = str(self._state(number % self.hosts))
        with log.open("wb") as errors, told.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "duly", "--store", databases.given(self.place), *words],
                env=env,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
            )
        made = Served(process, log, told)
        self.served.append(made)
        if ready:
            wait_for(lambda: made.holder or not made.lives, told=log.read_text)
            assert made.lives, log.read_text()
        return made

    def living(self) -> list[Served]:
        return [one for one in self.served if one.lives]

    def errors(self) -> str:
        return "\n".join(f"{one.log.name}: {one.log.read_text()[-2000:]}" for one in self.served)

    def rows(self, query: str, *given: object) -> list[tuple[Any, ...]]:
        return rows_at(self.place, query, *given)

    def _state(self, host: int) -> Path:
        return self.home / f"host-{host}"

    @property
    def run_folder(self) -> Path:
        """The run folder of the only host; once the store is made."""
        [folder] = self.run_folders()
        return folder

    def run_folders(self) -> list[Path]:
        """Where holders' locks and attempts lie, a host each."""
        if isinstance(self.place, Address):
            return [self.place.run_folder]
        [(store,)] = self.rows("SELECT value FROM meta WHERE key = 'store_id'")
        if self.hosts == 1:
            return [state_folder(self.env) / "run" / str(store)]
        return [self._state(host) / "duly" / "run" / str(store) for host in range(self.hosts)]

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the store's write lock from here."""
        with locked(self.place):
            yield

    def is_locked(self) -> bool:
        """Whether somebody has the store's write lock at this moment."""
        return is_locked(self.place)

    def said(self, *whats: str) -> list[Said]:
        """The witness's lines so far."""
        path = self.home / "witness"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        words = [line.split() for line in lines if line.endswith("\n")]
        found = [Said(w[0], w[1], w[2], w[3], int(w[4]), int(w[5]), int(w[6]), int(w[7])) for w in words]
        return [one for one in found if not whats or one.what in whats]

    def ours(self, *names: str) -> list[processes.Process]:
        """The living processes of this arena, zombies and the test itself not among them."""
        found = []
        for one in processes.table().values():
            if one.pid == os.getpid() or one.state in processes.DEAD or (names and one.name not in names):
                continue
            if any(variable.startswith(self.mark.encode()) for variable in processes.environ(one.pid)):
                found.append(one)
        return found

    def works(self) -> list[processes.Process]:
        """The living processes that are a run's work, or descend from it."""
        return [
            one
            for one in self.ours()
            if any(variable.startswith(b"DULY_RUN=") for variable in processes.environ(one.pid))
        ]

    def unended(self) -> list[tuple[Any, ...]]:
        return self.rows("SELECT id, state, holder, attempt, stopping_us FROM runs WHERE state != 'ended'")

    def settle(self, within_s: float = WITHIN_S) -> None:
        """Wait until nothing is held or waiting any more."""
        wait_for(lambda: not self.unended(), within_s, lambda: (self.unended(), self.errors()))

    def stop(self) -> None:
        """Stop every server as a person does, and see that each ends well."""
        for one in self.living():
            one.send(signal.SIGCONT)
            one.send(signal.SIGTERM)
        for one in self.served:
            one.process.wait(60)

    def close(self) -> None:
        for one in self.served:
            if one.lives:
                one.send(signal.SIGKILL)
            one.process.wait()
        until = monotonic_s() + 20
        while (left := self.ours()) and monotonic_s() < until:
            for process in left:
                processes.send(process, signal.SIGKILL)
            pause(0.05)
        for undo in reversed(self.undo):
            undo()

    def mount(self, megabytes: int) -> Path:
        """Mount a small disk of its own into the home."""
        folder = self.home / "disk"
        folder.mkdir()
        mount = shutil.which("mount")
        assert mount is not None
        words = [mount, "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
        subprocess.run(words, check=True, capture_output=True)
        self.undo.append(lambda: subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True))
        self.place = Address(path=folder / "duly.db")
        return folder


def cpu_s(pid: int) -> float:
    """The processor's seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descriptors(pid: int) -> int:
    """How many descriptors a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def threads(pid: int) -> int:
    """How many threads a process has."""
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def state_of(pid: int) -> str:
    """The letter that the kernel shows for a process; nothing when there is none."""
    found = processes.read(pid)
    return "" if found is None else found.state
