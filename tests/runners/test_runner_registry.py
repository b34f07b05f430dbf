"""Which runner performs which kind of action."""

from importlib.metadata import EntryPoint

import pytest

from duly.runners import registry
from duly.runners.command import Command
from duly.runners.registry import GROUP, Registry


def test_commands_are_built_in_and_share_one_nursery_that_is_not_started_yet() -> None:
    ours = Registry()
    factory = ours.factory("command")
    assert factory is not None
    assert isinstance(factory(), Command)
    assert ours.nursery.pid is None
    ours.close()


def test_a_kind_that_nobody_performs_has_no_factory() -> None:
    assert Registry().factory("no-such-kind") is None


def test_what_is_installed_beside_us_is_loaded_when_it_is_asked_for_and_never_before_the_built_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points = [
        EntryPoint("odd", "json:JSONDecoder", GROUP),
        EntryPoint("command", "no.such.module:thing", GROUP),
    ]

    def installed(*, group: str, name: str | None = None) -> list[EntryPoint]:
        return [point for point in points if point.group == group and name in (None, point.name)]

    monkeypatch.setattr(registry, "entry_points", installed)
    ours = Registry()
    assert ours.kinds() == ["agent", "call", "command", "http", "odd"]
    assert ours.factory("odd") is not None
    assert ours.factory("command") is not None
