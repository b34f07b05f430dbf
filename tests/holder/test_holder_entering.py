"""Entering a store: who begins is there as of the write that says so, however long that took to come about."""

from datetime import timedelta

from holder_scene import Stage

from duly.holder.enrolling import enter, row_of
from duly.holder.figures import figures
from duly.holder.wish import Wish


def test_who_waited_for_the_lock_is_entered_as_of_the_moment_it_came(stage: Stage) -> None:
    wish = Wish(slots=1, figures=figures(), drain=timedelta(0))
    row = row_of("hld_1", "somewhere", wish, stage.clock)
    stage.clock.pass_(timedelta(seconds=99))
    enter(stage.store, row, wish.figures, begin=lambda _session: None, away=print, stopped=lambda: False)
    with stage.store.read() as session:
        [entered] = session.holders.living()
        assert entered.started_at == entered.last_beat_at == session.now
        assert entered.beat_lease_us == session.lease_us
    assert row.last_beat_at < entered.last_beat_at
