"""Events as rows and bodies, whole: what listeners may rely on, and what an event that starts nothing leaves behind."""

from dataclasses import replace
from typing import Any

import pytest
from core_values import HOUR, MINUTE, NINE, SECOND, TICK, held, task_of, waiting

from duly.core import events, own_events
from duly.core.events import Event, Opens, PassedOver
from duly.core.own_events import Own
from duly.core.run import Entry, Run
from duly.core.task import Task
from duly.core.triggers import On, Throttle
from duly.errors import Invalid

KEYED = Event(id="evt_1", source="deploy", key="k7", body="{}", at=NINE, by="ann")
OF_TASK = {"task": "one", "task_id": "tsk_one", "project": "default"}
CALM = {"at": "2026-03-02T09:00:00Z", "by": "ann", "reason": "why", "until_at": "2026-03-02T10:00:00Z"}


def listening(*triggers: On, **rules: Any) -> Task:
    return replace(task_of(*triggers, **rules), definition_version=3)


def judged(task: Task, body: object = None, until: Any = None, **more: Any) -> Opens | PassedOver | None:
    asked: list[str] = []

    def until_of(window: str) -> Any:
        asked.append(window)
        return until

    event = replace(KEYED, **{"source": "deploy"} | {k: v for k, v in more.items() if k != "paused"})
    return events.judge(task, event, body, paused=more.get("paused", False), until_of=until_of)


def test_the_end_of_a_run_is_told_with_these_fields_and_no_others() -> None:
    run = held(
        state="ended",
        outcome="failed",
        reason="exit_status",
        error="it broke",
        exit_code=3,
        ended_at=NINE + HOUR,
        attempt=2,
    )
    body = OF_TASK | {
        "run": "run_one",
        "occurrence": "at:2026-03-02T09:00:00Z",
        "opened_by": "schedule",
        "due_at": "2026-03-02T09:00:00Z",
        "started_at": "2026-03-02T09:00:00Z",
        "ended_at": "2026-03-02T10:00:00Z",
        "attempt": 2,
        "outcome": "failed",
        "reason": "exit_status",
        "error": "it broke",
        "exit_code": 3,
    }
    told = own_events.of_run(run, task_of(), ("tsk_0",))
    assert told == [Own(source="duly.run.ended", key="run_one", body=body, through=("tsk_0", "tsk_one"))]


def test_a_run_that_never_started_and_whose_task_is_gone_is_told_without_what_nobody_knows() -> None:
    (told,) = own_events.of_run(waiting(state="ended", outcome="skipped"), None, ())
    nobody = {"task": None, "task_id": "tsk_one", "project": None, "started_at": None, "ended_at": None}
    assert {name: told.body[name] for name in nobody} == nobody
    with pytest.raises(AssertionError):
        own_events.of_run(waiting(), None, ())


BODIES: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "a pause of a task": (
        {"kind": "paused", "details": {"scope": "task", "note": "so", "target": "one"}},
        "duly.task.paused",
        {"note": "so"},
    ),
    "a pause of a project": (
        {"kind": "paused", "details": {"scope": "project", "target": "ops"}},
        "duly.project.paused",
        {"note": None, "project": "ops"},
    ),
    "the end of a pause": (
        {"kind": "unpaused", "details": {"scope": "store", "target": "x"}},
        "duly.store.unpaused",
        {"note": None},
    ),
    "what was missed": (
        {"kind": "missed", "occurrence": "at:x", "count": 3, "details": {"missed": "mis_1"}},
        "duly.missed",
        {"occurrence": "at:x", "count": 3, "missed": "mis_1"},
    ),
    "one that was missed": (
        {"kind": "missed", "occurrence": "at:x"},
        "duly.missed",
        {"occurrence": "at:x", "count": 1, "missed": None},
    ),
    "a holder that ended": (
        {"kind": "holder_ended", "holder": "hld_1", "details": {"host": "edith"}},
        "duly.holder.ended",
        {"holder": "hld_1", "host": "edith"},
    ),
    "a definition": ({"kind": "defined", "details": {"version": 4}}, "duly.task.defined", {"version": 4}),
    "a switch": ({"kind": "enabled", "details": {"version": 4}}, "duly.task.enabled", {}),
}


@pytest.mark.parametrize("name", BODIES)
def test_an_entry_is_told_to_listeners_with_who_when_why_and_its_own_figures(name: str) -> None:
    given, source, more = BODIES[name]
    entry = Entry(at=NINE, task="tsk_one", by="ann", reason="why", until_at=NINE + HOUR, **given)
    assert own_events.may_tell(entry)
    assert own_events.of_entry(entry, task_of()) == Own(source=source, key=None, body=OF_TASK | CALM | more)
    assert own_events.of_entry(replace(entry, until_at=None), task_of()).body["until_at"] is None


@pytest.mark.parametrize(
    ("kind", "run", "tells"),
    [("ended", "run_one", True), ("skipped", "run_one", True), ("skipped", None, False), ("claimed", "run_one", False)],
)
def test_the_end_of_an_occurrence_without_a_run_is_no_event(kind: str, run: str | None, tells: bool) -> None:
    assert own_events.may_tell(Entry(kind=kind, at=NINE, run=run)) is tells


def test_an_event_opens_a_run_that_is_due_when_it_was_received() -> None:
    run, told = events.opened(listening(On(source="deploy"), priority=2), KEYED, id_="run_one")
    assert run == Run(
        id="run_one",
        task="tsk_one",
        occurrence="event:deploy:k7",
        due_at=NINE,
        opened_at=NINE,
        opened_by="event",
        opened_by_whom="ann",
        not_before=NINE,
        definition_version=3,
        project="default",
        rank=-2,
        event="evt_1",
    )
    assert told == Entry(
        kind="opened",
        at=NINE,
        task="tsk_one",
        occurrence="event:deploy:k7",
        run="run_one",
        reason="event",
        by="ann",
        details={"event": "evt_1", "source": "deploy", "key": "k7"},
    )
    assert events.opened(task_of(), replace(KEYED, key=None), id_="r")[0].occurrence == "event:deploy:evt_1"


def test_an_event_that_starts_nothing_is_told_as_a_skip_with_why() -> None:
    passed = PassedOver(reason="suppressed", message="so it is", details={"more": 1})
    assert events.passed_over(task_of(), KEYED, passed) == Entry(
        kind="skipped",
        at=NINE,
        task="tsk_one",
        occurrence="event:deploy:k7",
        reason="suppressed",
        by="ann",
        details={"event": "evt_1", "source": "deploy", "key": "k7", "why": "so it is", "more": 1},
    )
    with pytest.raises(AssertionError):
        events.passed_over(task_of(), KEYED, PassedOver(reason=None, message="it is done"))


def test_a_task_that_rests_says_why_an_event_does_not_start_it() -> None:
    task = listening(On(source="deploy"))
    off = replace(task, definition=replace(task.definition, enabled=False))
    assert judged(replace(task, done=True)) == PassedOver(reason=None, message="it is done")
    assert judged(off) == PassedOver(reason="disabled", message="it is disabled")
    assert judged(task, paused=True) == PassedOver(reason="paused", message="it is paused")
    assert judged(task) == Opens(windows={})
    assert judged(listening(On(source="other"))) is None


def test_an_event_that_came_through_a_task_or_through_ten_does_not_start_it_again() -> None:
    task = listening(On(source="deploy"))
    again = "the event came through this task already"
    assert judged(task, through=("tsk_0", "tsk_one")) == PassedOver(
        reason="suppressed", message=again, details={"through": ["tsk_0", "tsk_one"]}
    )
    many = tuple(f"tsk_{number}" for number in range(10))
    ends = "the event came through 10 tasks, and a chain ends there"
    assert judged(task, through=many) == PassedOver(
        reason="suppressed", message=ends, details={"through": list(many), "most": 10}
    )
    assert judged(task, through=many[1:]) == Opens(windows={})


def test_a_throttle_lets_one_through_and_says_until_when_the_next_must_wait() -> None:
    trigger = On(source="deploy", throttle=Throttle(within=10 * MINUTE, by=("branch", "repo")))
    task = listening(trigger)
    body = {"branch": "Fix  17", "repo": ["a", "b"]}
    window = "on deploy throttle 10m by branch,repo\nfix #\na,b"
    assert judged(task, body) == Opens(windows={window: NINE + 10 * MINUTE})
    assert judged(task, body, until=NINE) == Opens(windows={window: NINE + 10 * MINUTE})
    assert judged(task, body, until=NINE + TICK) == PassedOver(
        reason="suppressed",
        message="throttled until 2026-03-02T09:00:01Z, one in 10m",
        details={"until": "2026-03-02T09:00:00.000001Z", "within": "10m", "alike": ["fix #", "a,b"]},
    )
    whole = judged(task, body, until=NINE + SECOND)
    assert isinstance(whole, PassedOver)
    assert whole.message == "throttled until 2026-03-02T09:00:01Z, one in 10m"


def test_of_several_throttles_the_one_that_waits_longest_is_told() -> None:
    short = On(source="deploy", throttle=Throttle(within=MINUTE, by=()))
    long = On(source="deploy", throttle=Throttle(within=HOUR, by=()))
    ends = {"on deploy throttle 1m": NINE + SECOND, "on deploy throttle 1h": NINE + MINUTE}
    for triggers in ((short, long), (long, short)):
        found = events.judge(listening(*triggers), KEYED, {}, paused=False, until_of=ends.get)
        assert isinstance(found, PassedOver)
        assert found.details["within"] == "1h"
    free = On(source="deploy", match=(("a", "1"),))
    opened = events.judge(listening(short, free, long), KEYED, {"a": "1"}, paused=False, until_of=ends.get)
    assert opened == Opens(windows={}), "one trigger that lets it through is enough"
    only = {"on deploy throttle 1m": NINE + SECOND}
    first = events.judge(listening(free, long), KEYED, {"a": "1"}, paused=False, until_of=lambda _: None)
    assert first == Opens(windows={"on deploy throttle 1h": NINE + HOUR}), "a window begins beside a free trigger"
    half = events.judge(listening(short, long), KEYED, {}, paused=False, until_of=only.get)
    assert half == Opens(windows={"on deploy throttle 1h": NINE + HOUR})


def test_numbers_are_matched_as_they_are_written() -> None:
    for text in ("1.50", "-0", "1e2", "7", "12345678901234567890"):
        body = events.parsed(f'{{"n": {text}}}')
        assert events.matches(On(source="deploy", match=(("n", text),)), "deploy", body)
        assert not events.matches(On(source="deploy", match=(("n", "0"),)), "deploy", body)
    assert events.sources_of(listening(On(source="a"), On(source="b"), On(source="a")).definition) == {"a", "b"}


def test_a_window_is_told_apart_by_the_beginning_of_a_long_text() -> None:
    trigger = On(source="deploy", throttle=Throttle(within=MINUTE, by=("text",)))
    window = events.window_of(trigger, {"text": "x" * 121})
    assert window == events.window_of(trigger, {"text": "x" * 500})
    assert window.split("\n")[1] == "x" * 120


REFUSED = {
    "": 'it is not JSON: Expecting value; such as \'{"branch": "main"}\'',
    "main": "it is not JSON: Expecting value; a text stands in double quotes: '\"…\"'",
    '{"a": }': 'it is not JSON: Expecting value; such as \'{"branch": "main"}\'',
    "NaN": "it is not JSON: NaN is no number in JSON; a text stands in double quotes: '\"…\"'",
    "1e999": 'it is not JSON: the number 1e999 is too large; such as \'{"branch": "main"}\'',
    f"1{'0' * 400}": f'it is not JSON: the number 1{"0" * 39} is too large; such as \'{{"branch": "main"}}\'',
    '"\ud800"': "it is not valid UTF-8; None",
    f'"{"x" * 1024 * 1024}"': "an event's data are at most 1 MiB of JSON; None",
    "[" * 101 + "]" * 101: "lists and objects stand in each other more than 100 deep; None",
    "t1": "it is not JSON: Expecting value; a text stands in double quotes: '\"…\"'",
    '{"a": ' * 101 + "1" + "}" * 101: "lists and objects stand in each other more than 100 deep; None",
    "[" * 99_999: "lists and objects stand in each other more than 100 deep; None",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: ascii(text[:12]))
def test_data_that_are_no_event_are_refused_with_what_is_wrong(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        events.check_body(text)
    assert f"{refused.value.message}; {refused.value.hint}" == REFUSED[text]
    assert refused.value.field == "data"


def test_a_refusal_of_data_points_at_the_place() -> None:
    for text, at in (('  {"a": }', 6), ('"ab\ud800"', 3), ("NaN", 0)):
        with pytest.raises(Invalid) as refused:
            events.check_body(text)
        assert (refused.value.at, refused.value.text) == (at, text.strip())


def test_data_are_kept_as_they_were_written_but_for_blanks_around() -> None:
    assert events.check_body(' {"a":  1.50}\n') == '{"a":  1.50}'
    assert events.check_body(f'"{"x" * (1024 * 1024 - 2)}"').startswith('"x')
    assert events.check_body("[" * 100 + "]" * 100)
    deep = '{"a": ' * 100 + "1" + "}" * 100
    assert events.check_body(deep) == deep
