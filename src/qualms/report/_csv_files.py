"""Tables, results and records as CSV files."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from qualms.atomic import replacing
from qualms.evaluate.benchmark_results import BenchmarkResults, Cost
from qualms.report.table import Table, TableCell
from qualms.results import (
    PROVENANCE,
    csv_text,
    harmless,
    label_order,
    write_columns,
)
from qualms.runs import commit

_UNKNOWN = Cost(seconds=None, parameters=None)


def write_results(results: BenchmarkResults, path: Path, *, command: str = "") -> Path:
    """Write every number of a judged benchmark, with how it was made.

    `qualms.results.read_results` reads it.

    Args:
        results: The judged benchmark.
        path: Where the file goes.
        command: What made the results.
    """
    plan, columns = results.plan, results.table.columns()
    variants = {variant.name: variant for variant in plan.variants}
    of_variant = {
        name: (
            (variant.network or plan.preset.network).name,
            plan.training_on(variant).get("epochs"),
        )
        for name, variant in variants.items()
    }
    rows = list(zip(columns.get("variant", ()), columns.get("row", ()), strict=True))
    costs = [results.costs.get(row, _UNKNOWN) for row in rows]
    constants: dict[str, Any] = {
        "version": results.benchmark.version,
        "hardware": "; ".join(results.hardware),
        "seconds_of_all_runs": results.seconds,
        "command": command,
        "commit": commit(),
    }
    provenance: dict[str, list[Any]] = {
        **{name: [value] * len(rows) for name, value in constants.items()},
        "network": [of_variant[variant][0] for variant, _ in rows],
        "epochs": [of_variant[variant][1] for variant, _ in rows],
        "seconds": [cost.seconds for cost in costs],
        "parameters": [cost.parameters for cost in costs],
    }
    return write_columns(
        {**columns, **{name: provenance[name] for name in PROVENANCE}}, path
    )


def write_table_csv(table: Table, path: Path) -> Path:
    """Write a table, one line per cell, and return the path."""
    return write_records(_cell_records(table), path)


def table_csv(table: Table) -> str:
    """Return a table as the text of a CSV file, one line per cell."""
    return records_csv(_cell_records(table))


def records_csv(records: Iterable[Mapping[str, Any]]) -> str:
    """Return one line per record, all with the keys of the first, as text."""
    text = io.StringIO(newline="")
    _write_lines(records, text)
    return text.getvalue()


def write_records(records: Iterable[Mapping[str, Any]], path: Path) -> Path:
    """Write one line per record, all with the keys of the first; return the path."""
    with (
        replacing(path) as temporary,
        temporary.open("x", encoding="utf-8", errors="replace", newline="") as file,
    ):
        _write_lines(records, file)
    return path


def _write_lines(records: Iterable[Mapping[str, Any]], file: TextIO) -> None:
    remaining = iter(records)
    first = next(remaining, None)
    writer = csv.DictWriter(file, first.keys() if first else ())
    writer.writeheader()
    for record in chain([first] if first else [], remaining):
        writer.writerow({key: harmless(value) for key, value in record.items()})


def _cell_records(table: Table) -> Iterator[dict[str, Any]]:
    """Yield the labels and numbers of each cell."""
    has_text = any(cell.text for cell in table.cells)
    parts = [line.keys for line in table.lines] + [c.keys for c in table.columns]
    names = label_order([tuple({**table.keys, **_union(parts)})])
    for line in table.lines:
        for column, cell in zip(table.columns, line.cells, strict=True):
            if column.released:  # the column beside it is of the same cell
                continue
            labels = {**table.keys, **line.keys, **column.keys}
            yield {
                "table": table.name,
                **{name: labels.get(name, "") for name in names},
                "unit": column.unit,
                **({"text": cell.text} if has_text else {}),
                **_numbers(table, cell),
            }


def _union(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return all keys in order of first appearance."""
    return dict.fromkeys(name for part in parts for name in part)


def _numbers(table: Table, cell: TableCell) -> dict[str, Any]:
    released, published = cell.released, cell.published
    numbers = {
        "ours_mean": cell.mean,
        "ours_spread": cell.spread,
        "ours_low": cell.low,
        "ours_high": cell.high,
        "no_interval": "" if cell.bounded else cell.no_interval,
        "repeats": cell.repeats,
        "released_mean": released.mean if released else None,
        "released_spread": released.std if released else None,
        "published_mean": published.mean if published else None,
        "published_spread": published.std if published else None,
        "spread": table.spread,
        "difference": cell.gap,
        "difference_in_published_spread": cell.difference,
        "best": cell.best,
        "tied_with_best": cell.tied,
        "remark": "; ".join(filter(None, (cell.why, cell.remark))),
    }
    return {name: csv_text(value) for name, value in numbers.items()}
