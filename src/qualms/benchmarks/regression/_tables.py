"""The paper's tables A1 to A42 with our numbers in them.

Every cell has our number twice. "ours" takes the finite-sample rank and has the
interval; "by their rule" takes the rank of the released code, and only that one is
compared with the paper.
"""

from collections.abc import Mapping
from typing import NamedTuple

from qualms.benchmarks import TableRow, Variant
from qualms.evaluate.results import BenchmarkResults
from qualms.published import Published, published
from qualms.report.judged import DEVIATION, table_cell
from qualms.report.table import Column, Table, TableLine

COLUMNS = {
    "test_coverage": Column(label="test coverage", decimals=3),
    "test_prediction_rate": Column(label="test prediction rate", decimals=3),
    "val_mae": Column(label="val MAE ↓"),
    "val_interval_length": Column(label="val interval length ↓"),
}
_MAIN = 0.1


class TablePlace(NamedTuple):
    """One of the paper's tables for one dataset."""

    name: str
    """As printed: A1 to A42."""
    variant: Variant
    alpha: float


def regression_tables(results: BenchmarkResults) -> tuple[Table, ...]:
    """Every table of the paper whose dataset the preset has; simulated ones last."""
    printed = published(results.benchmark.published)
    rows = {row.label: row for row in results.benchmark.rows}
    return tuple(
        _table(results, printed, TablePlace(name, variant, alpha), methods)
        for (name, dataset, alpha), methods in _printed(printed, rows).items()
        for variant in results.variants(dataset)
        if {"alpha": alpha} in variant.places
    )


def tables_without_data(results: BenchmarkResults) -> list[str]:
    """A note on the paper's tables that the preset has no data for."""
    printed = published(results.benchmark.published)
    places = {str(n.where["table"]): str(n.where["dataset"]) for n in printed.numbers}
    missing = {table: on for table, on in places.items() if not results.variants(on)}
    if not missing:
        return []
    return [
        f"preset {results.preset.name} has no data for {len(missing)} tables of the "
        f"paper, those of {', '.join(dict.fromkeys(missing.values()))}"
    ]


def _printed(
    printed: Published, rows: Mapping[str, TableRow]
) -> dict[tuple[str, str, float], list[TableRow]]:
    """The rows of each printed table, in its order."""
    found: dict[tuple[str, str, float], dict[str, TableRow]] = {}
    for number in printed.numbers:
        where = number.where
        place = str(where["table"]), str(where["dataset"]), float(where["alpha"])
        label = str(where["method"])
        found.setdefault(place, {})[label] = rows[label]
    return {place: list(by_label.values()) for place, by_label in found.items()}


def _table(
    results: BenchmarkResults,
    printed: Published,
    place: TablePlace,
    methods: list[TableRow],
) -> Table:
    name, variant, alpha = place
    # The variations have tables of their own; what is beyond stands below the ten.
    complete = any(row.name == "gaussian" for row in methods)
    beyond = [row for row in results.benchmark.rows if row.beyond and complete]
    rows = [*methods, *(row for row in beyond if row.name in results.preset.rows)]
    data = (
        "simulated data, not the paper's" if variant.simulated else "the paper's data"
    )
    shift = f"; shifted: {variant.shift}" if variant.shift else ""
    note = printed.notes.get(name, "")
    return Table(
        name=f"table_{name}_{variant.name}",
        title=f"Table {name}: {variant.label}, {1 - alpha:.0%} intervals",
        about=f"{data}; preset {results.preset.told}{shift}",
        simulated=variant.simulated,
        columns=tuple(_column(name) for name in COLUMNS),
        lines=tuple(_line(results, printed, place, row) for row in rows),
        notes=(
            f"Coverage should be {1 - alpha:g}: the share of targets that lie in their "
            "interval, among the items that are predicted at all (prediction rate).",
            *([f"Published numbers: {note}."] if note else []),
        ),
        spread=DEVIATION,
        level=results.level,
        main=complete and alpha == _MAIN,
        keys={
            "number": name,
            "preset": results.preset.told,
            "data": data,
            "selection": variant.selection,
            "dataset": variant.label,
            "variant": variant.name,
            "settings": f"alpha={alpha:g}",
        },
    )


def _column(name: str) -> Column:
    found = COLUMNS[name]
    return Column(label=found.label, decimals=found.decimals, keys={"score": name})


def _line(
    results: BenchmarkResults, printed: Published, place: TablePlace, row: TableRow
) -> TableLine:
    cells = []
    for metric in COLUMNS:
        where: dict[str, str | float] = {
            "table": place.name,
            "dataset": place.variant.label,
            "alpha": place.alpha,
            "method": row.label,
            "metric": metric,
        }
        settings = {"alpha": place.alpha}
        cell = results.cell(place.variant.name, row.name, metric, settings)
        cells.append(table_cell(results, cell, number=printed.get(where)))
    return TableLine(
        labels=(row.label,),
        cells=tuple(cells),
        beyond=row.beyond,
        keys={"row": row.name, "method": row.label},
    )
