"""Frozen values at a tenth of their usual price: made through a twin that is not frozen yet.

A frozen dataclass sets each of its fields by a call; for a row of fifty columns that costs more than reading the row.
Here the fields are set on a twin of the same layout, which then becomes the value; nobody ever sees the twin.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from operator import attrgetter
from types import MappingProxyType
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")
NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """Make a frozen, slotted, keyword-only dataclass of a class, for values that are made by the thousand."""
    made = dataclass(frozen=True, slots=True, kw_only=True, init=False)(cls)
    names = [one.name for one in fields(made)]  # type: ignore[arg-type]
    twin = type(f"Unfrozen{cls.__name__}", (), {"__slots__": tuple(names)})
    known: dict[str, Any] = {"twin": twin, "missing": MISSING, "read": attrgetter(*names)}
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
    end = "    new.__class__ = cls\n    return new\n"
    text = f"def make(cls, *, {', '.join(asked)}):\n    new = twin()\n{''.join(body)}{end}"
    text += f"def change(old, changes):\n    new, cls = twin(), old.__class__\n    {_all(names)} = read(old)\n"
    text += f"    for name, given in changes.items():\n        setattr(new, name, given)\n{end}"
    exec(text, known)  # as dataclasses do themselves; nothing but the names of fields is in it
    made.__new__ = known["make"]  # type: ignore[method-assign]
    made.__reduce__ = _reduced  # type: ignore[method-assign]
    made.__made__ = known  # type: ignore[attr-defined]  # its twin, and what changes its values
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
    made: Any = old
    new: T = made.__made__["change"](old, {**more, **changes} if more else changes)
    return new


def _all(names: Sequence[str]) -> str:
    return ", ".join(f"new.{name}" for name in names) + ","


def _reduced(self: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    return _remade, (self.__class__, {one.name: getattr(self, one.name) for one in fields(self)})


def _remade(cls: Callable[..., T], given: dict[str, Any]) -> T:
    return cls(**given)
