"""Snippets (G4): names that stand for texts, inside of each other too, and never without end."""

from hypothesis import given
from hypothesis import strategies as st

from duly.prompts.snippets import EXPANSIONS_MOST, expand


def test_a_name_stands_for_its_text_and_what_has_none_stays() -> None:
    known = {"tone": "Be kind.\n", "a-b": "x", "ünder_1": "y", "123": "no issue"}
    made = expand("#tone (#a-b), #ünder_1! #other #tones a#tone ##tone &#tone; /#tone # tone #", known.get)
    assert made.text == "Be kind. (x), y! #other #tones a#tone ##tone &#tone; /#tone # tone #"
    assert (made.count, made.left) == (3, ())


def test_snippets_name_others_and_one_inside_of_itself_stays() -> None:
    known = {"all": "#tone and #form", "tone": "kind", "form": "short, #form, #all"}
    made = expand("Be #all.", known.get)
    assert made.text == "Be kind and short, #form, #all."
    assert (made.count, made.left) == (3, ("form", "all"))


def test_no_more_than_fifteen_are_put_in() -> None:
    bomb = {"a": "#b #b #b #b", "b": "#c #c #c #c", "c": "#d #d #d #d", "d": "boom"}
    made = expand("#a #a #a", bomb.get)
    assert made.count == EXPANSIONS_MOST
    assert made.text.count("boom") < EXPANSIONS_MOST
    assert made.left
    row = expand(" ".join(["#d"] * 20), bomb.get)
    assert row.text == " ".join(["boom"] * 15 + ["#d"] * 5)


def test_each_text_is_sought_once() -> None:
    asked: list[str] = []

    def find(name: str) -> str | None:
        asked.append(name)
        return {"a": "x"}.get(name)

    expand("#a #b #a #b", find)
    assert asked == ["a", "b"]


@given(
    st.dictionaries(st.sampled_from("abcd"), st.text(alphabet="#abcd ", max_size=12)), st.text("#abcd \n", max_size=20)
)
def test_whatever_names_what_an_end_is_found(known: dict[str, str], text: str) -> None:
    made = expand(text, known.get)
    assert made.count <= EXPANSIONS_MOST
    assert len(made.text) <= len(text) + EXPANSIONS_MOST * 12
