"""Rank correlations between scores over runs (figures 4, 5 and 7 to 9)."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

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


class RankCorrelation(NamedTuple):
    """Spearman's rank correlation, and the number of runs."""

    value: float
    runs: int

    @property
    def why(self) -> str:
        """Return why there is no value, '' where there is one."""
        if math.isfinite(self.value):
            return ""
        if self.runs < FEWEST:
            return f"{self.runs} runs have both scores, and {FEWEST} are needed"
        return "one of the scores is the same in all runs"


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
    return correlated([(point.x, point.y) for point in points])


def correlated(pairs: list[tuple[float, float]]) -> RankCorrelation:
    """Correlate pairs of numbers.

    >>> correlated([(0.1, 1.0), (0.2, 2.0), (0.3, 3.0)])
    RankCorrelation(value=1.0, runs=3)
    """
    if len(pairs) < FEWEST:
        return RankCorrelation(float("nan"), len(pairs))
    first, second = np.array(pairs, np.float64).T
    return RankCorrelation(spearman(first, second), len(pairs))
