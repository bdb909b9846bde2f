"""Every score of a method on a benchmark, as a table by labels."""

from collections.abc import Sequence

from qualms import scores
from qualms.evaluate.subsets import subset_label
from qualms.labels import labels_text
from qualms.report.benchmark_report import BenchmarkReport, RowFacts
from qualms.report.judged import table_cell
from qualms.report.ordinary import ARROWS
from qualms.report.table import Column, Table, TableCell, TableLine
from qualms.results import ResultsTable


def rows_of(report: BenchmarkReport, method: str) -> tuple[RowFacts, ...]:
    """Return the rows of a benchmark that are of a method."""
    return tuple(row for row in report.rows if row.method == method)


def place_of(numbers: ResultsTable) -> tuple[int, int, int]:
    """Return how often rows are the best or tied, of how many, and how many others.

    Scores without a winner are not counted, but as others.
    """
    ranked = [each for each in numbers if each.best and not each.no_winner]
    tied = sum(each.tied for each in ranked)
    return tied, len(ranked), len(numbers) - len(ranked)


def method_table(report: BenchmarkReport, rows: Sequence[RowFacts]) -> Table:
    """Return every score of some rows: scores and labels by lines, rows by columns."""
    names = [row.name for row in rows]
    numbers = report.table.where(row=tuple(names)).computed()
    fixed = {"row", "method", "pool", "score", "subset", "variant"}
    settings = [
        label
        for label in numbers.labels
        if label not in fixed and _varies(numbers, label)
    ]
    keys = ["variant", "subset", "score", *settings]
    shown = numbers.pivot(keys, ["row"])
    heads = [str(head) for (head,) in shown.columns]
    variants = {variant.name: variant.label for variant in report.variants}
    lines = []
    for labels, cells in zip(shown.rows, shown.cells.tolist(), strict=True):
        named = {k: v for k, v in zip(keys, labels, strict=True) if v is not None}
        of_row = dict(zip(heads, cells, strict=True))
        by = {name: named[name] for name in settings if name in named}
        subset = str(named.get("subset", "all"))
        lines.append(
            TableLine(
                labels=(
                    score_heading(str(named.get("score", ""))),
                    "all items" if subset == "all" else subset_label(subset),
                    labels_text(by),
                ),
                cells=tuple(
                    table_cell(numbers.row(of_row[name]), absent="")
                    if of_row.get(name, -1) >= 0
                    else TableCell()
                    for name in names
                ),
                section=variants.get(str(named.get("variant", "")), ""),
                keys=named,
            )
        )
    return Table(
        name=f"table_{report.name}",
        title=f"{report.title}: every score",
        left=("score", "items", "by"),
        columns=tuple(
            Column(label=row.label, keys={"row": row.name, "pool": row.pool})
            for row in rows
        ),
        lines=tuple(lines),
        simulated=report.simulated,
        level=report.level,
        keys={"benchmark": report.name, "preset": report.preset},
    )


def cost_table(report: BenchmarkReport, rows: Sequence[RowFacts]) -> Table | None:
    """Return what the rows cost; None where nothing was recorded."""
    variants = {variant.name: variant.label for variant in report.variants}
    lines = []
    for (variant, name), cost in report.costs.items():
        row = next((each for each in rows if each.name == name), None)
        seconds = report.seconds_each.get((variant, name))
        values = (seconds, cost.parameters, cost.per_epoch, cost.per_item)
        if row is None or all(value is None for value in values):
            continue
        lines.append(
            TableLine(
                labels=(row.label, variants.get(variant, variant)),
                cells=tuple(
                    TableCell(why="not recorded")
                    if value is None
                    else TableCell(mean=float(value))
                    for value in values
                ),
                keys={"row": name, "variant": variant},
            )
        )
    if not lines:
        return None
    heads = ("seconds", "parameters", "seconds per epoch", "seconds per item")
    return Table(
        name=f"table_costs_{report.name}",
        title=f"{report.title}: cost",
        about="Seconds are those of the runs that one result pools; parameters are"
        " those of one network.",
        left=("row", "data"),
        columns=tuple(Column(label=head, keys={"cost": head}) for head in heads),
        lines=tuple(lines),
        simulated=report.simulated,
        keys={"benchmark": report.name},
    )


def _varies(numbers: ResultsTable, label: str) -> bool:
    """Return whether a label is not the same in all numbers of a dataset."""
    return any(
        len(set(numbers.where(variant=variant).column(label))) > 1
        for variant in (numbers.distinct("variant") or (None,))
    )


def score_heading(name: str) -> str:
    """Return a score in words, with an arrow to where it is better."""
    function = getattr(scores, name, None)
    if not callable(function):
        return name
    about = scores.about(function)
    return f"{about.label}{ARROWS[about.better]}"
