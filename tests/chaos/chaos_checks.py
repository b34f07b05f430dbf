"""What must be true of any store after any chaos: read from the witness, the rows, the ledger and the machine."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from chaos_scene import Arena, Said, cpu_s, descriptors, threads, wait_for

from duly.clock import monotonic_s, pause

FORGOTTEN = "Z forgotten holder="
IDLE_FOR_S = 4.0
IDLE_SHARE = 0.04
DESCRIPTORS_MOST = 24
TICK_NS = 100_000_000


def check_witness(arena: Arena, retrying: Sequence[str]) -> None:
    """No start twice but by a retry on record, and never two of one task at a time, by the work's own words."""
    said = arena.said()
    begun = [one for one in said if one.what == "B"]
    assert begun, arena.errors()
    assert [one for one in said if one.what == "O"] == [], "began while the last one of its task was alive"
    twice = [key for key, number in Counter((one.run, one.attempt) for one in begun).items() if number > 1]
    assert twice == [], "one attempt began twice"
    by_occurrence: dict[tuple[str, str], list[Said]] = defaultdict(list)
    for one in begun:
        by_occurrence[one.task, one.occurrence].append(one)
    interrupted = dict(arena.rows("SELECT id, interruptions FROM runs"))
    for (task, occurrence), starts in by_occurrence.items():
        assert len({one.run for one in starts}) == 1, (task, occurrence, starts)
        assert len(starts) == 1 or task in retrying, ("started twice, and its task does not retry", starts)
        assert len(starts) <= 1 + interrupted[starts[0].run], ("more starts than interruptions on record", starts)
    fences: dict[str, int] = defaultdict(int)
    for one in begun:
        assert one.fence > fences[one.task], ("a later start with a lower fence", one)
        fences[one.task] = one.fence
    _check_spans(said)


def _check_spans(said: Sequence[Said]) -> None:
    """Two attempts of a task never overlap in the times that the work itself wrote."""
    spans: dict[str, dict[tuple[str, int], tuple[int, int]]] = defaultdict(dict)
    for one in said:
        first, last = spans[one.task].get((one.run, one.attempt), (one.at_ns, one.at_ns))
        spans[one.task][one.run, one.attempt] = (min(first, one.at_ns), max(last, one.at_ns))
    for task, of_task in spans.items():
        ordered = sorted(of_task.items(), key=lambda item: item[1])
        for (a, (_, ended)), (b, (began, _)) in pairwise(ordered):
            assert ended <= began, (task, a, b, f"overlap by {(ended - began) / 1e6:.1f} ms")


def check_records(arena: Arena) -> None:
    """Rows, ledger and logs tell the same as the witness: who never began, how it ended, and what it said."""
    begun = {(one.run, one.attempt) for one in arena.said("B")}
    ended = {(one.run, one.attempt) for one in arena.said("E")}
    returned = set(arena.rows("SELECT run, attempt FROM ledger WHERE kind = 'returned'"))
    assert begun & returned == set(), "given back as never begun, and it had begun"
    ran = {run for run, _ in begun}
    skipped = {row[0] for row in arena.rows("SELECT id FROM runs WHERE outcome = 'skipped'")}
    assert ran & skipped == set(), "skipped, and it had begun"
    claimed = set(arena.rows("SELECT run, attempt FROM ledger WHERE kind = 'claimed'"))
    assert begun <= claimed, "begun without a claim on record"
    query = (
        "SELECT runs.id, attempt, runs.fence, outcome, runs.reason, exit_code, log_bytes, name FROM runs"
        " JOIN tasks ON tasks.id = runs.task WHERE state = 'ended'"
        " AND name != 'switched' AND name != 'loud'"
    )
    for run, attempt, fence, outcome, reason, code, size, name in arena.rows(query):
        if outcome == "succeeded" or reason == "exit_status":
            assert (run, attempt) in ended, ("it did not come to its end by its own words", run, outcome)
            assert code == (3 if name.startswith("odd") else 0), (run, name, code)
            text = f"begun {run} {attempt}\nended {run} {attempt}\n"
            logs = [folder / "attempts" / f"{run}.{fence}" / "log" for folder in arena.run_folders()]
            [log] = [log for log in logs if log.exists()]
            assert size == len(text), (run, size)
            assert log.read_text() == text, (run, log.read_text())


def check_every_second(arena: Arena, task: str) -> None:
    """From its first to its last, each second of a task that was never switched off has exactly one fate."""
    query = (
        "SELECT kind, occurrence, until_us, count FROM ledger WHERE task = (SELECT id FROM tasks WHERE name = ?)"
        " AND (kind = 'opened' OR kind = 'missed' OR kind = 'stretch') AND occurrence LIKE 'at:%'"
    )
    fates: Counter[datetime] = Counter()
    for _, occurrence, until_us, number in arena.rows(query, task):
        first = datetime.fromisoformat(occurrence.removeprefix("at:"))
        last = datetime.fromtimestamp(until_us // 1_000_000, UTC) if until_us else first
        seconds = int((last - first).total_seconds()) + 1
        assert (number or 1) == seconds, (occurrence, number, seconds)
        fates.update(first + timedelta(seconds=at) for at in range(seconds))
    assert fates
    assert max(fates.values()) == 1, [second for second, number in fates.items() if number > 1]
    length = int((max(fates) - min(fates)).total_seconds()) + 1
    assert len(fates) == length, "a second has neither run nor reason"


def check_verified(arena: Arena) -> None:
    """Duly's own audit finds nothing."""
    done = arena.duly("verify", codes=(0, 1, 3, 4))
    assert done.returncode == 0, done.stdout + done.stderr


def check_idle(arena: Arena, share_most: float = IDLE_SHARE) -> None:
    """Servers with nothing to do use nearly no processor, few descriptors and few threads."""
    serving = arena.living()
    assert serving
    before = {one.pid: cpu_s(one.pid) for one in serving}
    began_s = monotonic_s()
    pause(IDLE_FOR_S)
    took_s = monotonic_s() - began_s
    for one in serving:
        share = (cpu_s(one.pid) - before[one.pid]) / took_s
        assert share < share_most, f"an idle server used {share:.1%} of a core"
        assert descriptors(one.pid) <= DESCRIPTORS_MOST, descriptors(one.pid)
        assert threads(one.pid) <= 12, threads(one.pid)


def check_ends(arena: Arena) -> None:
    """Every server that was not killed ended well, and only when it was told to, or when others took it for over.

    Another host does that where a server was cut off or stood still past its lease; then it leaves with exit status 1.
    """
    for one in arena.served:
        code = one.process.returncode
        if not one.killed and not (code == 1 and FORGOTTEN in one.log.read_text()):
            assert one.termed, ("it ended by itself", code, one.log.read_text())
            # One that was told before it could listen dies of the signal.
            assert code == 0 or (code == -15 and one.holder is None), (code, one.log.read_text())
        assert "Traceback" not in one.log.read_text(), one.log.read_text()
        assert "turn failed" not in one.log.read_text(), one.log.read_text()


def check_nothing_left(arena: Arena) -> None:
    """No process, no lock of a holder, no mark, order or half-written file is left after all have ended."""
    wait_for(lambda: not arena.ours(), told=arena.ours)
    folders = arena.run_folders()
    # The deadline of who handed its work over stays until it is past, and the next holder after that clears it.
    left = [path for folder in folders for path in (folder / "holders").iterdir() if path.suffix != ".deadline"]
    assert left == []
    assert untidy(arena) == []
    # One whose lock file somebody deleted cannot be proven dead.
    assert {row[0] for row in arena.rows("SELECT id FROM holders WHERE state != 'gone'")} <= arena.unproven


def untidy(arena: Arena) -> list[tuple[str, list[str]]]:
    """The folders of attempts in which something is left besides output, or nothing at all."""
    found = []
    for folder in (attempt for host in arena.run_folders() for attempt in (host / "attempts").glob("*")):
        names = {path.name for path in folder.iterdir()}
        forbidden = "begun" in names and b'"forbidden":true' in (folder / "begun").read_bytes()
        if not names or names - {"log", "cut"} - ({"begun", "lock"} if forbidden else set()):
            found.append((folder.name, sorted(names)))
    return found
