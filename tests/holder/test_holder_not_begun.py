"""What keeps a claimed run from beginning at all: it is skipped with its reason, and no attempt has failed."""

from datetime import timedelta

import pytest
from holder_scene import Scripted, Stage, until_idle
from test_holder_gates import only, wait_for

from duly.operations.audit import verify
from duly.ports import Assignment, Busy

MINUTE = timedelta(minutes=1)


def test_a_run_whose_bound_session_is_busy_is_skipped_and_its_seat_is_free(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(_self: Scripted, _assignment: Assignment, _checkpoint: object) -> Busy:
        return Busy(told="the session ses-1 is busy")

    monkeypatch.setattr(Scripted, "perform", taken)
    holder = stage.holder()
    stage.add("a", "once in 1m")
    stage.clock.pass_(MINUTE)
    until_idle(holder)
    wait_for(lambda: only(stage).state == "ended", holder)
    run = only(stage)
    assert (run.outcome, run.reason, run.error) == ("skipped", "already_running", "the session ses-1 is busy")
    assert stage.read().kinds(run.id) == ["opened", "claimed", "returned", "skipped"]
    assert len(holder.holdings) == 0
    assert verify(stage.store) == []
