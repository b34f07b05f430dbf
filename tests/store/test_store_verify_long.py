"""`verify` over long ledgers: its memory does not grow with what was, and it finds what it did before."""

import random
import tracemalloc
from functools import partial
from pathlib import Path

import pytest
from long_ledger import make
from store_scene import HOUR, MINUTE, NINE, Scene, minutely, scene
from test_store_verify import PLANTED, lived

from duly.operations import audit, audit_answers, audit_fates, audit_order, audit_runs
from duly.operations.audit import verify
from duly.operations.audit_order import FarOutOfOrder, in_order, in_passes
from duly.store import Store, auditing
from duly.store.address import Address

DAYS_BYTES = 200_000
"""What is kept of days and zones for all, and not for every store anew."""


def peak(store: Store) -> int:
    tracemalloc.start()
    try:
        assert verify(store) == []
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_a_ledger_four_times_as_long_takes_no_more_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With pages that both fill: what is kept of a page is all that is kept."""
    monkeypatch.setattr(auditing, "PAGE", 200)
    monkeypatch.setattr(audit_fates, "in_order", partial(in_order, most=100))
    peaks = []
    for wanted in (500, 3_000, 12_000):  # the first only fills what is kept for all, such as days and zones
        folder = tmp_path / str(wanted)
        folder.mkdir()
        store = make(Address(path=folder / "duly.db"), {"HOME": str(folder)}, wanted)
        peaks.append(peak(store))
        store.close()
    assert peaks[2] < 1.5 * peaks[1] + DAYS_BYTES, peaks
    assert peaks[2] < 1_000_000, peaks


def test_each_look_says_how_far_it_is_and_ends_at_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditing, "PAGE", 7)
    with scene(tmp_path) as s:
        lived(s)
        seen: list[tuple[int, int]] = []
        assert verify(s.store, lambda done, of: seen.append((done, of))) == []
        entries = s.sql("SELECT count(*) FROM ledger")[0][0]
        assert {of for _, of in seen} == {entries}
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)
        assert (seen[0][0], seen[-1][0]) == (0, entries)
        assert len({done for done, _ in seen}) > 3


@pytest.mark.parametrize("planted", PLANTED)
def test_what_is_found_does_not_depend_on_pages_nor_on_what_is_passed_by_quickly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    with scene(tmp_path) as s:
        lived(s)
        PLANTED[planted][1](s)
        whole = sorted(s.faults())
        monkeypatch.setattr(auditing, "PAGE", 3)
        monkeypatch.setattr(audit_answers, "PAGE", 1)
        assert sorted(s.faults()) == whole
        monkeypatch.setattr(audit_runs, "is_plain", lambda *_: False)
        assert sorted(s.faults()) == whole
        monkeypatch.setattr(audit_fates, "in_order", partial(in_order, most=1))
        monkeypatch.setattr(audit_fates, "in_passes", partial(in_passes, most=2))
        assert sorted(s.faults()) == whole


def test_fates_written_far_out_of_order_are_read_again_until_they_are_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = []

    def counted(read: object) -> object:
        passes.append(read)
        return in_passes(read, most=5)  # type: ignore[arg-type]

    monkeypatch.setattr(audit_fates, "in_order", partial(in_order, most=5))
    monkeypatch.setattr(audit_fates, "in_passes", counted)
    with scene(tmp_path) as s:
        s.add("one", minutely(), grace=HOUR, overlap="queue", queue=100)
        s.at(NINE + 40 * MINUTE)
        s.plan()
        assert s.faults() == []
        assert passes == []
        back(s)
        assert s.faults() == []
        assert len(passes) == 1
        s.sql("DELETE FROM ledger WHERE kind = 'opened' AND occurrence LIKE '%09:07:00Z'")
        assert ("P6", "no fate for 2026-03-02T09:07:00Z, before at:2026-03-02T09:08:00Z (opened)") in s.faults()


def back(s: Scene) -> None:
    """Let the ledger tell of what was opened from the last back to the first."""
    s.sql("UPDATE ledger SET seq = 10000 - seq WHERE kind = 'opened'")


def test_what_a_run_is_told_after_its_end_makes_it_be_looked_at_again(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        won = s.held("one")
        s.settle(won)
        assert s.faults() == []
        columns = "at_us, kind, task, occurrence, run, attempt, holder, details"
        late = f"INSERT INTO ledger ({columns}) SELECT at_us, ?, task, occurrence, run, attempt, holder, details"
        s.sql(f"{late} FROM ledger WHERE kind = 'ended'", "fence_lost")
        assert s.faults() == []
        s.sql(f"{late} FROM ledger WHERE kind = 'ended'", "began")
        assert s.faults() == [("P4", "began while ended")]
        s.sql(f"{late} FROM ledger WHERE kind = 'began'", "began")
        assert s.faults() == [("P4", "began while ended")] * 2, "as often as it is told, whichever page tells it"


def test_an_occurrence_that_the_row_and_the_ledger_tell_differently_is_named(tmp_path: Path) -> None:
    with scene(tmp_path) as s:
        s.settle(s.held("one"))
        s.sql("UPDATE runs SET occurrence = 'at:2026-03-02T10:30:00Z'")
        (found,) = s.faults()
        assert found[0] == "P4"
        assert "the ledger tells that at:2026-03-02T10:00:00Z opened it" in found[1]


@pytest.mark.parametrize("late", [0, 1, 4, 9, 10, 30])
def test_what_is_a_little_out_of_order_is_put_in_order_and_what_is_far_is_refused(late: int) -> None:
    draw = random.Random(late)
    found = [(number,) for number in range(60)]
    moved = found.pop(20)
    found.insert(20 + late, moved)
    read = list(found)
    assert list(in_passes(lambda: read, most=draw.randrange(1, 80))) == sorted(read)
    if late <= 10:
        assert list(in_order(iter(read), most=10)) == sorted(read)
    else:
        with pytest.raises(FarOutOfOrder):
            list(in_order(iter(read), most=10))
    assert audit.FINDINGS_MOST == 1_000
    assert audit_order.KEPT > 1_000
