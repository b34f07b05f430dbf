"""Missed occurrences as the tests of the store need them: offered to a person, or closed."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from store_scene import DAY, HOUR, MINUTE, Scene, hourly

from duly.core.run import Missed
from duly.errors import Refused
from duly.operations import missed as answers
from duly.operations.missed import Accepted


def closed(s: Scene, name: str = "one", count: int = 5, **rules: Any) -> Missed:
    """So many hourly occurrences of a task that skips what it missed, found half an hour after the newest."""
    return _found(s, name, count, on_missed="skip", **rules)


def offered(s: Scene, name: str = "one", count: int = 5, lasts: timedelta = 7 * DAY, **rules: Any) -> Missed:
    """The same, of a task that offers them."""
    return _found(s, name, count, on_missed="offer", offer_for=lasts, **rules)


def _found(s: Scene, name: str, count: int, **rules: Any) -> Missed:
    s.add(name, hourly(s.clock.moment), **rules)
    s.at(s.clock.moment + count * HOUR + 30 * MINUTE)
    s.plan()
    return only(s, name)


def only(s: Scene, name: str = "one") -> Missed:
    with s.store.read() as session:
        (task,) = session.tasks.named(name)
        (one,) = session.missed.listed(task=task.id)
    return one


def again(s: Scene, one: Missed) -> Missed:
    with s.store.read() as session:
        found = session.missed.by_id(one.id)
    assert found is not None
    return found


def accept(s: Scene, one: Missed, by: str = "bob", *, anyway: bool = False) -> Accepted:
    return answers.accept(s.store, one.id, by=by, anyway=anyway)


def decline(s: Scene, one: Missed, by: str = "bob", note: str | None = None) -> Missed:
    return answers.decline(s.store, one.id, by=by, note=note)


def refused(ask: Callable[[], object]) -> Refused:
    """What an ask is refused with."""
    with pytest.raises(Refused) as caught:
        ask()
    return caught.value
