"""Thresholds as the code of Gustafsson et al. (2023, arXiv:2302.03679) takes them.

Both thresholds of the regression benchmark are read off the sorted validation values
at a 0-based floor index. Every other score of that code agrees with the plain one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from qualms.scores.arguments import by_name, open_unit, vector
from qualms.scores.conformal import excess


@by_name
def conformal_offset(
    *, lower: ArrayLike, upper: ArrayLike, target: ArrayLike, alpha: float
) -> float:
    """Return the item at index int((1 - alpha) N) of sorted max(lower - y, y - upper).

    The released code leaves out the finite-sample correction of the procedure it
    cites (Romano et al., 2019), so that the offset is often one rank low (N = 1288,
    say, at any alpha), covers slightly too little, and is finite however few items
    there are. Its validation coverage is (floor((1 - alpha) N) + 1) / N.

    >>> conformal_offset(
    ...     lower=[0.0] * 4, upper=[0.0] * 4, target=[1.0, 2.0, 3.0, 4.0], alpha=0.1
    ... )
    4.0
    """
    open_unit("alpha", alpha)
    outside = np.sort(excess(lower, upper, target))
    return float(outside[_floor_index(1 - alpha, len(outside))])


def selection_threshold(select: ArrayLike, *, rate: float = 0.95) -> float:
    """Return the sorted `select` (N,) at index int(rate N): accepts one item too many.

    The stated share of validation items is floor(rate N) of them; with an inclusive
    comparison the released code accepts floor(rate N) + 1.

    >>> selection_threshold([4.0, 1.0, 3.0, 2.0], rate=0.5)
    3.0
    """
    open_unit("rate", rate)
    values = np.sort(vector("select", select))
    return float(values[_floor_index(rate, len(values))])


def _floor_index(share: float, count: int) -> int:
    # A share that rounds to 1 would point past the end.
    return min(int(share * float(count)), count - 1)
