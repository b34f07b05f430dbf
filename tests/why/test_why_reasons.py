"""Nothing in the closed sets is unexplained: each reason has its sentence, and `why` names the rule behind it."""

import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from why_scene import Stage

from duly import ids
from duly.core import lifecycle, reasons, sentences, story
from duly.core.fates import Opening
from duly.core.figures import names_of
from duly.core.occurrences import at_key
from duly.core.run import Entry, Missed
from duly.core.sentences import TABLES, first_line, sentence
from duly.operations.why_past import RULE_OF
from duly.store.switches import move

KINDS = [
    "opened",
    "missed",
    "skipped",
    "stretch",
    "claimed",
    "returned",
    "began",
    "taken_over",
    "adopted",
    "handed_over",
    "swept",
    "fence_lost",
    "outcome_late",
    "parked",
    "answered",
    "cancel_asked",
    "ended",
    "defined",
    "paused",
    "unpaused",
    "enabled",
    "disabled",
    "removed",
    "accepted",
    "declined",
    "outage",
    "holder_ended",
]
WAITED_FOR = [
    "slot",
    "seat",
    "limit",
    "rate",
    "budget",
    "calendar",
    "backoff",
    "delay",
    "gate",
    "label",
    "runner",
    "question",
]
FIGURES = {
    name: 1 for use in TABLES for templates in TABLES[use][0].values() for one in templates for name in names_of(one)
}
BY_PEOPLE = frozenset({"paused", "disabled", "skipped_by_hand", "schedule_changed", "task_removed", "suppressed"})
"""Reasons that no rule of the task decides."""


@pytest.mark.parametrize("use", TABLES)
def test_every_reason_of_a_set_is_a_sentence_with_its_figures_and_without(use: sentences.Use) -> None:
    templates, base = TABLES[use]
    assert set(templates) <= set(base) | {"late"}, "figures for a reason of no set"
    for reason in base:
        bare, told = sentence(use, reason, {}), sentence(use, reason, FIGURES)
        assert bare != reason.replace("_", " "), reason
        assert "{" not in bare + told
        assert not templates.get(reason) or told != bare or not names_of(templates[reason][0])


def test_the_table_knows_all_reasons_of_the_closed_sets_and_all_that_is_waited_for() -> None:
    assert set(TABLES["no_start"][1]) == set(reasons.NO_START)
    assert set(TABLES["ended"][1]) == set(reasons.ENDED)
    assert set(WAITED_FOR) <= set(TABLES["waiting"][1])


def test_every_kind_of_entry_is_a_sentence() -> None:
    assert set(story.KINDS) | {"opened"} == set(KINDS)
    for kind in KINDS:
        told = story.tell(Entry(kind=kind, at=_now(), reason="stale" if kind != "opened" else "schedule", by="anna"))
        assert told
        assert "{" not in told


def test_every_fate_is_a_first_line_with_the_name_of_its_task() -> None:
    for fate in sentences.FATES:
        told = first_line(fate, {**FIGURES, "name": "backup", "because": "so"})
        assert "backup" in told
        assert "{" not in told


@pytest.mark.parametrize("reason", reasons.NO_START)
def test_a_run_that_never_started_says_why_and_by_which_rule(stage: Stage, reason: str) -> None:
    task = stage.add("backup", "daily 03:00")
    stage.at("2026-12-02 02:00")
    opening = Opening(due_at=stage.now, start_at=stage.now, opened_by="schedule", late_by=timedelta(0))
    run, entry = lifecycle.opened(task, opening, id_=ids.new("run"), now=stage.now, holder=None)
    with stage.store.write() as session:
        session.runs.insert([run])
        session.ledger.add([entry])
        assert move(session, [lifecycle.skip(run, reason=reason, now=session.now, details={}, by="ben")])
    found = stage.json("why", "backup", "--at", "2026-12-02T02:00:00Z")
    assert (found["due"], found["fate"], found["reason"]) == (True, "skipped", reason)
    assert found["because"] in found["answer"]
    assert found["because"] != reason.replace("_", " ")
    rule = found["rule"]
    assert (rule is None) == (reason not in RULE_OF), "a rule decides, or nobody's"
    assert reason in RULE_OF or reason in BY_PEOPLE | {"excluded", "project_missing"}


@pytest.mark.parametrize("reason", reasons.NO_START)
@pytest.mark.parametrize("kind", ["missed", "stretch"])
def test_an_instant_in_a_counted_stretch_says_why_and_one_of_how_many(stage: Stage, kind: str, reason: str) -> None:
    task = stage.add("sync", "0 * * * *")
    first, last = stage.now + timedelta(hours=1), stage.now + timedelta(hours=5)
    stage.later(hours=6)
    with stage.store.write() as session:
        record_id = ids.new("mis")
        one = Entry(
            kind=kind,
            at=session.now,
            task=task.id,
            occurrence=at_key(first),
            reason=reason,
            count=5,
            until_at=last,
            details={"missed": record_id} if kind == "missed" else {},
        )
        session.ledger.add([one])
        if kind == "missed":
            record = Missed(
                id=record_id,
                task=task.id,
                occurrence=at_key(first),
                due_at=first,
                until_at=last,
                count=5,
                reason=reason,
                noticed_at=session.now,
                holder=None,
            )
            session.missed.insert([record])
    found = stage.json("why", "sync", "--at", "2026-12-01T11:00:00Z")
    assert (found["fate"], found["reason"]) == ("missed" if kind == "missed" else "not_opened", reason)
    assert (found["stretch"]["count"], found["due"]) == (5, True)
    assert found["because"] in found["answer"]
    beside = stage.json("why", "sync", "--at", "2026-12-01T11:00:01Z")
    assert (beside["fate"], beside["due"]) == ("not_due", False), "between two instants of a stretch nothing is due"
    listed = stage.json("why", "sync", "--since", "1d")["items"]
    assert (listed[0]["reason"], listed[0]["count"]) == (reason, 5)


@pytest.mark.parametrize("reason", reasons.ENDED)
def test_a_run_that_ended_badly_says_why(stage: Stage, reason: str) -> None:
    stage.add("backup", "daily 03:00")
    hand = stage.serve()
    stage.at("2026-12-02 02:00")
    stage.turn_and_end(hand, outcome="failed", reason=reason)
    found = stage.json("why", "backup", "--at", "2026-12-02T02:00:00Z")
    assert (found["fate"], found["reason"]) == ("failed", reason)
    assert found["because"] in found["answer"]
    assert found["because"] != reason.replace("_", " ")


def _now() -> datetime:
    from why_scene import instant

    return instant("2026-12-01 08:00")


def test_the_page_names_every_fate_and_every_reason_of_a_no() -> None:
    page = (Path(__file__).parents[2] / "docs" / "why.md").read_text(encoding="utf-8")
    told = {word for piece in re.findall(r"`([^`\n]+)`", page) for word in piece.split()}
    fates = set(sentences.FATES) - {"stands_still"}  # that one is no fate: something is in a task's way
    assert fates - told == set()
    assert set(reasons.NOT_DUE) - told == set()
