"""The readers of a definition's fields: the only ones, whichever road a definition comes by.

Each gives what the house works with, or raises Invalid with the field, the value and what would be right.
"""

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from duly.core import spans
from duly.core.action_fields import ARGUMENT_MOST
from duly.core.field import Field, Kind
from duly.core.fields import LABEL_KEY_MOST, LABEL_VALUE_MOST, NAME_MOST
from duly.core.rule_fields import WEIGHT_MOST, WORD_MOST
from duly.core.task import DEFAULT_GATE_TIMEOUT, Gate
from duly.errors import Invalid

UNSEEN = frozenset("\u200b\u2060\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
SHOWN_MOST = 60
# How alike two words must be for one to be offered in place of the other.
NEAR = 0.55


def read_field(field: Field, value: object) -> object:
    """Read one value as JSON has it into what the house works with; raises Invalid naming the field."""
    try:
        return _READERS[field.kind](field, value)
    except Invalid as bad:
        if bad.field is not None:
            raise
        raise Invalid(
            bad.message, field=field.path, text=bad.text, at=bad.at, hint=bad.hint, details=bad.details
        ) from bad


def read_name(value: object, field: str = "name") -> str:
    """Read the name of a task or a project: NFC, 1 to 80 characters, none of them a control or a slash."""
    text = _text(value, field)
    name = unicodedata.normalize("NFC", text)
    if not name.strip():
        raise Invalid("a name has at least one character", field=field, text=text)
    for at, char in enumerate("" if text.isascii() and text.isprintable() else text):
        # Cc are controls (NUL too), Zl and Zp break lines, Cs are halves of what was not valid UTF-8.
        # UNSEEN turn a line round or cannot be seen, so that two names would look alike.
        if unicodedata.category(char) in {"Cc", "Zl", "Zp", "Cs"} or char in UNSEEN:
            what = f"a control character (U+{ord(char):04X})"
            raise Invalid(f"{shown(text)} has {what}, and names have none", field=field, text=text, at=at)
    if "/" in name:
        hint = "a slash parts project and name: use --project P and a NAME without it" if field == "name" else None
        raise Invalid(
            f"{shown(text)} has a slash, and names have none",
            field=field,
            text=text,
            at=text.index("/"),
            hint=hint,
        )
    if name[0] in "-@":
        raise Invalid(f'{shown(text)} begins with "{name[0]}", and names do not', field=field, text=text, at=0)
    if name != name.strip():
        raise Invalid(
            f"{shown(text)} begins or ends with a blank, and names do not",
            field=field,
            text=text,
            at=0 if name[0].isspace() else len(text) - 1,
            hint=name.strip(),
        )
    if len(name) > NAME_MOST:
        raise Invalid(
            f"{shown(text)} has {len(name)} characters, and names have {NAME_MOST} at most",
            field=field,
            text=text,
        )
    return name


def refuse_unknown(given: Mapping[str, object], known: tuple[str, ...], where: str) -> None:
    """Refuse the first key that is not known, with the nearest that is."""
    for key in given:
        if key in known:
            continue
        path = f"{where}.{key}" if where else str(key)
        near = nearest(str(key).replace("-", "_"), known)
        hint = f"{where}.{near}" if near and where else near
        raise Invalid(
            "there is no such field",
            field=path,
            hint=hint,
            details={"allowed": list(known)},
        )


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Find the known word that was probably meant, or None."""
    from difflib import get_close_matches

    near = get_close_matches(word.lower(), known, n=1, cutoff=NEAR)
    return near[0] if near else None


def shown(value: object) -> str:
    """Put a value into a sentence: quoted, without control characters, cut in the middle."""
    text = value if isinstance(value, str) else repr(value)
    text = "".join(_visible(char) for char in text[: SHOWN_MOST * 2]) + text[SHOWN_MOST * 2 :][:1]
    if len(text) > SHOWN_MOST:
        half = SHOWN_MOST // 2 - 1
        text = f"{text[:half]}…{text[-half:]}"
    return f'"{text}"' if isinstance(value, str) else text


def _visible(char: str) -> str:
    category = unicodedata.category(char)
    if category in {"Cc", "Cs", "Zl", "Zp"}:
        return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char, f"\\x{ord(char):02x}")
    return char


def _text(value: object, path: str, most: int = 0, *, what: str = "text") -> str:
    if not isinstance(value, str):
        raise Invalid(f"{shown(value)} is not {what}", field=path)
    if "\0" in value:
        raise Invalid("a NUL character cannot be kept", field=path, text=value, at=value.index("\0"))
    try:
        value.encode()
    except UnicodeEncodeError as bad:
        raise Invalid(f"{shown(value)} is not valid UTF-8", field=path, text=value, at=bad.start) from bad
    if most and len(value) > most:
        raise Invalid(f"it has {len(value):,} characters, and {most:,} are allowed", field=path)
    return value


def read_text(value: object, field: str) -> str:
    """Read a text: valid UTF-8, without NUL."""
    return _text(value, field)


def _read_name(field: Field, value: object) -> str:
    return read_name(value, field.path)


def _read_text(field: Field, value: object) -> str:
    return _text(value, field.path, field.most)


def _read_pairs(field: Field, value: object) -> Mapping[str, str]:
    pairs = _mapping(field, value)
    for key, item in pairs.items():
        if not key or len(key) > LABEL_KEY_MOST or key != key.strip():
            raise Invalid(
                f"{shown(key)} is no key: 1 to {LABEL_KEY_MOST} characters, no blank at its ends",
                field=field.path,
            )
        if len(item) > LABEL_VALUE_MOST:
            raise Invalid(
                f"{field.path}.{key}: it has {len(item)} characters, and {LABEL_VALUE_MOST} are allowed",
                field=field.path,
            )
    return pairs


def _read_env(field: Field, value: object) -> Mapping[str, str]:
    pairs = _mapping(field, value)
    for key, item in pairs.items():
        if not key or "=" in key or key != key.strip():
            raise Invalid(f"{shown(key)} is not a variable's name", field=field.path)
        if len(key.encode()) + len(item.encode()) + 1 > ARGUMENT_MOST:
            raise Invalid("it is longer than a process can be given", field=f"{field.path}.{key}")
    return pairs


def _mapping(field: Field, value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise Invalid(f'{shown(value)} is not an object such as {{"K": "V"}}', field=field.path)
    if len(value) > field.most:
        raise Invalid(f"it has {len(value)} entries, and {field.most} are allowed", field=field.path)
    return {_text(key, field.path): _text(item, f"{field.path}.{key}") for key, item in value.items()}


def _read_switch(field: Field, value: object) -> bool:
    if not isinstance(value, bool):
        raise Invalid(f"{shown(value)} is neither true nor false", field=field.path)
    return value


def _read_zone(field: Field, value: object) -> str:
    text = _text(value, field.path)
    if not text:
        raise Invalid("a zone has a name such as Europe/Berlin", field=field.path)
    return text


def _read_choice(field: Field, value: object) -> str:
    text = _text(value, field.path)
    if text not in field.allowed:
        raise Invalid(
            f"{shown(text)} is not one of {', '.join(field.allowed)}",
            field=field.path,
            hint=nearest(text, field.allowed),
            details={"allowed": list(field.allowed)},
        )
    return text


def _read_span(field: Field, value: object) -> timedelta:
    if not isinstance(value, str):
        raise Invalid(f'{shown(value)} is not a span such as "15m"', field=field.path)
    return spans.read_span(value, field=field.path, zero=field.zero)


def _read_count(field: Field, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Invalid(f"{shown(value)} is not a whole number", field=field.path)
    if not field.least <= value <= field.most:
        raise Invalid(f"{value} is not between {field.least} and {field.most}", field=field.path)
    return value


def _read_argv(field: Field, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise Invalid(f"{shown(value)} is not a list of texts", field=field.path, hint='["echo", "hello"]')
    words = tuple(_text(word, f"{field.path}[{at}]") for at, word in enumerate(value))
    if not words or not words[0]:
        raise Invalid("the program to run is missing", field=field.path)
    for at, word in enumerate(words):
        if len(word.encode()) > ARGUMENT_MOST:
            raise Invalid(
                f"it has {len(word.encode()):,} bytes, and {ARGUMENT_MOST:,} are allowed", field=f"{field.path}[{at}]"
            )
    total = sum(len(word.encode()) + 1 for word in words)
    if total > field.most:
        raise Invalid(f"all together have {total:,} bytes, and {field.most:,} are allowed", field=field.path)
    return words


def _read_shell(field: Field, value: object) -> str:
    line = _text(value, field.path)
    if not line.strip():
        raise Invalid("the line to run is empty", field=field.path)
    if len(line.encode()) > field.most:
        raise Invalid(f"it has {len(line.encode()):,} bytes, and {field.most:,} are allowed", field=field.path)
    return line


def _read_call(field: Field, value: object) -> object:
    from duly.core import call_reading

    return call_reading.read(field, value)


def _read_of_agent(field: Field, value: object) -> object:
    from duly.core import agent_reading

    return agent_reading.read(field, value)


def _read_of_http(field: Field, value: object) -> object:
    from duly.core import http_reading

    return http_reading.read(field, value)


def _read_amounts(field: Field, value: object) -> object:
    from duly.core import amount_reading

    return amount_reading.read(field, value)


def _read_success(field: Field, value: object) -> object:
    from duly.core import success_reading

    return success_reading.read(field, value)


def _read_channels(field: Field, value: object) -> object:
    from duly.core import channel_reading

    return channel_reading.read_channels(field, value)


def _read_path(field: Field, value: object) -> str:
    path = _text(value, field.path)
    if not path.startswith("/"):
        raise Invalid(f"{shown(path)} is not an absolute path", field=field.path, text=path, at=0)
    if len(path.encode()) > field.most:
        raise Invalid(f"it has {len(path.encode()):,} bytes, and {field.most:,} are allowed", field=field.path)
    return path


def _read_weights(field: Field, value: object) -> Mapping[str, int]:
    if not isinstance(value, Mapping):
        raise Invalid(f'{shown(value)} is not an object such as {{"KEY": 1}}', field=field.path)
    if len(value) > field.most:
        raise Invalid(f"it has {len(value)} entries, and {field.most} are allowed", field=field.path)
    read = {}
    for key, weight in value.items():
        word = read_word(key, field.path)
        if isinstance(weight, bool) or not isinstance(weight, int):
            raise Invalid(f"{shown(weight)} is not a whole number", field=f"{field.path}.{word}")
        if not 1 <= weight <= WEIGHT_MOST:
            raise Invalid(f"{weight} is not between 1 and {WEIGHT_MOST}", field=f"{field.path}.{word}")
        if word in read:
            raise Invalid(f"{shown(word)} is given twice", field=field.path)
        read[word] = weight
    return dict(sorted(read.items()))


def _read_words(field: Field, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise Invalid(f"{shown(value)} is not a list of texts", field=field.path)
    words = tuple(sorted({read_word(word, f"{field.path}[{at}]") for at, word in enumerate(value)}))
    if len(words) > field.most:
        raise Invalid(f"it has {len(words)} entries, and {field.most} are allowed", field=field.path)
    return words


def read_word(value: object, field: str) -> str:
    """Read a limit's key or a label: NFC, 1 to 80 characters, no blank, comma, equals sign or control among them."""
    text = unicodedata.normalize("NFC", _text(value, field, WORD_MOST))
    for at, char in enumerate(text):
        if char in ",=" or char.isspace() or unicodedata.category(char) in {"Cc", "Cs"} or char in UNSEEN:
            raise Invalid(f"{shown(text)} has a blank, comma, = or control", field=field, text=text, at=at)
    if not text or text[0] in "-@":
        raise Invalid(f"{shown(text)} is no word: one character at least, and no - or @ in front", field=field)
    return text


def _read_instant(field: Field, value: object) -> datetime:
    text = _text(value, field.path)
    found = spans.exact_instant(text, field=field.path)
    if found is None:
        raise Invalid(f"{shown(text)} is not an instant", field=field.path, text=text, at=0, hint=spans.HOW_TO_INSTANT)
    return found


def _read_gate(field: Field, value: object) -> Gate:
    if isinstance(value, str):
        line = _text(value, field.path)
        if not line.strip():
            raise Invalid("the line to ask is empty", field=field.path)
        return Gate(argv=("sh", "-c", line))
    if not isinstance(value, Mapping):
        raise Invalid(f'{shown(value)} is not an object such as {{"argv": ["test", "-f", "ready"]}}', field=field.path)
    refuse_unknown(value, ("argv", "timeout", "on_error"), field.path)
    argv = Field(name="argv", place=(*field.place, "argv"), kind="argv", help="", most=ARGUMENT_MOST)
    timeout = Field(name="timeout", place=(*field.place, "timeout"), kind="span", help="")
    on_error = value.get("on_error", "closed")
    if on_error not in ("closed", "go"):
        raise Invalid(f"{shown(on_error)} is not one of closed, go", field=f"{field.path}.on_error")
    return Gate(
        argv=_read_argv(argv, value.get("argv", ())),
        timeout=_read_span(timeout, value["timeout"]) if "timeout" in value else DEFAULT_GATE_TIMEOUT,
        on_error=on_error,
    )


def _read_elsewhere(field: Field, value: object) -> object:
    raise AssertionError(f"{field.path} is read with its zone and moment, not alone: {value!r}")


_READERS: Mapping[Kind, Callable[[Field, object], object]] = {
    "name": _read_name,
    "text": _read_text,
    "pairs": _read_pairs,
    "switch": _read_switch,
    "triggers": _read_elsewhere,
    "zone": _read_zone,
    "choice": _read_choice,
    "span": _read_span,
    "count": _read_count,
    "argv": _read_argv,
    "shell": _read_shell,
    "function": _read_call,
    "arguments": _read_call,
    "path": _read_path,
    "env": _read_env,
    "weights": _read_weights,
    "words": _read_words,
    "instant": _read_instant,
    "gate": _read_gate,
    "agent": _read_name,
    "prompt": _read_of_agent,
    "file": _read_of_agent,
    "permissions": _read_of_agent,
    "budget": _read_amounts,
    "estimate": _read_amounts,
    "success": _read_success,
    "channels": _read_channels,
    "session": _read_of_agent,
    "goal": _read_of_agent,
    **dict.fromkeys(("url", "method", "headers", "body", "secret"), _read_of_http),
}
