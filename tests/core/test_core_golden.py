"""What people are told, word for word, by pages that were read before they were kept (`core_golden.py`)."""

import pytest
from core_golden import ANSWERS, answered, page


@pytest.mark.parametrize("name", ANSWERS)
def test_a_person_is_told_what_was_agreed_word_for_word(name: str) -> None:
    assert answered(name) == page(name)
