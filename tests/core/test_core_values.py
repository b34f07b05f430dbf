"""Values that are made by a twin: to whoever has one, a frozen dataclass like any other."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace

import pytest

from duly.core.values import changed, made_of, value


@value
class Made:
    name: str
    count: int = 3
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    name: str
    count: int = 3
    notes: list[str] = field(default_factory=list)


def test_it_has_the_fields_the_defaults_and_the_words_of_a_dataclass() -> None:
    assert [one.name for one in fields(Made)] == [one.name for one in fields(Plain)]
    assert repr(Made(name="a")) == repr(Plain(name="a")).replace("Plain", "Made")
    assert Made(name="a") == Made(name="a", count=3, notes=[])
    assert Made(name="a") != Made(name="b")
    assert Made(name="a").notes is not Made(name="a").notes


@pytest.mark.parametrize(
    "wrong",
    [
        lambda of: of(),
        lambda of: of("a"),
        lambda of: of(name="a", hue="red"),
        lambda of: setattr(of(name="a"), "name", "b"),
        lambda of: setattr(of(name="a"), "hue", "red"),
        lambda of: delattr(of(name="a"), "name"),
        lambda of: replace(of(name="a"), hue="red"),
    ],
)
def test_what_a_dataclass_refuses_is_refused(wrong: Callable[[type], object]) -> None:
    refused = (TypeError, AttributeError, FrozenInstanceError)
    for of in (Plain, Made):
        with pytest.raises(refused):
            wrong(of)


def test_a_changed_one_is_a_new_one_and_the_old_stays() -> None:
    old = Made(name="a", count=1)
    for new in (changed(old, count=2), changed(old, {"count": 7}, count=2), replace(old, count=2)):
        assert new == Made(name="a", count=2)
        assert type(new) is Made
    assert old == Made(name="a", count=1)
    with pytest.raises(AttributeError):
        changed(old, hue="red")


def test_it_is_made_of_cells_in_any_order_of_its_fields_and_of_all_of_them() -> None:
    assert made_of(Made, ("notes", "name", "count"))((["x"], "a", 5)) == Made(name="a", count=5, notes=["x"])
    with pytest.raises(AssertionError):
        made_of(Made, ("name", "count"))


def test_it_is_copied_and_carried_to_other_processes() -> None:
    one = Made(name="a", notes=["x"])
    assert pickle.loads(pickle.dumps(one)) == copy.copy(one) == copy.deepcopy(one) == one
    assert copy.deepcopy(one).notes is not one.notes
