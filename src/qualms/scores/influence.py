"""The influence of each item on a score, from which every interval is made.

To first order the score of a sample is that of the population plus one term per item,
its influence (the infinitesimal jackknife). The variance of the score is then the
variance of a sum, whatever the score is, and needs no replicates.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array, Flags, Index

if TYPE_CHECKING:
    from qualms.scores._about import About

__all__ = [
    "Influence",
    "mean_influence",
]

Scale = Literal["share", "logit", "log", "fisher", "linear"]
"""Scale on which the interval is symmetric, so that it stays in the score's range.

share: Wilson's interval for the number of independent items with this standard error.
logit: log of the distance from the lower bound over that from the upper one.
log: log of the value. fisher: logit of a correlation. linear: the value itself.
"""
FEWEST_ERRORS = 5
FEWEST_CLUSTERS, CLUSTERS_OF_SLOPES, CLUSTERS_OF_GAPS = 10, 20, 50
CLUSTERS_OF_EXCESS = 100
"""Fewest clusters with an interval: of most scores; of the slope of calibration and of
precision, which a few clusters tilt; of errors that sum the gaps of bins; and of the
excess over the best ranking."""
SQUARES = (
    "it averages squared errors, whose variance may be infinite: no interval was found "
    "that holds where errors have heavy tails"
)


class BinGaps(NamedTuple):
    """An error that sums the absolute gaps of bins, each a sum over items."""

    cell: Index
    """(N,) cell of each item: its bin, unless there are `shares`."""
    own: Array
    """(N,) contribution of the item to the gap of its cell, over N."""
    total: Array
    """(bins,) gaps."""
    tilt: Array | None = None
    """(cells, cells) contribution of an item of one cell to all cells, over N, besides
    its own gap: a level inside a narrow interval is inside all wider ones."""
    shares: Array | None = None
    """(cells, bins) shares of each cell in the bins; None if cells are bins."""
    factor: float = 1.0
    """Factor on the sum of absolute gaps that gives the error."""


class ClassGaps(NamedTuple):
    """The mean over classes of an error that sums the gaps of bins of each class."""

    probs: Array
    """(N, C)"""
    target: Index
    """(N,)"""
    bins: int
    """Number of bins of each class."""


class SmoothGaps(NamedTuple):
    """An error that smooths the residuals of items along their confidence."""

    position: Array
    """(N,) confidence."""
    residual: Array
    """(N,) gap of each item, over N."""


class Strata(NamedTuple):
    """A score of the shares of hits in strata of items."""

    hit: Array
    """(N,) 1 for hits, 0 for others."""
    stratum: Index
    """(N,) number of each item's stratum."""
    summary: Literal["mean", "least"]
    """Summary of the shares as one score."""


class Exceedance(NamedTuple):
    """The share of one kind of item at or above a quantile of the other kind."""

    level: Array
    """(N,) ranks; tied items have the same."""
    positive: Flags
    """(N,) True for the kind whose quantile is the threshold."""
    share: float
    """Least share of the positive items at or above the threshold."""
    complement: bool = False
    """True if the score is the share of items below the threshold."""


class RateRatio(NamedTuple):
    """A score of the ratio of two rates of hits: of positive and negative items."""

    hit: Flags
    """(N,)"""
    positive: Flags
    """(N,)"""
    score: Callable[[float, float], float]
    """Function of the rates of positive and negative items. It depends monotonically on
    their ratio alone."""


class RareErrors(NamedTuple):
    """A score whose spread few wrong, or few right, items do not show."""

    wrong: Flags
    """(N,) True for wrong items."""
    ends: Callable[[float, float], tuple[float, float]]
    """Function from the least and the largest share of wrong items to the range of the
    score."""


class Shifted(NamedTuple):
    """The shift of logits at which mean probability and share of positives agree."""

    logits: Array
    """(N,)"""
    truth: Flags
    """(N,) True for positive items."""


class AboveNoise(NamedTuple):
    """An error that is above 0 even for a perfect model, because of noise."""

    noise: float
    """Average error of a perfect model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Influence:
    """A score's value and the contribution of each item to its error."""

    value: float
    values: Array | None
    """(N,) first-order change of the score due to each item, with a sum of about 0: the
    influence function over N. None if the score has no useful one."""
    scale: Scale
    low: float = 0.0
    high: float = 1.0
    """The range of the score."""
    part: Index | None = None
    """(N,) kinds of items whose numbers do not matter to the score, such as the
    positives and negatives of an AUROC; the influence is centred within each."""
    welch: bool = False
    """True to compute degrees of freedom from the sizes of the parts alone."""
    inflation: float = 1.0
    """Factor on the variance of `values`, which is too small in small samples."""
    freedom: float = math.inf
    """Most degrees of freedom, if a small group of items dominates."""
    skewed: bool = False
    """True for losses whose rare large values fourth powers do not show: half as many
    degrees of freedom, as for clusters."""
    extreme: float = 0.0
    """Number of independent trials with equal outcomes if the score is at an end of its
    range; 0 if there is no such number."""
    floor: Callable[[float], float] | None = None
    """Function from the largest possible chance of one trial to the worst possible
    score, for a score at its best."""
    construction: (
        BinGaps
        | ClassGaps
        | SmoothGaps
        | Strata
        | Exceedance
        | RateRatio
        | RareErrors
        | Shifted
        | AboveNoise
        | None
    ) = None
    """Data for the interval, if `values` are not enough."""
    step: Array | float = 0.0
    """Change of the score by one more right or wrong item, by stratum if there are any:
    the resolution of comparisons with few items that two rows decide differently."""
    uncompared: str = ""
    """Reason why no row can be called better by this score; '' if one can be."""
    reason: str = ""
    """Reason why there can be no interval; '' if there can be one."""
    fewest_clusters: int = FEWEST_CLUSTERS
    """Fewest clusters with which its interval holds."""
    clustered: str = ""
    """Reason why there can be none with clusters; '' if there can be one."""

    def complement(self) -> Influence:
        """Return the influence on one minus the score: on accuracy for a risk."""
        if self.construction is not None:
            raise ValueError(
                f"a score made of {type(self.construction).__name__} has no complement"
            )
        if not (self.low == 0.0 and self.high == 1.0):
            raise ValueError(
                "only a score between 0 and 1 has a complement, this one lies between "
                f"{self.low} and {self.high}"
            )
        floor = self.floor
        return dataclasses.replace(
            self,
            value=1.0 - self.value,
            values=None if self.values is None else -self.values,
            floor=None if floor is None else lambda chance: 1.0 - floor(chance),
        )


def scale_within(low: float, high: float) -> Scale:
    """Return the scale for a score with this range."""
    if low == -1.0 and high == 1.0:
        return "fisher"
    if np.isfinite(low) and np.isfinite(high):
        return "logit"
    return "log" if low == 0.0 else "linear"


def mean_influence(
    values: ArrayLike, *, about: About | None = None, bound: float | None = None
) -> Influence:
    """Return the influence on the mean of `values` (N,), such as the Dice per image.

    Items whose value is nan are left out of the mean, and their number counts as
    random. `about` states the range of the values (0 and more without it), `bound` a
    smaller upper end. Values that are all 0 or 1 form a share, unless the score may be
    larger: absolute errors that happen to be 0 or 1 do not.

    >>> mean_influence([0.0, 1.0, 1.0, 1.0]).scale
    'share'
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"values must have shape (N,), N > 0, got {array.shape}")
    low = 0.0 if about is None else about.low
    high = np.inf if about is None else about.high
    high = high if bound is None else bound
    defined = ~np.isnan(array)
    count = int(defined.sum())
    if not count:
        return undefined("the score is undefined on every item")
    filled = array if count == len(array) else np.where(defined, array, 0.0)
    value = float(filled.sum() / count)
    if not np.isfinite(value):
        return undefined("the value is infinite on some items")
    unbounded = about is not None and high > 1.0
    share = low == 0.0 and not unbounded
    share = share and bool(((filled == 0.0) | (filled == 1.0)).all())
    scale: Scale = "share" if share else scale_within(low, high)
    return Influence(
        value=value,
        values=np.where(defined, filled - value, 0.0) / count,
        scale=scale,
        skewed=scale == "log",
        low=low,
        high=1.0 if share else high,
        extreme=count if share or np.isfinite(high) else 0.0,
        step=1.0 / count if share else 0.0,
    )


def with_rare_errors(
    influence: Influence,
    wrong: Flags,
    ends: Callable[[float, float], tuple[float, float]],
) -> Influence:
    """Return `influence`, with an interval by `ends` if few items are wrong, or right.

    The loss of few items is luck. The loss of unseen items is bounded by the exact
    interval of their share, so that lucky and unlucky samples both have an interval.
    """
    uncompared = few_errors(wrong)
    if influence.reason or not uncompared:
        return influence
    return dataclasses.replace(
        influence, construction=RareErrors(wrong, ends), uncompared=uncompared
    )


def few_errors(wrong: Flags) -> str:
    """Return why rows with so few wrong, or right, items are not compared; else ''."""
    errors, items = int(wrong.sum()), len(wrong)
    few = min(errors, items - errors)
    if few >= FEWEST_ERRORS:
        return ""
    return (
        f"only {few} of {items} items are {'wrong' if errors == few else 'right'}: "
        f"which row is better cannot be told with fewer than {FEWEST_ERRORS}"
    )


def losses_of_rare_errors(
    right: Array, extra: Array
) -> Callable[[float, float], tuple[float, float]]:
    """Return the range of a mean loss, from the range of the share that is wrong.

    `right` (N,) is the loss of every item if it is right, and `extra` (N,) the further
    loss if it is wrong: the wrong items may be those that lose the most, or the least.
    """
    ordered = np.sort(extra)
    mean = float(right.mean())
    reach = 2.0 * float(right.std()) / math.sqrt(len(right))

    def ends(least: float, most: float) -> tuple[float, float]:
        low = min(_first(ordered, share) for share in (least, most))
        high = max(_first(ordered[::-1], share) for share in (least, most))
        return max(mean + low - reach, 0.0), mean + high + reach

    return ends


def _first(ordered: Array, share: float) -> float:
    """Return the mean over all items, of which only the first `share` are not 0."""
    items = share * len(ordered)
    full_items = min(int(items), len(ordered) - 1)
    part = ordered[:full_items].sum() + (items - full_items) * ordered[full_items]
    return float(part) / len(ordered)


def few_of_a_kind(smallest: float) -> str:
    """Return why rows are not compared with so few items of a kind; '' if enough."""
    if smallest >= FEWEST_ERRORS:
        return ""
    return (
        f"only {smallest:g} items are of one class, or kind: which row is better "
        f"cannot be told with fewer than {FEWEST_ERRORS}"
    )


def undefined(reason: str, *, value: float = np.nan) -> Influence:
    """Return the influence on a score without an interval, with the reason."""
    return Influence(value=value, values=None, scale="linear", reason=reason)
