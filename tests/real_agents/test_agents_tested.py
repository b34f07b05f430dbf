"""The page of what is tried with which agent says what the tests are called."""

from tested import AGENTS, PAGE, RULES, page


def test_the_page_of_tried_agents_has_a_test_or_a_reason_in_each_cell_and_is_true() -> None:
    assert [rule for rule, *_ in RULES] == [f"G{number}" for number in range(1, 15)]
    assert all(cell for _, _, *cells in RULES for cell in cells)
    assert all(len(cells) == len(AGENTS) for _, _, *cells in RULES)
    assert PAGE.read_text() == page(), "run python tests/real_agents/tested.py"
