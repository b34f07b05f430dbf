"""The figures of a lease: derived from beat and lease, and refused where they leave no time to stop."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.errors import Invalid
from duly.holder.figures import Figures, figures

SECOND = timedelta(seconds=1)


def test_the_default_figures_are_those_of_the_protocol() -> None:
    made = figures()
    assert made == Figures(
        beat_us=20_000_000,
        lease_us=100_000_000,
        poll_us=1_000_000,
        grace_us=10_000_000,
        gone_us=4_000_000,
        trust_us=80_000_000,
        handover_us=600_000_000,
    )


@given(
    st.timedeltas(min_value=timedelta(milliseconds=1), max_value=timedelta(days=1)),
    st.timedeltas(min_value=timedelta(milliseconds=1), max_value=timedelta(days=10)),
)
def test_whatever_is_not_refused_leaves_time_to_end_the_work_inside_the_lease(
    beat: timedelta, lease: timedelta
) -> None:
    try:
        made = figures(beat, lease)
    except Invalid:
        return
    assert made.trust_us + made.poll_us + made.grace_us + made.gone_us <= made.lease_us
    assert made.trust_us <= made.lease_us - made.beat_us
    assert made.trust_us >= 3 * made.beat_us
    assert lease >= max(5 * beat, timedelta(seconds=5))


@pytest.mark.parametrize(
    ("beat", "lease"),
    [(0 * SECOND, 100 * SECOND), (20 * SECOND, 99 * SECOND), (1 * SECOND, 4 * SECOND), (-1 * SECOND, 100 * SECOND)],
)
def test_figures_that_leave_no_room_are_refused_with_what_to_write_instead(beat: timedelta, lease: timedelta) -> None:
    with pytest.raises(Invalid) as refused:
        figures(beat, lease)
    assert refused.value.hint
