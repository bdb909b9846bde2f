"""Results of a judged benchmark as cells of a table."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from qualms.evaluate.benchmark_results import BenchmarkResults, Check
from qualms.report.table import Table, TableCell
from qualms.results import Result, Summary, summary
from qualms.study import Variant

NOT_PRINTED = "not in the paper"
ERROR, DEVIATION = "standard error", "standard deviation"
SAMPLE = "sample standard deviation"
"""Divides by n - 1; the standard deviation divides by n."""


def table_cell(
    judged: Result,
    *,
    spread: str = DEVIATION,
    scale: float = 1.0,
    number: Result | None = None,
    absent: str = NOT_PRINTED,
) -> TableCell:
    """Return our number in the unit of its column, beside a published one.

    Args:
        judged: Our number, or why there is none.
        spread: The kind of spread: ERROR, DEVIATION or SAMPLE.
        scale: Factor of both numbers, for the unit of the column.
        number: The published number, if there is one.
        absent: Why there is none.
    """
    mean, std = over_repeats(judged.values, spread, scale=scale)
    released = over_repeats(judged.released_values, spread, scale=scale, released=True)
    ranked = bool(judged.best) and not judged.no_winner
    return TableCell(
        mean=mean,
        spread=std,
        low=scale * judged.low,
        high=scale * judged.high,
        repeats=len(judged.values),
        best=ranked and judged.best == judged.labels["row"],
        tied=ranked and judged.tied,
        released=released if judged.released_values else None,
        published=None
        if number is None
        else Summary(scale * number.value, scale * number.spread),
        why="; ".join(filter(None, (judged.why, _undefined(judged)))),
        no_interval=judged.no_interval,
        covers=judged.covers,
        seeds=_range_of_seeds(judged, scale),
        remark=absent if number is None else number.note,
    )


def _range_of_seeds(judged: Result, scale: float) -> tuple[float, float] | None:
    """Return the least and most of the seeds, where these are too few to say more."""
    defined = all(map(math.isfinite, judged.values))
    if judged.covers != "these runs" or len(judged.values) < 2 or not defined:
        return None
    return scale * min(judged.values), scale * max(judged.values)


def over_repeats(
    values: Sequence[float], spread: str, *, scale: float = 1.0, released: bool = False
) -> Summary:
    """Return mean and spread over repeats.

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
    defined = [scale * value for value in values if math.isfinite(value)]
    if not defined:
        return Summary(math.nan, math.nan)
    mean = math.fsum(defined) / len(defined)
    if len(defined) == 1:
        return Summary(mean, math.nan)
    squares = math.fsum((value - mean) ** 2 for value in defined)
    if spread == SAMPLE:
        return Summary(mean, math.sqrt(squares / (len(defined) - 1)))
    degrees = len(defined) - (not released)
    return Summary(mean, math.sqrt(squares / degrees / len(defined)))


def data_text(variant: Variant) -> str:
    """Return a note if data are simulated; '' if not."""
    return "simulated data, not the paper's" if variant.simulated else "real data"


def ranking_notes(results: BenchmarkResults) -> list[str]:
    """Say why no row is marked as best, where that is so."""
    columns = {
        (
            row.labels["variant"],
            row.labels["subset"],
            row.labels["score"],
            row.no_winner,
        )
        for row in results.table
        if row.no_winner
    }
    reasons = Counter(reason for *_, reason in columns)
    return [
        f"no winner is marked in {count} columns: {reason}"
        for reason, count in reasons.items()
    ]


def check_numbers(results: BenchmarkResults, check: Check) -> str:
    """Return the numbers that decided an expected effect, row by row."""
    labels = {row.name: row.label for row in results.plan.rows}
    return ", ".join(
        f"{labels.get(row, row)} "
        + (f"{value:.3f}" if math.isfinite(value) else "missing")
        for row, value in check.values.items()
    )


def only_judged(tables: Iterable[Table | None]) -> tuple[Table, ...]:
    """Return the tables that have a number of ours in them."""
    return tuple(
        table
        for table in tables
        if table is not None and any(cell.repeats for cell in table.cells)
    )


def _undefined(judged: Result) -> str:
    """Say how many repeats are undefined, where some are and others are not."""
    missing = sum(not math.isfinite(value) for value in judged.values)
    if not missing:
        return ""
    return f"{missing} of {len(judged.values)} repeats are undefined"
