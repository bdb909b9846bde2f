"""Results in a notebook: HTML tables with intervals drawn, and frames of pandas.

The HTML has no script and no style sheet, which untrusted notebooks remove. Drawings
have the colour of the text, so that they are visible in a dark theme.
"""

from collections.abc import Iterable, Sequence
from html import escape
from math import isfinite, isnan
from typing import Any, NamedTuple

from qualms.inference import WithInterval

SIGNS = {"yes": "✓", "no": "✗"}
"""Signs of answers; other answers have a question mark."""
_WIDTH, _MARGIN = 96, 4


class NotebookCell(NamedTuple):
    """A text of a table, and a drawing below it."""

    text: str
    drawing: str = ""


def notebook_table(
    caption: str, heads: Sequence[str], rows: Iterable[Sequence[str | NotebookCell]]
) -> str:
    """Return a table of texts, all of them escaped.

    >>> notebook_table("a < b", [], [["0.9"]])
    '<table><caption>a &lt; b</caption><tr><td>0.9</td></tr></table>'
    """
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    head = head and f"<tr>{head}</tr>"
    body = "".join(
        "<tr>" + "".join(f"<td>{_inside(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><caption>{escape(caption)}</caption>{head}{body}</table>"


def _inside(cell: str | NotebookCell) -> str:
    if isinstance(cell, str):
        return escape(cell)
    return f"{escape(cell.text)}<br>{cell.drawing}" if cell.drawing else escape(cell[0])


def with_intervals(
    texts: Sequence[str],
    numbers: Sequence[WithInterval | None],
    *,
    at: float | None = None,
) -> list[NotebookCell]:
    """Return the cells of a row, with intervals drawn on one scale.

    Args:
        texts: Texts of the cells.
        numbers: Their numbers; None for a cell without one.
        at: A value that is marked on the scale, such as 0 for differences.
    """
    ends = [] if at is None else [at]
    for number in filter(None, numbers):
        if _is_bounded(number):
            ends += [number.low, number.value, number.high]
    if not ends or min(ends) == max(ends):
        return [NotebookCell(text) for text in texts]
    return [
        NotebookCell(text, _drawn(number, min(ends), max(ends), at))
        for text, number in zip(texts, numbers, strict=True)
    ]


def _drawn(
    number: WithInterval | None, least: float, most: float, at: float | None
) -> str:
    """Return a dot with its interval as SVG; '' for a number without an interval."""
    if number is None or not _is_bounded(number):
        return ""

    def x(value: float) -> str:
        share = (value - least) / (most - least)
        return f"{_MARGIN + share * (_WIDTH - 2 * _MARGIN):.1f}"

    mark = "" if at is None else f'<path d="M{x(at)},0V12" stroke-dasharray="2,2"/>'
    return (
        f'<svg width="{_WIDTH}" height="12" viewBox="0 0 {_WIDTH} 12" fill="none"'
        f' stroke="currentColor" aria-hidden="true">{mark}'
        f'<path d="M{x(number.low)},6H{x(number.high)}" stroke-width="2"/>'
        f'<circle cx="{x(number.value)}" cy="6" r="3" fill="currentColor"/></svg>'
    )


def _is_bounded(number: WithInterval) -> bool:
    return all(map(isfinite, (number.low, number.value, number.high)))


def notebook_lines(lines: Iterable[str]) -> str:
    """Return a paragraph for each line, escaped."""
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


def notebook_number(number: WithInterval) -> str:
    """Return a number with its interval, where it has one.

    >>> from qualms.inference import Bounded
    >>> notebook_number(Bounded(0.91234, 0.87654, 0.93))
    '0.9123 (0.877 to 0.93)'
    """
    if isnan(number.value):
        return "undefined"
    finite = isfinite(number.low) and isfinite(number.high)
    interval = f" ({number.low:.3g} to {number.high:.3g})" if finite else ""
    return f"{number.value:.4g}{interval}"


def pandas_frame(data: Any, *, instead: str) -> Any:
    """Return `data` as a DataFrame of pandas.

    Args:
        data: Columns by name, or a list of rows.
        instead: Remedy in the error message for a system without pandas.

    Raises:
        ImportError: If pandas is not installed.
    """
    try:
        import pandas as pd  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        raise ImportError(
            "to_frame() needs pandas, which is not installed; run `pip install "
            f"pandas`, or {instead}"
        ) from None
    return pd.DataFrame(data)
