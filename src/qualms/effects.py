"""Numbers that decide whether the expected effects of a benchmark hold.

A benchmark declares functions of its results; they are called when it is judged.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from qualms.labels import Label

if TYPE_CHECKING:
    from qualms.evaluate.benchmark_results import BenchmarkResults

Numbers = Callable[["BenchmarkResults"], Mapping[str, float]]


def value_of(
    rows: Sequence[str],
    labels: Mapping[str, Label | None],
    *,
    minus: Mapping[str, Label | None] | None = None,
    minus_rows: Sequence[str] = (),
) -> Numbers:
    """Take the value of each row, or its difference from another value.

    Args:
        rows: Names of rows; rows that are not planned are left out.
        labels: Variant, score and the other labels of the values.
        minus: Labels of the value that is subtracted, where they differ.
        minus_rows: Rows whose values are subtracted, one for each of `rows`.
    """
    others = dict(zip(rows, minus_rows or rows, strict=True))
    subtracts = minus is not None or bool(minus_rows)
    subtracted = {**labels, **(minus or {})}

    def numbers(results: "BenchmarkResults") -> Mapping[str, float]:
        def value(row: str, labels: Mapping[str, Label | None]) -> float:
            result = results.table.get(row=row, **labels)
            return math.nan if result is None else result.value

        def planned(row: str, labels: Mapping[str, Label | None]) -> bool:
            return bool(results.lines(row=row, variant=labels["variant"]))

        return {
            row: value(row, labels) - (value(other, subtracted) if subtracts else 0.0)
            for row, other in others.items()
            if planned(row, labels) and planned(other, subtracted)
        }

    return numbers


def worst_shortfall(
    label: str, rows: Sequence[str], labels: Mapping[str, Label | None]
) -> Numbers:
    """Take the largest distance of each value of a label from the best value.

    Values of the label are compared where all other labels are the same; results
    without the label are left out. If all distances are above 0, no value is best
    everywhere. For scores where higher is better.
    """

    def numbers(results: "BenchmarkResults") -> Mapping[str, float]:
        table = results.table.where(row=tuple(rows), **labels)
        table = table.where(**{label: table.distinct(label)})
        others = tuple(name for name in table.labels if name != label)
        pivot = table.pivot(others, (label,))
        names = [str(head[0]) for head in pivot.columns]
        most: dict[str, float] = {}
        for line in pivot.values.tolist():
            best = max((v for v in line if math.isfinite(v)), default=math.nan)
            for name, value in zip(names, line, strict=True):
                if math.isfinite(value):
                    most[name] = max(best - value, most.get(name, 0.0))
        return most

    return numbers
