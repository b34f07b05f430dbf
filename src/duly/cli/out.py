"""What goes to the two streams: lines, JSON documents, colour where it is wanted."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from duly import clock

RESET = "\x1b[0m"
STYLES: Mapping[str, str] = {
    "bold": "\x1b[1m",
    "dim": "\x1b[2m",
    "red": "\x1b[31m",
    "green": "\x1b[32m",
    "yellow": "\x1b[33m",
    "blue": "\x1b[34m",
    "cyan": "\x1b[36m",
}
PIPED_WIDTH = 10_000
NARROWEST = 40
PROGRESS_AFTER_S = 0.5
USUAL_WIDTH = 80
"""Of a terminal that does not tell its size."""


def prepare() -> None:
    """Let the streams take any text: what their encoding lacks is escaped, never an error."""
    for name in ("stdout", "stderr"):
        # A process may be started with these closed; what it says then goes nowhere.
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open to the end
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def line(text: str = "") -> None:
    """Print one line on standard output."""
    sys.stdout.write(text + "\n")


def lines(texts: Iterable[str]) -> None:
    """Print many lines on standard output."""
    for text in texts:
        line(text)


def note(text: str) -> None:
    """Print one line on standard error: a hint, a warning, a fault."""
    with suppress(OSError):  # only for the order on a screen; what cannot be written shows itself at the end
        flush()
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show how far something is, on a line of standard error that is gone afterwards; None where no terminal is.

    What ends before anybody would ask shows nothing.
    """
    if not sys.stderr.isatty():
        yield None
        return
    began_s, shown = clock.monotonic_s(), ""

    def tell(done: int, of: int) -> None:
        nonlocal shown
        text = f"{what}: {done * 100 // of if of else 100} %"
        if text != shown and clock.monotonic_s() - began_s >= PROGRESS_AFTER_S:
            sys.stderr.write(f"\r{text}")
            sys.stderr.flush()
            shown = text

    try:
        yield tell
    finally:
        if shown:
            sys.stderr.write(f"\r{' ' * len(shown)}\r")
            sys.stderr.flush()


def document(value: object) -> None:
    """Print one JSON document: laid out for a person on a terminal, one line elsewhere."""
    sys.stdout.write(as_json(value, indent=2 if on_terminal() else None) + "\n")


def entry(value: object) -> None:
    """Print one JSON document of a stream as one line, at once."""
    sys.stdout.write(as_json(value) + "\n")
    sys.stdout.flush()


def as_json(value: object, *, indent: int | None = None) -> str:
    """Write JSON, letters of any script as they are where the stream can carry them."""
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    text = json.dumps(value, ensure_ascii=plain, indent=indent)
    # Half of a surrogate pair (a byte that was never UTF-8) has no UTF-8; JSON can still name it.
    return text if text.isprintable() or _encodes(text) else json.dumps(value, indent=indent)


def flush() -> None:
    """Bring out what was printed; a reader that has gone shows itself here."""
    sys.stdout.flush()


def on_terminal() -> bool:
    """Say whether standard output is a terminal."""
    return sys.stdout.isatty()


def coloured(stream: TextIO | None = None) -> bool:
    """Say whether a stream gets colour: NO_COLOR and FORCE_COLOR decide, else whether it is a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return (stream or sys.stdout).isatty() and os.environ.get("TERM") != "dumb"


def styled(text: str, *styles: str) -> str:
    """Put a text in colour where standard output gets colour."""
    if not styles or not text or not coloured():
        return text
    return "".join(STYLES[style] for style in styles) + text + RESET


def width() -> int:
    """Columns of the terminal, 80 where it does not tell them; without one as many as anybody needs."""
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdigit() and len(given) < NARROWEST and int(given):
        return min(max(NARROWEST, int(given)), PIPED_WIDTH)
    try:
        return max(NARROWEST, os.get_terminal_size(sys.stdout.fileno()).columns or USUAL_WIDTH)
    except (OSError, ValueError):
        return USUAL_WIDTH if on_terminal() else PIPED_WIDTH


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
