"""Paired differences between scores, and the group that ties with the best.

Samples are the replicates of `bootstrap`. Two files are compared on the same replicates
(same items, strata, clusters and seed), so the chance in drawing items cancels.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from qualms.scores._about import Better
from qualms.scores._arrays import Array
from qualms.scores.resampling._bootstrap import check_level, percentile_interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One score minus another, with its interval and two-sided p value."""

    value: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TieGroup:
    """The best of a table and all that do not differ significantly from it."""

    best: str
    members: tuple[str, ...]
    """`best` and its equals, in the order of the table."""
    p: Mapping[str, float]
    """Holm-adjusted p value of each difference from the best; 1 for the best itself."""


def paired_difference(
    a_samples: ArrayLike,
    b_samples: ArrayLike,
    a_value: float,
    b_value: float,
    *,
    level: float = 0.95,
) -> Difference:
    """`a_value - b_value` with the percentile interval and p value of its replicates.

    The p value counts how often the difference crosses zero, both sides, with the
    observed one counted in (Davison & Hinkley, 1997), so it is never 0. Replicates in
    which either score is undefined are left out; nan where none remains.

    >>> paired_difference([0.7, 0.8, 0.9], [0.5, 0.6, 0.8], 0.8, 0.6, level=0.5).p
    0.5
    """
    a, b = _samples("a_samples", a_samples), _samples("b_samples", b_samples)
    if len(a) != len(b):
        raise ValueError(
            f"paired samples must have the same length, got {len(a)} and {len(b)}; "
            "bootstrap both files with the same number of replicates and the same seed"
        )
    difference = a - b
    interval = percentile_interval(difference, level=level)
    return Difference(
        value=float(a_value - b_value),
        low=interval.low,
        high=interval.high,
        p=_two_sided(difference[~np.isnan(difference)]),
    )


def tie_group(
    values: Mapping[str, float],
    samples: Mapping[str, ArrayLike],
    *,
    better: Better,
    level: float = 0.95,
) -> TieGroup:
    """The best of `values` and all that do not differ significantly from it.

    Every other score is compared with the best by `paired_difference`, the p values are
    Holm-adjusted, and those above 1 - `level` stay in the group. Undefined scores (nan)
    are never members and take no part in the adjustment.

    `replicates_needed` says how many replicates a table of this size takes: with fewer,
    no difference can be significant.

    >>> samples = {"a": [0.90, 0.91, 0.92], "b": [0.90, 0.91, 0.92]}
    >>> tie_group({"a": 0.91, "b": 0.91}, samples, better="higher").members
    ('a', 'b')
    """
    _check_table(values, samples, better)
    # 1 - 0.9 falls short of 0.1 by rounding.
    alpha = 1.0 - check_level(level) + 1e-12
    defined = {name: float(v) for name, v in values.items() if not np.isnan(v)}
    if not defined:
        raise ValueError("at least one value must be defined, got nan for all")
    best = (max if better == "higher" else min)(defined, key=lambda name: defined[name])
    rivals = [name for name in defined if name != best]
    adjusted = holm(
        [
            paired_difference(
                samples[name], samples[best], defined[name], defined[best]
            ).p
            for name in rivals
        ]
    )
    p = dict.fromkeys(values, float("nan")) | dict(zip(rivals, adjusted, strict=True))
    p[best] = 1.0
    members = tuple(name for name in values if p[name] > alpha)
    return TieGroup(best=best, members=members, p=p)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """The p values adjusted for being several (Holm, 1979), in the order given.

    A nan stays nan and does not count as a comparison.

    >>> holm([0.01, 0.04, 0.03])
    (0.03, 0.06, 0.06)
    """
    p = np.asarray(p_values, dtype=np.float64)
    if ((p < 0.0) | (p > 1.0)).any():
        raise ValueError(f"p_values must lie in [0, 1], got {p_values}")
    # nan sorts last, so the defined ones fill the front.
    order = np.argsort(p, kind="stable")[: np.count_nonzero(~np.isnan(p))]
    stepped = p[order] * np.arange(len(order), 0, -1)
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return tuple(adjusted.tolist())


def replicates_needed(comparisons: int, *, level: float = 0.95) -> int:
    """The fewest replicates with which any of `comparisons` can be significant.

    The smallest p value of B replicates is 2 / (B + 1), and Holm multiplies it by the
    number of comparisons.

    >>> replicates_needed(1), replicates_needed(20)
    (39, 799)
    """
    if comparisons < 1:
        raise ValueError(f"comparisons must be at least 1, got {comparisons}")
    return math.ceil(2.0 * comparisons / (1.0 - check_level(level)) - 1.0 - 1e-9)


def _two_sided(difference: Array) -> float:
    if not difference.size:
        return float("nan")
    below = 1 + np.count_nonzero(difference <= 0.0)
    above = 1 + np.count_nonzero(difference >= 0.0)
    return float(min(1.0, 2.0 * min(below, above) / (difference.size + 1)))


def _samples(name: str, values: ArrayLike) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise ValueError(
            f"{name} must have shape (replicates,) with at least one, got {array.shape}"
        )
    return array


def _check_table(
    values: Mapping[str, float], samples: Mapping[str, ArrayLike], better: Better
) -> None:
    if better not in ("higher", "lower"):
        raise ValueError(f"better must be 'higher' or 'lower', got {better!r}")
    if values.keys() != samples.keys():
        odd = sorted(values.keys() ^ samples.keys())
        raise ValueError(f"values and samples must have the same names, {odd} do not")
