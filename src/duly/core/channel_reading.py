"""The readers of a channel: its name, its address, and the channels that a task names."""

import re
import unicodedata
from collections.abc import Sequence

from duly.core.field import Field
from duly.core.names import key_of
from duly.core.reading import read_text, read_word, shown
from duly.errors import Invalid

NONE = "none"
"""The word for no channel at all."""
URL_MOST = 2_000
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://", re.ASCII)
NAMED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""A secret by its name."""
WEBHOOKS = frozenset({"http", "https"})
"""Schemes of addresses that are told by a plain webhook; all others are Apprise's."""
LONG = 16
"""A part of an address that is so long may be a secret."""
HIDDEN = "…"


def read_channels(field: Field, value: object) -> tuple[str, ...]:
    """Read the channels that are told of a task: names, or the word for none of them."""
    if isinstance(value, str):
        value = [word.strip() for word in value.split(",")]
    if not isinstance(value, list | tuple):
        raise Invalid(f'{shown(value)} is not a list of channels such as ["ops"]', field=field.path)
    if [word for word in value if isinstance(word, str) and word.lower() == NONE]:
        if len(value) > 1:
            raise Invalid(f'"{NONE}" stands alone', field=field.path, hint=f'"{NONE}", or names of channels')
        return ()
    names: dict[str, str] = {}
    for at, word in enumerate(value):
        name = read_channel(word, f"{field.path}[{at}]")
        names.setdefault(key_of(name), name)
    if len(names) > field.most:
        raise Invalid(f"it has {len(names)} entries, and {field.most} are allowed", field=field.path)
    return tuple(names[key] for key in sorted(names))


def read_channel(value: object, field: str) -> str:
    """Read the name of a channel."""
    name = read_word(value, field)
    if name.lower() == NONE:
        raise Invalid(f'"{NONE}" is no channel: it is the word for none of them', field=field, text=name, at=0)
    return name


def read_url(value: object, field: str) -> str:
    """Read the address of a channel: http or https for a webhook, any other scheme for Apprise; secrets are named."""
    url = read_text(value, field).strip()
    for at, char in enumerate(url):
        if char.isspace() or unicodedata.category(char) in {"Cc", "Cs"}:
            raise Invalid("an address has no blank or control character", field=field, at=at, text=url)
    if len(url) > URL_MOST:
        raise Invalid(f"it has {len(url):,} characters, and {URL_MOST:,} are allowed", field=field)
    if NAMED.fullmatch(url):
        return url
    found = SCHEME.match(url)
    if found is None or len(url) == found.end():
        raise Invalid(
            f"{shown(url)} is no address",
            field=field,
            text=url,
            at=0,
            hint="https://example.org/hook for a webhook, or an Apprise URL such as ntfy://topic or mailto://…",
        )
    if is_webhook(url) and url[found.end()] in "/?#:@":
        raise Invalid(f"{shown(masked(url))} names no host", field=field)
    return url


def read_secret(value: object, field: str) -> str:
    """Read the name of a secret, bare or as it is named in an address."""
    text = read_text(value, field)
    found = NAMED.fullmatch(text) or NAMED.fullmatch(f"${{{text}}}")
    if found is None:
        raise Invalid(
            f"{shown(text)} is no name of a secret",
            field=field,
            hint="a name of [secrets] in the config, or of a variable; never the secret itself",
        )
    return found[1]


def is_webhook(url: str) -> bool:
    """Tell whether an address is told by a plain webhook."""
    found = SCHEME.match(url)
    return found is not None and found[1].lower() in WEBHOOKS


def masked(url: str) -> str:
    """Give an address as anybody may see it: what may be a secret is hidden, unless it is only named."""
    found = SCHEME.match(url)
    if found is None:
        return url
    if not is_webhook(url):
        return found.group() + "/".join(_hidden(part) for part in url[found.end() :].split("/"))
    place, mark, asked = url[found.end() :].partition("?")
    host, *path = place.split("/")
    user, at, host = host.rpartition("@")
    shown_path = "/".join([host, *(_hidden(part) if len(part) >= LONG else part for part in path)])
    return found.group() + (_hidden(user) if at else "") + at + shown_path + mark + (_hidden(asked) if asked else "")


def names_in(url: str) -> Sequence[str]:
    """Give the names of the secrets that an address names."""
    return NAMED.findall(url)


def has_secret(url: str) -> bool:
    """Tell whether an address seems to hold a secret that is not only named."""
    return masked(url) != url


def _hidden(part: str) -> str:
    return part if not part or NAMED.fullmatch(part) else HIDDEN
