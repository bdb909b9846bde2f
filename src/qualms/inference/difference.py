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
from qualms.inference._seeds import few_seeds, reach, seed_spread
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
    runs. The interval is Student's t; nan where either row has no influence or two
    seeds, or where items are too few (`why_uncompared`).

    >>> from qualms.inference import mean_influence
    >>> one, other = mean_influence([0.2, 0.4, 0.9]), mean_influence([0.1, 0.4, 0.7])
    >>> round(influence_difference(one, other).value, 6)
    0.1
    """
    rows = [[row] if isinstance(row, Influence) else list(row) for row in (a, b)]
    values = [np.array([repeat.value for repeat in row]) for row in rows]
    value = float(values[0].mean() - values[1].mean())
    if any(repeat.values is None for row in rows for repeat in row):
        return Difference(value=value, low=math.nan, high=math.nan, p=math.nan)
    change = mean_values(rows[0]) - mean_values(rows[1])
    items = (Design(items=len(change)) if design is None else design).spread(change)
    variance = items.variance * small_inflation(*rows) + unseen_variance(
        rows[0], rows[1], change
    )
    items = items._replace(variance=variance, freedom=max(items.freedom, LEAST_FREEDOM))
    between = [seed_spread(v) for v in values] if seeds is None else list(seeds)
    if any(map(few_seeds, between)):
        return Difference(value=value, low=math.nan, high=math.nan, p=math.nan)
    spread = joined_spread(items, *between)
    error = math.sqrt(spread.variance)
    if max(abs(value), error) <= ROUNDING * float(np.abs(values[0]).max()):
        return Difference(value=0.0, low=0.0, high=0.0, p=1.0)
    uncompared = any(repeat.uncompared for row in rows for repeat in row)
    if items.units < FEWEST_UNITS or uncompared:
        return Difference(value=value, low=math.nan, high=math.nan, p=math.nan)
    if error == 0.0:
        return Difference(value=value, low=value, high=value, p=float(value == 0.0))
    away = reach(level, (items, *between))
    p = 2.0 * float(stdtr(spread.freedom, -abs(value) / error))
    return Difference(value=value, low=value - away, high=value + away, p=p)


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
