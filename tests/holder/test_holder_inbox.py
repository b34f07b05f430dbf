"""The writer's inbox: what ends its waiting, and what does not."""

import threading
from pathlib import Path

from duly.clock import monotonic_s, pause
from duly.holder.inbox import Inbox
from duly.store.watch import Watch

LONG_S = 30.0


def woken_by(inbox: Inbox, act: threading.Thread) -> float:
    began = monotonic_s()
    act.start()
    inbox.wait(LONG_S)
    act.join()
    return monotonic_s() - began


def test_a_bell_that_rang_before_the_wait_ends_it_at_once_and_only_once() -> None:
    inbox = Inbox()
    inbox.ring()
    assert inbox.wait(LONG_S) is True
    assert inbox.wait(0.01) is False
    inbox.close()


def test_a_bell_that_rings_during_the_wait_ends_it() -> None:
    inbox = Inbox()

    def ring() -> None:
        while not inbox.is_waiting:
            pause(0.001)
        inbox.ring()

    assert woken_by(inbox, threading.Thread(target=ring)) < LONG_S / 2
    inbox.close()


def test_a_write_to_the_watched_file_ends_the_wait_without_being_a_delivery(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    inbox = Inbox(Watch(str(log)))
    assert inbox.watches

    def write() -> None:
        while not inbox.is_waiting:
            pause(0.001)
        with log.open("ab") as file:
            file.write(b"x")

    assert woken_by(inbox, threading.Thread(target=write)) < LONG_S / 2
    assert inbox.wait(0.0) is False
    inbox.close()


def test_a_file_that_is_not_there_is_not_watched_and_the_wait_has_its_end(tmp_path: Path) -> None:
    inbox = Inbox(Watch(str(tmp_path / "missing")))
    assert not inbox.watches
    assert inbox.wait(0.01) is False
    inbox.close()
