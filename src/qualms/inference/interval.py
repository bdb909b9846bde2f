"""The interval of a score from the influence of its items, for one file or repeats.

The construction is chosen per score by simulation (`docs/intervals.md`): Student's t on
a scale that the score cannot leave, with Satterthwaite's degrees of freedom; Wilson's
interval for shares; and the exact bound for n trials without a failure where the score
is at the end of its range.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array, Index
from qualms.inference._design import LEAST_FREEDOM, Design, Spread
from qualms.inference._gaps import (
    CLASS_BOUND,
    INVERTED,
    NORM_BOUND,
    filled,
    gap_ends,
)
from qualms.inference._seeds import far_seeds, few_seeds, reach, seed_spread
from qualms.inference._shares import (
    effective_size,
    exact_interval,
    exceedance_ends,
    rate_ratio_ends,
    share_interval,
    strata_ends,
    strata_method,
    student_quantile,
)
from qualms.inference._shift import shift_ends
from qualms.scores import about
from qualms.scores.influence import (
    BinGaps,
    ClassGaps,
    Exceedance,
    Influence,
    RareErrors,
    RateRatio,
    Scale,
    Shifted,
    SmoothGaps,
    Strata,
)

RARE = "exact binomial bound of the share of wrong items, of which there are few"
FEW_SEEDS = "2 seeds do not show how far others may lie: 3 or more would"
FAR_SEEDS = (
    "{} of {} seeds {} far from the others (more than 6 robust deviations), so that "
    "there is only the range of the seeds, and no rank among other rows"
)
EXACT = "exact binomial bound: the score stands at the end of its range"
METHOD: dict[Scale, str] = {
    "share": "Wilson's interval",
    "logit": "influence of each item, Student's t on the logit scale",
    "log": "influence of each item, Student's t on the log scale",
    "fisher": "influence of each item, Student's t on Fisher's scale",
    "linear": "influence of each item, Student's t",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceInterval:
    """Confidence interval of the score of the population."""

    low: float
    high: float
    """nan where there is no interval."""
    method: str = ""
    """Description of the construction of the interval."""
    reason: str = ""
    """Reason for having no interval; empty if there is one."""
    undefined: float = 0.0
    """Share of replicates in which the score was undefined; 0 without replicates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pooled:
    """The mean over repeats of a row: one for a single file."""

    value: float
    spread: Spread
    seeds: Spread
    """Variance of the mean over repeats due to their seeds."""
    first: Influence

    def total(self) -> Spread:
        """Return the spread of items and seeds together."""
        return joined_spread(self.spread, self.seeds)

    def quantile(self, level: float) -> float:
        """Return the factor on the standard error of `total` at this level."""
        if self.seeds.variance <= 0.0:
            return student_quantile(level, self.spread.freedom)
        parts = self.spread, self.seeds
        return reach(level, parts) / math.sqrt(self.total().variance)


def influence_of(
    score: Callable[..., Any], /, *arrays: ArrayLike, **named: ArrayLike
) -> Influence | None:
    """Return the influence of every item on a score, None where none is known.

    The arrays of the score are passed by name, or in the order of its parameters.
    Options bound by `functools.partial` are honoured.

    >>> from qualms.scores import auroc
    >>> influence_of(auroc, [0.1, 0.4, 0.3, 0.8], [0, 0, 1, 1]).value
    0.75
    """
    options: Mapping[str, Any] = {}
    function = score
    if isinstance(score, partial) and not score.args:
        function, options = score.func, score.keywords
    if not hasattr(function, "__score__"):
        return None
    influence = about(function).influence
    if influence is None:
        return None
    parameters = signature(function).parameters.values()
    needed = [one.name for one in parameters if one.default is one.empty]
    in_order = [named.pop(name) for name in needed if name in named]
    return influence(*arrays, *in_order, **named, **options)


def interval_of(
    influence: Influence | Sequence[Influence],
    *,
    design: Design | None = None,
    level: float = 0.95,
    seeds: Spread | None = None,
) -> ConfidenceInterval:
    """Return the interval of a score, or of its mean over repeats of a row.

    Repeats (seeds) share their items, so that their influences are averaged; the
    spread of their values, or `seeds` where repeats are pools of runs, is added as a
    second source of variance. Two seeds have no interval. Without a `design` the items
    are one sample of independent items.

    >>> from qualms.scores import accuracy
    >>> from qualms.inference import influence_of
    >>> interval = interval_of(influence_of(accuracy, [0.9] * 9 + [0.1], [1] * 10))
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.5958, 0.995)
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level}; 0.95 for 95 %")
    repeats = [influence] if isinstance(influence, Influence) else list(influence)
    if not repeats:
        raise ValueError("influence must hold at least one repeat, got none")
    # A row is no share just because the values of one repeat are all 0 or 1.
    repeats.sort(key=lambda repeat: repeat.scale == "share")
    refused = next((repeat.reason for repeat in repeats if repeat.reason), "")
    if not refused and design is not None and design.cluster is not None:
        fewest = repeats[0].fewest_clusters
        refused = repeats[0].clustered or design.why_too_few(fewest)
    if refused:
        return no_interval(refused)
    if seeds is None:
        values = [repeat.value for repeat in repeats]
        seeds, refused = seed_spread(values), far_apart(values, repeats, design)
    if refused or few_seeds(seeds):
        return no_interval(refused or FEW_SEEDS)
    if any(repeat.construction is not None for repeat in repeats):
        return _from_constructions(repeats, design, level, seeds)
    return _from_influence(repeats, design, level, seeds)


def far_apart(
    values: Sequence[float],
    repeats: Sequence[Influence],
    design: Design | None = None,
) -> str:
    """Return why seeds of these values have no interval; '' where none lies far away.

    `repeats` are the influences from which the error by items is taken: that of the
    repeat in the middle.
    """
    if len(values) < 3 or not repeats or not far_seeds(values, 0.0):
        return ""
    middle = sorted(repeats, key=lambda repeat: repeat.value)[len(repeats) // 2]
    alone = interval_of(middle, design=design)
    # nan, where the items have no interval, is further than any seed.
    error = (alone.high - alone.low) / 2.0 / student_quantile(0.95, math.inf)
    far = far_seeds(values, error if math.isfinite(error) else math.inf)
    lies = "lies" if far == 1 else "lie"
    return FAR_SEEDS.format(far, len(values), lies) if far else ""


def no_interval(reason: str) -> ConfidenceInterval:
    """Return the record of a missing interval, with its reason."""
    return ConfidenceInterval(low=math.nan, high=math.nan, reason=reason)


def _from_constructions(
    repeats: Sequence[Influence], design: Design | None, level: float, seeds: Spread
) -> ConfidenceInterval:
    """Average the intervals of all repeats, widened by the spread of seeds."""
    first = repeats[0]
    ends = [_constructed(repeat, _whole(repeat, design), level) for repeat in repeats]
    if any(math.isnan(end) for pair in ends for end in pair):
        return no_interval("the items are too few for an interval that holds")
    values = np.array([repeat.value for repeat in repeats])
    value = float(values.mean())
    low, high = (float(end) for end in np.mean(ends, axis=0))
    extra = reach(level, [seeds])
    low = value - math.hypot(value - low, extra) if extra else low
    high = value + math.hypot(high - value, extra) if extra else high
    return ConfidenceInterval(
        low=max(low, first.low),
        high=min(high, first.high),
        method=_construction_words(repeats) + _seed_words(seeds),
    )


def _constructed(
    influence: Influence, design: Design, level: float
) -> tuple[float, float]:
    """Return the ends of the interval that the influence's `construction` gives."""
    match influence.construction:
        case BinGaps() | ClassGaps() | SmoothGaps() as gaps:
            return gap_ends(gaps, design, level)
        case Strata() as strata:
            return strata_ends(strata, design, level)
        case Exceedance() as exceedance:
            low, high = exceedance_ends(exceedance, design, level)
            return (1.0 - high, 1.0 - low) if exceedance.complement else (low, high)
        case RateRatio() as ratio:
            return rate_ratio_ends(ratio, design, level)
        case Shifted() as shifted:
            whole = filled(design, len(shifted.truth))
            return shift_ends(shifted, influence.value, whole, level)
        case RareErrors() as rare:
            own = design if design.items == len(rare.wrong) else None
            shares = exact_interval(rare.wrong, design=own, level=level)
            low, high = rare.ends(*shares)
            return min(low, influence.value), max(high, influence.value)
        case other:
            plain = dataclasses.replace(influence, construction=None)
            interval = interval_of(plain, design=design, level=level)
            noise = 0.0 if other is None else other.noise
            return max(interval.low - noise, 0.0), interval.high


def _construction_words(repeats: Sequence[Influence]) -> str:
    if any(isinstance(repeat.construction, RareErrors) for repeat in repeats):
        return RARE
    influence = repeats[0]
    match influence.construction:
        case BinGaps():
            return INVERTED
        case ClassGaps():
            return CLASS_BOUND
        case SmoothGaps():
            return NORM_BOUND
        case Strata() as strata:
            return strata_method(strata)
        case RateRatio():
            return "Wilson's interval of both rates, by squares on the log scale"
        case Exceedance():
            return "order statistics of the threshold and Wilson's interval, by squares"
        case _:
            return "influence of each item; below, less the error of noise alone"


def _whole(influence: Influence, design: Design | None) -> Design:
    if design is not None:
        return design
    if influence.values is not None:
        return Design(items=len(influence.values))
    # Constructions hold their own items; only clusters and samples are needed.
    return Design(items=1)


def _from_influence(
    repeats: Sequence[Influence], design: Design | None, level: float, seeds: Spread
) -> ConfidenceInterval:
    pooled = _pooled(repeats, _checked_design(repeats, design), seeds)
    if pooled.spread.units < 2:
        return no_interval("there is only one independent item or cluster")
    if _at_an_end(pooled):
        low, high = _exact(pooled, level)
        return ConfidenceInterval(low=low, high=high, method=EXACT)
    low, high = _CONSTRUCTED[repeats[0].scale](pooled, level)
    if math.isnan(low):
        return no_interval("all items are alike: nothing tells how the score varies")
    clusters = "" if design is None or design.cluster is None else ", over clusters"
    method = METHOD[repeats[0].scale] + clusters + _seed_words(seeds)
    return ConfidenceInterval(low=low, high=high, method=method)


def _checked_design(repeats: Sequence[Influence], design: Design | None) -> Design:
    lengths = {0 if r.values is None else len(r.values) for r in repeats}
    if len(lengths) > 1:
        raise ValueError(
            f"repeats must be about the same items, got {sorted(lengths)} of them"
        )
    (items,) = lengths
    checked = Design(items=items) if design is None else design
    if checked.items != items:
        raise ValueError(
            f"the design is of {checked.items} items, the influence of {items}; make "
            "both for the same items"
        )
    return checked


def _pooled(repeats: Sequence[Influence], design: Design, seeds: Spread) -> _Pooled:
    first = repeats[0]
    values = np.array([repeat.value for repeat in repeats])
    spreads = design.spread(mean_values(repeats), _part(repeats), welch=first.welch)
    freedom = min(spreads.freedom, max(first.freedom, LEAST_FREEDOM))
    if first.skewed and design.cluster is None:
        freedom /= 2.0
    spread = spreads._replace(
        variance=spreads.variance * first.inflation, freedom=freedom
    )
    value = float(values.mean())
    return _Pooled(value=value, spread=spread, seeds=seeds, first=first)


def _part(repeats: Sequence[Influence]) -> Index | None:
    """Return the kinds of items if all repeats agree on them, else None."""
    part = repeats[0].part
    if part is None:
        return None
    parts = (repeat.part for repeat in repeats[1:])
    same = all(other is not None and np.array_equal(part, other) for other in parts)
    return part if same else None


def mean_values(repeats: Sequence[Influence]) -> Array:
    """Return (N,) the influence on the mean over repeats."""
    total = np.zeros(0)
    for repeat in repeats:
        assert repeat.values is not None
        total = repeat.values if not total.size else total + repeat.values
    mean: Array = total / len(repeats)
    return mean


def joined_spread(items: Spread, *others: Spread) -> Spread:
    """Return the spread of a sum of independent errors (Satterthwaite, 1946)."""
    parts = [items, *(other for other in others if other.variance > 0.0)]
    if len(parts) == 1:
        return items
    variance = sum(part.variance for part in parts)
    left = sum(part.variance**2 / part.freedom for part in parts)
    return Spread(variance, variance**2 / left, items.units)


def _seed_words(seeds: Spread) -> str:
    return "" if seeds.units < 2 else f", items and {seeds.units} seeds together"


def _share(pooled: _Pooled, level: float) -> tuple[float, float]:
    quantile = pooled.quantile(level)
    size = effective_size(
        pooled.value, pooled.total(), _trials(pooled), level, quantile=quantile
    )
    return share_interval(pooled.value, size, level)


def _trials(pooled: _Pooled) -> float:
    if pooled.seeds.variance > 0.0:
        return math.inf
    return pooled.first.extreme


def _logit(pooled: _Pooled, level: float) -> tuple[float, float]:
    low, width = pooled.first.low, pooled.first.high - pooled.first.low
    share = (pooled.value - low) / width
    spread = pooled.total()
    if spread.variance <= 0.0 or not 0.0 < share < 1.0:
        return math.nan, math.nan
    error = math.sqrt(spread.variance) / width / (share * (1.0 - share))
    away = pooled.quantile(level) * error
    middle = math.log(share / (1.0 - share))
    return low + width * _sigmoid(middle - away), low + width * _sigmoid(middle + away)


def _sigmoid(value: float) -> float:
    # A plain exp would overflow where an interval covers nearly the whole range.
    return 0.5 * (1.0 + math.tanh(value / 2.0))


def _log(pooled: _Pooled, level: float) -> tuple[float, float]:
    spread = pooled.total()
    if spread.variance <= 0.0 or pooled.value <= 0.0:
        return math.nan, math.nan
    away = pooled.quantile(level) * math.sqrt(spread.variance)
    away = min(away / pooled.value, 700.0)
    low, high = pooled.value * math.exp(-away), pooled.value * math.exp(away)
    return low, min(high, pooled.first.high)


def _linear(pooled: _Pooled, level: float) -> tuple[float, float]:
    spread = pooled.total()
    if spread.variance <= 0.0:
        return math.nan, math.nan
    away = pooled.quantile(level) * math.sqrt(spread.variance)
    low, high = pooled.value - away, pooled.value + away
    return max(low, pooled.first.low), min(high, pooled.first.high)


def _at_an_end(pooled: _Pooled) -> bool:
    """Return whether the score is at an end of its range: all trials are alike."""
    first = pooled.first
    bounded = first.scale in ("logit", "fisher") and first.extreme >= 1.0
    return bounded and not first.low < pooled.value < first.high


def _exact(pooled: _Pooled, level: float) -> tuple[float, float]:
    """Return the exact interval of a score at an end of its range."""
    first = pooled.first
    trials = min(first.extreme, float(pooled.spread.units))
    middle = (first.low + first.high) / 2.0
    tail = (1.0 - level) / 2.0
    if first.floor is not None:
        # Clusters are fewer trials than items, which makes the chance larger.
        ratio = min(1.0, pooled.spread.units / _items(first))
        worst = first.floor(tail ** (1.0 / ratio))
        return (worst, first.high) if pooled.value > middle else (first.low, worst)
    away = (1.0 - tail ** (1.0 / trials)) * (first.high - first.low)
    if pooled.value > middle:
        return first.high - away, first.high
    return first.low, first.low + away


def _items(influence: Influence) -> int:
    return 1 if influence.values is None else len(influence.values)


_CONSTRUCTED: dict[Scale, Callable[[_Pooled, float], tuple[float, float]]] = {
    "share": _share,
    "logit": _logit,
    "fisher": _logit,
    "log": _log,
    "linear": _linear,
}
