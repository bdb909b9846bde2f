"""A table in a terminal: never wider than the window, and no cell cut."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from textwrap import wrap
from typing import NamedTuple

from rich.console import Console
from rich.markup import escape as escape_markup
from rich.table import Table as Grid
from rich.text import Text

from qualms.report.table import (
    MARK,
    Column,
    Table,
    TableLine,
    digits,
    interval_text,
    legend,
    remarks,
    with_spread,
)
from qualms.wording import plural

_LABEL = 18
"""Columns that the labels of lines take at least, where they are longer than that."""
_WORD = 24
"""Letters of a head's word that are kept together."""
_NAMES = 2
"""Columns and lines that a remark names, where remarks are limited."""


class _Widths(NamedTuple):
    """Characters that each column of a table needs, by its place."""

    beside: Mapping[int, int]
    """With intervals beside numbers."""
    below: Mapping[int, int]
    """With intervals below numbers."""
    marked: frozenset[int]
    """Places of the columns in which a cell is marked."""


class _Block(NamedTuple):
    """Columns that are printed side by side, and how."""

    places: list[int]
    left: tuple[int, ...]
    """Widths of the columns that hold labels."""
    sizes: Mapping[int, int]
    """Widths of the columns that hold numbers, by place."""
    marked: frozenset[int]
    """Places of the columns in which a cell is marked."""
    beside: bool = False
    """True if intervals stand beside numbers, false if below them."""
    gap: int = 1

    @property
    def width(self) -> int:
        """Characters of a line."""
        gaps = self.gap * (len(self.left) + len(self.places) - 1)
        return sum(self.left) + self.span(self.places) + gaps

    def span(self, places: list[int]) -> int:
        """Return the width of some columns together, without the gaps between them."""
        return sum(self.sizes[place] for place in places)


def print_table(
    table: Table, *, console: Console, most_lines: int | None = None
) -> None:
    """Print title, table and notes; columns that do not fit go on below.

    Args:
        table: The table.
        console: Where to print.
        most_lines: Lines of notes, and of reasons why cells are empty, that are printed
            at most; the page has the others. None for all.
    """
    places = table.filled()
    if not places:
        return
    if table.title:
        console.print(f"[bold]{escape(table.title)}[/bold]", highlight=False)
    if table.about:
        style = "yellow" if table.simulated else "dim"
        console.print(escape(table.about), style=style, highlight=False)
    for number, block in enumerate(_blocks(table, places, console.width)):
        if number:
            console.print()
        for heads in _group_heads(table, block):
            console.print(f"[bold]{escape(heads)}[/bold]", highlight=False)
        _print_block(table, block, console)
    if most_lines is None:
        print_notes([*table.every_note, *remarks(table)], console=console)
    else:
        _print_few_notes(table, console, most_lines)


def _print_few_notes(table: Table, console: Console, most_lines: int) -> None:
    """Print so many lines of notes and of reasons, and how many are left out."""
    reasons = remarks(table, most=_NAMES)
    left_out = {
        "more note": print_notes(
            table.every_note, console=console, most_lines=most_lines
        ),
        "more reason": print_notes(reasons, console=console, most_lines=most_lines),
    }
    if text := counted(left_out):
        console.print(f"{text} on the page", style="dim", highlight=False)


def print_notes(
    notes: Iterable[str],
    *,
    console: Console,
    most_lines: int | None = None,
    head: str = "",
) -> int:
    """Print the notes that fit into so many lines; return how many were left out.

    Args:
        notes: The most important first; a longer one may give way to shorter ones.
        console: Where to print.
        most_lines: Lines of the terminal that they take together; None for all.
        head: Stands before each note.
    """
    left_out, lines = 0, 0
    for note in notes:
        text = Text(printable(f"{head}{note}"), style="dim")
        height = len(text.wrap(console, console.width))
        if most_lines is not None and lines + height > most_lines:
            left_out += 1
            continue
        lines += height
        console.print(text)
    return left_out


def counted(counts: Mapping[str, int]) -> str:
    """Return counts of things as the subject of a sentence; '' for none of them.

    >>> counted({"more note": 1, "more table": 9}), counted({"more note": 1})
    ('1 more note and 9 more tables are', '1 more note is')
    """
    parts = [f"{n} {plural(n, noun)}" for noun, n in counts.items() if n]
    if not parts:
        return ""
    return f"{' and '.join(parts)} {'is' if sum(counts.values()) == 1 else 'are'}"


def print_legend(tables: list[Table], *, console: Console) -> None:
    """Print once how the cells of all these tables are read."""
    has_spreads = any(
        not cell.bounded and math.isfinite(cell.spread)
        for table in tables
        for cell in table.cells
    )
    if text := " ".join(legend(tables, spreads=has_spreads)):
        console.print(escape(text), style="dim", highlight=False)


def escape(text: str) -> str:
    """Return a name from a file, safe to print: no markup, no control characters."""
    return escape_markup(printable(text))


def printable(text: str) -> str:
    """Replace control characters, which could steer a terminal."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def is_beside(table: Table, width: int) -> bool:
    """Return whether all columns of a table stand side by side at a width."""
    blocks = list(_blocks(table, table.filled(), width))
    return len(blocks) == 1 and blocks[0].width <= width


def _blocks(table: Table, places: list[int], width: int) -> Iterator[_Block]:
    """Yield what fits side by side: all columns, or as many groups of them as do.

    Intervals stand below numbers, and labels are folded, where that lets more fit.
    """
    widths = _widths(table, places)
    for narrow, beside, gap in (
        (False, True, 2),
        (True, True, 2),
        (False, False, 2),
        (True, False, 2),
        (True, False, 1),
    ):
        sizes = widths.beside if beside else widths.below
        left = _left(table, width, narrow=narrow)
        block = _Block(places, left, sizes, widths.marked, beside, gap)
        if block.width <= width:
            yield _widened(table, block, width)
            return
    block = block._replace(places=[])
    for piece in _pieces(table, places, block, width):
        longer = block._replace(places=[*block.places, *piece])
        if block.places and longer.width > width:
            yield block
            longer = block._replace(places=piece)
        block = longer
    yield block


def _widened(table: Table, block: _Block, width: int) -> _Block:
    """Put labels and heads on one line each, as far as there is room."""
    sizes, spare = dict(block.sizes), width - block.width
    left = list(block.left)
    for place, longest in enumerate(_longest_labels(table)):
        if 0 < longest - left[place] <= spare:
            spare -= longest - left[place]
            left[place] = longest
    for place in block.places:
        more = len(table.columns[place].head) - sizes[place]
        if 0 < more <= spare:
            sizes[place] += more
            spare -= more
    return block._replace(left=tuple(left), sizes=sizes)


def _pieces(
    table: Table, places: list[int], block: _Block, width: int
) -> Iterator[list[int]]:
    """Yield column groups, or single columns of a group wider than the window."""
    for _, members in table.groups(places):
        if block._replace(places=members).width <= width:
            yield members
        else:
            yield from ([place] for place in members)


def _left(table: Table, width: int, *, narrow: bool) -> tuple[int, ...]:
    """Return the widths of the columns that hold labels."""
    widths = []
    for place, longest in enumerate(_longest_labels(table)):
        most = max(_LABEL, width // 3) if not (narrow or place) else _LABEL
        widths.append(min(longest, most))
    return tuple(widths)


def _longest_labels(table: Table) -> list[int]:
    """Return what each column of labels needs to show them on one line."""
    return [
        max([len(head), *(len(printable(ln.labels[place])) for ln in table.lines)])
        for place, head in enumerate(table.left)
    ]


def _widths(table: Table, places: list[int]) -> _Widths:
    widths: tuple[dict[int, int], dict[int, int]] = ({}, {})
    marked = {p for p in places if any(table.shown(p, ln).tied for ln in table.lines)}
    for _, members in table.groups(places):
        for place in members:
            least = _longest_word(table.columns[place], alone=len(members) == 1)
            for sizes, beside in zip(widths, (True, False), strict=True):
                rows = [
                    row
                    for line in table.lines
                    for row in _rows(
                        table, line, place, beside=beside, marked=place in marked
                    )
                ]
                sizes[place] = max(least, *map(len, rows))
    return _Widths(*widths, frozenset(marked))


def _longest_word(column: Column, *, alone: bool) -> int:
    """Count its letters; a group's words count where the group has one column."""
    text = f"{column.group} {column.head}" if alone else column.head
    # An arrow stays on the line of its word.
    words = re.split(r"[ \n](?![↑↓])", text)
    return max(min(len(word), _WORD) for word in words)


def _rows(
    table: Table, line: TableLine, place: int, *, beside: bool, marked: bool
) -> list[str]:
    """Return the rows of one cell: ours, its interval, the published number."""
    cell, decimals = table.shown(place, line), table.decimals(place, line)
    interval = interval_text(cell, decimals)
    number = cell.text or digits(cell.mean, decimals)
    if not interval and not cell.text:
        number = with_spread(cell.mean, cell.spread, decimals, sign="±")
    blank = " " if marked else ""
    mark = MARK if cell.tied else blank
    if beside:
        rows = [f"{number} {interval}{mark}" if interval else f"{number}{mark}"]
    else:
        rows = [f"{number}{mark}", *([f"{interval}{blank}"] if interval else [])]
    if cell.published is not None:
        printed = digits(cell.published.mean, decimals)
        far = f", {cell.difference:+.1f}" if math.isfinite(cell.difference) else ""
        rows.append(f"({printed}{far}){blank}")
    return rows


def _group_heads(table: Table, block: _Block) -> list[str]:
    """Return the lines above heads: each group's words over its columns."""
    groups = table.groups(block.places)
    if not any(head for head, _ in groups):
        return []
    spans = [block.span(m) + block.gap * (len(m) - 1) for _, m in groups]
    words = [wrap(head, span) for (head, _), span in zip(groups, spans, strict=True)]
    blank = " " * (sum(block.left) + block.gap * (len(block.left) - 1))
    lines = []
    for row in range(max(map(len, words))):
        parts = [
            (head[row] if row < len(head) else "").center(span)
            for head, span in zip(words, spans, strict=True)
        ]
        lines.append((" " * block.gap).join([blank, *parts]).rstrip())
    return lines


def _print_block(table: Table, block: _Block, console: Console) -> None:
    """Print heads, and each section below its title, however long that is."""
    sections = [
        (title, _lines_of(table, block, lines)) for title, lines in table.sections()
    ]
    sections = [(title, lines) for title, lines in sections if lines]
    if any(title for title, _ in sections):
        console.print(_grid(table, block, [], heads=True))
    for number, (title, lines) in enumerate(sections):
        if number:
            console.print()
        if title:
            console.print(f"[bold]{escape(title)}[/bold]", highlight=False)
        alone = len(sections) == 1 and not title
        console.print(_grid(table, block, lines, heads=alone))


def _lines_of(table: Table, block: _Block, lines: list[TableLine]) -> list[TableLine]:
    """Leave out lines that have numbers in other blocks alone."""
    others = [place for place in table.filled() if place not in block.places]
    return [
        line
        for line in lines
        if any(table.shown(place, line).known for place in block.places)
        or not any(table.shown(place, line).known for place in others)
    ]


def _grid(table: Table, block: _Block, lines: list[TableLine], *, heads: bool) -> Grid:
    grid = Grid(
        box=None,
        pad_edge=False,
        padding=(0, block.gap, 0, 0),
        header_style="bold",
        show_header=heads,
    )
    for width, name in zip(block.left, table.left, strict=True):
        grid.add_column(name, overflow="fold", width=width)
    for place in block.places:
        column = table.columns[place]
        size = block.sizes[place]
        # Rich breaks heads in its own way, and may then overrun the terminal.
        head = "\n".join(escape(part) for part in wrap(column.head, size))
        grid.add_column(head, justify="right", no_wrap=True, width=size)
    for line in lines:
        cells = (_cell(table, line, place, block) for place in block.places)
        grid.add_row(*map(escape, line.labels), *cells)
    return grid


def _cell(table: Table, line: TableLine, place: int, block: _Block) -> str:
    marked = place in block.marked
    first, *below = _rows(table, line, place, beside=block.beside, marked=marked)
    style = "bold" if table.shown(place, line).best else "none"
    parts = [f"[{style}]{escape(first)}[/{style}]"]
    return "\n".join([*parts, *(f"[dim]{escape(row)}[/dim]" for row in below)])
