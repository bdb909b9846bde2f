"""The paper's tables with our numbers in them: which cell stands beside which."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from qualms.benchmarks import TableRow, Variant
from qualms.evaluate.benchmark import BenchmarkResults, Key
from qualms.published import Published, published
from qualms.report._compared import Compared

METRICS = {
    "val_mae": "val MAE",
    "val_interval_length": "val interval length",
    "test_coverage": "test coverage",
    "test_prediction_rate": "test prediction rate",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row of a table."""

    label: str
    row: TableRow
    compared: Mapping[str, Compared]
    """By metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTable:
    """One of the paper's tables for one dataset."""

    name: str
    """As printed: A1 to A42."""
    preset: str
    variant: Variant
    alpha: float
    lines: tuple[Line, ...]
    note: str = ""

    @property
    def data(self) -> str:
        """Says plainly when the data are not the paper's."""
        simulated = self.variant.simulated
        return "simulated data, not the paper's" if simulated else "the paper's data"

    @property
    def file(self) -> str:
        """Name of its files, without ending."""
        return f"table_{self.name}_{self.variant.name}"


def paper_tables(results: BenchmarkResults) -> tuple[PaperTable, ...]:
    """Every table of the paper whose dataset the preset has; simulated ones last."""
    printed = published(results.benchmark.published)
    rows = {row.label: row for row in results.benchmark.rows}
    return tuple(
        PaperTable(
            name=name,
            preset=results.preset.told,
            variant=variant,
            alpha=alpha,
            lines=tuple(_lines(results, printed, (name, variant, alpha), methods)),
            note=printed.notes.get(name, ""),
        )
        for (name, dataset, alpha), methods in _printed(printed, rows).items()
        for variant in results.variants(dataset)
        if alpha in variant.alphas
    )


def absent_tables(results: BenchmarkResults) -> dict[str, str]:
    """The dataset of each of the paper's tables that the preset has no data for."""
    printed = published(results.benchmark.published)
    places = {str(n.where["table"]): str(n.where["dataset"]) for n in printed.numbers}
    return {table: on for table, on in places.items() if not results.variants(on)}


_Place = tuple[str, str, float]


def _printed(
    printed: Published, rows: Mapping[str, TableRow]
) -> dict[_Place, list[TableRow]]:
    """The rows of each printed table, in its order."""
    found: dict[_Place, dict[str, TableRow]] = {}
    for number in printed.numbers:
        where = number.where
        place = str(where["table"]), str(where["dataset"]), float(where["alpha"])
        label = str(where["method"])
        found.setdefault(place, {})[label] = rows[label]
    return {place: list(by_label.values()) for place, by_label in found.items()}


def _lines(
    results: BenchmarkResults,
    printed: Published,
    place: tuple[str, Variant, float],
    methods: list[TableRow],
) -> Iterator[Line]:
    name, variant, alpha = place
    # The variations have tables of their own; what is beyond stands below the ten.
    complete = any(row.name == "gaussian" for row in methods)
    beyond = [row for row in results.benchmark.rows if row.beyond and complete]
    for row in [*methods, *(r for r in beyond if r.name in results.preset.rows)]:
        compared = {}
        for metric in METRICS:
            where: dict[str, str | float] = {
                "table": name,
                "dataset": variant.label,
                "alpha": alpha,
                "method": row.label,
                "metric": metric,
            }
            ties = results.ties.get(Key(variant.name, alpha, "", metric))
            compared[metric] = Compared(
                cell=results.cell(variant.name, alpha, row.name, metric),
                number=printed.get(where),
                tied=ties is not None and row.name in ties.members,
            )
        yield Line(label=row.label, row=row, compared=compared)
