"""Triggers by event as text: what people write after `on`, read strictly and written back in one canonical form."""

import json
import unicodedata
from functools import lru_cache

from duly.core.reading import nearest
from duly.core.spans import read_span, write_span
from duly.core.triggers import On, Throttle
from duly.errors import Invalid

SOURCE_MOST = 120
BLANKS = " \t\r\n"
WORDS = ("where", "and", "throttle", "by")
UNQUOTED = frozenset("\"',=")
"""What no value holds that stands without quotes, beside blanks."""
EXAMPLE = "on deploy where branch=main throttle 10m by branch"
SHOWN = 40
"""Characters of a wrong word that a message repeats."""
QUOTED = json.JSONDecoder()


def read_on(text: str) -> On:
    """Read a whole trigger that begins with `on`; Invalid (with `at`, the column) if it means nothing."""
    at = _blanks(text, 0) + len("on")
    source, at = _word(text, at)
    if not source or source.lower() in ("where", "throttle"):
        raise Invalid("the name of a source is missing", at=at - len(source), hint=EXAMPLE)
    try:
        source = read_source(source)
    except Invalid as error:
        raise Invalid(error.message, at=at - len(source) + (error.at or 0), hint=error.hint) from None
    pairs: dict[str, str] = {}
    word, at = _word(text, at)
    while word.lower() == ("and" if pairs else "where"):
        path, value, at = _pair(text, at, pairs)
        pairs[path] = value
        word, at = _word(text, at)
    throttle = None
    if word.lower() == "throttle":
        throttle, at = _throttle(text, at)
        word, at = _word(text, at)
    if word:
        raise _too_much(text, at - len(word), word, pairs, throttle)
    return On(source=source, match=tuple(sorted(pairs.items())), throttle=throttle)


def write_on(trigger: On) -> str:
    """Write a trigger by event in its one canonical form, which reads back as the same trigger."""
    text = f"on {trigger.source}"
    if trigger.match:
        text += " where " + " and ".join(f"{path}={_write_value(value)}" for path, value in trigger.match)
    if trigger.throttle is not None:
        text += f" throttle {write_span(trigger.throttle.within)}"
        if trigger.throttle.by:
            text += f" by {','.join(trigger.throttle.by)}"
    return text


def read_source(text: str) -> str:
    """Read the name of a source: words parted by dots, in small letters; Invalid (with `at`) for any other form."""
    name = unicodedata.normalize("NFC", text).lower()
    if len(name) > SOURCE_MOST:
        raise Invalid(f"a source's name has {SOURCE_MOST} characters at most", at=SOURCE_MOST, hint="a shorter one")
    place = 0
    for word in name.split("."):
        if not _is_word(word):
            raise _bad_source(text, name, word, place)
        place += len(word) + 1
    return name


def read_path(text: str) -> str:
    """Read a path in the form in which it is written, and give its canonical one."""
    path, at = _path(text, 0)
    if at < len(text):
        hint = f"{path}, or quotes round a key that is no word"
        raise Invalid(f"`{text[at : at + SHOWN]}` is too much in a path", text=text, at=at, hint=hint)
    return path


@lru_cache(maxsize=4096)
def keys_of(path: str) -> tuple[str, ...]:
    """Give the keys of a path in its canonical form, outermost first."""
    keys, at = [], 0
    while at < len(path):
        key, at = _key(path, at)
        keys.append(key)
        at += 1
    return tuple(keys)


def check_value(value: str, at: int = 0) -> str:
    """Give back a value or a key that a store can keep."""
    if "\0" in value or any(unicodedata.category(char) == "Cs" for char in value):
        raise Invalid("a character that cannot be kept", at=at, hint="text without NUL, in valid UTF-8")
    return value


def _blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in BLANKS:
        at += 1
    return at


def _word(text: str, at: int) -> tuple[str, int]:
    """Give the next word and the column after it; nothing at the end."""
    at = _blanks(text, at)
    start = at
    while at < len(text) and text[at] not in BLANKS:
        at += 1
    return text[start:at], at


def _is_word(text: str) -> bool:
    return text[:1].isalpha() and all(char.isalpha() or char in "0123456789_-" for char in text)


def _bad_source(text: str, name: str, word: str, at: int) -> Invalid:
    if name.startswith(('"', "'")):
        return Invalid("a source stands without quotes", at=0, hint=f"on {name.strip(chr(34) + chr(39)) or 'deploy'}")
    if "*" in name:
        return Invalid("a source is one name, without `*`", at=name.index("*"), hint="a trigger for each source")
    if "," in name:
        return Invalid("one source each", at=name.index(","), hint="a trigger for each: --when 'on a' --when 'on b'")
    parts = ("".join(char if _is_word(f"a{char}") else "-" for char in part).strip("-") for part in name.split("."))
    made = ".".join(part for part in parts if _is_word(part))
    hint = f"words parted by dots, such as {made or 'git.push'}"
    message = f"`{word[:SHOWN]}` is no word" if word else "an empty place between dots"
    return Invalid(f"{message}: a letter, then letters, digits, _ and -", text=text, at=at, hint=hint)


def _pair(text: str, at: int, before: dict[str, str]) -> tuple[str, str, int]:
    at = _blanks(text, at)
    if at == len(text):
        raise Invalid("a pair is missing", at=at, hint="where branch=main")
    start = at
    path, at = _path(text, at)
    if text[at : at + 1] != "=":
        raise _no_equals(text, at, path)
    if text[at + 1 : at + 2] == "=":
        raise Invalid("one `=` is enough", at=at, hint=f"{path}=…")
    value, at = _value(text, at + 1, path)
    if path in before and before[path] != value:
        raise Invalid(f"`{path}` stands twice", at=start, hint="a second trigger: either of them suffices")
    return path, value, at


def _no_equals(text: str, at: int, path: str) -> Invalid:
    rest = text[at:].lstrip(BLANKS)
    if rest.startswith("=") and at < len(text) and text[at] in BLANKS:
        value = rest[1:].lstrip(BLANKS).partition(" ")[0]
        return Invalid("no blanks round `=`", at=at, hint=f"{path}={value or 'main'}")
    if rest[:1] in ("!", ">", "<", "~", ":"):
        return Invalid("only `=` can be asked", at=at, hint=f"{path}=…; the task itself can look at the rest")
    word = rest.split(" ")[0] if rest else ""
    if word.lower() in ("is", "equals", "eq", "like"):
        return Invalid(f"`=` in place of `{word}`", at=at, hint=f"{path}=main")
    hint = f"{path}=main, or quotes round a key that is no word"
    return Invalid(f"`{text[at : at + SHOWN]}` is no `=`" if rest else "its value is missing", at=at, hint=hint)


def _path(text: str, at: int) -> tuple[str, int]:
    """Read a path and give its canonical form."""
    keys = []
    while True:
        key, at = _key(text, at)
        keys.append(key if _is_word(key) else json.dumps(key, ensure_ascii=False))
        if text[at : at + 1] != ".":
            return ".".join(keys), at
        at += 1


def _key(text: str, at: int) -> tuple[str, int]:
    if text[at : at + 1] == '"':
        return _string(text, at)
    start = at
    while at < len(text) and (text[at].isalpha() or text[at] in "0123456789_-"):
        at += 1
    if not _is_word(text[start:at]):
        shown = text[start : start + SHOWN].partition(" ")[0]
        message = f"`{shown}` does not begin a path" if shown else "a path is missing"
        hint = f'"{text[start:at]}" in quotes' if text[start:at] else 'a.b, or a."b c" for a key that is no word'
        raise Invalid(message, at=start, hint=hint)
    return text[start:at], at


def _string(text: str, at: int) -> tuple[str, int]:
    try:
        value, end = QUOTED.raw_decode(text, at)
    except ValueError:
        raise Invalid("the quotes hold no JSON text", at=at, hint='"…", with \\" for a quote inside') from None
    assert isinstance(value, str), "what begins with a quote is a text"
    return check_value(value, at), end


def _value(text: str, at: int, path: str) -> tuple[str, int]:
    if text[at : at + 1] == '"':
        value, end = _string(text, at)
        if end < len(text) and text[end] not in BLANKS:
            raise Invalid("a blank is missing after the quotes", at=end, hint=f"{path}={_write_value(value)} and …")
        return value, end
    start = at
    while at < len(text) and text[at] not in BLANKS:
        at += 1
    value = text[start:at]
    if not value:
        hint = f"{path}=main" if at == len(text) else f'no blanks round `=`; {path}="" for an empty text'
        raise Invalid("its value is missing", at=start, hint=hint)
    for place, char in enumerate(value):
        if char == "," and place == len(value) - 1:
            raise Invalid("`and` between pairs, not a comma", at=start + place, hint=f"{path}={value[:-1]} and …")
        if char in UNQUOTED:
            wanted = text[start + 1 :].partition("'")[0] if value[0] == "'" else value
            hint = f"{path}={json.dumps(wanted, ensure_ascii=False)}"
            raise Invalid(f"a value with {char} stands in double quotes", at=start + place, hint=hint)
    return check_value(value, start), at


def _write_value(value: str) -> str:
    plain = bool(value) and value.isprintable() and not any(char.isspace() or char in UNQUOTED for char in value)
    return value if plain else json.dumps(value, ensure_ascii=False)


def _throttle(text: str, at: int) -> tuple[Throttle, int]:
    span_text, after = _word(text, at)
    start = after - len(span_text)
    if not span_text or span_text.lower() == "by":
        raise Invalid("throttle needs a span", at=start, hint="throttle 10m")
    try:
        within = read_span(span_text)
    except Invalid as error:
        raise Invalid(error.message, at=start + (error.at or 0), hint=error.hint) from None
    word, end = _word(text, after)
    if not word:
        return Throttle(within=within), end
    if word.lower() in ("where", "and"):
        raise Invalid(f"`{word}` stands before throttle", at=end - len(word), hint=EXAMPLE)
    if word.lower() != "by":
        hint = f"throttle {span_text} by …" if word.lower() in ("per", "for", "on", "each", "with") else "by"
        raise Invalid(f"`{word[:SHOWN]}` is too much here", at=end - len(word), hint=hint)
    by, end = _paths(text, end)
    return Throttle(within=within, by=by), end


def _paths(text: str, at: int) -> tuple[tuple[str, ...], int]:
    paths = set()
    while True:
        path, at = _path(text, _blanks(text, at))
        paths.add(path)
        following = _blanks(text, at)
        if following > at and text[following : following + 1] == ",":
            raise Invalid("a blank stands before a comma", at=at, hint=f"{path},…")
        if text[at : at + 1] != ",":
            return tuple(sorted(paths)), at
        at += 1


def _too_much(text: str, at: int, word: str, pairs: dict[str, str], throttle: Throttle | None) -> Invalid:
    small = word.lower()
    if throttle is not None:
        hint = EXAMPLE if small in ("where", "and") else "commas between paths"
        return Invalid(f"`{word[:SHOWN]}` is too much here", at=at, hint=hint)
    if small in ("or", "||"):
        return Invalid("there is no `or`", at=at, hint="a second trigger: either of them suffices")
    if small in ("&&", "&", "+"):
        return Invalid("`and` between pairs", at=at, hint="and")
    if small in ("if", "when", "with", "having", "filter") and not pairs:
        return Invalid(f"`where` in place of `{word}`", at=at, hint=f"where {text[at + len(word) :].strip()}".strip())
    if "=" in word:
        return Invalid(f"`{'and' if pairs else 'where'}` is missing before a pair", at=at, hint=EXAMPLE)
    near = nearest(small, ("and", "throttle") if pairs else ("where", "throttle"))
    if small == "by":
        near = "throttle 10m by …"
    return Invalid(f"`{word[:SHOWN]}` is too much here", at=at, hint=near or EXAMPLE)
