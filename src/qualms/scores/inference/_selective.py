"""Influence on selective prediction: the risk of what is kept, most certain first."""

import math

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array
from qualms.scores._arrays import vector
from qualms.scores.inference._influence import (
    Influence,
    mean_influence,
    undefined,
    with_enough_errors,
)
from qualms.scores.ties import Ranked, ranked_items

WINDOW = 0.7
"""The local risk at a cut is that of n to this power items around it."""


def aurc_influence(risk: ArrayLike, uncertainty: ArrayLike) -> Influence:
    """Mean over k of the mean risk of the k most certain items."""
    values, rank = _ranked_risk(risk, uncertainty)
    area, change = _kept_area(values, rank)
    return _of_risk(area, change, values)


def eaurc_influence(risk: ArrayLike, uncertainty: ArrayLike) -> Influence:
    """AURC above that of the best ranking of the same risks."""
    values, rank = _ranked_risk(risk, uncertainty)
    area, change = _kept_area(values, rank)
    best, best_change = _kept_area(values, ranked_items(values))
    # A perfect ranking leaves rounding, which is no excess.
    value = area - best
    value = 0.0 if value < 1e-12 * max(area, 1e-300) else value
    found = _of_risk(value, change - best_change, values)
    if values.max() > 1.0 or not np.isin(values, (0.0, 1.0)).all():
        return found
    return with_enough_errors(found, int(values.sum()), len(values))


def augrc_influence(risk: ArrayLike, uncertainty: ArrayLike) -> Influence:
    """Mean over k of the summed risk of the k most certain items over N."""
    values, rank = _ranked_risk(risk, uncertainty)
    items = len(values)
    total = _kept_sums(values, rank)
    place = np.arange(1.0, items + 1.0)
    area = float(total.sum()) / items**2
    from_others, own = _averaged(total, rank), _averaged(items + 1.0 - place, rank)
    change = (from_others + values * own) / items**2
    return _of_risk(area, change - change.mean(), values)


def risk_at_coverage_influence(
    risk: ArrayLike, uncertainty: ArrayLike, *, coverage: float = 0.8
) -> Influence:
    """Mean risk of the most certain share `coverage` of the items."""
    if not 0.0 < coverage <= 1.0:
        raise ValueError(f"coverage must be above 0 and at most 1, got {coverage}")
    values, rank = _ranked_risk(risk, uncertainty)
    return kept_risk_influence(values, rank, max(1, round(coverage * len(values))))


def kept_risk_influence(risk: Array, rank: Ranked, kept: int) -> Influence:
    """Mean `risk` (N,) of the `kept` items of lowest rank."""
    if kept == len(risk):
        return mean_influence(risk, bound=_bound(risk))
    value = float(_kept_sums(risk, rank)[kept - 1]) / kept
    inner = kept_share(rank, kept) * (risk - value) / kept
    at_cut = (_local_mean(risk, rank, kept) - value) / kept
    change = kept_influence(inner, rank, kept, at_cut=at_cut)
    return _of_risk(value, change, risk, trials=kept)


def kept_influence(
    inner: Array, rank: Ranked, kept: int, *, at_cut: float | None = None
) -> Array:
    """(N,) influence on a score of the `kept` items of lowest rank.

    `inner` (N,) is that on the score of just these items, 0 beyond; `at_cut` is what it
    would be for items at the cut, by default as for those just inside.
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
    """(N,) how much of each item is among the `kept` most certain; ties share."""
    inside = np.clip((kept - rank.start[:-1]) / np.diff(rank.start), 0.0, 1.0)
    share = np.empty(len(rank.order))
    share[rank.order] = np.repeat(inside, np.diff(rank.start))
    return share


def _local_mean(values: Array, rank: Ranked, kept: int) -> float:
    """Mean of `values` around the cut after `kept` items, whole tie groups."""
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
    """The AURC, and the first-order change of it due to each item."""
    items = len(risk)
    place = np.arange(1.0, items + 1.0)
    mean = _kept_sums(risk, rank) / place
    area = float(mean.mean())
    # The item itself from its place on, less what it thins out of the others.
    later = np.cumsum((1.0 / place)[::-1])[::-1]
    thinned = np.cumsum((mean / place)[::-1])[::-1]
    change = _averaged(mean - thinned, rank) + risk * _averaged(later, rank)
    change /= items
    return area, change - change.mean()


def _kept_sums(risk: Array, rank: Ranked) -> Array:
    """(N,) expected total risk of the k most certain, over random order of ties."""
    ordered = risk[rank.order]
    size = np.diff(rank.start)
    if len(size) < len(ordered):
        mean = np.add.reduceat(ordered, rank.start[:-1]) / size
        ordered = np.repeat(mean, size)
    return np.cumsum(ordered)


def _averaged(by_place: Array, rank: Ranked) -> Array:
    """(N,) in item order: the mean of `by_place` over each item's tie group."""
    size = np.diff(rank.start)
    found = np.empty(len(by_place))
    if len(size) < len(by_place):
        mean = np.add.reduceat(by_place, rank.start[:-1]) / size
        by_place = np.repeat(mean, size)
    found[rank.order] = by_place
    return found


def _bound(risk: Array) -> float:
    """1 for risks such as errors and 1 - Dice, else none."""
    return 1.0 if risk.max() <= 1.0 else math.inf


def _of_risk(
    value: float, change: Array, risk: Array, *, trials: int | None = None
) -> Influence:
    if risk.min() < 0.0:
        return undefined("the risk must be 0 or more on every item")
    high = _bound(risk)
    seen = len(risk) if trials is None else trials
    return Influence(
        value=value,
        values=change,
        scale="logit" if high == 1.0 else "log",
        high=high,
        extreme=float(seen) if high == 1.0 else 0.0,
    )
