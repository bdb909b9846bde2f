"""Intervals of a share that hold near 0 and 1."""

import math

from scipy.special import ndtri

from qualms.scores.inference._design import Spread


def wilson(share: float, size: float, level: float) -> tuple[float, float]:
    """Wilson's (1927) interval of a share among `size` independent items.

    >>> [round(end, 4) for end in wilson(0.9, 10, 0.95)]
    [0.5958, 0.9821]
    """
    z = float(ndtri(0.5 + level / 2.0))
    about = z * z / size
    centre = (share + about / 2.0) / (1.0 + about)
    half = math.sqrt(share * (1.0 - share) * about + about * about / 4.0)
    half /= 1.0 + about
    low, high = max(0.0, centre - half), min(1.0, centre + half)
    # Rounding must not take away the end of the range where nothing else was seen.
    return (0.0 if share <= 0.0 else low), (1.0 if share >= 1.0 else high)


def effective_size(share: float, spread: Spread, items: float) -> float:
    """How many independent items would know the share equally well.

    Where the spread is 0, as many as there are units: no more can be said.
    """
    variance = share * (1.0 - share)
    if spread.variance <= 0.0 or variance <= 1e-12:
        return float(min(spread.units, items))
    # The variance was scaled up for the mean taken from it; Wilson's is not.
    known = variance / spread.variance * spread.units / max(spread.units - 1, 1)
    return max(1.0, min(known, float(items)))
