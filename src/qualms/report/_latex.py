"""Tables and figures as LaTeX, for a document that loads booktabs and graphicx."""

import math
from collections.abc import Iterator

from qualms.report.figures import Drawing
from qualms.report.table import (
    Table,
    TableCell,
    TableLine,
    interval_text,
    legend,
    with_spread,
)

_WIDE = 9
"""Columns beside each other; more of them go on below."""
_TEXT_WIDTH = 5.5
"""Width in inches of the text of most documents; wider figures are made smaller."""
_ESCAPES = {
    "_": r"\_",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\N{NO-BREAK SPACE}": " ",
    "«": r"$\ll$",
    "»": r"$\gg$",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "●": r"$\bullet$",
    "\N{EN DASH}": "--",
    "\N{MINUS SIGN}": r"$-$",
    "\N{GREEK SMALL LETTER ALPHA}": r"$\alpha$",
    "\n": " ",
    **dict.fromkeys("ÐÞðþ", "?"),  # LaTeX's own fonts lack them
}


def latex_table(table: Table) -> str:
    """Return a complete `table` environment."""
    blocks = _blocks(table)
    left = len(table.left)
    width = left + max((len(places) for places in blocks), default=0)
    columns = "l" * left + "r" * (width - left)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escaped(_caption(table))}}}",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
    ]
    for number, places in enumerate(blocks):
        lines += [r"\midrule"] if number else []
        lines += [*_head(table, places), r"\midrule", *_body(table, places)]
    lines += [r"\bottomrule", r"\end{tabular}}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def latex_figure(drawing: Drawing, file: str) -> str:
    """Return a `figure` environment with the caption of a figure.

    Args:
        drawing: The figure.
        file: Name of its PDF.
    """
    caption = " ".join(filter(None, (f"{drawing.title}.", drawing.caption)))
    lines = [
        r"\begin{figure}",
        r"\centering",
        rf"\includegraphics[width={_width(drawing)}]{{{file}}}",
        rf"\caption{{{escaped(caption)}}}",
        r"\end{figure}",
    ]
    return "\n".join(lines) + "\n"


def _width(drawing: Drawing) -> str:
    """Return the width of a figure in a document: at most that of the text."""
    wide = drawing.width > _TEXT_WIDTH
    return r"\textwidth" if wide else f"{drawing.width:.2f}in"


def escaped(text: str) -> str:
    """Return `text` with what LaTeX would read as commands made plain."""
    # LaTeX stops at control characters, and at most letters beyond Latin ones.
    shown = (_ESCAPES.get(c, c if c.isprintable() else "?") for c in text)
    return "".join(shown).encode("latin-1", errors="replace").decode("latin-1")


def _caption(table: Table) -> str:
    notes = " ".join(table.every_note)
    about = f" ({table.about})" if table.about else ""
    shown = [table.shown(at, ln) for ln in table.lines for at in table.filled()]
    spreads = any(_with_spread(cell) for cell in shown)
    read = legend([table], spreads=spreads)
    return " ".join(filter(None, (f"{table.title}{about}.", notes, *read)))


def _with_spread(cell: TableCell) -> bool:
    """Return whether a spread stands beside a number: not where a range does."""
    return math.isfinite(cell.spread) and not cell.bounded and cell.seeds is None


def _blocks(table: Table) -> list[list[int]]:
    """Return the places of the columns that stand side by side, by whole groups."""
    blocks: list[list[int]] = []
    for _, places in table.groups(table.filled()):
        if not blocks or len(blocks[-1]) + len(places) > _WIDE:
            blocks.append([])
        blocks[-1] += places
    return blocks


def _head(table: Table, places: list[int]) -> list[str]:
    labels = [escaped(table.columns[place].head) for place in places]
    last = " & ".join([*map(escaped, table.left), *labels]) + r" \\"
    if not any(table.columns[place].group for place in places):
        return [last]
    heads, rules, start = [], [], len(table.left) + 1
    for label, members in table.groups(places):
        end = start + len(members) - 1
        heads.append(rf"\multicolumn{{{len(members)}}}{{c}}{{{escaped(label)}}}")
        rules.append(rf"\cmidrule(lr){{{start}-{end}}}")
        start = end + 1
    first = " & ".join([*[""] * len(table.left), *heads]) + r" \\"
    return [first, " ".join(rules), last]


def _body(table: Table, places: list[int]) -> Iterator[str]:
    for number, (title, lines) in enumerate(table.sections()):
        if number:
            yield r"\addlinespace"
        if title:
            span = len(table.left) + len(places)
            yield rf"\multicolumn{{{span}}}{{l}}{{\textit{{{escaped(title)}}}}} \\"
        beyond = False
        for line in lines:
            if line.beyond and not beyond:
                yield r"\addlinespace"
                beyond = True
            yield _joined(line.labels, [_ours(table, line, place) for place in places])
            if any(line.cells[place].published for place in places):
                below = (r"\quad published", *[""] * (len(table.left) - 1))
                printed = [_published(table, line.cells[p], p) for p in places]
                yield " & ".join([*below, *printed]) + r" \\"


def _joined(labels: tuple[str, ...], cells: list[str]) -> str:
    return " & ".join([*map(escaped, labels), *cells]) + r" \\"


def _ours(table: Table, line: TableLine, place: int) -> str:
    cell = table.shown(place, line)
    if cell.text:
        return escaped(cell.text)
    decimals = table.columns[place].decimals
    spread = cell.spread if _with_spread(cell) else math.nan
    text = with_spread(cell.mean, spread, decimals, sign=r" \pm ")
    if math.isnan(cell.mean):
        return "--"
    text = text.replace("inf", r"\infty")
    text = rf"$\mathbf{{{text}}}$" if cell.best else f"${text}$"
    if interval := interval_text(cell, decimals):
        text += rf" {{\scriptsize {escaped(interval)}}}"
    return text + (r"\,$^{\bullet}$" if cell.tied else "")


def _published(table: Table, cell: TableCell, place: int) -> str:
    number = cell.published
    if number is None:
        return "--"
    decimals = table.columns[place].decimals
    text = with_spread(number.mean, number.std, decimals, sign=r" \pm ")
    far = f", ${cell.difference:+.1f}$" if math.isfinite(cell.difference) else ""
    return rf"{{\scriptsize (${text}${far})}}"
