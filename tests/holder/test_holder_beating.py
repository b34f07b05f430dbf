"""The heart in its own thread: it beats whatever the loop and the work do, and takes no silence for a loss."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from holder_scene import WITHIN_S, Stage, until_idle

from duly.clock import MICROSECOND, monotonic_s, pause
from duly.errors import StoreAway
from duly.holder.holder import Holder
from duly.operations import runs
from duly.store import Session, Store

SECOND = timedelta(seconds=1)


@pytest.fixture
def beating(stage: Stage) -> Iterator[Holder]:
    """A holder in the middle of a run, whose heart beats twenty times a second and whose loop does not turn."""
    holder = stage.holder(beat=timedelta(milliseconds=50), lease=timedelta(seconds=5))
    stage.add("a", "manual")
    runs.run_now(stage.store, "a", by="test")
    until_idle(holder)
    stage.script.wait_for_starts(1)
    holder.beating.start()
    yield holder
    holder.beating.stop()


def wait_until(what: Callable[[], bool]) -> None:
    until = monotonic_s() + WITHIN_S
    while not what():
        assert monotonic_s() < until
        pause(0.01)


def lease_end(stage: Stage) -> timedelta:
    [run] = stage.read().runs
    assert run.lease_end_us is not None
    return run.lease_end_us * MICROSECOND


def test_leases_are_extended_while_the_loop_stands_and_the_work_blocks_its_thread(
    stage: Stage, beating: Holder
) -> None:
    before = lease_end(stage)
    for number in range(1, 4):
        stage.clock.pass_(SECOND)
        wait_until(lambda: lease_end(stage) >= before + number * SECOND)  # noqa: B023
    [holding] = beating.holdings.all()
    assert holding.stop_why is None


def test_a_long_read_of_another_connection_delays_no_beat(stage: Stage, beating: Holder) -> None:
    before = lease_end(stage)
    with stage.store.read() as session:
        assert session.runs.counts() == {"held": 1}
        stage.clock.pass_(SECOND)
        other = stage.open()

        def seen() -> bool:
            with other.read() as now:
                [run] = now.runs.live()
            assert run.lease_end_us is not None
            return run.lease_end_us * MICROSECOND >= before + SECOND

        wait_until(seen)


def test_a_store_that_cannot_be_asked_is_no_loss_and_the_beat_after_it_extends_again(
    stage: Stage, beating: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Store.write
    refused = []

    @contextmanager
    def write(store: Store, **how: Any) -> Iterator[Session]:
        if how.get("first"):
            refused.append(how)
            raise StoreAway("the store cannot be reached")
        with real(store, **how) as session:
            yield session

    before = lease_end(stage)
    with monkeypatch.context() as away:
        away.setattr(Store, "write", write)
        stage.clock.pass_(SECOND)
        wait_until(lambda: len(refused) >= 5)
        [holding] = beating.holdings.all()
        assert (holding.stop_why, lease_end(stage)) == (None, before)
    wait_until(lambda: lease_end(stage) >= before + SECOND)
    assert holding.stop_why is None
    assert not beating.stopping
