"""Numbers that decide whether expected effects and the findings of a paper hold.

A benchmark declares functions of its results; they are called when it is judged.
Expected effects are decided by values, findings of papers by values with intervals.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from qualms.labels import Label, Wanted

if TYPE_CHECKING:
    from qualms.evaluate.benchmark_results import BenchmarkResults
    from qualms.results import Result, ResultsTable


class DecidingNumber(NamedTuple):
    """A number with the ends of its interval, nan where it has none."""

    value: float
    low: float = math.nan
    high: float = math.nan

    def __sub__(self, other: "DecidingNumber") -> "DecidingNumber":
        """Return the difference, with an interval as if both were independent.

        The distances of the ends from the values add up as roots of squares (Zou and
        Donner, 2008). Numbers of the same items and seeds usually vary together, so
        that the interval is rather too wide.
        """
        value = self.value - other.value
        below = math.hypot(self.value - self.low, other.high - other.value)
        above = math.hypot(self.high - self.value, other.value - other.low)
        return DecidingNumber(value, value - below, value + above)


ByName = Mapping[str, float | DecidingNumber]
"""Numbers by name, such as the name of a row."""
Numbers = Callable[["BenchmarkResults"], ByName]
Wishes = Mapping[str, Wanted]
"""Labels that numbers must have."""


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


def _joined(*labels: Label | None) -> str:
    return ", ".join(str(label) for label in labels if label is not None)


def estimates(
    labels: Wishes,
    *,
    lines: Sequence[str] = ("row",),
    minus: Wishes | None = None,
    named: Callable[..., str] = _joined,
) -> Numbers:
    """Take a number with its interval for each combination of the labels `lines`.

    Numbers of real data come before those of simulated data. Where several numbers
    fit, the first is taken, for example that of the first variant.

    Args:
        labels: Labels that the numbers must have; may restrict the labels of `lines`.
        lines: Labels whose combinations have a number each.
        minus: Labels of the number that is subtracted, where they differ. Lines without
            such a number, and its own line, are left out.
        named: Makes the name of a number from the labels of its line.
    """
    changed = {n: want for n, want in labels.items() if n not in lines}

    def numbers(results: "BenchmarkResults") -> ByName:
        table = results.table.where(**labels)
        others = results.table.where(**{**changed, **(minus or {})})
        numbers_by_line: dict[str, float | DecidingNumber] = {}
        for line in table.pivot(lines, ()).rows:
            place = dict(zip(lines, line, strict=True))
            first, second = _of_same_data(
                (table, place), (others, {**place, **(minus or {})})
            )
            if minus is None and first:
                numbers_by_line[named(*line)] = estimate_of(first)
            elif first and second and first.labels != second.labels:
                numbers_by_line[named(*line)] = estimate_of(first) - estimate_of(second)
        return numbers_by_line

    return numbers


def together(*numbers: Numbers) -> Numbers:
    """Return one function for the numbers of several, which have different names."""

    def union(results: "BenchmarkResults") -> ByName:
        return {name: n for each in numbers for name, n in each(results).items()}

    return union


def mean_of(numbers: Sequence[DecidingNumber]) -> DecidingNumber:
    """Return the mean, with an interval as if all were independent."""
    value = math.fsum(number.value for number in numbers) / len(numbers)
    below = math.hypot(*(number.value - number.low for number in numbers))
    above = math.hypot(*(number.high - number.value for number in numbers))
    return DecidingNumber(
        value, value - below / len(numbers), value + above / len(numbers)
    )


def estimate_of(result: "Result") -> DecidingNumber:
    """Return a result with its interval; where it has none, nothing is decided."""
    if math.isfinite(result.low) and math.isfinite(result.high):
        return DecidingNumber(result.value, result.low, result.high)
    return DecidingNumber(result.value)


def _of_same_data(
    *places: "tuple[ResultsTable, Mapping[str, Wanted]]",
) -> "tuple[Result | None, ...]":
    """Return the first number of each place: all of real data, or all of simulated."""
    for simulated in ((False, None), (True,)):
        numbers = tuple(t.get(simulated=simulated, **labels) for t, labels in places)
        if None not in numbers:
            break
    return numbers
