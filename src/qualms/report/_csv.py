"""Records as a CSV file, and numbers as it holds them."""

import csv
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from qualms.atomic import replacing


def write_csv(lines: Iterable[Mapping[str, Any]], path: Path) -> Path:
    """Write one line per record, all with the keys of the first; gives the path."""
    rows = list(lines)
    with (
        replacing(path) as temporary,
        temporary.open("x", encoding="utf-8", newline="") as file,
    ):
        writer = csv.DictWriter(file, rows[0].keys() if rows else ())
        writer.writeheader()
        writer.writerows(rows)
    return path


def plain(value: float | None) -> str:
    """A number with eight digits; '' for none."""
    return "" if value is None or math.isnan(value) else f"{value:.8g}"
