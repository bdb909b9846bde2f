"""Sums that do not depend on the order of their terms.

Every addition keeps its rounding error, and the errors are added up beside the sum
(Knuth's two-sum). Rounded once, at the end, the sum is the same in any order of the
terms. So neither the order of the draws nor the names of the classes can break a tie.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.arrays import Array, Floats
from qualms.jit import jit

__all__ = ["mean_over_draws"]

# Terms of one draw added at a time: few enough to stay in a core's own cache.
BLOCK = 1 << 16
# Terms of one row of `sums_of_others`.
KEPT = 2048


def plain_dot(first: Array, second: Array) -> float:
    """Return the dot product of two arrays (K,), the same on any number of threads."""
    # BLAS, which `@` calls, adds up in as many parts as it has threads.
    return float(np.einsum("i,i->", first, second))


@jit
def two_sum(total: float, term: float) -> tuple[float, float]:
    """Return `total + term`, and its rounding error."""
    new = total + term
    shift = new - total
    return new, (total - (new - shift)) + (term - shift)


@jit
def add_to(total: Array, rest: Array, terms: Floats) -> None:
    """Add `terms` (K,) to the sums `total` (K,), and the rounding errors to `rest`."""
    for i in range(len(total)):
        total[i], lost = two_sum(total[i], terms[i])
        rest[i] += lost


@jit
def column_sums(rows: Floats) -> Array:
    """Return (K,) sums of `rows` (C, K) over C."""
    total, rest = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    for c in range(len(rows)):
        for i in range(len(total)):
            total[i], lost = two_sum(total[i], rows[c, i])
            rest[i] += lost
    return total + rest


@jit
def sums_of_others(rows: Floats, sums: Array) -> None:
    """Write to `sums` (K,) the sums of `rows` (C, K) over C without the largest value.

    Subtracting the largest value from the sum of all would lose the digits of the rest.
    """
    for start in range(0, len(sums), KEPT):
        rest = sums[start : start + KEPT]
        most = np.zeros(len(rest))
        rest[:] = 0.0
        for c in range(len(rows)):
            row = rows[c, start : start + KEPT]
            for i in range(len(rest)):
                rest[i] += min(most[i], row[i])
                most[i] = max(most[i], row[i])


@jit
def mean_rows(block: Array, mean: Array, exact: float, tolerance: float) -> bool:
    """Write the mean over draws of `block` (M, B, C) to `mean` (B, C).

    Rows with a sum that misses one by more than `exact` are divided by it. Returns
    whether all rows are probabilities with a sum within `tolerance` of one.
    """
    draws, items, classes = block.shape
    rest = np.empty(classes)
    for item in range(items):
        mean[item, :] = 0.0
        rest[:] = 0.0
        for draw in range(draws):
            total, lost, proper = 0.0, 0.0, True
            for c in range(classes):
                p = block[draw, item, c]
                proper &= (p >= 0.0) & (p <= 1.0)
                total, left = two_sum(total, p)
                lost += left
            total += lost
            # Written so that a nan, which compares false, is refused.
            if not (proper and abs(total - 1.0) <= tolerance):
                return False
            if abs(total - 1.0) <= exact:
                total = 1.0
            for c in range(classes):
                p = block[draw, item, c] / total
                mean[item, c], left = two_sum(mean[item, c], p)
                rest[c] += left
        for c in range(classes):
            mean[item, c] = (mean[item, c] + rest[c]) / draws
    return True


@jit
def join_largest(rows: Array, tie: float) -> None:
    """Set tied largest values of each of `rows` (B, C) to the middle between them.

    Values are tied if they differ by at most a share of `tie`.
    """
    for row in rows:
        largest = row.max()
        smallest = largest
        for value in row:
            if largest - value <= tie * largest:
                smallest = min(smallest, value)
        if smallest < largest:
            for c in range(len(row)):
                if row[c] >= smallest:
                    row[c] = (smallest + largest) / 2.0


def mean_over_draws(draws: ArrayLike) -> NDArray[Any]:
    """Return the mean over the first axis, the same bits for any order of draws.

    float32 stays float32, anything else is computed in float64.

    >>> mean_over_draws([[0.1, 1.0], [0.2, 1.0], [0.3, 4.0]])
    array([0.2, 2. ])
    """
    array = np.asarray(draws)
    if array.ndim < 1 or len(array) == 0:
        raise ValueError(f"draws must have at least one draw, got shape {array.shape}")
    kind = np.float32 if array.dtype == np.float32 else np.float64
    flat = array.reshape(len(array), -1)
    mean: Floats = np.empty(flat.shape[1], dtype=kind)
    for start in range(0, flat.shape[1], BLOCK):
        block = flat[:, start : start + BLOCK]
        total, rest = np.zeros((2, block.shape[1]))
        for draw in block:
            add_to(total, rest, np.require(draw, kind, ["C", "W"]))
        mean[start : start + BLOCK] = (total + rest) / len(block)
    return mean.reshape(array.shape[1:])
