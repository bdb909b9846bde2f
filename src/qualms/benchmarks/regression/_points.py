"""The numbers behind the figures, ours and the paper's, on the same datasets."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from qualms.benchmarks import Variant
from qualms.evaluate.results import BenchmarkResults, Cell
from qualms.published import Number, published
from qualms.report.figures import FAINT, MARKERS, SERIES

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
# No two rows of one figure share a colour, and no two rows at all share both.
LOOKS = {
    "conformal": (SERIES[0], MARKERS[0]),
    "ensemble": (SERIES[4], MARKERS[1]),
    "gaussian": (SERIES[1], MARKERS[2]),
    "gaussian_ensemble": (SERIES[5], MARKERS[3]),
    "quantile": (SERIES[2], MARKERS[4]),
    "gaussian_gmm": (SERIES[3], MARKERS[5]),
    "gaussian_knn": (SERIES[4], MARKERS[6]),
    "gaussian_variance": (FAINT, MARKERS[7]),
    "gaussian_ensemble_gmm": (SERIES[0], MARKERS[8]),
    "gaussian_ensemble_variance": (SERIES[2], MARKERS[9]),
}
"""Colour and marker of each row, the same in all figures."""
Value = Callable[[Variant, str, str], float]
"""(dataset, row, score) to a mean, ours or the paper's."""


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
        """Belongs into the caption of a figure."""
        data = (
            "Simulated data, not the paper's" if self.simulated else "The paper's data"
        )
        return f"{data}; preset {self.results.preset.told}."

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

    def complete(self, labels: Iterable[str], rows: Sequence[str]) -> list[Variant]:
        """Datasets with all rows: averages over different ones would not compare."""
        return [
            variant
            for variant in self.judged(labels, rows)
            if all(self.has(variant, row, "test_coverage") for row in rows)
        ]

    def cell(self, variant: Variant, row: str, score: str, alpha: float = 0.1) -> Cell:
        """Our cell."""
        return self.results.cell(variant.name, row, score, {"alpha": alpha})

    def has(self, variant: Variant, row: str, score: str, alpha: float = 0.1) -> bool:
        """Whether we have a finite number there."""
        return math.isfinite(self.cell(variant, row, score, alpha).ours.mean)

    def label(self, row: str) -> str:
        """The paper's name of a row."""
        return self.results.benchmark.row(row).label

    def printed(
        self, label: str, row: str, metric: str, alpha: float = 0.1
    ) -> Number | None:
        """The published number, wherever it stands; tables that repeat it agree."""
        at = label, alpha, self.label(row), metric
        return _first(self.results.benchmark.published).get(at)

    def ours(self, variant: Variant, row: str, score: str) -> float:
        """The mean over our repeats."""
        return self.cell(variant, row, score).ours.mean

    def theirs(self, variant: Variant, row: str, score: str) -> float:
        """The paper's mean; nan where it prints none."""
        number = self.printed(variant.label, row, score)
        return math.nan if number is None else number.mean


@cache
def _first(name: str) -> dict[tuple[str | float, ...], Number]:
    columns = ("dataset", "alpha", "method", "metric")
    found: dict[tuple[str | float, ...], Number] = {}
    for number in published(name).numbers:
        found.setdefault(tuple(number.where[c] for c in columns), number)
    return found


class Averages(NamedTuple):
    """What a row achieves on average over datasets."""

    coverage_error: float
    mae_rank: float
    length_rank: float
    rate: float


def averages(
    value: Value, variants: Sequence[Variant], rows: Sequence[str]
) -> dict[str, Averages]:
    """Averages of each row over `variants`; ranks are among `rows`."""
    lengths, maes = (
        [{row: value(v, row, score) for row in rows} for v in variants]
        for score in ("val_interval_length", "val_mae")
    )
    return {
        row: Averages(
            coverage_error(value(v, row, "test_coverage") for v in variants),
            mean_rank(maes, row),
            mean_rank(lengths, row),
            float(np.mean([value(v, row, "test_prediction_rate") for v in variants])),
        )
        for row in rows
    }


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
