"""The numbers behind a figure, ours and the paper's, on the same datasets."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from qualms.benchmarks import Variant
from qualms.evaluate.benchmark import BenchmarkResults, Cell
from qualms.published import Number, published

Value = str | float

SYNTHETIC = (
    "Cells",
    "Cells-Tails",
    "Cells-Gap",
    "ChairAngle",
    "ChairAngle-Tails",
    "ChairAngle-Gap",
)
REAL = (
    "AssetWealth",
    "VentricularVolume",
    "BrainTumourPixels",
    "SkinLesionPixels",
    "HistologyNucleiPixels",
    "AerialBuildingPixels",
)
COMMON = ("conformal", "ensemble", "gaussian", "gaussian_ensemble", "quantile")


class Source(NamedTuple):
    """Results seen as the paper's data, or as their simulated stand-ins."""

    results: BenchmarkResults
    simulated: bool

    @property
    def suffix(self) -> str:
        """Keeps files of simulated data apart."""
        return "_simulated" if self.simulated else ""

    @property
    def remark(self) -> str:
        """Belongs into the title of a figure."""
        data = "simulated data, not the paper's; " if self.simulated else ""
        return f"{data}preset {self.results.preset.told}"

    def variant(self, label: str) -> Variant | None:
        """The dataset the paper calls `label`, if it was judged at all."""
        found = (v for v in self.results.variants(label))
        return next((v for v in found if v.simulated == self.simulated), None)

    def judged(
        self, labels: Iterable[str], rows: Sequence[str], *, alpha: float = 0.1
    ) -> list[Variant]:
        """The datasets among `labels` with a coverage for at least one of `rows`."""
        found = [self.variant(label) for label in labels]
        return [
            v
            for v in found
            if v is not None
            and any(self.has(v, row, "test_coverage", alpha) for row in rows)
        ]

    def cell(self, variant: Variant, row: str, score: str, alpha: float = 0.1) -> Cell:
        """Our cell."""
        return self.results.cell(variant.name, alpha, row, score)

    def has(self, variant: Variant, row: str, score: str, alpha: float = 0.1) -> bool:
        """Whether we have a finite number there."""
        return math.isfinite(self.cell(variant, row, score, alpha).ours.mean)

    def label(self, row: str) -> str:
        """The paper's name of a row."""
        return self.results.benchmark.row(row).label


def printed(
    source: Source, label: str, row: str, metric: str, alpha: float = 0.1
) -> Number | None:
    """The published number, wherever it stands; tables that repeat it agree."""
    at = label, alpha, source.label(row), metric
    return _first(source.results.benchmark.published).get(at)


@cache
def _first(name: str) -> dict[tuple[Value, ...], Number]:
    columns = ("dataset", "alpha", "method", "metric")
    found: dict[tuple[Value, ...], Number] = {}
    for number in published(name).numbers:
        found.setdefault(tuple(number.where[c] for c in columns), number)
    return found


def coverage_error(values: Iterable[float], alpha: float = 0.1) -> float:
    """Mean of |coverage - (1 - alpha)| over datasets, repeats averaged before."""
    return float(np.mean([abs(value - (1 - alpha)) for value in values]))


def mean_rank(by_dataset: Sequence[Mapping[str, float]], row: str) -> float:
    """Mean rank of `row` over datasets, 1 for the smallest; ties share their mean.

    >>> mean_rank([{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 2.0}], "a")
    1.5
    """
    ranks = []
    for values in by_dataset:
        below = sum(value < values[row] for value in values.values())
        equal = sum(value == values[row] for value in values.values())
        ranks.append(below + (equal + 1) / 2)
    return float(np.mean(ranks))
