"""The readers of what a task may spend, and of what a run of it is thought to cost."""

from collections.abc import Mapping

from duly.core.amounts import BOUND_MOST, WORDS, Allowance, Amounts, read_usd
from duly.core.field import Field
from duly.core.reading import refuse_unknown, shown
from duly.errors import Invalid

KIND_OF = {word: kind for kind, word in WORDS.items()}


def read(field: Field, value: object) -> Allowance | Amounts:
    """Read a budget or an estimate; raises Invalid naming the field."""
    return _budget(field, value) if field.kind == "budget" else _estimate(field, value)


def _budget(field: Field, value: object) -> Allowance:
    given = _object(field, value, ("runs", "tokens", "usd", "per"), '{"usd": 2.5, "per": "day"}')
    per = given.get("per")
    if per not in ("day", "month"):
        fault = "it is by day or by month: per is missing" if per is None else f"{shown(per)} is not day or month"
        raise Invalid(fault, field=f"{field.path}.per", hint="per=day")
    bounds = {KIND_OF[word]: _amount(field, word, amount) for word, amount in given.items() if word != "per"}
    if not bounds:
        raise Invalid("it bounds nothing", field=field.path, hint="runs, tokens or usd")
    return Allowance(per=per, **bounds)


def _estimate(field: Field, value: object) -> Amounts:
    given = _object(field, value, ("tokens", "usd"), '{"tokens": 40000, "usd": 0.2}')
    return Amounts(**{KIND_OF[word]: _amount(field, word, amount) for word, amount in given.items()})


def _object(field: Field, value: object, known: tuple[str, ...], example: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise Invalid(f"{shown(value)} is not an object such as {example}", field=field.path)
    refuse_unknown(value, known, field.path)
    return value


def _amount(field: Field, word: str, value: object) -> int:
    path = f"{field.path}.{word}"
    if word == "usd":
        micro = read_usd(value)
        if micro is None:
            raise Invalid(f"{shown(value)} is no amount of dollars such as 2.50", field=path)
        return micro
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= BOUND_MOST:
        raise Invalid(f"{shown(value)} is not a whole number from 0 to {BOUND_MOST:,}", field=path)
    return value
