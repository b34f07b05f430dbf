"""The readers of what a webhook is: where to, by which method, with which headers and body, signed with which secret.

Secrets are named in it and never told: `${NAME}` may stand in the address and in the value of a header.
"""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from duly.core.agent_config import SECRET
from duly.core.field import Field
from duly.core.reading import nearest, read_text, shown
from duly.errors import Invalid

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
WITHOUT_BODY = frozenset({"GET", "HEAD"})
HEADER_MOST = 8_192
TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
SECRET_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
OURS = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "expect",
        "te",
        "trailer",
        "upgrade",
        "idempotency-key",
        "webhook-id",
        "webhook-timestamp",
        "webhook-signature",
    }
)
"""Headers that Duly writes itself, beside all that begin with `Duly-`."""
STANDS_IN = "secret"


def read(field: Field, value: object) -> object:
    """Read one field of a webhook; raises Invalid naming it."""
    match field.kind:
        case "url":
            return _url(field, value)
        case "method":
            return _method(field, value)
        case "headers":
            return _headers(field, value)
        case "secret":
            return read_secret_name(value, field.path)
        case _:
            return _body(field, value)


def check(action: Mapping[str, object]) -> None:
    """Refuse an action without an address, or with a body that its method does not carry."""
    if "url" not in action:
        raise Invalid("where it is sent is missing", field="action.url", hint="https://example.com/hook")
    method = str(action.get("method", "POST"))
    if method in WITHOUT_BODY and action.get("body"):
        raise Invalid(f"a {method} carries no body", field="action.body", hint="--method POST, or without it")


def fault_of_address(url: str) -> str | None:
    """Say what is wrong with an address in which no secret stands any more, without showing it; None where nothing."""
    if any(char.isspace() or not char.isprintable() for char in url):
        return "there is a blank or a control character in it"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        # What it says shows a part of the address, and that may be of a secret.
        return "its host or its port cannot be read"
    if parts.scheme.lower() not in ("http", "https"):
        return "it begins with neither http:// nor https://"
    if not parts.hostname or port == 0:
        return "it names no host"
    if "@" in parts.netloc:
        return "user and password do not stand in an address"
    if parts.fragment:
        return "what follows # is never sent"
    return None


def read_secret_name(value: object, field: str) -> str:
    """Read the name of a secret, bare or as `${NAME}`."""
    text = read_text(value, field)
    found = SECRET.fullmatch(text)
    name = found[1] if found is not None else text
    if SECRET_NAME.fullmatch(name) is None or len(name) > 200:
        hint = "NAME, with NAME in [secrets] of the config or in the environment of who serves"
        raise Invalid("a secret is only named, and that is no name", field=field, hint=hint)
    return name


def _url(field: Field, value: object) -> str:
    text = read_text(value, field.path)
    if len(text) > field.most:
        raise Invalid(f"it has {len(text):,} characters, and {field.most:,} are allowed", field=field.path)
    if SECRET.fullmatch(text) is not None:
        return text  # the whole address is a secret, as those of many services are
    fault = fault_of_address(SECRET.sub(STANDS_IN, text))
    if fault is not None:
        # Not shown: who writes a password into an address would find it in a log.
        hint = (
            "--header 'Authorization: Bearer ${NAME}'" if "user and password" in fault else "https://example.com/hook"
        )
        raise Invalid(f"it is no address to send to: {fault}", field=field.path, hint=hint)
    return text


def _method(field: Field, value: object) -> str:
    text = read_text(value, field.path)
    word = text.upper()
    if word not in METHODS:
        near = nearest(word, [one.lower() for one in METHODS])
        raise Invalid(
            f"{shown(text)} is not one of {', '.join(METHODS)}",
            field=field.path,
            hint=None if near is None else near.upper(),
            details={"allowed": list(METHODS)},
        )
    return word


def _headers(field: Field, value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise Invalid(f'{shown(value)} is not an object such as {{"X-Kind": "nightly"}}', field=field.path)
    if len(value) > field.most:
        raise Invalid(f"it has {len(value)} entries, and {field.most} are allowed", field=field.path)
    read: dict[str, str] = {}
    small: set[str] = set()
    for given, text in value.items():
        name = read_text(given, field.path)
        path = f"{field.path}.{name}"
        if TOKEN.fullmatch(name) is None:
            raise Invalid(f"{shown(name)} is not the name of a header", field=field.path)
        if name.lower() in OURS or name.lower().startswith("duly-"):
            raise Invalid("Duly writes this header itself", field=path)
        if name.lower() in small:
            raise Invalid("it is given twice", field=path)
        small.add(name.lower())
        read[name] = _header(text, path)
    return read


def _header(value: object, path: str) -> str:
    text = read_text(value, path)
    if len(text) > HEADER_MOST:
        raise Invalid(f"it has {len(text):,} characters, and {HEADER_MOST:,} are allowed", field=path)
    if fault_of_header(text):
        raise Invalid("a header has printable ASCII characters, and no blank at its ends", field=path)
    return text


def fault_of_header(text: str) -> bool:
    """Whether a text cannot be the value of a header."""
    return not (text.isascii() and text.isprintable()) or text != text.strip()


def _body(field: Field, value: object) -> str:
    text = read_text(value, field.path)
    size = len(text.encode())
    if size > field.most:
        raise Invalid(f"it has {size:,} bytes, and {field.most:,} are allowed", field=field.path)
    return text
