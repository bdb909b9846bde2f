"""Findings of the paper, as questions to any results (Gustafsson et al., 2023).

Where a sentence has no number ("highly overconfident", "only marginally"), the limit is
ours and stands in the text.
"""

from itertools import pairwise
from typing import TYPE_CHECKING

from qualms.benchmarks.regression._rows import COMMON, REAL, SELECTIVE, SYNTHETIC
from qualms.effects import (
    ByName,
    DecidingNumber,
    Numbers,
    Wishes,
    estimates,
    mean_of,
    together,
)
from qualms.labels import Wanted
from qualms.study import Expectation

if TYPE_CHECKING:
    from qualms.evaluate.benchmark_results import BenchmarkResults

_PLAIN = ("Cells", "ChairAngle")
_SHIFTED = tuple(name for name in SYNTHETIC if name not in _PLAIN)
_STEPS = ("Cells", *(f"Cells-Tails v{step}" for step in (1, 2, 3)), "Cells-Tails")
"""Cells with more and more shift."""
_COVERAGE: Wishes = {"subset": "test", "score": "coverage", "alpha": 0.1}


def _test(
    dataset: Wanted,
    row: Wanted,
    score: str = "coverage",
    *,
    minus: Wishes | None = None,
) -> Numbers:
    """Return a function to a score of test items on each dataset, for each row."""
    labels: Wishes = {**_COVERAGE, "dataset": dataset, "row": row, "score": score}
    return estimates(labels, lines=("dataset", "row"), minus=minus)


def _val(row: str, score: str, *, minus: str, dataset: Wanted) -> Numbers:
    """Return a function to a row's validation score minus another row's."""
    labels: Wishes = {"dataset": dataset, "row": row, "alpha": 0.1}
    return estimates(
        {**labels, "subset": "val", "score": score},
        lines=("dataset",),
        minus={"row": minus},
    )


def _errors(rows: tuple[str, ...], *, best: str) -> Numbers:
    """Return a function to the mean coverage error of rows minus that of `best`.

    Only datasets that have all of the rows count.
    """

    def numbers(results: "BenchmarkResults") -> ByName:
        lines = {
            row: estimates(
                {**_COVERAGE, "row": row, "dataset": SYNTHETIC + REAL},
                lines=("dataset",),
            )(results)
            for row in rows
        }
        shared = sorted(set.intersection(*(set(of) for of in lines.values())))
        if not shared:
            return {}
        means = {
            row: mean_of([_off(of[n]) for n in shared]) for row, of in lines.items()
        }
        return {row: means[row] - means[best] for row in rows if row != best}

    return numbers


def _off(coverage: float | DecidingNumber) -> DecidingNumber:
    """Return how far a coverage is from 0.9, with the ends of its interval."""
    assert isinstance(coverage, DecidingNumber)  # as `estimates` makes them
    value, low, high = (end - 0.9 for end in coverage)
    ends = sorted((abs(low), abs(high)))
    return DecidingNumber(abs(value), 0.0 if low < 0 < high else ends[0], ends[1])


FINDINGS = (
    Expectation(
        text="Without a shift all five common methods are almost perfectly calibrated "
        "(coverage within 0.03 of 0.90)",
        where="Section 6.1, figure 2, tables A1 and A4",
        numbers=_test(_PLAIN, COMMON),
        low=0.87,
        high=0.93,
    ),
    Expectation(
        text="Under every synthetic shift the coverage of all five drops dramatically "
        "(below 0.80)",
        where="Section 6.1, figure 2, tables A2, A3, A5 and A6",
        numbers=_test(_SHIFTED, COMMON),
        high=0.80,
    ),
    Expectation(
        text="Coverage drops step by step as the shift grows, from Cells to "
        "Cells-Tails (most steps and methods)",
        where="Section 6.1, figure 4",
        numbers=together(
            *(
                _test(name, COMMON, minus={"dataset": before})
                for before, name in pairwise(_STEPS)
            )
        ),
        high=0.0,
        most=True,
    ),
    Expectation(
        text="On no real dataset does any of the five reach a coverage of 0.90",
        where="Section 6.1, figure 3, tables A7 to A12",
        numbers=_test(REAL, COMMON),
        high=0.90,
    ),
    Expectation(
        text="An ensemble has shorter intervals than a single network with conformal "
        "prediction, on every dataset",
        where="Section 6.1, figures 2 and 3",
        numbers=_val(
            "ensemble", "interval_length", minus="conformal", dataset=SYNTHETIC + REAL
        ),
        high=0.0,
    ),
    Expectation(
        text="The intervals of a Gaussian ensemble are usually shorter than those of a "
        "single Gaussian network",
        where="Section 6.1, figures 2 and 3",
        numbers=_val(
            *("gaussian_ensemble", "interval_length"),
            minus="gaussian",
            dataset=SYNTHETIC + REAL,
        ),
        high=0.0,
        most=True,
    ),
    Expectation(
        text="Selective GMM is almost perfectly calibrated on all synthetic datasets "
        "(coverage within 0.05 of 0.90)",
        where="Section 6.2, figure 5, tables A1 to A6",
        numbers=_test(SYNTHETIC, "gaussian_gmm"),
        low=0.85,
        high=0.95,
    ),
    Expectation(
        text="Selective GMM pays for it with fewer predictions: its rate on "
        "Cells-Tails is at least 0.2 below that on Cells",
        where="Section 6.2, figure 5",
        numbers=_test(
            *("Cells-Tails", "gaussian_gmm", "prediction_rate"),
            minus={"dataset": "Cells"},
        ),
        high=-0.2,
    ),
    Expectation(
        text="Selective kNN improves coverage too, but not to the same extent as "
        "selective GMM (synthetic shifts)",
        where="Section 6.2, figure 5",
        numbers=together(
            _test(_SHIFTED, "gaussian_knn", minus={"row": "gaussian"}),
            _test(_SHIFTED, "gaussian_gmm", minus={"row": "gaussian_knn"}),
        ),
        low=0.0,
    ),
    Expectation(
        text="Selecting by variance changes coverage only marginally (by less than 0.1 "
        "up or down, under most synthetic shifts)",
        where="Section 6.2, figure 5",
        numbers=_test(_SHIFTED, "gaussian_variance", minus={"row": "gaussian"}),
        low=-0.1,
        high=0.1,
        most=True,
    ),
    Expectation(
        text="On real data selective GMM improves coverage only marginally (by 0 to "
        "0.1)",
        where="Section 6.2, figure 6, tables A7 to A12",
        numbers=_test(REAL, "gaussian_gmm", minus={"row": "gaussian"}),
        low=0.0,
        high=0.1,
    ),
    Expectation(
        text="Of the selective methods the Gaussian ensemble with GMM has the smallest "
        "mean coverage error",
        where="Section 6.2, figure A6",
        numbers=_errors(SELECTIVE, best="gaussian_ensemble_gmm"),
        low=0.0,
    ),
    Expectation(
        text="The number of mixture components has no consistent effect (coverage of 2 "
        "and 8 mostly within 0.05 of that of 4)",
        where="Appendix B, tables A31 to A42",
        numbers=_test(
            SYNTHETIC + REAL,
            ("gaussian_gmm2", "gaussian_gmm8"),
            minus={"row": "gaussian_gmm"},
        ),
        low=-0.05,
        high=0.05,
        most=True,
    ),
)
