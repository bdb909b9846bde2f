"""Cells of a judged benchmark as cells of a table."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from qualms.benchmarks import Variant
from qualms.evaluate.results import BenchmarkResults, Cell, Check, Summary, summary
from qualms.published import Number
from qualms.report.table import Table, TableCell

NOT_PRINTED = "not in the paper"
ERROR, DEVIATION = "standard error", "standard deviation"
SAMPLE = "sample standard deviation"
"""Divides by n - 1; the standard deviation divides by n."""


def table_cell(
    results: BenchmarkResults,
    cell: Cell,
    *,
    spread: str = DEVIATION,
    scale: float = 1.0,
    number: Number | None = None,
    absent: str = NOT_PRINTED,
) -> TableCell:
    """Our cell in the unit of its column, beside a published number.

    Args:
        results: Where the cell is from.
        cell: The cell.
        spread: What stands beside a mean: ERROR, DEVIATION or SAMPLE.
        scale: What ours is multiplied by to have the published unit.
        number: The published number, if there is one.
        absent: Why there is none.
    """
    ours = over_repeats(cell.values, spread, scale=scale)
    theirs = over_repeats(cell.as_published, spread, scale=scale, released=True)
    group = results.ties.get(cell.key._replace(row=""))
    return TableCell(
        mean=ours.mean,
        spread=ours.std,
        low=scale * cell.low,
        high=scale * cell.high,
        repeats=len(cell.values),
        best=group is not None and not group.reason and group.best == cell.key.row,
        tied=group is not None and not group.reason and results.tied(cell),
        by_their_rule=theirs if cell.as_published else None,
        published=_published(number),
        why="; ".join(filter(None, (cell.why, _undefined(cell)))),
        no_interval=cell.no_interval,
        remark=absent if number is None else number.note,
    )


def over_repeats(
    values: Sequence[float], spread: str, *, scale: float = 1.0, released: bool = False
) -> Summary:
    """Mean and spread over repeats.

    The standard error is over the repeats that are defined and divides by n - 1; that
    of released code divides by n.

    >>> over_repeats((1.0, 3.0), ERROR)
    Summary(mean=2.0, std=1.0)
    >>> over_repeats((1.0, 2.0, 3.0), SAMPLE)
    Summary(mean=2.0, std=1.0)
    """
    if spread == DEVIATION:
        mean, std = summary(tuple(scale * value for value in values))
        return Summary(mean, std)
    known = [scale * value for value in values if math.isfinite(value)]
    if not known:
        return Summary(math.nan, math.nan)
    mean = math.fsum(known) / len(known)
    if len(known) == 1:
        return Summary(mean, math.nan)
    squares = math.fsum((value - mean) ** 2 for value in known)
    if spread == SAMPLE:
        return Summary(mean, math.sqrt(squares / (len(known) - 1)))
    degrees = len(known) - (not released)
    return Summary(mean, math.sqrt(squares / degrees / len(known)))


def data_text(variant: Variant) -> str:
    """Says plainly when the data are not the paper's."""
    return "simulated data, not the paper's" if variant.simulated else "real data"


def judged_variants(results: BenchmarkResults) -> list[Variant]:
    """The variants of the preset that have any number."""
    there = {key.variant for key, cell in results.cells.items() if cell.values}
    return [variant for variant in results.preset.variants if variant.name in there]


def ranking_notes(results: BenchmarkResults) -> list[str]:
    """Why it is not said which row is best, where that is so."""
    reasons = Counter(group.reason for group in results.ties.values() if group.reason)
    return [
        f"which row is best is not said in {count} columns: {reason}"
        for reason, count in reasons.items()
    ]


def check_numbers(results: BenchmarkResults, check: Check) -> str:
    """The numbers that an expected effect was decided by, row by row."""
    labels = {row.name: row.label for row in results.benchmark.rows}
    return ", ".join(
        f"{labels.get(row, row)} "
        + (f"{value:.3f}" if math.isfinite(value) else "missing")
        for row, value in check.values.items()
    )


def only_judged(tables: Iterable[Table]) -> tuple[Table, ...]:
    """The tables that have a number of ours in them."""
    return tuple(t for t in tables if any(cell.repeats for cell in t.cells))


def _published(number: Number | None) -> Summary | None:
    if number is None:
        return None
    return Summary(number.mean, math.nan if number.spread is None else number.spread)


def _undefined(cell: Cell) -> str:
    """How many repeats are undefined, where some are and others are not."""
    missing = sum(not math.isfinite(value) for value in cell.values)
    return f"{missing} of {len(cell.values)} repeats are undefined" if missing else ""
