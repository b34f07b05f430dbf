"""Whether a holder's loops turn, as those are told who ask whether it is ready."""

from datetime import timedelta

import pytest
from holder_scene import Stage, until_idle

from duly.errors import StoreAway
from duly.holder import pulse
from duly.holder.figures import figures

FIGURES = figures()
SECOND = timedelta(seconds=1)
LEASE = timedelta(microseconds=FIGURES.lease_us)
TRUST = timedelta(microseconds=FIGURES.trust_us)


def test_a_holder_that_turns_and_beats_has_no_trouble_however_long_it_lives(stage: Stage) -> None:
    holder = stage.holder()
    for _ in range(10):
        until_idle(holder)
        holder.heart.step()
        assert pulse.trouble(holder) is None
        stage.clock.pass_(TRUST)


def test_a_holder_whose_rounds_stand_still_for_a_lease_says_so_until_they_go_on(stage: Stage) -> None:
    holder = stage.holder()
    until_idle(holder)
    stage.clock.pass_(LEASE)
    holder.heart.step()
    assert pulse.trouble(holder) is None
    stage.clock.pass_(SECOND)
    assert pulse.trouble(holder) == "its rounds stand still"
    until_idle(holder)
    assert pulse.trouble(holder) is None


def test_a_holder_whose_beats_are_not_answered_for_as_long_as_it_is_trusted_says_so(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = stage.holder()
    holder.heart.step()

    def away(**_: object) -> None:
        raise StoreAway("the store is away")

    with monkeypatch.context() as patch:
        patch.setattr(holder.heart._store, "write", away)
        stage.clock.pass_(TRUST + SECOND)
        with pytest.raises(StoreAway):
            holder.heart.step()
        until_idle(holder)
        assert pulse.trouble(holder) == "no beat is answered"
    holder.heart.step()
    assert pulse.trouble(holder) is None


def test_a_holder_that_was_asked_to_end_is_not_ready_any_more(stage: Stage) -> None:
    holder = stage.holder()
    holder.stop()
    assert pulse.trouble(holder) == "stopping"
