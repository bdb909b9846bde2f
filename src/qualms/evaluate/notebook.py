"""How results look in a notebook: plain HTML tables, and frames of pandas."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


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
