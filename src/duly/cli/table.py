"""Tables of plain text: aligned by what a terminal shows, in fewer words where it is narrow.

Where the texts are wider than the screen, columns give way in the order of their `yields`: first what may go goes, and
cells say themselves in their shorter words; only then are texts cut, sentences after a word and names in the middle.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from duly.cli import out

GAP = "  "
LEAST = 6
WORDS_LEAST = 20
"""A column of sentences keeps so many columns while others can still be cut."""
ELLIPSIS = "…"
JOINER = "\u200d"
AS_EMOJI = "\ufe0f"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: its head, how its texts are cut, on which side they stand, and when it gives way to others."""

    head: str
    cut: bool = False
    """Whether texts may be cut in the middle."""
    words: bool = False
    """Whether texts may be cut at their end, after a word."""
    right: bool = False
    yields: int = 0
    """Where it is narrow, the column with the highest figure gives way first."""
    enough: int = 0
    """Before any other gives way, this one says in shorter words what is wider than so many columns."""
    optional: bool = False
    """Whether it goes altogether when it gives way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A text and how it is styled; meaning never rests on the style alone."""

    text: str
    styles: tuple[str, ...] = ()
    shorter: tuple[str, ...] = ()
    """The same in ever fewer columns, for where the text does not fit."""
    wraps: bool = False
    """Whether `pairs` may break it at blanks where it is wider than the screen."""


def render(columns: Sequence[Column], rows: Sequence[Sequence[Cell | str]]) -> list[str]:
    """Lay out a table: on a terminal no wider than it, elsewhere as wide as its texts."""
    cells = [[_cell(item) for item in row] for row in rows]
    widths = [_widest(column, [row[at].text for row in cells]) for at, column in enumerate(columns)]
    kept = _give_way(widths, columns, cells, out.width())
    columns = [columns[at] for at in kept]
    widths = [widths[at] for at in kept]
    _narrow(widths, columns, out.width())
    heads = [Cell(text=column.head, styles=("dim",)) for column in columns]
    return [_row(row, widths, columns) for row in [heads, *([row[at] for at in kept] for row in cells)]]


def fitted(cell: Cell, column: Column, width: int) -> str:
    """Give a cell's text in so many columns: in its longest words that fit, else cut if the column may be cut."""
    for text in (cell.text, *cell.shorter):
        if cells_of(text) <= width:
            return text
    shortest = cell.shorter[-1] if cell.shorter else cell.text
    if column.words:
        return trimmed(shortest, width)
    return cut(shortest, width) if column.cut else shortest


def pairs(rows: Sequence[tuple[str, str | Cell]], *, indent: str = "") -> list[str]:
    """Lay out names and values in two columns, values uncut; those that say so are wrapped, the others never."""
    widest = max((cells_of(name) for name, _ in rows), default=0)
    room = out.width() - cells_of(indent) - widest - len(GAP)
    lines = []
    for name, value in rows:
        cell = _cell(value)
        first, *rest = [
            part for line in cell.text.split("\n") for part in (wrapped(line, room) if cell.wraps else [line])
        ]
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


def trimmed(text: str, most: int) -> str:
    """Cut a text at its end, after a word where one ends in its second half."""
    if cells_of(text) <= most:
        return text
    head, used = "", 0
    for piece, width in _clusters(text):
        if used + width > max(most - 1, 0):
            break
        head, used = head + piece, used + width
    if not text[len(head)].isspace():
        words = head.rpartition(" ")[0]
        head = words if cells_of(words) * 2 >= most else head
    return head.rstrip(" ,:;–-(") + ELLIPSIS


def wrapped(text: str, room: int) -> list[str]:
    """Break a text at blanks into lines of so many columns; a word that is wider has a line for itself."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and cells_of(longer) > room:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def plain(text: str) -> str:
    """Take what would move the cursor or colour the screen out of a text that others wrote."""
    if text.isprintable():
        return text
    return "".join(
        char if unicodedata.category(char) not in {"Cc", "Cs", "Zl", "Zp"} else _escaped(char) for char in text
    )


def _escaped(char: str) -> str:
    # A byte that was never UTF-8 comes as half of a pair above U+DC00, and is shown as the byte it was.
    number = ord(char) - 0xDC00 if 0xDC80 <= ord(char) <= 0xDCFF else ord(char)
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char, f"\\x{number:02x}")


def _cell(item: Cell | str) -> Cell:
    return item if isinstance(item, Cell) else Cell(text=item)


def _row(row: Sequence[Cell], widths: Sequence[int], columns: Sequence[Column]) -> str:
    parts = []
    for at, (cell, width, column) in enumerate(zip(row, widths, columns, strict=True)):
        text = fitted(cell, column, width)
        fill = " " * max(0, width - cells_of(text))
        shown = out.styled(text, *cell.styles)
        last = at == len(widths) - 1
        parts.append(fill + shown if column.right else shown if last else shown + fill)
    return GAP.join(parts).rstrip()


def _widest(column: Column, texts: Sequence[str]) -> int:
    return max([cells_of(column.head), *map(cells_of, texts)])


def _over(widths: Sequence[int], room: int) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1) - room


def _give_way(widths: list[int], columns: Sequence[Column], rows: Sequence[Sequence[Cell]], room: int) -> list[int]:
    """Let columns go, or say themselves shorter, one after another until all fit; gives the places that are kept."""
    kept = list(range(len(columns)))
    if _over(widths, room) <= 0:
        return kept
    order = sorted(kept, key=lambda at: -columns[at].yields)
    sizes = {at: _sizes(columns[at], [row[at] for row in rows]) for at in order}
    for at in order:
        if columns[at].enough:
            most = max(columns[at].enough, widths[at] - _over(widths, room))
            widths[at] = max([size for size in sizes[at] if size <= most], default=sizes[at][0])
    for at in order:
        over = _over([widths[place] for place in kept], room)
        if over <= 0:
            break
        if columns[at].optional:
            kept.remove(at)
        else:
            widths[at] = max([size for size in sizes[at] if size <= widths[at] - over], default=sizes[at][0])
    for at in reversed(order):
        spare = -_over([widths[place] for place in kept], room)
        if at in kept and spare > 0:
            widths[at] = max([size for size in sizes[at] if size <= widths[at] + spare], default=widths[at])
    return kept


def _sizes(column: Column, cells: Sequence[Cell]) -> list[int]:
    """Give the widths that a column can have without a cut, the least first."""
    said = [[cells_of(text) for text in (cell.text, *cell.shorter)] for cell in cells]
    least = max([cells_of(column.head), *(min(one) for one in said)])
    return sorted({least, *(size for one in said for size in one if size > least)})


def _narrow(widths: list[int], columns: Sequence[Column], room: int) -> None:
    """Cut columns until all fit: sentences first and in their order, then always the widest."""
    for at in sorted(range(len(columns)), key=lambda at: -columns[at].yields):
        over = _over(widths, room)
        if over > 0 and columns[at].words:
            widths[at] = min(widths[at], max(WORDS_LEAST, cells_of(columns[at].head), widths[at] - over))
    for _ in range(_over(widths, room)):
        widest = max(
            (
                at
                for at, column in enumerate(columns)
                if (column.cut or column.words) and widths[at] > max(LEAST, cells_of(column.head))
            ),
            key=lambda at: widths[at],
            default=None,
        )
        if widest is None:
            return
        widths[widest] -= 1


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
