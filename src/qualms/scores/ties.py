"""One sort for every ranking score: ascending order and the groups of equal values.

Scores use whole tie groups, never the order inside one, so the sort need not be stable
and the fastest one will do.
"""

from typing import NamedTuple

import numpy as np

from qualms.scores._arrays import Array, Index


class Ranked(NamedTuple):
    """Items in ascending order of a value, cut into groups of equal value."""

    order: Index
    """(N,) item indices, smallest value first."""
    start: Index
    """(G + 1,) where each group starts in `order`; the last entry is N."""


def ranked_items(values: Array) -> Ranked:
    """Sort `values` ascending and find the groups of equal ones."""
    order = np.argsort(values)
    return Ranked(order, group_starts(values[order]))


def group_starts(ascending: Array) -> Index:
    """(G + 1,) starts of the runs of equal values when sorted, then the length."""
    new = np.flatnonzero(ascending[1:] != ascending[:-1])
    start = np.empty(new.size + 2, dtype=np.int64)
    start[0] = 0
    start[1:-1] = new + 1
    start[-1] = len(ascending)
    return start
