"""The difference of two rows: on the same items, or on two samples."""

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import stdtr

from qualms.inference._design import LEAST_FREEDOM, Design, Spread
from qualms.inference._few import (
    FEWEST_UNITS,
    ROUNDING,
    small_inflation,
    unseen_variance,
)
from qualms.inference._seeds import few_seeds, net_of, seed_spread
from qualms.inference._shares import student_quantile
from qualms.inference.interval import joined_spread, mean_values
from qualms.scores.influence import Influence
from qualms.scores.resampling import Difference


def influence_difference(
    a: Influence | Sequence[Influence],
    b: Influence | Sequence[Influence],
    *,
    design: Design | None = None,
    level: float = 0.95,
    seeds: tuple[Spread, Spread] | None = None,
) -> Difference:
    """Return `a` minus `b`, or the means over their repeats, with interval and p value.

    Both are about the same items, whose influence on the difference is the difference
    of their influences, so that shared variation cancels. Seeds of different rows are
    independent; their spread is that of the repeats, or `seeds` where repeats pool
    runs. The interval is Student's t on the variance of items and seeds, with
    Satterthwaite's degrees of freedom; nan where either row has no influence or two
    seeds, or where items are too few (`why_uncompared`).

    >>> from qualms.inference import mean_influence
    >>> one, other = mean_influence([0.2, 0.4, 0.9]), mean_influence([0.1, 0.4, 0.7])
    >>> round(influence_difference(one, other).value, 6)
    0.1
    """
    rows = [[row] if isinstance(row, Influence) else list(row) for row in (a, b)]
    values = [np.array([repeat.value for repeat in row]) for row in rows]
    value = float(values[0].mean() - values[1].mean())
    unknown = Difference(value=value, low=math.nan, high=math.nan, p=math.nan)
    if any(repeat.values is None for row in rows for repeat in row):
        return unknown
    one, other = map(seed_spread, values) if seeds is None else seeds
    if few_seeds(one) or few_seeds(other):
        return unknown
    added = [
        net_of(spread, seen_by_items(row, spread, design))
        for row, spread in zip(rows, (one, other), strict=True)
    ]
    spread = paired_spread(rows[0], rows[1], added, design=design)
    error = math.sqrt(spread.variance)
    if max(abs(value), error) <= ROUNDING * float(np.abs(values[0]).max()):
        return Difference(value=0.0, low=0.0, high=0.0, p=1.0)
    uncompared = any(repeat.uncompared for row in rows for repeat in row)
    if spread.units < FEWEST_UNITS or uncompared:
        return unknown
    if error == 0.0:
        return Difference(value=value, low=value, high=value, p=float(value == 0.0))
    away = student_quantile(level, spread.freedom) * error
    p = 2.0 * float(stdtr(spread.freedom, -abs(value) / error))
    return Difference(value=value, low=value - away, high=value + away, p=p)


def paired_spread(
    a: Sequence[Influence],
    b: Sequence[Influence],
    added: Sequence[Spread],
    *,
    design: Design | None = None,
) -> Spread:
    """Return the spread of the difference of two rows, to which their seeds add."""
    if a is b:
        return Spread(0.0, 1.0, 0)
    change = mean_values(a) - mean_values(b)
    items = (Design(items=len(change)) if design is None else design).spread(change)
    variance = items.variance * small_inflation(a, b) + unseen_variance(a, b, change)
    freedom = max(items.freedom, LEAST_FREEDOM)
    return joined_spread(items._replace(variance=variance, freedom=freedom), *added)


def seen_by_items(
    repeats: Sequence[Influence], seeds: Spread, design: Design | None = None
) -> float:
    """Return the variance of the mean over seeds that its variance over items holds.

    That is the variance of what seeds and items have together: seeds that disagree
    about single items. 0 where repeats are no independent runs.
    """
    count = len(repeats)
    if count < 2 or seeds.freedom != count - 1.0:
        return 0.0
    changes = [repeat.values for repeat in repeats if repeat.values is not None]
    plain = Design(items=len(changes[0])) if design is None else design
    sums = np.stack([plain.sums(change) for change in changes])
    return float(sums.var(axis=0, ddof=1).sum()) / count


class WithInterval(Protocol):
    """Any record of a number with its interval."""

    @property
    def value(self) -> float:
        """The number."""

    @property
    def low(self) -> float:
        """The lower end of its interval."""

    @property
    def high(self) -> float:
        """The upper end of its interval."""


class Bounded(NamedTuple):
    """A number with its interval, and nothing else."""

    value: float
    low: float
    high: float


def difference_of_samples(a: WithInterval, b: WithInterval) -> Bounded:
    """Return `a` minus `b` of two samples, from the interval of each.

    Newcombe's (1998) method for shares, extended to any score (Zou & Donner, 2008).
    Where a cluster has items in both samples, the interval is rather too wide.

    >>> difference_of_samples(Bounded(8.0, 5.0, 12.0), Bounded(6.0, 3.0, 10.0))
    Bounded(value=2.0, low=-3.0, high=7.0)
    """
    gap = a.value - b.value
    low = gap - math.hypot(a.value - a.low, b.high - b.value)
    high = gap + math.hypot(a.high - a.value, b.value - b.low)
    return Bounded(gap, low, high)
