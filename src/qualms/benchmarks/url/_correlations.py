"""Rank correlations between scores over runs (figures 4, 5 and 7 to 9)."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from qualms.arrays import Array
from qualms.benchmarks.url._settings import (
    CROP,
    HUMAN,
    R_AUROC,
    RECALL,
    SOFT_CROP,
    SOFT_R_AUROC,
    UP_CROP,
    UP_R_AUROC,
    UP_TOP_1,
    UrlScore,
    UrlStudy,
)
from qualms.scores import spearman
from qualms.study import Variant

FEWEST = 3
"""Least number of runs for a correlation."""
FEWEST_METHODS = 8
"""Least number of methods for its interval."""
_MOST = 0.999
"""Largest correlation of the runs without a method that Fisher's scale takes."""


class RankCorrelation(NamedTuple):
    """Spearman's rank correlation with its interval, and the number of runs."""

    value: float
    runs: int
    low: float = math.nan
    high: float = math.nan

    @property
    def why(self) -> str:
        """Say why there is no value, '' where there is one."""
        if math.isfinite(self.value):
            return ""
        if self.runs < FEWEST:
            return f"{self.runs} runs have both scores, and {FEWEST} are needed"
        return "one of the scores is the same in all runs"

    @property
    def no_interval(self) -> str:
        """Say why there is no interval, '' where there is one, or no value."""
        if self.why or math.isfinite(self.low):
            return ""
        return f"an interval needs runs of {FEWEST_METHODS} methods that differ"


class CorrelatedPair(NamedTuple):
    """Two scores whose correlation the paper discusses."""

    text: str
    figure: str
    x: UrlScore
    y: UrlScore
    published: str = ""
    """Name of the published number; '' where none is printed."""


CORRELATIONS = (
    CorrelatedPair(
        *("upstream R-AUROC and downstream R-AUROC", "4", UP_R_AUROC, R_AUROC),
        "rank_corr_upstream_vs_downstream_r_auroc",
    ),
    CorrelatedPair(
        *("upstream crop rate and downstream R-AUROC", "4", UP_CROP, R_AUROC),
        "rank_corr_upstream_crop_pct_vs_downstream_r_auroc",
    ),
    CorrelatedPair(
        *("human alignment and R-AUROC, sets with votes", "5", HUMAN, SOFT_R_AUROC),
        "rank_corr_human_alignment_vs_r_auroc",
    ),
    CorrelatedPair(
        *("crop rate and R-AUROC, sets with votes", "5", SOFT_CROP, SOFT_R_AUROC),
        "rank_corr_crop_detection_vs_r_auroc",
    ),
    CorrelatedPair("downstream R@1 and R-AUROC", "7, 8", RECALL, R_AUROC),
    CorrelatedPair("upstream top-1 and downstream R@1", "9", UP_TOP_1, RECALL),
    CorrelatedPair("downstream crop rate and R-AUROC", "9", CROP, R_AUROC),
)


def correlation(
    study: UrlStudy, variants: Iterable[Variant], x: UrlScore, y: UrlScore
) -> RankCorrelation:
    """Correlate two scores over all runs of the methods on some variants."""
    points = list(study.points(variants, x, y))
    pairs = [(point.x, point.y) for point in points]
    return correlated(pairs, [point.row for point in points])


def correlated(
    pairs: list[tuple[float, float]], methods: Sequence[str] = ()
) -> RankCorrelation:
    """Correlate pairs of numbers; `methods` names the method of each.

    >>> correlated([(0.1, 1.0), (0.2, 2.0), (0.3, 3.0)]).value
    1.0
    """
    if len(pairs) < FEWEST:
        return RankCorrelation(float("nan"), len(pairs))
    points = np.array(pairs, np.float64)
    value = spearman(*points.T)
    return RankCorrelation(value, len(pairs), *_interval(value, points, methods))


def _interval(
    value: float, points: Array, methods: Sequence[str]
) -> tuple[float, float]:
    """Return a 95 % interval, for other methods of the same kind.

    Runs of a method are alike. So methods are left out one at a time (jackknife), and
    Student's t is applied on Fisher's scale.
    """
    of_run = np.array(methods)
    names = np.unique(of_run)
    if len(names) < FEWEST_METHODS or not abs(value) < 1:
        return math.nan, math.nan
    left = np.array([spearman(*points[of_run != name].T) for name in names])
    scaled = np.arctanh(left.clip(-_MOST, _MOST))
    count = len(names)
    error = math.sqrt((count - 1) * float(scaled.var()))
    if not error > 0:
        return math.nan, math.nan
    middle, reach = math.atanh(value), float(stdtrit(count - 1, 0.975)) * error
    return math.tanh(middle - reach), math.tanh(middle + reach)
