"""Slash commands (G3): what calls one, and how its arguments find their places in the template."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.prompts.commands import Call, call_of, expand

COMMANDS = {
    "all": "Say <$ARGUMENTS> and <$1>.",
    "two": "From $1 to $2, from $1.",
    "three": "$3-$1",
    "none": "Tidy up.\n",
    "zero": "$0 and $1",
    "twelve": "$1 $12",
    "go/deep": "Deep: $ARGUMENTS",
}


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("/fix", Call(name="fix", arguments="")),
        ("/fix   a  b ", Call(name="fix", arguments="a  b ")),
        ("/fix one\ntwo\n\nthree\n", Call(name="fix", arguments="one\ntwo\n\nthree")),
        ("/fix\ntwo", Call(name="fix", arguments="two")),
        ("/a:b-c/d x", Call(name="a:b-c/d", arguments="x")),
        (" /fix", None),
        ("Do /fix", None),
        ("/ fix", None),
        ("/", None),
        ("", None),
        ("Do it.\n/fix", None),
    ],
)
def test_a_prompt_calls_by_its_first_line_and_its_further_lines_are_arguments(text: str, call: Call | None) -> None:
    assert call_of(text) == call


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("/all a 'b  c'\nd", "Say <a 'b  c'\nd> and <$1>."),
        ("/all", "Say <> and <$1>."),
        ("/two a b", "From a to b, from a."),
        ("/two a b  c 'd'", "From a to b  c 'd', from a."),
        ("/two 'a b' \"c d\"", "From a b to c d, from a b."),
        ("/two a", "From a to , from a."),
        ("/two", "From  to , from ."),
        ("/two a\nb c", "From a to b c, from a."),
        ("/two it's so", "From it's to so, from it's."),
        ("/two $2 $1", "From $2 to $1, from $2."),
        ("/two {{event.a b}} {{input}}", "From {{event.a b}} to {{input}}, from {{event.a b}}."),
        ("/three a b c d", "c d-a"),
        ("/none", "Tidy up.\n"),
        ("/none but  well", "Tidy up.\n\nbut  well"),
        ("/zero a b", "$0 and a b"),
        ("/twelve a b", "a "),
        ("/go/deep x", "Deep: x"),
        ("/unknown a", "/unknown a"),
        ("/All a", "/All a"),
        ("/etc/hosts is broken", "/etc/hosts is broken"),
        ("Do $1", "Do $1"),
    ],
)
def test_a_command_that_is_known_is_put_into_its_template(text: str, made: str) -> None:
    assert expand(text, COMMANDS) == made


def test_arguments_full_of_quotes_are_taken_apart_at_once() -> None:
    # Each of these pieces can be read in two ways; who tried all of them would never end.
    pieces = '"a"' * 5_000
    assert expand(f"/two {pieces} x y", COMMANDS) == f"From {pieces} to x y, from {pieces}."
    assert expand(f"/two x {pieces} y", COMMANDS) == f"From x to {pieces} y, from x."


@given(st.text(alphabet="/ab $1{}\"'\n ", max_size=40))
def test_whatever_is_written_a_prompt_is_expanded_at_most_once(text: str) -> None:
    known = {"a": "$1|$2", "b": "[$ARGUMENTS]", "ab": "x"}
    made = expand(text, known)
    call = call_of(text)
    if call is None or call.name not in known:
        assert made == text
    elif call.name == "b":
        assert made == f"[{call.arguments}]"
    else:
        assert "$1" not in made or "$1" in text
