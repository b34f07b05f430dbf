"""The page of incidents is true: it is what the table says, its tests are there, and no kind of fault has too few."""

import pytest
from page import LEAST, PAGE, inputs, page, records

RECORDS = {one["id"]: one for one in records()}
NOT_YET = {"B72", "B73", "B76", "B89"}
"""Of what is not built: these alone may be without a test."""


def test_there_are_sixty_three_records_and_the_page_is_written_from_them() -> None:
    assert len(RECORDS) == 63
    assert PAGE.read_text() == page(), "make incidents"


@pytest.mark.parametrize("record", RECORDS)
def test_each_kind_has_its_tests_with_inputs_besides_the_records_own(record: str) -> None:
    one = RECORDS[record]
    if record in NOT_YET:
        assert one["not_built"]
        return
    assert one["tests"]
    assert sum(inputs(test) for test in one["tests"]) >= LEAST
