"""The published number of a setting, in whichever table it stands."""

from functools import cache

from qualms.benchmarks import TableRow, Variant
from qualms.evaluate.benchmark import BenchmarkResults
from qualms.published import Number, published
from qualms.report.papers.retina._scores import Score, Value
from qualms.report.papers.retina._settings import (
    PAPER_BLUR,
    SUBSETS,
    as_in_the_paper,
    blur_of,
    published_row,
    task_of,
)

_PLACE = (
    "task",
    "tuned_on",
    "dataset",
    "blur_constant",
    "method",
    "ensemble",
    "referral",
    "metric",
)


def printed(
    results: BenchmarkResults,
    variant: Variant,
    row: TableRow,
    subset: str,
    score: Score,
) -> Number | None:
    """The paper's number for a cell of ours; of tables that repeat it, the first.

    None where ours is of another setting, or of simulated data.
    """
    if row.beyond or not as_in_the_paper(variant):
        return None
    where: dict[str, Value] = {
        "task": task_of(variant),
        "tuned_on": variant.regime.replace("-", ""),
        "dataset": SUBSETS.get(subset, subset),
        "blur_constant": float(blur_of(variant) or PAPER_BLUR),
        "referral": score.referral,
        "metric": score.metric,
        **published_row(row),
    }
    at = tuple(where[column] for column in _PLACE)
    return _first(results.benchmark.published).get(at)


@cache
def _first(name: str) -> dict[tuple[Value, ...], Number]:
    found: dict[tuple[Value, ...], Number] = {}
    for number in published(name).numbers:
        found.setdefault(tuple(number.where[c] for c in _PLACE), number)
    return found
