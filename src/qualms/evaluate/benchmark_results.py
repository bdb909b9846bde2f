"""Every number of a judged benchmark as one labelled table, with what is drawn."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from qualms.evaluate.entry import Curve, Histogram, MapSlice, Scatter
from qualms.labels import Labelled, Wanted, fits
from qualms.results import Result, ResultsTable
from qualms.study import Benchmark, Expectation, Line, Preset, RunPlan, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A run without readable predictions."""

    hash: str
    dataset: str
    method: str
    seed: int
    reason: str
    remedy: str = ""
    """What to do where the same command would not make the run again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """An expectation, with the numbers that decide it."""

    expectation: Expectation
    values: Mapping[str, float]
    """By row, or whatever the expectation compares; nan where a number is missing."""

    @property
    def known(self) -> bool:
        """Whether enough numbers are there to decide."""
        if self.expectation.any_row and self.held:
            return True
        return all(math.isfinite(value) for value in self.values.values())

    @property
    def held(self) -> bool:
        """Whether it holds for every row, or for one where that is enough."""
        low, high = self.expectation.low, self.expectation.high
        enough = any if self.expectation.any_row else all
        return enough(low <= value <= high for value in self.values.values())


class Cost(NamedTuple):
    """What the runs of a row took, as far as that was recorded."""

    seconds: float | None
    """Of all its runs together, training and prediction."""
    parameters: int | None
    """Of one network."""
    per_epoch: float | None = None
    """Seconds of an epoch of training."""
    per_item: float | None = None
    """Seconds to predict an item."""
    per_crop: float | None = None
    """Seconds to predict its crop, where crops are predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkResults:
    """Every number of a plan, from predictions alone."""

    plan: RunPlan
    table: ResultsTable
    """One row for each number; a line without numbers has one row that says why."""
    curves: Labelled[Curve] = field(default=Labelled())
    """Means over repeats; labelled as results are, with `subset` and `name`."""
    histograms: Labelled[Histogram] = field(default=Labelled())
    scatters: Labelled[Scatter] = field(default=Labelled())
    """Of the first repeat, as are slices."""
    slices: Labelled[MapSlice] = field(default=Labelled())
    checks: tuple[Check, ...] = ()
    missing: tuple[Missing, ...] = ()
    hardware: tuple[str, ...] = ()
    """Machines named by the predictions."""
    seconds: float | None = None
    """Seconds of all runs together, as far as they were recorded."""
    costs: Mapping[tuple[str, str], Cost] = field(default_factory=dict)
    """By the names of variant and row."""
    notes: tuple[str, ...] = ()
    level: float = 0.95
    resamples: int = 1000
    seed: int = 0

    @property
    def benchmark(self) -> Benchmark:
        """The benchmark that was judged."""
        return self.plan.benchmark

    @property
    def preset(self) -> Preset:
        """The preset that was judged, as the benchmark declares it."""
        return self.plan.preset

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The variants that have any number."""
        judged = {row.labels["variant"] for row in self.table if row.values}
        return tuple(v for v in self.plan.variants if v.name in judged)

    def result(self, **labels: Wanted) -> Result:
        """Return the number with these labels; one without a value that says why.

        The first one where several have them: name None where a setting such as
        `measure` must be missing.
        """
        found = self.table.get(**labels)
        if found is not None:
            return found
        stated = {n: v for n, v in labels.items() if isinstance(v, str | int | float)}
        names = self.plan.line_labels
        lines = Labelled.of((line.labels, line.labels) for line in self.plan.lines)
        of_line = lines.get(**{n: v for n, v in labels.items() if n in names}) or {}
        return Result(labels={**of_line, **stated}, why=self.why_absent(**labels))

    def why_absent(self, **labels: Wanted) -> str:
        """Say why there is no number with these labels."""
        line = {n: w for n, w in labels.items() if n in ("variant", "row")}
        absent = self.table.where(score=None, **line)
        for row in absent:
            if fits(row.labels, {n: labels[n] for n in labels if n in row.labels}):
                return row.why
        return f"not part of preset {self.preset.name}"

    def lines(self, **labels: Wanted) -> tuple[Line, ...]:
        """Return the lines of the plan that have these labels."""
        lines = Labelled.of((line.labels, line) for line in self.plan.lines)
        return lines.where(**labels).values
