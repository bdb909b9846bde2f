"""Compiled loops over the copies of cells, one pass per replicate.

`copies` (replicates, S) says how many copies each cell has, in the order of the rank;
`last` (S,) marks the last cell of each tie group. Every replicate gives one number, nan
where it is undefined.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from qualms.arrays import Array, Flags
from qualms.jit import jit, jit_sum
from qualms.scores.resampling._weights import Weights

Cell = NDArray[np.uint32]


@jit
def concordance(
    copies: Weights, last: Flags, positive: Array, negative: Array
) -> Array:
    """Share of (positive, negative) pairs in the right order, equal scores half.

    Cells come in descending order of their score.
    """
    area = np.empty(len(copies))
    for row in range(len(copies)):
        won, found, passed = 0.0, 0.0, 0.0
        right, wrong = 0.0, 0.0
        for i in range(len(last)):
            right += copies[row, i] * positive[i]
            wrong += copies[row, i] * negative[i]
            if last[i]:
                won += wrong * (found + 0.5 * right)
                found += right
                passed += wrong
                right, wrong = 0.0, 0.0
        pairs = found * passed
        area[row] = won / pairs if pairs > 0.0 else np.nan
    return area


@jit
def precision_areas(copies: Weights, last: Flags, positive: Array) -> Array:
    """(2, replicates) areas under precision against recall: by trapezoids, by steps.

    Cells come in descending order of their score. Trapezoids start from precision 1
    at recall 0.
    """
    areas = np.empty((2, len(copies)))
    for row in range(len(copies)):
        sloped, stepped = 0.0, 0.0
        hits, count, before, precision = 0.0, 0.0, 0.0, 1.0
        for i in range(len(last)):
            hits += copies[row, i] * positive[i]
            count += copies[row, i]
            if last[i] and count > 0.0:
                after = hits / count
                sloped += (hits - before) * (0.5 * (precision + after))
                stepped += (hits - before) * after
                before, precision = hits, after
        areas[0, row] = sloped / hits if hits > 0.0 else np.nan
        areas[1, row] = stepped / hits if hits > 0.0 else np.nan
    return areas


@jit
def kept_risk(copies: Weights, last: Flags, risk: Array, harmonic: Array) -> Array:
    """Mean over k of the mean risk of the k lowest ranked.

    A tie group of s copies and total risk R, after n copies of total r, adds the sum
    over j = 1..s of (r + j R/s) / (n + j) = R + (r - n R/s) (H(n + s) - H(n)).
    """
    areas = np.empty(len(copies))
    for row in range(len(copies)):
        area, kept, risk_kept, before = 0.0, 0, 0.0, 0.0
        size, total = 0, 0.0
        for i in range(len(last)):
            size += copies[row, i]
            total += copies[row, i] * risk[i]
            if last[i]:
                after = harmonic[kept + size]
                # An empty group adds 0; a branch on it would be mispredicted often.
                mean = total / max(size, 1)
                area += total + (risk_kept - kept * mean) * (after - before)
                kept, risk_kept, before = kept + size, risk_kept + total, after
                size, total = 0, 0.0
        areas[row] = area / kept
    return areas


@lru_cache(maxsize=4)
def harmonic_numbers(bits: int) -> Array:
    """H(0), H(1), ... for every count that fits into so many bits."""
    return np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, 1 << bits))])


@jit
def undetected_risk(copies: Weights, last: Flags, risk: Array) -> Array:
    """Mean over k of the total risk of the k lowest ranked over all N.

    A tie group of s copies and total risk R after total r adds s r + R (s + 1) / 2.
    """
    areas = np.empty(len(copies))
    for row in range(len(copies)):
        area, kept, risk_kept = 0.0, 0.0, 0.0
        size, total = 0.0, 0.0
        for i in range(len(last)):
            size += copies[row, i]
            total += copies[row, i] * risk[i]
            if last[i]:
                area += size * risk_kept + 0.5 * total * (size + 1.0)
                kept, risk_kept = kept + size, risk_kept + total
                size, total = 0.0, 0.0
        areas[row] = area / kept / kept
    return areas


@jit
def trapezoid_risk(copies: Weights, last: Flags, risk: Array) -> Array:
    """Area under the mean risk of the lowest ranked, a point at each tie group's end.

    Straight lines join the points; groups without copies have none.
    """
    areas = np.empty(len(copies))
    for row in range(len(copies)):
        area, kept, risk_kept, before = 0.0, 0.0, 0.0, 0.0
        size, total = 0.0, 0.0
        for i in range(len(last)):
            size += copies[row, i]
            total += copies[row, i] * risk[i]
            if last[i] and size > 0.0:
                after = (risk_kept + total) / (kept + size)
                if kept > 0.0:
                    area += size * (before + after) / 2.0
                kept, risk_kept, before = kept + size, risk_kept + total, after
                size, total = 0.0, 0.0
        areas[row] = area / kept
    return areas


@jit
def sums_at(copies: Weights, last: Flags, summand: Array, edges: Array) -> Array:
    """(replicates, E) sums of `summand` over the first `edges` (replicates, E) copies.

    Edges ascend; inside a group the sum grows linearly.
    """
    sums = np.zeros(edges.shape)
    for row in range(len(copies)):
        edge, kept, total = 0, 0.0, 0.0
        size, inside = 0.0, 0.0
        goal = edges[row, 0]
        for i in range(len(last)):
            size += copies[row, i]
            inside += copies[row, i] * summand[i]
            if last[i]:
                while goal <= kept + size:
                    share = (goal - kept) / size if size > 0.0 else 0.0
                    sums[row, edge] = total + share * inside
                    edge += 1
                    goal = edges[row, edge] if edge < edges.shape[1] else np.inf
                kept, total = kept + size, total + inside
                size, inside = 0.0, 0.0
        # An edge that rounding put above the last copy holds everything.
        sums[row, edge:] = total
    return sums


@jit_sum
def dot(weights: Weights, values: Array) -> Array:
    """(replicates,) sums of `values` (N,) over all copies."""
    sums = np.empty(len(weights))
    for row in range(len(weights)):
        total = 0.0
        for i in range(len(values)):
            total += weights[row, i] * values[i]
        sums[row] = total
    return sums


@jit
def counted(weights: Weights, cell: Cell, cells: int) -> Weights:
    """(replicates, cells) how many copies of the items (N,) are in each cell."""
    found = np.empty((len(weights), cells), dtype=np.int32)
    sums = np.empty((cells, 4), dtype=np.int32)
    for first in range(0, len(weights), 4):
        # Four replicates side by side fill a register; past the last, it repeats.
        a, b, c, d = _four(first, len(weights))
        sums[:] = 0
        for i in range(len(cell)):
            at = cell[i]
            sums[at, 0] += weights[a, i]
            sums[at, 1] += weights[b, i]
            sums[at, 2] += weights[c, i]
            sums[at, 3] += weights[d, i]
        for at in range(cells):
            found[a, at], found[b, at] = sums[at, 0], sums[at, 1]
            found[c, at], found[d, at] = sums[at, 2], sums[at, 3]
    return found


@jit
def binned(weights: Weights, cell: Cell, summand: Array, cells: int) -> Array:
    """(replicates, cells) sums of `summand` (N,) over the copies in each cell."""
    found = np.empty((len(weights), cells))
    sums = np.empty((cells, 4))
    for first in range(0, len(weights), 4):
        a, b, c, d = _four(first, len(weights))
        sums[:] = 0.0
        for i in range(len(cell)):
            at, value = cell[i], summand[i]
            sums[at, 0] += weights[a, i] * value
            sums[at, 1] += weights[b, i] * value
            sums[at, 2] += weights[c, i] * value
            sums[at, 3] += weights[d, i] * value
        for at in range(cells):
            found[a, at], found[b, at] = sums[at, 0], sums[at, 1]
            found[c, at], found[d, at] = sums[at, 2], sums[at, 3]
    return found


@jit
def _four(first: int, stop: int) -> tuple[int, int, int, int]:
    end = stop - 1
    return first, min(first + 1, end), min(first + 2, end), min(first + 3, end)
