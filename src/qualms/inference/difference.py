"""The difference of two rows: on the same items, or on two samples."""

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import stdtr

from qualms.inference._design import Design
from qualms.inference._few import (
    FEWEST_UNITS,
    ROUNDING,
    small_inflation,
    unseen_variance,
)
from qualms.inference._shares import student_quantile
from qualms.inference.interval import (
    LEAST_FREEDOM,
    joined_spread,
    mean_values,
    seed_spread,
)
from qualms.scores.influence import Influence
from qualms.scores.resampling import Difference


def influence_difference(
    a: Influence | Sequence[Influence],
    b: Influence | Sequence[Influence],
    *,
    design: Design | None = None,
    level: float = 0.95,
) -> Difference:
    """Return `a` minus `b`, or the means over their repeats, with interval and p value.

    Both are about the same items, whose influence on the difference is the difference
    of their influences: what the rows share cancels. Seeds of different rows have
    nothing in common. Student's t with Satterthwaite's degrees of freedom; nan where
    either row has no influence, or too few items tell (`why_uncompared`).

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
    spread = joined_spread(items, *(seed_spread(seeds) for seeds in values))
    error = math.sqrt(spread.variance)
    if max(abs(value), error) <= ROUNDING * float(np.abs(values[0]).max()):
        return Difference(value=0.0, low=0.0, high=0.0, p=1.0)
    uncompared = any(repeat.uncompared for row in rows for repeat in row)
    if items.units < FEWEST_UNITS or uncompared:
        return Difference(value=value, low=math.nan, high=math.nan, p=math.nan)
    if error == 0.0:
        return Difference(value=value, low=value, high=value, p=float(value == 0.0))
    reach = student_quantile(level, spread.freedom) * error
    p = 2.0 * float(stdtr(spread.freedom, -abs(value) / error))
    return Difference(value=value, low=value - reach, high=value + reach, p=p)


class WithInterval(Protocol):
    """Any record of a number with its interval."""

    @property
    def value(self) -> float:
        """Return the number."""

    @property
    def low(self) -> float:
        """Return the lower end of its interval."""

    @property
    def high(self) -> float:
        """Return the upper end of its interval."""


class Bounded(NamedTuple):
    """A number with its interval, and nothing else."""

    value: float
    low: float
    high: float


def difference_of_samples(a: WithInterval, b: WithInterval) -> Bounded:
    """Return `a` minus `b` of two samples, from the interval of each.

    Newcombe's (1998) method for shares, for any score (Zou & Donner, 2008). Where
    clusters reach into both samples the interval is too wide rather than too narrow.

    >>> difference_of_samples(Bounded(8.0, 5.0, 12.0), Bounded(6.0, 3.0, 10.0))
    Bounded(value=2.0, low=-3.0, high=7.0)
    """
    gap = a.value - b.value
    low = gap - math.hypot(a.value - a.low, b.high - b.value)
    high = gap + math.hypot(a.high - a.value, b.value - b.low)
    return Bounded(gap, low, high)
