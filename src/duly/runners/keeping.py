"""The holder's and the sweeper's side of keepers: looking at an attempt's folder, orders, and ending what is left.

Nothing here knows a store. Whoever gives orders or ends what is left holds the lease of the attempt already.
"""

import contextlib
import fcntl
import os
import re
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from duly import clock
from duly.ports import Outcome
from duly.runners import processes
from duly.runners.ask import identity
from duly.runners.folders import make_folder, opened, read_mark

CONTINUE_WITHIN_S = 1.0
STRAYS_GRACE_S = 0.5
STRAYS_WITHIN_S = 3.0
LOOK_EVERY_S = 0.01
ERROR_CHARACTERS = 2000
NAMED = 20
BEFORE: Mapping[str, str] = {
    "timeout": "ran longer than its timeout; ",
    "idle": "was silent for longer than its idle timeout; ",
    "cancelled_by_hand": "cancelled; ",
}
"""How the text of an end begins that was asked for, before the end itself in words."""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f]")

Exit = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class NeverStarted:
    """There is no mark of a start; `forbidden`: there is one that says nobody may start it any more."""

    forbidden: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The exit file is whole."""

    exit: Exit


@dataclass(frozen=True, slots=True, kw_only=True)
class KeeperAlive:
    """The keeper lives and can be signalled; it obeys this holder."""

    pid: int
    ticks: int
    holder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeeperStopped:
    """The keeper was stopped by a signal: it does nothing until it is continued or killed."""

    pid: int
    ticks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeeperGone:
    """The keeper was killed; a living nursery ends its tree and then marks the folder `swept`."""

    nursery_alive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """The keeper was killed, and the nursery has ended all that it left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebooted:
    """It began in another boot of this machine, so nothing of it lives; how far it came is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """It began in another pid namespace: its keeper can be asked by orders only; the lock says whether it lives."""

    lock_held: bool
    holder: str


Look = NeverStarted | Ended | KeeperAlive | KeeperStopped | KeeperGone | Swept | Rebooted | Elsewhere


def look(folder: Path) -> Look:
    """Say where an attempt stands, by its folder alone; changes nothing."""
    with opened(folder) as descriptor:
        if descriptor is None:
            return NeverStarted(forbidden=False)
        ended = processes.read_whole(descriptor, "exit")
        if ended is not None:
            return Ended(exit=ended)
        mark = read_mark(descriptor)
        if mark is None or mark.get("forbidden"):
            return NeverStarted(forbidden=mark is not None)
        swept = processes.read_whole(descriptor, "swept") or {}
        if not mark:
            # Killed between the mark and its first word, before anything was executed.
            return Swept() if swept else KeeperGone(nursery_alive=True)
        if mark["boot"] != clock.boot_id():
            return Rebooted()
        if mark["pids"] != processes.namespace():
            return Elsewhere(lock_held=lock_held(folder), holder=str(mark["holder"]))
        pid, ticks = identity(mark["keeper"])
        keeper = processes.living(pid, ticks)
        # Read again, since a keeper that has written it may be gone by now, or keep another attempt.
        ended = processes.read_whole(descriptor, "exit")
        if ended is not None:
            return Ended(exit=ended)
        if keeper is not None and keeper.state in processes.STOPPED:
            return KeeperStopped(pid=pid, ticks=ticks)
        if keeper is not None:
            return KeeperAlive(pid=pid, ticks=ticks, holder=str(mark["holder"]))
        if swept.get("keeper") == pid:
            return Swept()
        return KeeperGone(nursery_alive=processes.living(*identity(mark["nursery"])) is not None)


def forbid_start(folder: Path) -> bool:
    """Forbid for ever that this attempt starts; False if it has begun. A forbidding made before is as good."""
    make_folder(folder)
    with opened(folder) as descriptor:
        assert descriptor is not None
        made = processes.create_whole(descriptor, "begun", {"forbidden": True, "boot": clock.boot_id()})
        if made is not None:
            os.close(made)
            return True
        mark = read_mark(descriptor)
        return mark is not None and bool(mark.get("forbidden"))


def send_end(folder: Path, *, holder: str, fence: int, how: Literal["term", "kill"]) -> bool:
    """Order the keeper to end its tree; say whether it could be woken. It obeys its present holder only."""
    return _order(folder, "end", {"how": how, "holder": holder, "fence": fence})


def send_adopt(folder: Path, *, holder: str, fence: int) -> bool:
    """Order the keeper to obey this holder from now on; say whether it could be woken."""
    return _order(folder, "adopt", {"holder": holder, "fence": fence})


def continue_or_kill(stopped: KeeperStopped, *, within_s: float = CONTINUE_WITHIN_S) -> bool:
    """Say whether a stopped keeper goes on after CONT; else KILL it, so that its nursery ends its tree."""
    until = clock.monotonic_s() + within_s
    while processes.send((stopped.pid, stopped.ticks), signal.SIGCONT):
        clock.pause(LOOK_EVERY_S)
        keeper = processes.living(stopped.pid, stopped.ticks)
        if keeper is not None and keeper.state not in processes.STOPPED:
            return True
        if clock.monotonic_s() > until:
            break
    processes.send((stopped.pid, stopped.ticks), signal.SIGKILL)
    return False


def kill_keeper(folder: Path) -> bool:
    """KILL the keeper, so that its nursery ends its tree; say whether there was one."""
    seen = look(folder)
    return isinstance(seen, KeeperAlive | KeeperStopped) and processes.send((seen.pid, seen.ticks), signal.SIGKILL)


def wait_swept(folder: Path, *, within_s: float) -> bool:
    """Wait so long, while there is a nursery, for its word that nothing of a killed keeper's work is left."""
    until = clock.monotonic_s() + within_s
    while not isinstance(seen := look(folder), Swept | Ended):
        if clock.monotonic_s() > until or seen == KeeperGone(nursery_alive=False):
            return False
        clock.pause(LOOK_EVERY_S)
    return True


def lock_held(folder: Path) -> bool:
    """Say whether anything of the attempt has its lock; free proves nothing by itself, for work may close it."""
    try:
        descriptor = os.open(folder / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def end_strays(folder: Path, run: str) -> tuple[str, ...]:
    """End what is left of an attempt whose keeper and nursery are both gone; give what could not be ended.

    Found by the lock, by the run in the environment, and by the session of the mark. What shed all three is found by
    nothing, so an empty answer does not prove the end.
    """
    began = clock.monotonic_s()
    termed = False
    while found := _strays(folder, run):
        now = clock.monotonic_s()
        if now > began + STRAYS_WITHIN_S:
            return tuple(f"{one.name} ({one.pid})" for one in found[:NAMED])
        if not termed:
            termed = True
            processes.ask_to_end(found)
        elif now > began + STRAYS_GRACE_S:
            for stray in found:
                processes.send(stray, signal.SIGKILL)
        clock.pause(LOOK_EVERY_S)
    return ("something unseen that holds the lock",) if lock_held(folder) else ()


def outcome_from_exit(ended: Exit) -> Outcome:
    """Read an exit file as an outcome; a cancel by our order is `cancelled_by_hand` unless the caller knows better."""
    survivors = [str(one) for one in _list(ended.get("survivors"))]
    leftovers = [str(one) for one in _list(ended.get("leftovers"))]
    code, signum = _number(ended.get("exit_code")), _number(ended.get("signal"))
    details: dict[str, object] = {}
    if leftovers:
        details["left_running" if ended.get("left") else "leftovers"] = leftovers
    if survivors:
        details["survivors"] = survivors
    if ended.get("log_error"):
        details["log_error"] = ended["log_error"]
    if isinstance(ended.get("cut_at"), int):
        details["cut_at"] = ended["cut_at"]
    word, reason = _verdict(ended, code)
    if ended.get("spoken") and ended.get("ended_by") not in ("start", "timeout", "deadline"):
        # What was spoken to tells its outcome by words, and nobody is known to have heard them.
        return Outcome(
            word="abandoned",
            reason="holder_died",
            error="nobody was there to hear how its turn ended",
            exit_code=code,
            signal=signum,
            confirmed=not survivors,
            log_bytes=_number(ended.get("log_bytes")) or 0,
            log_cut=_number(ended.get("log_cut")) or 0,
            ended_at=_ended_at(ended),
            details=details,
        )
    error = None if word == "succeeded" else _text(ended.get("error"), reason, code, signum)
    if survivors:
        error = _trimmed(f"not ended: {', '.join(survivors)}" + (f"; {error}" if error else ""))
    return Outcome(
        word=word,
        reason=reason,
        error=error,
        exit_code=code,
        signal=signum,
        confirmed=not survivors,
        side_effect=ended.get("ended_by") != "start",
        log_bytes=_number(ended.get("log_bytes")) or 0,
        log_cut=_number(ended.get("log_cut")) or 0,
        ended_at=_ended_at(ended),
        details=details,
    )


def _ended_at(ended: Exit) -> datetime | None:
    at_us = _number(ended.get("ended_at_us"))
    return None if at_us is None else clock.from_us(at_us)


def _order(folder: Path, name: str, order: Mapping[str, object]) -> bool:
    with opened(folder) as descriptor:
        if descriptor is None:
            return False
        processes.write_whole(descriptor, name, order)
        mark = read_mark(descriptor)
        if mark is None or "keeper" not in mark or mark["boot"] != clock.boot_id():
            return False
        return mark["pids"] == processes.namespace() and processes.send(identity(mark["keeper"]), signal.SIGUSR1)


def _strays(folder: Path, run: str) -> list[processes.Process]:
    with opened(folder) as descriptor:
        mark = None if descriptor is None else read_mark(descriptor)
    if mark is None or "keeper" not in mark or mark["boot"] != clock.boot_id() or mark["pids"] != processes.namespace():
        return []
    starter = identity(mark["starter"]) if mark["starter"] else None
    spared = {(os.getpid(), None), starter}
    everybody = {
        pid: one
        for pid, one in processes.table().items()
        if one.state not in processes.DEAD and not {(pid, None), (pid, one.ticks)} & spared
    }
    fence = _number(mark["fence"])
    assert fence is not None
    found = {one.pid: one for one in processes.of_run(run, fence, everybody.values())}
    found |= {one.pid: one for one in _of_session(identity(mark["keeper"]), run, everybody)}
    if lock_held(folder):
        found |= {one.pid: one for one in _of_lock(folder / "lock", everybody)}
    return list(found.values())


def _of_session(
    keeper: tuple[int, int], run: str, everybody: Mapping[int, processes.Process]
) -> Iterator[processes.Process]:
    pid, ticks = keeper
    if pid in everybody and everybody[pid].ticks != ticks:
        return  # the number passed to another process, which it does only when nobody is left in the session
    for one in everybody.values():
        if one.session == pid and one.ticks >= ticks:
            named = [variable for variable in processes.environ(one.pid) if variable.startswith(b"DULY_RUN=")]
            if named in ([], [f"DULY_RUN={run}".encode()]):
                yield one


def _of_lock(lock: Path, everybody: Mapping[int, processes.Process]) -> Iterator[processes.Process]:
    with contextlib.suppress(OSError):
        wanted = lock.stat()
        for one in everybody.values():
            with contextlib.suppress(OSError):
                for link in Path(f"/proc/{one.pid}/fd").iterdir():
                    with contextlib.suppress(OSError):
                        if os.path.samestat(link.stat(), wanted):
                            yield one
                            break


def _verdict(
    ended: Exit, code: int | None
) -> tuple[Literal["succeeded", "failed", "timed_out", "cancelled"], str | None]:
    by = ended.get("ended_by")
    if by == "start":
        return "failed", str(ended.get("start_error"))
    if by == "timeout":
        return "timed_out", "timeout"
    if by == "idle":
        return "timed_out", "idle"
    if by == "deadline":
        return "cancelled", "lease_lost"
    if by in ("term", "kill"):
        return "cancelled", "cancelled_by_hand"
    if code == 0:
        return "succeeded", None
    return "failed", "signal" if code is None else "exit_status"


def _text(said: object, reason: str | None, code: int | None, signum: int | None) -> str:
    """Give the text every failure has: for a bad status the last line, else the end in words and the last line."""
    said = ESCAPES.sub("", said).strip() if isinstance(said, str) else ""
    before = BEFORE.get(reason or "", "")
    if not before and signum is None and said:
        return _trimmed(said)
    ending = f"exit status {code}" if signum is None else f"ended by {_signal_name(signum)}"
    after = ", from elsewhere" if reason == "signal" else ""
    return _trimmed(before + ending + after + (f"; its last line: {said}" if said else ""))


def _signal_name(number: int) -> str:
    try:
        return f"signal {signal.Signals(number).name} ({number})"
    except ValueError:
        return f"signal {number}"


def _trimmed(text: str) -> str:
    return text if len(text) <= ERROR_CHARACTERS else text[: ERROR_CHARACTERS - 1] + "…"


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
