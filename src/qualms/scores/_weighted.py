"""One pass over presorted items that each count a whole number of times.

`item` (N,) holds the items in ascending order of what ranks them, `last` (N,) marks the
end of each tie group; per-item arrays come in that order, weights in file order.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from qualms.scores._arrays import Array, Flags, Index
from qualms.scores._jit import jit
from qualms.scores._resample import Weights
from qualms.scores._ties import ranked


class Order(NamedTuple):
    """Items in ascending order of a value; `last` marks the end of each tie group."""

    item: Index
    last: Flags


def ascending(values: Array) -> Order:
    """The order of `values` (N,) and its tie groups."""
    order, start = ranked(values)
    last = np.zeros(len(order), dtype=np.bool_)
    last[start[1:] - 1] = True
    return Order(order, last)


@jit
def concordance(
    weights: Weights, item: Index, last: Flags, positive: Array, negative: Array
) -> float:
    """Share of (positive, negative) pairs in the right order, equal scores half."""
    won, found, lower = 0.0, 0.0, 0.0
    right, wrong = 0.0, 0.0
    for i in range(len(item)):
        copies = weights[item[i]]
        right += copies * positive[i]
        wrong += copies * negative[i]
        if last[i]:
            won += right * (lower + 0.5 * wrong)
            lower += wrong
            found += right
            right, wrong = 0.0, 0.0
    pairs = lower * found
    return won / pairs if pairs > 0.0 else np.nan


@jit
def kept_risk(
    weights: Weights, item: Index, last: Flags, risk: Array, harmonic: Array
) -> float:
    """Mean over k of the mean risk of the k lowest ranked.

    A tie group of s copies and total risk R, after n copies of total r, adds the sum
    over j = 1..s of (r + j R/s) / (n + j) = R + (r - n R/s) (H(n + s) - H(n)).
    """
    area, kept, risk_kept, before = 0.0, 0, 0.0, 0.0
    size, total = 0, 0.0
    for i in range(len(item)):
        copies = weights[item[i]]
        size += copies
        total += copies * risk[i]
        if last[i]:
            after = harmonic[kept + size]
            # An empty group adds 0; a branch on it would be mispredicted all the time.
            mean = total / max(size, 1)
            area += total + (risk_kept - kept * mean) * (after - before)
            kept, risk_kept, before = kept + size, risk_kept + total, after
            size, total = 0, 0.0
    return area / kept


@lru_cache(maxsize=4)
def harmonic_numbers(bits: int) -> Array:
    """H(0), H(1), ... for every count that fits into so many bits."""
    return np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, 1 << bits))])


@jit
def precision_area(
    weights: Weights, item: Index, last: Flags, positive: Array, trapezoid: bool
) -> float:
    """Area under precision against recall, items in descending order of their score.

    Trapezoids between the thresholds, from precision 1 at recall 0, or steps.
    """
    area, hits, count, before, precision = 0.0, 0.0, 0.0, 0.0, 1.0
    for i in range(len(item)):
        copies = weights[item[i]]
        hits += copies * positive[i]
        count += copies
        if last[i] and count > 0.0:
            after = hits / count
            height = 0.5 * (precision + after) if trapezoid else after
            area += (hits - before) * height
            before, precision = hits, after
    return area / hits if hits > 0.0 else np.nan


@jit
def undetected_risk(weights: Weights, item: Index, last: Flags, risk: Array) -> float:
    """Mean over k of the total risk of the k lowest ranked over all N.

    A tie group of s copies and total risk R after total r adds s r + R (s + 1) / 2.
    """
    area, kept, risk_kept = 0.0, 0.0, 0.0
    size, total = 0.0, 0.0
    for i in range(len(item)):
        copies = weights[item[i]]
        size += copies
        total += copies * risk[i]
        if last[i]:
            area += size * risk_kept + 0.5 * total * (size + 1.0)
            kept, risk_kept = kept + size, risk_kept + total
            size, total = 0.0, 0.0
    return area / kept / kept


@jit
def sums_at(
    weights: Weights, item: Index, last: Flags, summand: Array, edges: Array
) -> Array:
    """Sum of `summand` over the first `edges` copies, ascending; linear in a group."""
    sums = np.zeros(len(edges))
    edge, kept, total = 0, 0.0, 0.0
    size, inside = 0.0, 0.0
    for i in range(len(item)):
        copies = weights[item[i]]
        size += copies
        inside += copies * summand[i]
        if last[i]:
            while edge < len(edges) and edges[edge] <= kept + size:
                share = (edges[edge] - kept) / size if size > 0.0 else 0.0
                sums[edge] = total + share * inside
                edge += 1
            kept, total = kept + size, total + inside
            size, inside = 0.0, 0.0
    # An edge that rounding put above the last copy holds everything.
    sums[edge:] = total
    return sums


def dot(weights: Weights, values: Array) -> float:
    """Sum of `values` over all copies."""
    # BLAS sums in vector registers, which a plain loop in order may not.
    return float(weights.astype(np.float64) @ values)


@jit
def counted(weights: Weights, cell: Index, cells: int) -> Array:
    """(cells,) copies in each cell; all in file order."""
    sums = np.zeros(cells)
    for i in range(len(cell)):
        sums[cell[i]] += weights[i]
    return sums


@jit
def cumulative(weights: Weights, item: Index, last: Flags, summand: Array) -> Array:
    """(2, G + 1) sums of `summand` and of copies up to each tie group that has any."""
    sums = np.zeros((2, len(item) + 1))
    group, total, count = 0, 0.0, 0.0
    for i in range(len(item)):
        copies = weights[item[i]]
        total += copies * summand[i]
        count += copies
        if last[i]:
            group += count > sums[1, group]
            sums[0, group], sums[1, group] = total, count
    return sums[:, : group + 1]


@jit
def binned(weights: Weights, cell: Index, summand: Array, cells: int) -> Array:
    """(cells,) sums of `summand` over the copies in each cell; all in file order."""
    sums = np.zeros(cells)
    for i in range(len(cell)):
        sums[cell[i]] += weights[i] * summand[i]
    return sums


@jit
def kept_auroc(
    weights: Weights, item: Index, last: Flags, positive: Flags, level: Index
) -> Array:
    """(2, G) AUROC and number of copies up to each tie group that has any.

    `level` (N,) ranks the scores, equal scores sharing one. A Fenwick tree per class
    counts the copies seen below a level.
    """
    levels = level.max() + 1
    tree = np.zeros((2, levels + 1), np.int64)
    at_level = np.zeros((2, levels), np.int64)
    seen = np.zeros(2, np.int64)
    ends = np.zeros((2, len(item) + 1))
    group, won = 0, 0.0
    for i in range(len(item)):
        copies = weights[item[i]]
        if copies > 0:
            mine = 1 if positive[i] else 0
            below, node = 0, level[i]
            while node > 0:
                below += tree[1 - mine, node]
                node &= node - 1
            equal = at_level[1 - mine, level[i]]
            above = seen[1 - mine] - below - equal
            won += copies * ((below if mine == 1 else above) + 0.5 * equal)
            at_level[mine, level[i]] += copies
            seen[mine] += copies
            node = level[i] + 1
            while node <= levels:
                tree[mine, node] += copies
                node += node & -node
        if last[i]:
            pairs, count = seen[0] * seen[1], seen[0] + seen[1]
            group += count > ends[1, group]
            ends[0, group], ends[1, group] = won / pairs if pairs else np.nan, count
    return ends[:, 1 : group + 1]
