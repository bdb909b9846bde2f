"""Results in a notebook: plain HTML tables, and frames of pandas."""

from collections.abc import Iterable, Sequence
from html import escape
from math import isfinite, isnan
from typing import Any

from qualms.inference import WithInterval


def notebook_table(
    caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]
) -> str:
    """Return a table of texts, all of them escaped.

    >>> notebook_table("a < b", [], [["0.9"]])
    '<table><caption>a &lt; b</caption><tr><td>0.9</td></tr></table>'
    """
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    head = head and f"<tr>{head}</tr>"
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>"
        for row in rows
    )
    return f"<table><caption>{escape(caption)}</caption>{head}{body}</table>"


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
        instead: What the error tells to do without pandas.

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
