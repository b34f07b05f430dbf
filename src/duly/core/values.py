"""Frozen values at a tenth of their usual price: made through a twin that is not frozen yet.

A frozen dataclass sets each of its fields by a call; for a row of fifty columns that costs more than reading the row.
Here the fields are set on a twin of the same layout, which then becomes the value; nobody ever sees the twin.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")
NOTHING: Mapping[str, object] = MappingProxyType({})
END = "    new.__class__ = cls\n    return new\n"
WAYS_KEPT = 256
"""Sets of fields that are changed together somewhere; there are some dozens."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """Make a frozen, slotted, keyword-only dataclass of a class, for values that are made by the thousand."""
    made = dataclass(frozen=True, slots=True, kw_only=True, init=False)(cls)
    names = [one.name for one in fields(made)]  # type: ignore[arg-type]
    twin = type(f"Unfrozen{cls.__name__}", (), {"__slots__": tuple(names)})
    known: dict[str, Any] = {"twin": twin, "missing": MISSING, "names": names}
    asked, body = [], []
    for one in fields(made):  # type: ignore[arg-type]
        name, given = one.name, one.name
        if one.default is not MISSING:
            known[f"default_{name}"] = one.default
            asked.append(f"{name}=default_{name}")
        elif one.default_factory is not MISSING:
            known[f"fresh_{name}"] = one.default_factory
            asked.append(f"{name}=missing")
            given = f"fresh_{name}() if {name} is missing else {name}"
        else:
            asked.append(name)
        body.append(f"    new.{name} = {given}\n")
    text = f"def make(cls, *, {', '.join(asked)}):\n    new = twin()\n{''.join(body)}{END}"
    exec(text, known)  # as dataclasses do themselves; nothing but the names of fields is in it
    made.__new__ = known["make"]  # type: ignore[method-assign]
    made.__reduce__ = _reduced  # type: ignore[method-assign]
    made.__made__ = known  # type: ignore[attr-defined]  # its twin, and the names of its fields
    return made


def made_of(cls: type[T], names: Sequence[str]) -> Callable[[Sequence[Any]], T]:
    """Give what makes such a value of all of its fields, in the order of these names."""
    assert sorted(names) == sorted(one.name for one in fields(cls))  # type: ignore[arg-type]
    known = {"twin": cls.__made__["twin"], "cls": cls}  # type: ignore[attr-defined]
    text = f"def make(cells):\n    new = twin()\n    {_all(names)} = cells\n    new.__class__ = cls\n    return new\n"
    exec(text, known)  # as above
    make: Callable[[Sequence[Any]], T] = known["make"]
    return make


def changed(old: T, more: Mapping[str, object] = NOTHING, /, **changes: object) -> T:
    """Give the value with these fields changed, as `dataclasses.replace` does; for values made by `value` only."""
    given = {**more, **changes} if more else changes
    made: Any = old.__class__
    change: Callable[..., T] = _changing(made, tuple(given))
    return change(old, *given.values())


@lru_cache(maxsize=WAYS_KEPT)
def _changing(cls: Any, names: tuple[str, ...]) -> Callable[..., Any]:
    """Give what changes these fields, in this order, and takes all others as they are."""
    known = {"twin": cls.__made__["twin"], "cls": cls}
    unknown = [name for name in names if name not in cls.__made__["names"]]
    if unknown:
        raise AttributeError(f"{cls.__name__} has no field {unknown[0]}")
    body = [f"    new.{name} = {name if name in names else f'old.{name}'}\n" for name in cls.__made__["names"]]
    text = f"def change(old, {', '.join(names)}):\n    new = twin()\n{''.join(body)}{END}"
    exec(text, known)  # as above
    changing: Callable[..., Any] = known["change"]
    return changing


def _all(names: Sequence[str]) -> str:
    return ", ".join(f"new.{name}" for name in names) + ","


def _reduced(self: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    return _remade, (self.__class__, {one.name: getattr(self, one.name) for one in fields(self)})


def _remade(cls: Callable[..., T], given: dict[str, Any]) -> T:
    return cls(**given)
