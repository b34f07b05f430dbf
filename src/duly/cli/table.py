"""Tables of plain text: aligned by what a terminal shows, cut in the middle where it is narrow."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from duly.cli import out

GAP = "  "
LEAST = 6
ELLIPSIS = "…"
JOINER = "\u200d"
AS_EMOJI = "\ufe0f"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: its head, whether it may be cut, and on which side its texts stand."""

    head: str
    cut: bool = False
    right: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A text and how it is styled; meaning never rests on the style alone."""

    text: str
    styles: tuple[str, ...] = ()


def render(columns: Sequence[Column], rows: Sequence[Sequence[Cell | str]]) -> list[str]:
    """Lay out a table: on a terminal no wider than it, elsewhere as wide as its texts."""
    cells = [[_cell(item) for item in row] for row in rows]
    widths = [
        max([cells_of(column.head), *(cells_of(row[at].text) for row in cells)]) for at, column in enumerate(columns)
    ]
    _narrow(widths, columns, out.width())
    heads = [Cell(text=column.head, styles=("dim",)) for column in columns]
    return [_row(row, widths, columns) for row in [heads, *cells]]


def pairs(rows: Sequence[tuple[str, str | Cell]], *, indent: str = "") -> list[str]:
    """Lay out names and values in two columns, values unwrapped and uncut."""
    widest = max((cells_of(name) for name, _ in rows), default=0)
    lines = []
    for name, value in rows:
        cell = _cell(value)
        first, *rest = cell.text.split("\n")
        head = out.styled(name, "dim") + " " * (widest - cells_of(name))
        lines.append(f"{indent}{head}{GAP}{out.styled(first, *cell.styles)}".rstrip())
        lines += [f"{indent}{' ' * widest}{GAP}{out.styled(more, *cell.styles)}" for more in rest]
    return lines


def cells_of(text: str) -> int:
    """Count the columns that a terminal gives a text: two for wide letters and emoji, none for marks."""
    if text.isascii():
        return len(text)
    return sum(width for _, width in _clusters(text))


def cut(text: str, most: int) -> str:
    """Cut a text in the middle so that it takes no more than so many columns."""
    if cells_of(text) <= most:
        return text
    clusters = _clusters(text)
    room = max(most - 1, 0)
    tail_room = room // 2
    head, used = "", 0
    for piece, width in clusters:
        if used + width > room - tail_room:
            break
        head, used = head + piece, used + width
    tail, used_too = "", 0
    for piece, width in reversed(clusters):
        if used_too + width > room - used:
            break
        tail, used_too = piece + tail, used_too + width
    return head + ELLIPSIS + tail


def plain(text: str) -> str:
    """Take what would move the cursor or colour the screen out of a text that others wrote."""
    if text.isprintable():
        return text
    return "".join(
        char if unicodedata.category(char) not in {"Cc", "Cs", "Zl", "Zp"} else _escaped(char) for char in text
    )


def _escaped(char: str) -> str:
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char, f"\\x{ord(char):02x}")


def _cell(item: Cell | str) -> Cell:
    return item if isinstance(item, Cell) else Cell(text=item)


def _row(row: Sequence[Cell], widths: Sequence[int], columns: Sequence[Column]) -> str:
    parts = []
    for at, (cell, width, column) in enumerate(zip(row, widths, columns, strict=True)):
        text = cut(cell.text, width)
        fill = " " * (width - cells_of(text))
        shown = out.styled(text, *cell.styles)
        last = at == len(widths) - 1
        parts.append(fill + shown if column.right else shown if last else shown + fill)
    return GAP.join(parts).rstrip()


def _narrow(widths: list[int], columns: Sequence[Column], room: int) -> None:
    """Take columns from the widest of those that may be cut until all fit."""
    over = sum(widths) + len(GAP) * (len(widths) - 1) - room
    while over > 0:
        widest = max(
            (at for at, column in enumerate(columns) if column.cut and widths[at] > max(LEAST, cells_of(column.head))),
            key=lambda at: widths[at],
            default=None,
        )
        if widest is None:
            return
        widths[widest] -= 1
        over -= 1


def _clusters(text: str) -> list[tuple[str, int]]:
    """Part a text into what a terminal shows as one, each with its columns."""
    found: list[tuple[str, int]] = []
    joined = False
    for char in text:
        width = _width(char)
        if found and (joined or width == 0 or _pairs_flag(found[-1][0], char)):
            piece, before = found[-1]
            wide = char == AS_EMOJI or joined or _is_flag_half(char)
            found[-1] = (piece + char, 2 if wide else max(before, width))
        else:
            found.append((char, width))
        joined = char == JOINER
    return found


def _width(char: str) -> int:
    if unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    if _is_flag_half(char):
        return 1
    if 0x1F3FB <= ord(char) <= 0x1F3FF:
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def _pairs_flag(before: str, char: str) -> bool:
    return len(before) == 1 and _is_flag_half(before) and _is_flag_half(char)


def _is_flag_half(char: str) -> bool:
    return 0x1F1E6 <= ord(char) <= 0x1F1FF
