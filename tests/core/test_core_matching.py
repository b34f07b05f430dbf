"""Expressions that cannot hang: they find what Python's find, in a time that the text alone decides."""

import contextlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duly.core.matching import EXPRESSION_MOST, expression, found
from duly.errors import Invalid

CASES = [
    "a",
    "ab|cd",
    "^ok$",
    r"\Aab",
    r"ab\Z",
    "a{2,3}b",
    "a{0}",
    "(a|b)*c",
    "(?:a?){3}b",
    "a+?b",
    "[a-c]+d",
    "[^ab]c",
    r"\d+\s\w",
    r"\D\S\W",
    r"\bab\b",
    r"\Bb",
    "(?i:AB)c",
    "(?i)[A-C]D",
    "(?i)[^A]",
    "(?s:a.b)",
    "a.b",
    "(?m)^a",
    "(?-m:^a$)",
    "$",
    "^$",
    "()",
    "(a*)*b",
    "(|a)+b",
    r"[\d_]x",
    r"\.",
    "(?x) a  b # words",
    "a{2}",
    "(a{1,2}){2}b",
]
TEXTS = st.text(alphabet="abcdABD1_ \n.xé", max_size=12)


@pytest.mark.parametrize("pattern", CASES)
@settings(max_examples=150, deadline=None)
@given(text=TEXTS)
def test_an_expression_finds_what_python_finds(pattern: str, text: str) -> None:
    assert found(expression(pattern), text) == bool(re.compile(pattern, re.MULTILINE).search(text))


PIECES = st.sampled_from(["a", "b", ".", r"\w", "[ab]", "[^a]", "^", "$", r"\b", r"\B", r"\Z", r"\n", " "])
PATTERNS = st.recursive(
    PIECES,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join).map("({})".format),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "*?"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=400, deadline=None)
@given(pattern=PATTERNS, text=st.text(alphabet="ab \n", max_size=10))
def test_any_expression_drawn_finds_what_python_finds(pattern: str, text: str) -> None:
    assert found(expression(pattern), text) == bool(re.compile(pattern, re.MULTILINE).search(text))


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(a|aa)+$", "(.*)*x", "a*a*a*a*a*a*b", "(x+x+)+y"])
def test_what_would_take_python_for_ever_is_answered(pattern: str) -> None:
    # Python itself takes two to the power of thirty steps or more for each of the first four.
    assert not found(expression(f"(?:{pattern})\\Z"), "a" * 60_000 + "!")


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", "no regular expression"),
        ("a**", "no regular expression"),
        ("[b-a]", "no regular expression"),
        (r"(a)\1", "refers back"),
        ("(a)(?(1)b|c)", "refers back"),
        ("a(?=b)", "looks ahead or behind"),
        ("(?<!a)b", "looks ahead or behind"),
        ("(?>a+)b", "forbids going back"),
        ("a++b", "forbids going back"),
        ("a{5000}", "too large"),
        ("((a{50}){50}){50}", "too large"),
        ("(){100000000}", "too large"),
        ("(?a)\\w", "the flag a"),
        ("(" * 240 + ")" * 240, ""),
        ("x" * (EXPRESSION_MOST + 1), "500 are allowed"),
        ("a{99999999999999999999}", ""),
    ],
)
def test_what_needs_to_go_back_or_is_too_large_is_refused_when_it_is_read(pattern: str, said: str) -> None:
    if not said:
        with contextlib.suppress(Invalid):  # taken or refused, and nothing else
            expression(pattern)
        return
    with pytest.raises(Invalid, match=re.escape(said)):
        expression(pattern)


def test_the_hardest_expression_of_those_that_are_taken_is_answered() -> None:
    # Two to the power of 120 sets of places could be met in it: only so many are remembered.
    hard = expression("(?:[ab]*a[ab]{120}c)|" + "|".join(f"x{'y?' * 20}z" for _ in range(8)))
    assert not found(hard, "abbabaab" * 1_000)
    assert found(hard, "abbabaab" * 1_000 + "a" * 121 + "c")
