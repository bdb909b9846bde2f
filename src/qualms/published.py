"""The numbers that papers print, with the labels of our results.

A benchmark's folder holds them as `published.csv`: a column for each label, `mean`, the
spread under the name of its kind, `unit` and `note`. Percentages are divided by 100, as
our results are shares.
"""

import csv
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from qualms.labels import Label
from qualms.results import Result, ResultsTable

_SPREADS = {"std": "standard deviation", "stderr": "standard error"}
_SCALES = {"percent": 0.01, "x100": 0.01}
_NUMBERS = ("alpha", "pool", "referred", "blur", "size", "dims", "side")
"""Labels whose values are numbers, so that 0.10 is 0.1."""


@dataclass(frozen=True, slots=True)
class Published:
    """All numbers of one paper."""

    table: ResultsTable
    spread: str
    """Kind of spread: 'standard deviation' or 'standard error'; '' for none."""


@cache
def published(path: Path) -> Published:
    """Read the published numbers of a benchmark."""
    with path.open(encoding="utf-8", newline="") as file:
        records = list(csv.DictReader(file))
    columns = tuple(records[0]) if records else ()
    spread = next((name for name in columns if name in _SPREADS), "")
    plain = {"mean", "unit", "note", spread}
    labels = [name for name in columns if name not in plain]
    rows = []
    for record in records:
        scale = _SCALES.get(record.get("unit", ""), 1.0)
        text = record.get(spread, "")
        rows.append(
            Result(
                labels={n: _label(n, record[n]) for n in labels if record[n]},
                value=scale * float(record["mean"]),
                spread=scale * float(text) if text else math.nan,
                note=record.get("note", ""),
            )
        )
    return Published(ResultsTable.of(rows), _SPREADS.get(spread, ""))


def _label(name: str, text: str) -> Label:
    if text in ("true", "false"):
        return text == "true"
    if name not in _NUMBERS:
        return text
    number = float(text)
    return int(number) if number.is_integer() else number
