"""What people are told, word for word, by pages that were read before they were kept (`core_golden.py`)."""

import pytest
from core_golden import ANSWERS, answered, blocks

AT_ONCE = 15
PARTS = [(name, start) for name in ANSWERS for start in range(0, len(blocks(name)), AT_ONCE)]


@pytest.mark.parametrize(("name", "start"), PARTS)
def test_a_person_is_told_what_was_agreed_word_for_word(name: str, start: int) -> None:
    agreed = blocks(name)[start : start + AT_ONCE]
    assert [answered(name, block) for block in agreed] == agreed
