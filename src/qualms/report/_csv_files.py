"""Tables and records as CSV files."""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from qualms.atomic import replacing
from qualms.report.table import Table, TableCell

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_records(lines: Iterable[Mapping[str, Any]], path: Path) -> Path:
    """Write one line per record, all with the keys of the first; gives the path."""
    rows = iter(lines)
    first = next(rows, None)
    with (
        replacing(path) as temporary,
        temporary.open("x", encoding="utf-8", errors="replace", newline="") as file,
    ):
        writer = csv.DictWriter(file, first.keys() if first else ())
        writer.writeheader()
        for row in chain([first] if first else [], rows):
            writer.writerow({key: harmless(value) for key, value in row.items()})
    return path


def write_table_csv(table: Table, path: Path) -> Path:
    """Write a table, one line per cell; gives the path."""
    return write_records(_cell_lines(table), path)


def harmless(value: Any) -> Any:
    """`value`, with a quote before text that a spreadsheet would run as a formula.

    >>> harmless("=1+1"), harmless("-0.5"), harmless("map")
    ("'=1+1", '-0.5', 'map')
    """
    if isinstance(value, str) and value.startswith(_FORMULA) and not _is_number(value):
        return f"'{value}"
    return value


def plain(value: float | None) -> str:
    """A number with eight digits; '' for none."""
    return "" if value is None or math.isnan(value) else f"{value:.8g}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii()


def _cell_lines(table: Table) -> Iterator[dict[str, Any]]:
    worded = any(cell.text for cell in table.cells)
    parts = (*(line.keys for line in table.lines), *(c.keys for c in table.columns))
    empty = dict.fromkeys((name for part in parts for name in part), "")
    for line in table.lines:
        for column, cell in zip(table.columns, line.cells, strict=True):
            if not column.by_their_rule:  # the column beside it is of the same cell
                yield {
                    "table": table.name,
                    **table.keys,
                    **empty,
                    **line.keys,
                    **column.keys,
                    "unit": column.unit,
                    **({"text": cell.text} if worded else {}),
                    **_numbers(table, cell),
                }


def _numbers(table: Table, cell: TableCell) -> dict[str, Any]:
    theirs, published = cell.by_their_rule, cell.published
    return {
        "ours_mean": plain(cell.mean),
        "ours_spread": plain(cell.spread),
        "ours_low": plain(cell.low),
        "ours_high": plain(cell.high),
        "no_interval": "" if cell.bounded else cell.no_interval,
        "repeats": cell.repeats,
        "by_their_rule_mean": plain(theirs.mean if theirs else None),
        "by_their_rule_spread": plain(theirs.std if theirs else None),
        "published_mean": plain(published.mean if published else None),
        "published_spread": plain(published.std if published else None),
        "spread": table.spread,
        "difference": plain(cell.gap),
        "difference_in_published_spread": plain(cell.difference),
        "best": cell.best,
        "tied_with_best": cell.tied,
        "remark": "; ".join(filter(None, (cell.why, cell.remark))),
    }
