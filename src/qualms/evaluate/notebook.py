"""How results look in a notebook: plain HTML tables, and frames of pandas."""

from collections.abc import Iterable, Sequence
from html import escape
from math import isfinite, isnan
from typing import Any

from qualms.inference import WithInterval


def notebook_table(
    caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]
) -> str:
    """A table of texts, all of them escaped.

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
    """A paragraph for each line, escaped."""
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


def notebook_number(found: WithInterval) -> str:
    """A number with its interval, where it has one.

    >>> from qualms.inference import Bounded
    >>> notebook_number(Bounded(0.91234, 0.87654, 0.93))
    '0.9123 (0.877 to 0.93)'
    """
    if isnan(found.value):
        return "undefined"
    bounded = isfinite(found.low) and isfinite(found.high)
    interval = f" ({found.low:.3g} to {found.high:.3g})" if bounded else ""
    return f"{found.value:.4g}{interval}"


def pandas_frame(held: Any, *, instead: str) -> Any:
    """A DataFrame of pandas of `held`; `instead` says what to do without pandas.

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
    return pd.DataFrame(held)
