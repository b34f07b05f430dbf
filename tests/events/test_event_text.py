"""Triggers by event as text: what is read, what is refused and how, and the one canonical form."""

import json
from datetime import UTC, datetime

import pytest
from event_draws import LISTENERS
from hypothesis import given, settings
from hypothesis import strategies as st

from duly import zones
from duly.core import when
from duly.core.triggers import On, Trigger, count, is_due_at, last_before, next_after
from duly.core.words import describe, describe_all
from duly.errors import Invalid

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
UTC_ZONE = zones.zone("UTC")
DRAWS = settings(max_examples=200, deadline=None)

WRITTEN = [
    ("on deploy", "on deploy"),
    ("ON Deploy", "on deploy"),
    ("  on \t git.push \n", "on git.push"),
    ("on git.push-2_x", "on git.push-2_x"),
    ("on git.push WHERE repo=duly", "on git.push where repo=duly"),
    ("on git.push where repo=duly And branch=main", "on git.push where branch=main and repo=duly"),
    ("on git.push where repo=Duly and repo=Duly", "on git.push where repo=Duly"),
    ('on p where a.b="main"', "on p where a.b=main"),
    ('on p where "a"."b"=main', "on p where a.b=main"),
    ('on p where a."b c"="two  words"', 'on p where a."b c"="two  words"'),
    ('on p where a="x, y" and b="=" and c=""', 'on p where a="x, y" and b="=" and c=""'),
    ('on p where a="\\u00e9"', "on p where a=é"),
    ('on p where a="\\n"', 'on p where a="\\n"'),
    ("on p where and=and and by=where", "on p where and=and and by=where"),
    ("on p where n=1.50", "on p where n=1.50"),
    ("on p throttle 60m", "on p throttle 1h"),
    ("on p Throttle 10m By repo", "on p throttle 10m by repo"),
    ("on p throttle 10m by repo, branch,\trepo", "on p throttle 10m by branch,repo"),
    ('on p where a=b throttle 1w by "x y".z', 'on p where a=b throttle 7d by "x y".z'),
    ("on duly.run.ended where outcome=failed", "on duly.run.ended where outcome=failed"),
    ("on größe where größe=5", "on größe where größe=5"),
]
# text, the column under which the caret stands, what the message says, what the hint says
REFUSED = [
    ("on", 2, "missing", "on deploy"),
    ("on where a=b", 3, "missing", "on deploy"),
    ('on "deploy"', 3, "quotes", "on deploy"),
    ("on a..b", 5, "empty place", "a.b"),
    ("on a.", 5, "empty place", "such as a"),
    ("on 5x", 3, "`5x` is no word", "git.push"),
    ("on git/push", 3, "no word", "git-push"),
    ("on git.*", 7, "`*`", "each source"),
    ("on push,pull", 7, "one source", "--when"),
    ("on " + "x" * 121, 123, "120 characters", "shorter"),
    ("on monday 9:00", 10, "too much", "weekly mon 09:00"),
    ("on push whre a=b", 8, "`whre`", "where"),
    ("on push if a=b", 8, "`where` in place of `if`", "where a=b"),
    ("on push a=b", 8, "`where` is missing", "where"),
    ("on push where", 13, "pair is missing", "branch=main"),
    ("on push where a", 15, "value is missing", "a=main"),
    ("on push where a=", 16, "value is missing", "a=main"),
    ("on push where a = b", 15, "no blanks", "a=b"),
    ("on push where a= b", 16, "value is missing", "no blanks"),
    ("on push where a==b", 15, "one `=`", "a="),
    ("on push where a!=b", 15, "only `=`", "a="),
    ("on push where a>5", 15, "only `=`", "a="),
    ("on push where a is b", 15, "`is`", "a=main"),
    ("on push where 1a=b", 14, "`1a=b`", '"1a"'),
    ("on push where a b=c", 15, "no `=`", "quotes"),
    ("on push where a..b=c", 16, "path", '"b c"'),
    ("on push where a=O'Brien", 17, "double quotes", 'a="O\'Brien"'),
    ("on push where a='b c'", 16, "double quotes", 'a="b c"'),
    ("on push where a=b=c", 17, "double quotes", 'a="b=c"'),
    ('on push where a="b', 16, "no JSON text", "inside"),
    ('on push where a="\\u0000"', 16, "cannot be kept", "NUL"),
    ('on push where a="\\ud800"', 16, "cannot be kept", "UTF-8"),
    ('on push where a="b"and c=d', 19, "blank", "and"),
    ("on push where a=b, c=d", 17, "not a comma", "and"),
    ("on push where a=b c=d", 18, "`and` is missing", "on deploy"),
    ("on push where a=b or c=d", 18, "no `or`", "second trigger"),
    ("on push where a=b && c=d", 18, "`and`", "and"),
    ("on push where a=b and", 21, "pair is missing", "branch=main"),
    ("on push where a=1 and a=2", 22, "stands twice", "second trigger"),
    ("on push throtle 10m", 8, "`throtle`", "throttle"),
    ("on push throttle", 16, "span", "throttle 10m"),
    ("on push throttle by a", 17, "span", "throttle 10m"),
    ("on push throttle 10", 19, "unit", "10m for minutes"),
    ("on push throttle 1.5h", 18, "fractions", "90m"),
    ("on push throttle 0m", 17, "longer than nothing", "15m"),
    ("on push throttle 10m per a", 21, "`per`", "by"),
    ("on push throttle 10m by", 23, "path is missing", "a.b"),
    ("on push throttle 10m by a b", 26, "`b`", "commas"),
    ("on push throttle 10m by a ,b", 25, "before a comma", "a,"),
    ("on push throttle 10m where a=b", 21, "stands before", "where"),
    ("on push by a", 8, "`by`", "throttle 10m by"),
]


def read(text: str) -> Trigger:
    return when.read(text, now=NOW, zone=UTC_ZONE).trigger


def outcome(text: str) -> Trigger | Invalid:
    try:
        return read(text)
    except Invalid as error:
        return error


@pytest.mark.parametrize(("text", "canonical"), WRITTEN)
def test_what_listens_is_written_in_one_canonical_form_that_writes_itself(text: str, canonical: str) -> None:
    trigger = read(text)
    assert when.write(trigger) == canonical
    assert read(canonical) == trigger


@pytest.mark.parametrize(("text", "at", "message", "hint"), REFUSED)
def test_a_bad_listener_is_refused_with_its_column_and_with_what_to_write_instead(
    text: str, at: int, message: str, hint: str
) -> None:
    with pytest.raises(Invalid) as refused:
        read(text)
    error = refused.value
    assert (error.field, error.text, error.at) == ("when", text, at)
    assert message in error.message
    assert error.hint is not None
    assert hint in error.hint


@given(LISTENERS)
@DRAWS
def test_any_listener_writes_a_text_and_a_json_that_read_back_as_itself(trigger: On) -> None:
    text = when.write(trigger)
    if len(text) <= when.MAX_TEXT:
        assert read(text) == trigger
    assert when.from_json(json.loads(json.dumps(when.to_json(trigger)))) == trigger
    assert describe(trigger).startswith(f"on {trigger.source}")


PIECES = (
    *("on ", "on ", "push", "git.push", "where ", "and ", "throttle ", "by ", "or ", "10m", "1.5h", "a", "a.b"),
    *('"', '"x y"', "'", "=", "==", ",", ".", "1", " ", " ", " ", "\t", '\\u0000"', "é", "main"),
)


@given(
    st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text(max_size=40).map(lambda text: f"on {text}")
)
@DRAWS
def test_whatever_stands_after_on_it_is_read_or_refused_with_a_place_and_a_hint(text: str) -> None:
    found = outcome(text)
    if isinstance(found, Invalid):
        assert found.hint
        assert found.at is not None
        assert 0 <= found.at <= len(text)
    else:
        assert read(when.write(found)) == found


def test_a_listener_yields_no_instant_beside_the_instants_of_others() -> None:
    listener, daily = read("on deploy"), read("daily 09:00")
    for triggers, following in (((listener,), None), ((listener, daily), datetime(2026, 1, 2, 9, tzinfo=UTC))):
        assert next_after(triggers, UTC_ZONE, NOW) == following
    assert last_before((listener,), UTC_ZONE, NOW) is None
    assert not is_due_at((listener,), UTC_ZONE, NOW)
    assert count((listener,), UTC_ZONE, NOW, datetime(2027, 1, 1, tzinfo=UTC)) == 0
    assert count((listener, daily), UTC_ZONE, NOW, datetime(2026, 1, 4, tzinfo=UTC)) == 2


def test_words_say_what_is_listened_to_and_how_often_at_most() -> None:
    said = describe_all(
        (read('on git.push where branch=main and text="" throttle 10m by repo,branch'), read("daily 09:00"))
    )
    assert said == (
        "on git.push where branch is main and text is empty, at most once every 10 minutes for each branch and repo; "
        "every day at 09:00"
    )
    assert describe(read("on deploy throttle 1h")) == "on deploy, at most once every hour"


def test_numbers_true_and_null_in_the_json_of_a_listener_mean_their_texts() -> None:
    shape = {"kind": "event", "source": "Push", "match": {"n": 3, "ok": True, "gone": None, "x": 1.5}}
    trigger = when.from_json(shape)
    assert when.write(trigger) == "on push where gone=null and n=3 and ok=true and x=1.5"
