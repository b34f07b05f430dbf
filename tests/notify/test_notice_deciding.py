"""When a notice is due: decided from an entry and from what was told of its task last, and from nothing else."""

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core import channels, notice_texts, notices
from duly.core.channels import Channel
from duly.core.notices import WELL, Notice, Standing, Told, is_settled, of_entry
from duly.core.run import Entry

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
ENDS = ("succeeded", "failed", "timed_out", "abandoned", "cancelled")


def entry(kind: str, reason: str | None = None, **more: object) -> Entry:
    by, run = more.pop("by", None), more.pop("run", "run_1")
    return Entry(kind=kind, at=NOW, task="tsk_1", run=run, reason=reason, by=by, details=more)  # type: ignore[arg-type]


def told_by(entries: list[Entry], after: int = 1) -> list[str]:
    told = WELL
    kinds: list[str] = []
    for seq, one in enumerate(entries):
        told, notice = of_entry(seq, one, told, after=after)
        kinds += [notice.kind] if notice is not None else []
    return kinds


def ends(*outcomes: str) -> list[Entry]:
    return [entry("ended", outcome=outcome) for outcome in outcomes]


@pytest.mark.parametrize(
    ("outcomes", "after", "kinds"),
    [
        (("failed", "failed"), 1, ["failing"]),
        (("failed", "cancelled", "failed"), 2, ["failing"]),
        (("failed", "succeeded", "failed"), 2, []),
        (("failed", "succeeded"), 1, ["failing", "recovered"]),
        (("timed_out", "abandoned", "abandoned", "failed"), 1, ["failing", "abandoned"]),
        (("abandoned", "failed", "succeeded"), 5, ["abandoned", "recovered"]),
        (("succeeded", "cancelled"), 1, []),
    ],
)
def test_only_a_change_of_state_is_told(outcomes: tuple[str, ...], after: int, kinds: list[str]) -> None:
    assert told_by(ends(*outcomes), after) == kinds


@given(st.lists(st.sampled_from(ENDS), max_size=30), st.integers(1, 4))
def test_between_two_recoveries_nothing_is_told_twice(outcomes: list[str], after: int) -> None:
    kinds = told_by(ends(*outcomes), after)
    stretches = " ".join(kinds).split("recovered")
    assert all(stretch.split().count(kind) <= 1 for stretch in stretches for kind in ("failing", "abandoned"))
    assert all(stretch.split() for stretch in stretches[:-1]), "only what was told as failing recovers"


@given(st.lists(st.sampled_from(ENDS), max_size=12), st.integers(1, 4))
def test_what_is_known_of_a_task_reads_back_as_it_was_written(outcomes: list[str], after: int) -> None:
    told = WELL
    for seq, one in enumerate(ends(*outcomes)):
        told, _ = of_entry(seq, one, told, after=after)
        assert notices.from_json(notices.to_json(told)) == told


def test_what_was_missed_is_told_once_until_the_task_runs_again() -> None:
    missed = entry("missed", "missed_skip", run=None, missed="mis_1")
    assert told_by([missed, missed]) == ["missed"]
    assert told_by([missed, *ends("cancelled"), missed]) == ["missed", "missed"]
    assert told_by([entry("skipped", "stale")]) == ["missed"]
    assert told_by([entry("missed", "coalesced", run=None)]) == [], "one run stands for it"
    assert told_by([entry("skipped", "already_running")]) == []


def test_each_offer_and_each_question_is_told_with_what_waits_for_the_answer() -> None:
    offer = entry("missed", "missed_offer", run=None, missed="mis_1")
    _, notice = of_entry(1, offer, WELL, after=1)
    assert notice is not None
    assert (notice.kind, notice.subject) == ("offer", "mis_1")
    assert told_by([offer, offer]) == ["offer", "offer"]
    late = entry("ended", "missed_offer", outcome="failed", missed="mis_2")
    assert told_by([late]) == ["offer"]
    _, asked = of_entry(2, entry("parked", question="que_1", text="May I push?"), WELL, after=1)
    assert asked is not None
    assert (asked.kind, asked.subject) == ("question", "que_1")
    assert notice_texts.text(asked) == "May I push?; duly answer que_1"


def test_a_pause_is_told_where_duly_itself_made_it() -> None:
    assert told_by([entry("paused", by="duly", run=None, failures_in_a_row=3)]) == ["paused"]
    assert told_by([entry("paused", by="ann", run=None)]) == []


def test_a_store_that_was_away_is_told_and_a_machine_that_slept_is_not() -> None:
    assert told_by([Entry(kind="outage", at=NOW, reason="store_away")]) == ["store_away"]
    assert told_by([Entry(kind="outage", at=NOW, reason="suspend")]) == []


@pytest.mark.parametrize(
    ("kind", "standing", "settled"),
    [
        ("question", Standing(open=True), False),
        ("question", Standing(open=False), True),
        ("offer", Standing(open=False), True),
        ("failing", Standing(), False),
        ("failing", Standing(held_by_duly=True), False),
        ("failing", Standing(held_by_person=True), True),
        ("abandoned", Standing(enabled=False), True),
        ("missed", Standing(removed=True), True),
        ("paused", Standing(held_by_duly=True), False),
        ("paused", Standing(), True),
        ("recovered", Standing(removed=True), False),
        ("budget", Standing(), False),
    ],
)
def test_what_a_person_has_in_hand_needs_no_telling(kind: notices.Kind, standing: Standing, settled: bool) -> None:
    assert is_settled(Notice(kind=kind, cause="c", at=NOW), standing) is settled


def test_every_kind_of_notice_has_its_words_whatever_is_known_of_it() -> None:
    kinds: tuple[notices.Kind, ...] = get_args(notices.Kind)
    for kind in kinds:
        bare = Notice(kind=kind, cause="c", at=NOW, task="tsk_1")
        assert notice_texts.title(bare)
        assert notice_texts.text(bare)
    assert set(kinds) == notices.SEVERITIES.keys() == notice_texts.TITLES.keys() == notice_texts.TEXTS.keys()


def test_a_channel_that_fails_is_asked_ever_more_seldom_and_at_least_each_quarter_of_an_hour() -> None:
    one = Channel(name="ops", url="https://example.org", set_at=NOW, set_by="ann", next_at=NOW)
    waits = []
    for _ in range(12):
        one = channels.refused_by(one, "it answered 500", now=NOW)
        waits.append(one.next_at - NOW)
    assert waits == sorted(waits)
    assert waits[0] == channels.FIRST_AGAIN
    assert waits[-1] == channels.LAST_AGAIN
    assert channels.spoken_to(one, now=NOW).failing_since is None
    long = channels.refused_by(one, "it answered 429", now=NOW, wait=timedelta(days=3))
    assert long.next_at - NOW == channels.LAST_AGAIN, "nobody is quiet for days because a receiver says so"


def test_what_is_known_is_forgotten_with_the_task() -> None:
    told, notice = of_entry(1, entry("removed", by="ann"), Told(failures=3, state="failing"), after=1)
    assert (told, notice) == (WELL, None)
