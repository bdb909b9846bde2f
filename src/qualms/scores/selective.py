"""Selective prediction: the risk of the items kept, most certain first.

Risk is any per-item loss of 0 or more (error, 1 - Dice). Uncertainty is larger for less
certain items. Tied items are taken in random order and the expectation is given, so the
order of the items never matters.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array, Index
from qualms.jit import jit
from qualms.scores._about import as_score
from qualms.scores.arguments import by_name, flags, vector
from qualms.scores.influence import (
    CLUSTERS_OF_EXCESS,
    Influence,
    mean_influence,
    undefined,
    with_rare_errors,
)
from qualms.scores.ties import Ranked, ranked_items

__all__ = [
    "RiskCoverage",
    "augrc",
    "aurc",
    "balanced_joint",
    "coverage_at_risk",
    "eaurc",
    "kept_means",
    "risk_at_coverage",
    "risk_coverage_curve",
    "threshold_aurc",
    "threshold_eaurc",
]

# Rounding error of a mean over k equal risks.
LEVEL_TOLERANCE = 1e-12
FEWEST_GRADED = 200
FEW_GRADED = (
    f"no interval holds with fewer than {FEWEST_GRADED} items whose risk is more than "
    "right or wrong: the best ranking is that of the items themselves"
)
WINDOW = 0.7
"""Exponent of the number of items around a cut for its local risk: n ** WINDOW."""


class RiskCoverage(NamedTuple):
    """Selective risk against coverage, one point per number of items kept."""

    coverage: Array
    """(N,) share of items kept: k / N for k = 1..N."""
    risk: Array
    """(N,) mean risk of the k most certain items."""


@by_name
def risk_coverage_curve(*, risk: ArrayLike, uncertainty: ArrayLike) -> RiskCoverage:
    """Return the risk of the k most certain items, k = 1..N (El-Yaniv & Wiener, 2010).

    `risk` and `uncertainty` have shape (N,).

    >>> risk_coverage_curve(risk=[0.0, 1.0], uncertainty=[0.1, 0.9])
    RiskCoverage(coverage=array([0.5, 1. ]), risk=array([0. , 0.5]))
    """
    values, rank = _checked_items(risk, uncertainty)
    coverage = np.arange(1, len(values) + 1) / len(values)
    return RiskCoverage(coverage, kept_means(values[rank.order], rank.start))


@jit
def kept_means(ordered: Array, start: Index) -> Array:
    """Return (N,) mean of the first k of `ordered`, k = 1..N, expected over tie orders.

    Every item counts the mean of its group: its expectation under a random order.
    """
    means = np.empty(len(ordered))
    total = 0.0
    for group in range(len(start) - 1):
        # With offsets from the first value, the mean of equal values is exactly that
        # value, so a perfect ranking has an E-AURC of exactly 0.
        first, offset = ordered[start[group]], 0.0
        for item in range(start[group] + 1, start[group + 1]):
            offset += ordered[item] - first
        mean = first + offset / (start[group + 1] - start[group])
        for item in range(start[group], start[group + 1]):
            total += mean
            means[item] = total / (item + 1)
    return means


def aurc_influence(risk: ArrayLike, uncertainty: ArrayLike) -> Influence:
    """Return the mean over k of the mean risk of the k most certain items."""
    values, rank = _ranked_risk(risk, uncertainty)
    area, change = _kept_area(values, rank)
    return dataclasses.replace(
        _of_risk(area, change, values), skewed=not _errors(values)
    )


def eaurc_influence(risk: ArrayLike, uncertainty: ArrayLike) -> Influence:
    """Return the AURC above that of the best ranking of the same risks."""
    values, rank = _ranked_risk(risk, uncertainty)
    area, change = _kept_area(values, rank)
    best, best_change = _kept_area(values, ranked_items(values))
    # The excess of a perfect ranking is a rounding error.
    value = area - best
    value = 0.0 if value < 1e-12 * max(area, 1e-300) else value
    influence = _of_risk(value, change - best_change, values)
    influence = dataclasses.replace(influence, fewest_clusters=CLUSTERS_OF_EXCESS)
    if not _errors(values):
        few = influence.reason or ("" if len(values) >= FEWEST_GRADED else FEW_GRADED)
        return dataclasses.replace(influence, skewed=True, reason=few)
    # The range is that of the risk, or wider if the excess is above the mean risk.
    ratio = max(1.0, value / float(values.mean())) if values.any() else 1.0
    return with_rare_errors(
        influence, values == 1.0, lambda _, most: (0.0, ratio * most)
    )


def augrc_influence(risk: ArrayLike, uncertainty: ArrayLike) -> Influence:
    """Return the mean over k of the summed risk of the k most certain items over N."""
    values, rank = _ranked_risk(risk, uncertainty)
    items = len(values)
    total = _kept_sums(values, *rank)
    place = np.arange(1.0, items + 1.0)
    area = float(total.sum()) / items**2
    from_others = _averaged(total, *rank)
    weight = _averaged(items + 1.0 - place, *rank)
    change = (from_others + values * weight) / items**2
    return _of_risk(area, change - change.mean(), values)


def risk_at_coverage_influence(
    risk: ArrayLike, uncertainty: ArrayLike, *, coverage: float = 0.8
) -> Influence:
    """Return the mean risk of the most certain share `coverage` of the items."""
    if not 0.0 < coverage <= 1.0:
        raise ValueError(f"coverage must be above 0 and at most 1, got {coverage}")
    values, rank = _ranked_risk(risk, uncertainty)
    return kept_risk_influence(values, rank, max(1, round(coverage * len(values))))


@as_score(label="AURC", better="lower", high=np.inf, influence=aurc_influence)
@by_name
def aurc(*, risk: ArrayLike, uncertainty: ArrayLike) -> float:
    """Return the mean over k = 1..N of the risk of the k most certain items, both (N,).

    Geifman & El-Yaniv (2017). A plain mean over the N coverages, no trapezoid and no
    point at coverage 0. Tied items share their mean risk.

    >>> aurc(risk=[0.0, 0.0, 1.0], uncertainty=[0.1, 0.2, 0.9])
    0.1111111111111111
    """
    return float(np.mean(risk_coverage_curve(risk=risk, uncertainty=uncertainty).risk))


@as_score(label="E-AURC", better="lower", high=np.inf, influence=eaurc_influence)
@by_name
def eaurc(*, risk: ArrayLike, uncertainty: ArrayLike) -> float:
    """Return the AURC in excess of the best ranking of the same risks, both (N,).

    Geifman et al. (2019). The best AURC follows the same rule, so a perfect ranking
    gives exactly 0.

    >>> eaurc(risk=[0.0, 0.5, 1.0], uncertainty=[1.0, 2.0, 3.0])
    0.0
    """
    return aurc(risk=risk, uncertainty=uncertainty) - aurc(risk=risk, uncertainty=risk)


@as_score(label="AURC by thresholds", better="lower", high=np.inf)
@by_name
def threshold_aurc(*, risk: ArrayLike, uncertainty: ArrayLike) -> float:
    """Return the area under risk against coverage, a point per threshold, both (N,).

    The AURC of Kahl et al. (2024, equation 7): trapezoids between the thresholds that
    occur, from coverage 1 down to the share of the most certain items, which are kept
    together if they are tied. Lower coverages are left out, so values of files with
    other ties are not comparable; `aurc` covers every number of items.

    >>> threshold_aurc(risk=[0.0, 0.5, 1.0], uncertainty=[0.1, 0.2, 0.3])
    0.16666666666666666
    """
    values, rank = _checked_items(risk, uncertainty)
    count = rank.start[1:]
    curve = np.cumsum(values[rank.order])[count - 1] / count
    return float(np.diff(count) @ (curve[1:] + curve[:-1]) / (2 * len(values)))


@as_score(
    label="E-AURC by thresholds",
    better="lower",
    low=-np.inf,
    high=np.inf,
)
@by_name
def threshold_eaurc(*, risk: ArrayLike, uncertainty: ArrayLike) -> float:
    """Return `threshold_aurc` above that of the best ranking, both arguments (N,).

    The E-AURC of Kahl et al. (2024, equation 8): exactly 0 for a ranking by risk, and
    below 0 where ties leave out more of the curve than the best ranking does.

    >>> threshold_eaurc(risk=[0.0, 0.5, 1.0], uncertainty=[0.1, 0.2, 0.3])
    0.0
    """
    return threshold_aurc(risk=risk, uncertainty=uncertainty) - threshold_aurc(
        risk=risk, uncertainty=risk
    )


@as_score(label="AUGRC", better="lower", high=np.inf, influence=augrc_influence)
@by_name
def augrc(*, risk: ArrayLike, uncertainty: ArrayLike) -> float:
    """Return the area under the generalised risk-coverage curve, both arguments (N,).

    Traub et al. (2024): the generalised risk at coverage k / N is the summed risk of
    the k most certain items over N, that is risk times coverage, so errors among the
    most certain items do not dominate. Estimated as its mean over k = 1..N, the rule of
    `aurc`; for errors it lies between 0 and (N + 1) / 2N.

    >>> augrc(risk=[0.0, 1.0], uncertainty=[0.1, 0.9])
    0.25
    """
    curve = risk_coverage_curve(risk=risk, uncertainty=uncertainty)
    return float(np.mean(curve.risk * curve.coverage))


@as_score(
    label="risk at coverage",
    better="lower",
    high=np.inf,
    influence=risk_at_coverage_influence,
)
@by_name
def risk_at_coverage(
    *, risk: ArrayLike, uncertainty: ArrayLike, coverage: float = 0.8
) -> float:
    """Return the mean risk of the most certain share `coverage`; arguments (N,).

    Keeps round(coverage N) items, a half to the even number as Python rounds, and at
    least one (Geifman & El-Yaniv, 2017).

    >>> risk_at_coverage(
    ...     risk=[0.0, 0.0, 0.0, 1.0, 1.0], uncertainty=[1.0, 2.0, 3.0, 4.0, 5.0]
    ... )
    0.25
    """
    if not 0.0 < coverage <= 1.0:
        raise ValueError(f"coverage must be above 0 and at most 1, got {coverage}")
    curve = risk_coverage_curve(risk=risk, uncertainty=uncertainty).risk
    count = max(1, round(coverage * len(curve)))
    return float(curve[count - 1])


@as_score(label="coverage at risk", better="higher")
@by_name
def coverage_at_risk(
    *, risk: ArrayLike, uncertainty: ArrayLike, risk_level: float
) -> float:
    """Return largest share of items that can be kept at a risk of at most `risk_level`.

    Only thresholds on the uncertainty count, so tied items are kept together or not at
    all; 0 where no threshold meets the level (Geifman & El-Yaniv, 2017).

    >>> coverage_at_risk(
    ...     risk=[0.0, 0.0, 1.0, 1.0], uncertainty=[1.0, 2.0, 3.0, 4.0], risk_level=0.4
    ... )
    0.75
    """
    if not 0.0 <= risk_level < np.inf:
        raise ValueError(f"risk_level must be a number of 0 or more, got {risk_level}")
    values, rank = _checked_items(risk, uncertainty)
    count = rank.start[1:]
    selective = np.cumsum(values[rank.order])[count - 1] / count
    good = count[selective <= risk_level * (1.0 + LEVEL_TOLERANCE)]
    return float(good[-1] / len(values)) if good.size else 0.0


def balanced_joint(shifted: ArrayLike, *, seed: int = 0) -> Index:
    """Return row indices of a joint set with as many shifted as in-domain rows.

    `shifted` (N,) marks the shifted rows. The smaller side is repeated a whole number
    of times and filled up with rows drawn without replacement; the larger side appears
    once. In-domain rows come first. (Band et al., 2021, who have more in-domain rows;
    there the other case shrinks the shifted side: `as_published.retina`.)

    >>> balanced_joint([False, False, False, False, True, True])
    array([0, 1, 2, 3, 4, 5, 4, 5])
    """
    moved = flags("shifted", shifted)
    sides = np.flatnonzero(~moved), np.flatnonzero(moved)
    rows = max(len(side) for side in sides)
    if rows == len(moved):
        kind = "shifted" if moved.all() else "in-domain"
        raise ValueError(
            f"shifted must mark some rows but not all, got only {kind} rows; "
            "pass the joint set"
        )
    rng = np.random.default_rng(seed)
    return np.concatenate([_repeated(side, rows, rng) for side in sides])


def _checked_items(risk: ArrayLike, uncertainty: ArrayLike) -> tuple[Array, Ranked]:
    values = vector("risk", risk)
    if values.min() < 0.0:
        row = int(np.argmax(values < 0.0))
        raise ValueError(
            f"risk must be 0 or more, row {row} is {values[row]}; pass a loss, such as "
            "an error or 1 - Dice"
        )
    return values, ranked_items(vector("uncertainty", uncertainty, length=len(values)))


def _repeated(side: Index, rows: int, rng: np.random.Generator) -> Index:
    times, missing = divmod(rows, len(side))
    filled = rng.choice(side, size=missing, replace=False)
    return np.concatenate([np.tile(side, times), filled])


def kept_risk_influence(risk: Array, rank: Ranked, kept: int) -> Influence:
    """Return the mean `risk` (N,) of the `kept` items of lowest rank."""
    if kept == len(risk):
        return mean_influence(risk, bound=_bound(risk))
    value = float(_kept_sums(risk, *rank)[kept - 1]) / kept
    inner = kept_share(rank, kept) * (risk - value) / kept
    at_cut = (_local_mean(risk, rank, kept) - value) / kept
    change = kept_influence(inner, rank, kept, at_cut=at_cut)
    influence = _of_risk(value, change, risk, trials=kept)
    return dataclasses.replace(influence, step=1.0 / kept if _errors(risk) else 0.0)


def kept_influence(
    inner: Array, rank: Ranked, kept: int, *, at_cut: float | None = None
) -> Array:
    """Return (N,) influence on a score of the `kept` items of lowest rank.

    `inner` (N,) is the influence on the score of these items, 0 for others; `at_cut` is
    its value for items at the cut, by default that of the items just inside.
    """
    if kept == len(inner):
        return inner
    share = kept_share(rank, kept)
    if at_cut is None:
        first = max(0, kept - _reach(len(inner)))
        near = rank.order[first:kept]
        at_cut = float(inner[near].sum() / max(share[near].sum(), 1e-12))
    change: Array = inner - share * at_cut
    return change - float(change.mean())


def kept_share(rank: Ranked, kept: int) -> Array:
    """Return the share (N,) of each item among the `kept` most certain ones."""
    inside = np.clip((kept - rank.start[:-1]) / np.diff(rank.start), 0.0, 1.0)
    share = np.empty(len(rank.order))
    share[rank.order] = np.repeat(inside, np.diff(rank.start))
    return share


def _local_mean(values: Array, rank: Ranked, kept: int) -> float:
    """Return the mean of `values` around the cut after `kept` items, by tie groups."""
    items = len(values)
    reach = _reach(items)
    first = np.searchsorted(rank.start, max(kept - reach, 0), side="right") - 1
    last = np.searchsorted(rank.start, min(kept + reach, items), side="left")
    return float(values[rank.order[rank.start[first] : rank.start[last]]].mean())


def _reach(items: int) -> int:
    return max(4, math.ceil(math.pow(items, WINDOW) / 2))


def _ranked_risk(risk: ArrayLike, uncertainty: ArrayLike) -> tuple[Array, Ranked]:
    values = vector("risk", risk)
    return values, ranked_items(vector("uncertainty", uncertainty, length=len(values)))


def _kept_area(risk: Array, rank: Ranked) -> tuple[float, Array]:
    """Return the AURC, and its first-order change due to each item."""
    area, change = _area_and_changes(_kept_sums(risk, *rank), risk, *rank)
    change -= change.mean()
    return area, change


@jit
def _area_and_changes(
    sums: Array, risk: Array, order: Index, start: Index
) -> tuple[float, Array]:
    """Return the mean over k of `sums` (N,) / k, and its slope (N,) by each risk."""
    items = len(order)
    change = np.empty(items)
    area, part, later, thinned = 0.0, 0.0, 0.0, 0.0
    for group in range(len(start) - 2, -1, -1):
        size = start[group + 1] - start[group]
        from_others, own = 0.0, 0.0
        for place in range(start[group + 1] - 1, start[group] - 1, -1):
            mean = sums[place] / (place + 1.0)
            part += mean
            # The item itself counts from its place on, less its dilution of the others.
            later += 1.0 / (place + 1.0)
            thinned += mean / (place + 1.0)
            from_others += mean - thinned
            own += later
            if place % 1024 == 0:  # sums of sums lose fewer digits
                area += part
                part = 0.0
        for place in range(start[group], start[group + 1]):
            item = order[place]
            change[item] = (from_others + risk[item] * own) / size / items
    return area / items, change


@jit
def _kept_sums(risk: Array, order: Index, start: Index) -> Array:
    """Return the expected total risk (N,) of the k most certain items, over ties."""
    sums = np.empty(len(order))
    total = 0.0
    for group in range(len(start) - 1):
        # As in `kept_means`, the mean of equal values is that value to the last bit.
        first, offset = risk[order[start[group]]], 0.0
        for place in range(start[group] + 1, start[group + 1]):
            offset += risk[order[place]] - first
        mean = first + offset / (start[group + 1] - start[group])
        for place in range(start[group], start[group + 1]):
            total += mean
            sums[place] = total
    return sums


@jit
def _averaged(by_place: Array, order: Index, start: Index) -> Array:
    """Return the mean (N,) of `by_place` over each item's tie group, in item order."""
    by_item = np.empty(len(order))
    for group in range(len(start) - 1):
        total = 0.0
        for place in range(start[group], start[group + 1]):
            total += by_place[place]
        mean = total / (start[group + 1] - start[group])
        for place in range(start[group], start[group + 1]):
            by_item[order[place]] = mean
    return by_item


def _errors(risk: Array) -> bool:
    """Return whether each item is right or wrong, with nothing between."""
    return bool(((risk == 0.0) | (risk == 1.0)).all())


def _bound(risk: Array) -> float:
    """Return 1 for risks such as errors and 1 - Dice, else infinity."""
    return 1.0 if risk.max() <= 1.0 else math.inf


def _of_risk(
    value: float, change: Array, risk: Array, *, trials: int | None = None
) -> Influence:
    if risk.min() < 0.0:
        return undefined("the risk must be 0 or more on every item")
    high = _bound(risk)
    count = len(risk) if trials is None else trials
    return Influence(
        value=value,
        values=change,
        scale="logit" if high == 1.0 else "log",
        high=high,
        extreme=float(count) if high == 1.0 else 0.0,
    )
