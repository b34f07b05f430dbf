"""Which events a trigger takes, and which fall into one window of its throttle; pure."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta

import pytest
from event_draws import LISTENERS, SCALARS, TEXTS, WORDS, path_of, values
from event_values import NOW, event, task
from hypothesis import given, settings
from hypothesis import strategies as st

from duly.core import events
from duly.core.event_text import keys_of
from duly.core.events import CHAIN_MOST, DEPTH_MOST, Opens, PassedOver
from duly.core.names import key_of
from duly.core.triggers import On, Throttle
from duly.errors import Invalid

DRAWS = settings(max_examples=200, deadline=None)
MINUTE = timedelta(minutes=1)
TICK = timedelta(microseconds=1)
BODY = (
    '{"branch": "Main", "n": 1.50, "big": 12345678901234567890, "ok": true, "gone": null, "tags": ["A", {"name": "x"}],'
    ' "a": {"b c": "d", "": "e"}, "commits": [{"by": "anna"}, {"by": "ben"}, [[{"by": "cleo"}]]]}'
)


def taken(match: Mapping[str, str], body: str) -> bool:
    trigger = On(source="s", match=tuple(sorted(match.items())))
    return events.matches(trigger, "s", events.parsed(body))


@pytest.mark.parametrize(
    ("path", "value", "takes"),
    [
        ("branch", "main", True),
        ("branch", "MAIN", True),
        ("branch", "mai", False),
        ("Branch", "main", False),
        ("n", "1.50", True),
        ("n", "1.5", False),
        ("big", "12345678901234567890", True),
        ("ok", "TRUE", True),
        ("gone", "null", True),
        ("missing", "null", False),
        ("missing", "", False),
        ("tags", "a", True),
        ("tags", "x", False),
        ("tags.name", "X", True),
        ("a", "d", False),
        ('a."b c"', "d", True),
        ('a.""', "e", True),
        ("a.b", "d", False),
        ("branch.x", "main", False),
        ("commits.by", "anna", True),
        ("commits.by", "ben", True),
        ("commits.by", "cleo", True),
        ("commits.by", "dora", False),
    ],
)
def test_a_pair_holds_where_the_text_at_its_path_is_the_same_whatever_its_case(
    path: str, value: str, takes: bool
) -> None:
    assert taken({path: value}, BODY) is takes


def test_all_pairs_must_hold_and_none_are_always_held() -> None:
    assert taken({}, BODY)
    assert taken({}, "null")
    assert taken({"branch": "main", "ok": "true"}, BODY)
    assert not taken({"branch": "main", "ok": "false"}, BODY)


def test_a_trigger_takes_events_of_its_own_source_alone() -> None:
    trigger = On(source="git.push")
    assert events.matches(trigger, "git.push", None)
    assert not events.matches(trigger, "git", None)
    assert not events.matches(trigger, "git.push.main", None)


def model(value: object, keys: tuple[str, ...], wanted: str) -> bool:
    """The sentence of the contract, written down once more in another way."""
    if isinstance(value, list):
        return any(model(member, keys, wanted) for member in value)
    if keys:
        return isinstance(value, dict) and keys[0] in value and model(value[keys[0]], keys[1:], wanted)
    if isinstance(value, dict):
        return False
    text = value if isinstance(value, str) else json.dumps(value)
    return key_of(text) == key_of(wanted)


@given(values(), st.data())
@DRAWS
def test_matching_is_what_the_contract_says_of_any_json(body: object, data: st.DataObject) -> None:
    there = st.sampled_from([*places(body), (["x"], "x")])
    elsewhere = WORDS.map(lambda word: ([word], "x"))
    keys, wanted = data.draw(there | elsewhere)
    wanted = data.draw(st.sampled_from((wanted, wanted.upper(), wanted + "!")) | TEXTS)
    path = path_of(keys) if keys else None
    if path is None:
        return
    assert keys_of(path) == tuple(keys)
    assert taken({path: wanted}, json.dumps(body)) is model(body, tuple(keys), wanted)


def places(value: object, keys: tuple[str, ...] = ()) -> list[tuple[list[str], str]]:
    """Every path in a JSON with the text that stands there."""
    if isinstance(value, list):
        return [found for member in value for found in places(member, keys)]
    if isinstance(value, dict):
        return [found for key, inner in value.items() for found in places(inner, (*keys, key))]
    return [(list(keys), value if isinstance(value, str) else json.dumps(value))]


@given(LISTENERS, values())
@DRAWS
def test_whatever_the_trigger_and_the_json_matching_and_windows_answer(trigger: On, body: object) -> None:
    read = events.parsed(json.dumps(body))
    assert events.matches(trigger, trigger.source, read) in (True, False)
    if trigger.throttle is not None:
        window = events.window_of(trigger, read)
        assert all(len(kind) <= events.KIND_MOST for kind in window.split("\n")[1:])


@given(st.lists(SCALARS, min_size=1, max_size=4))
@DRAWS
def test_a_list_is_taken_where_one_of_its_members_is(members: list[object]) -> None:
    for member in members:
        text = member if isinstance(member, str) else json.dumps(member)
        assert taken({"x": text}, json.dumps({"x": members}))


THROTTLE = On(source="s", throttle=Throttle(within=10 * MINUTE, by=("where", "who")))


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ({"who": "Anna", "where": "x"}, {"where": "X", "who": "anna"}, True),
        ({"who": "anna  b\n c"}, {"who": "anna b c"}, True),
        ({"who": "line 12 of 400"}, {"who": "line 7 of 9"}, True),
        ({"who": "line 12"}, {"who": "line"}, False),
        ({"who": "a", "where": ""}, {"who": "", "where": "a"}, False),
        ({"who": "a"}, {"who": "a", "why": "b"}, True),
        ({"who": "x" * 120 + "a"}, {"who": "x" * 120 + "b"}, True),
        ({"who": "x" * 119 + "a"}, {"who": "x" * 119 + "b"}, False),
        ({"who": "x" * 130, "where": "a"}, {"who": "x" * 130, "where": "b"}, False),
        ({"who": ["a", "b"]}, {"who": ["A", "B"]}, True),
        ({"who": 1}, {"who": 22}, True),
        ({}, {"who": ""}, True),
        (None, {}, True),
    ],
)
def test_a_window_is_told_by_its_fields_made_alike(one: object, other: object, alike: bool) -> None:
    windows = {events.window_of(THROTTLE, events.parsed(json.dumps(body))) for body in (one, other)}
    assert (len(windows) == 1) is alike


def test_two_triggers_of_a_task_have_windows_of_their_own() -> None:
    other = On(source="s", match=(("a", "b"),), throttle=THROTTLE.throttle)
    assert events.window_of(THROTTLE, None) != events.window_of(other, None)


class Windows:
    """The durable windows of one task, for a judge to ask."""

    def __init__(self) -> None:
        self.until: dict[str, datetime] = {}

    def hear(self, text: str, at: datetime, body: str = "null") -> bool:
        """Let the task hear an event; whether it is started, with its windows begun."""
        found = events.judge(
            task(text), event("s", body, at=at), events.parsed(body), paused=False, until_of=self.until.get
        )
        assert found is not None
        if isinstance(found, PassedOver):
            assert found.reason == "suppressed"
            return False
        self.until |= found.windows
        return True


@given(st.lists(st.integers(0, 40), min_size=1, max_size=30).map(sorted), st.integers(1, 15))
@DRAWS
def test_a_throttle_lets_one_in_a_window_through_and_what_it_suppresses_does_not_extend_it(
    minutes: list[int], within: int
) -> None:
    windows, open_from = Windows(), -1
    for minute in minutes:
        expected = minute >= open_from
        assert windows.hear(f"on s throttle {within}m", NOW + minute * MINUTE) is expected
        open_from = minute + within if expected else open_from


def test_a_window_is_over_exactly_at_its_end() -> None:
    windows = Windows()
    assert windows.hear("on s throttle 10m", NOW)
    assert not windows.hear("on s throttle 10m", NOW + 10 * MINUTE - TICK)
    assert windows.hear("on s throttle 10m", NOW + 10 * MINUTE)


def test_a_suppressed_event_is_told_with_its_figures() -> None:
    until = NOW + 5 * MINUTE + TICK
    body = events.parsed('{"who": "Anna 7"}')
    listening = task("on s throttle 10m by who")
    found = events.judge(listening, event("s"), body, paused=False, until_of=lambda _: until)
    assert isinstance(found, PassedOver)
    assert found.details == {"until": "2026-12-01T08:05:00.000001Z", "within": "10m", "alike": ["anna #"]}
    assert found.message == "throttled until 2026-12-01T08:05:01Z, one in 10m"


def test_a_trigger_without_throttle_beside_a_throttled_one_lets_the_event_through() -> None:
    listening = task("on s throttle 10m", "on s where a=b")
    late = NOW + MINUTE
    body = events.parsed('{"a": "b"}')
    found = events.judge(listening, event("s"), body, paused=False, until_of=lambda _: late)
    assert found == Opens(windows={})
    assert isinstance(events.judge(listening, event("s"), None, paused=False, until_of=lambda _: late), PassedOver)


def judged(listening: object, *, through: tuple[str, ...] = (), paused: bool = False) -> str | None:
    found = events.judge(listening, event("s", through=through), None, paused=paused, until_of=lambda _: None)  # type: ignore[arg-type]
    if found is None:
        return "deaf"
    return "opens" if isinstance(found, Opens) else found.reason


def test_who_is_not_started_and_why() -> None:
    assert judged(task("on other", "daily 09:00")) == "deaf"
    assert judged(task("on s")) == "opens"
    assert judged(task("on s", enabled=False)) == "disabled"
    assert judged(task("on s"), paused=True) == "paused"
    assert judged(task("on s", enabled=False), paused=True) == "disabled"
    assert judged(task("on s", done=True)) is None
    assert judged(task("on s", "daily 09:00", start=NOW + TICK)) == "opens", "bounds are those of its times"
    assert judged(task("on s"), through=("tsk_2", "tsk_1")) == "suppressed"
    assert judged(task("on s"), through=tuple(f"x{n}" for n in range(CHAIN_MOST - 1))) == "opens"
    assert judged(task("on s"), through=tuple(f"x{n}" for n in range(CHAIN_MOST))) == "suppressed"


def test_a_run_of_an_event_is_due_at_its_moment_and_known_by_its_key() -> None:
    run, entry = events.opened(task("on deploy"), event(key="k 1"), id_="run_1")
    assert (run.occurrence, run.due_at, run.opened_by, run.event) == ("event:deploy:k 1", NOW, "event", "evt_1")
    assert (run.definition_version, run.opened_by_whom, run.not_before) == (3, "somebody", NOW)
    assert (entry.kind, entry.occurrence, entry.run, entry.reason) == ("opened", run.occurrence, "run_1", "event")
    assert events.opened(task("on deploy"), event(), id_="run_2")[0].occurrence == "event:deploy:evt_1"


@given(values())
@DRAWS
def test_any_json_is_kept_as_it_was_written(body: object) -> None:
    for text in (json.dumps(body), json.dumps(body, indent=1, ensure_ascii=False)):
        assert events.check_body(f" {text}\n") == text.strip()
        assert events.same_body(text, json.dumps(body, sort_keys=True))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("hello", "not JSON"),
        ("{'a': 1}", "not JSON"),
        ("{} {}", "not JSON"),
        ("NaN", "no number"),
        ('{"a": Infinity}', "no number"),
        ("1e999", "too large"),
        ("9" * 400, "too large"),
        ("[" * (DEPTH_MOST + 1) + "]" * (DEPTH_MOST + 1), "deep"),
        ("[" * 100_000, "deep"),
        ('"\udcff"', "UTF-8"),
        ('"' + "x" * events.BODY_MOST + '"', "1 MiB"),
    ],
)
def test_what_is_no_json_or_too_much_of_it_is_refused(text: str, message: str) -> None:
    with pytest.raises(Invalid, match=message) as refused:
        events.check_body(text)
    assert refused.value.field == "data"


def test_json_at_its_limits_is_taken() -> None:
    assert events.check_body("[" * DEPTH_MOST + "]" * DEPTH_MOST)
    assert len(events.check_body('"' + "x" * (events.BODY_MOST - 2) + '"')) == events.BODY_MOST


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"a": 1, "b": 2}', '{"b":2,"a":1}', True),
        ("[1, 2]", "[2, 1]", False),
        ("1", "1.0", False),
        ("1", "true", False),
        ('"a"', '"A"', False),
        ("null", "{}", False),
        ('"\\u00e9"', '"é"', True),
    ],
)
def test_equal_data_are_equal_json_however_it_is_laid_out(one: str, other: str, same: bool) -> None:
    assert events.same_body(one, other) is same
