"""Compiled loops of the referral curves: scores of every set of most certain items.

The kernels take the items most certain first, and `start` (G + 1,), where the groups of
equal uncertainty begin. The order inside a group is arbitrary, so the `_at_ends`
kernels give one value per group, shape (G,): the score of the items up to its end.
"""

import numpy as np

from qualms.arrays import Array, Flags, Index
from qualms.jit import jit


@jit
def auroc_at_ends(level: Index, positive: Flags, start: Index, levels: int) -> Array:
    """Return the AUROC of every prefix; equal scores share one `level` (N,).

    A Fenwick tree per class counts the scores seen below a level, so one more item
    costs O(log N) and the number of correctly ordered pairs stays an exact integer.
    """
    tree = np.zeros((2, levels + 1), np.int32)
    at_level = np.zeros((2, levels), np.int32)
    counts = np.zeros(2, np.int64)
    ends = np.empty(len(start) - 1)
    twice_wins = 0
    for group in range(len(start) - 1):
        for item in range(start[group], start[group + 1]):
            kind = 1 if positive[item] else 0
            other = 1 - kind
            below, node = 0, level[item]
            while node > 0:
                below += tree[other, node]
                node &= node - 1
            equal = at_level[other, level[item]]
            won = below if kind == 1 else counts[other] - below - equal
            twice_wins += 2 * won + equal
            at_level[kind, level[item]] += 1
            counts[kind] += 1
            node = level[item] + 1
            while node <= levels:
                tree[kind, node] += 1
                node += node & -node
        pairs = counts[0] * counts[1]
        ends[group] = twice_wins / (2 * pairs) if pairs > 0 else np.nan
    return ends


@jit
def auprc_at_ends(slot: Index, kind: Index, start: Index, slots: int) -> Array:
    """Return the trapezoid AUPRC of every prefix, in O(N) memory.

    Recall moves only where a positive stands, so the sum runs over the score levels
    that hold one: the slots, highest score first. `kind` (N,) is the relation of an
    item to its slot: 0 a negative above it (and below the slot before), 1 a negative
    inside, 2 a positive.
    """
    count = np.zeros((slots + 1, 3))
    ends = np.empty(len(start) - 1)
    positives = 0.0
    for group in range(len(start) - 1):
        for item in range(start[group], start[group + 1]):
            count[slot[item], kind[item]] += 1.0
            positives += kind[item] == 2
        hits, flagged, twice_area = 0.0, 0.0, 0.0
        for j in range(slots):
            flagged += count[j, 0]
            gain = count[j, 2]
            # The curve starts at precision 1 while nothing is flagged.
            before = hits / flagged if flagged > 0.0 else 1.0
            hits += gain
            flagged += count[j, 1] + gain
            if gain > 0.0:
                twice_area += gain * (before + hits / flagged)
        ends[group] = twice_area / (2.0 * positives) if positives > 0.0 else np.nan
    return ends


@jit
def balanced_at_ends(
    target: Index, correct: Flags, start: Index, classes: int
) -> Array:
    """Return the mean recall over the classes present in every prefix."""
    count = np.zeros(classes)
    right = np.zeros(classes)
    ends = np.empty(len(start) - 1)
    total, present = 0.0, 0
    for group in range(len(start) - 1):
        for item in range(start[group], start[group + 1]):
            label = target[item]
            if count[label] > 0.0:
                total -= right[label] / count[label]
            else:
                present += 1
            count[label] += 1.0
            right[label] += correct[item]
            total += right[label] / count[label]
        ends[group] = total / present
    return ends
