"""Server-sent events, read as they come."""

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

EVENT_MOST = 4 * 1024 * 1024
"""Characters of one event; who sends more is no server of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event, or only a number to go on from where `data` is None; `id` is the last one that was sent."""

    id: str | None
    kind: str
    data: str | None


def read(pieces: Iterable[bytes]) -> Iterator[Event]:
    """Give the events of a stream of bytes; what is not whole at its end is none."""
    id_: str | None = None
    kind, data, size, told = "message", list[str](), 0, False
    for line in _lines(pieces):
        size += len(line)
        if size > EVENT_MOST:
            raise ValueError(f"one event has more than {EVENT_MOST:,} characters")
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "id":
                id_, told = value, True
            elif name == "event":
                kind = value
            elif name == "data":
                data.append(value)
            continue
        if data or told:
            yield Event(id=id_, kind=kind, data="\n".join(data) if data else None)
        kind, data, size, told = "message", [], 0, False


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    rest = ""
    for piece in pieces:
        rest += decoder.decode(piece)
        *lines, rest = rest.split("\n")
        if len(rest) > EVENT_MOST:
            raise ValueError(f"one line has more than {EVENT_MOST:,} characters")
        for line in lines:
            yield line.removesuffix("\r")
