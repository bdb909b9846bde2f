"""The numbers behind the figures, ours and the paper's, on the same datasets."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.report.figures import FAINT, MARKERS, SERIES
from qualms.report.layout import published_of
from qualms.results import Result
from qualms.study import Variant


class SplitScore(NamedTuple):
    """A score of the validation or the test items."""

    subset: str
    score: str


COVERAGE = SplitScore("test", "coverage")
RATE = SplitScore("test", "prediction_rate")
LENGTH = SplitScore("val", "interval_length")
VAL_MAE, TEST_MAE = SplitScore("val", "mae"), SplitScore("test", "mae")
# Rows of one figure have different colours, and no two rows share colour and marker.
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


class Source(NamedTuple):
    """Results on the paper's data, or on the simulated data that replace them."""

    results: BenchmarkResults
    simulated: bool

    @property
    def suffix(self) -> str:
        """End of the names of files of simulated data; '' for the paper's data."""
        return "_simulated" if self.simulated else ""

    @property
    def remark(self) -> str:
        """Sentence on the data for the caption of a figure."""
        data = (
            "Simulated data, not the paper's" if self.simulated else "The paper's data"
        )
        return f"{data}; preset {self.results.plan.preset_text}."

    def variant(self, label: str) -> Variant | None:
        """Return the dataset that the paper calls `label`, if it was judged."""
        variants = (v for v in self.results.plan.variants if v.label == label)
        return next((v for v in variants if v.simulated == self.simulated), None)

    def judged(
        self, labels: Iterable[str], rows: Sequence[str], *, alpha: float = 0.1
    ) -> list[Variant]:
        """Return datasets of `labels` with a coverage of at least one of `rows`."""
        variants = [self.variant(label) for label in labels]
        return [
            v
            for v in variants
            if v is not None and any(self.has(v, row, COVERAGE, alpha) for row in rows)
        ]

    def complete(self, labels: Iterable[str], rows: Sequence[str]) -> list[Variant]:
        """Return the datasets that have all rows, so that averages compare."""
        return [
            variant
            for variant in self.judged(labels, rows)
            if all(self.has(variant, row, COVERAGE) for row in rows)
        ]

    def result(
        self, variant: Variant, row: str, score: SplitScore, alpha: float = 0.1
    ) -> Result:
        """Return our number."""
        return self.results.result(
            variant=variant.name, row=row, alpha=alpha, **score._asdict()
        )

    def has(
        self, variant: Variant, row: str, score: SplitScore, alpha: float = 0.1
    ) -> bool:
        """Return whether we have a finite number."""
        return math.isfinite(self.result(variant, row, score, alpha).value)

    def label(self, row: str) -> str:
        """Return the paper's name of a row."""
        return self.results.plan.row(row).label

    def printed(
        self, label: str, row: str, score: SplitScore, alpha: float = 0.1
    ) -> Result | None:
        """Return the published number, if it is of these data; tables agree on it."""
        book = published_of(self.results)
        if book is None:
            return None
        labels = {"dataset": label, "row": row, "alpha": alpha, **score._asdict()}
        return book.table.get(**labels, simulated=self.simulated)

    def ours(self, variant: Variant, row: str, score: SplitScore) -> float:
        """Return the mean over our repeats."""
        return self.result(variant, row, score).value

    def theirs(self, variant: Variant, row: str, score: SplitScore) -> float:
        """Return the paper's mean; nan where it prints none."""
        number = self.printed(variant.label, row, score)
        return math.nan if number is None else number.value


def coverage_error(values: Iterable[float], alpha: float = 0.1) -> float:
    """Return the mean of |coverage - (1 - alpha)| of repeats' means over datasets."""
    return float(np.mean([abs(value - (1 - alpha)) for value in values]))
