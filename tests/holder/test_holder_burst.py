"""An overdue burst of 2,000 under the defaults: each occurrence is run, or has its entry that says why not."""

from collections import Counter
from datetime import timedelta

from holder_scene import START, Stage

from duly.clock import monotonic_s, pause
from duly.core.task import Definition
from duly.core.triggers import Every, Once, Trigger
from duly.operations.audit import verify
from duly.operations.tasks import first_version
from duly.store import definitions_written

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
KINDS: tuple[Trigger, ...] = (
    Once(at=START + 3 * HOUR),
    Once(at=START + MINUTE),  # seven hours late by then: stale
    Every(span=HOUR, anchor=START),
    Every(span=MINUTE, anchor=START),
)
TASKS = 2_000
EACH = TASKS // len(KINDS)
WITHIN_S = 180
NOW = 7 * HOUR + 2 * MINUTE + timedelta(seconds=40)


def ended(stage: Stage) -> int:
    with stage.store.read() as session:
        return int(session.line.scalar("SELECT count(*) FROM runs WHERE state = 'ended'"))


def test_an_overdue_burst_of_two_thousand_leaves_each_occurrence_run_or_in_the_ledger(stage: Stage) -> None:
    with stage.store.write() as session:
        for number in range(TASKS):
            definition = Definition(
                name=f"task {number}",
                triggers=(KINDS[number % len(KINDS)],),
                action={"kind": "command", "argv": ("scripted",)},
            )
            task = first_version(definition, now=session.now, by="test", source={"kind": "cli"})
            definitions_written.add(session, task)
    stage.script.over.set()
    stage.clock.pass_(NOW)
    holder = stage.holder(slots=16)
    until_s = monotonic_s() + WITHIN_S
    while ended(stage) < 3 * EACH:
        assert monotonic_s() < until_s, ended(stage)
        while holder.step():
            pass
        pause(0.01)
    with stage.store.read() as session:
        runs = session.runs.listed(most=2 * TASKS)
        missed = session.missed.listed(most=2 * TASKS)
        entries = [one.entry for one in session.ledger.after(0, most=100_000)]
        assert session.runs.counts() == {}
    assert Counter((run.opened_by, run.outcome) for run in runs) == {("catch_up", "succeeded"): 3 * EACH}
    assert Counter((one.reason, one.count) for one in missed) == {
        ("stale", 1): EACH,
        ("coalesced", 6): EACH,
        ("coalesced", 421): EACH,
    }
    fates = Counter(entry.kind for entry in entries)
    assert (fates["opened"], fates["missed"]) == (3 * EACH, 3 * EACH)
    occurrences = 1 + 1 + 7 + 422
    told = sum(entry.count or 1 for entry in entries if entry.kind in {"opened", "missed"})
    assert told == EACH * occurrences, "each occurrence has one fate"
    assert verify(stage.store) == []
