"""Compiled loops over the pixels of a map."""

import numpy as np
from numpy.typing import NDArray

from qualms.arrays import Array
from qualms.jit import jit

# Sums of one row kept in a core's own cache.
BLOCK = 2048


@jit
def window_sums(rows: Array, sums: Array, step: int, size: int) -> None:
    """Write to `sums` (B, K) the sums of `size` values of `rows`, `step` apart."""
    for row in range(len(rows)):
        for start in range(0, sums.shape[1], BLOCK):
            total = sums[row, start : start + BLOCK]
            total[:] = 0.0
            for place in range(start, start + size * step, step):
                terms = rows[row, place : place + len(total)]
                for i in range(len(total)):
                    total[i] += terms[i]


@jit
def calibration_gaps(
    conf: Array, right: Array, count: Array, edges: Array
) -> NDArray[np.float64]:
    """Return per bin (2, B) the counts of pixels, and right ones minus confidences.

    Bin b holds edges[b] <= conf < edges[b + 1].
    """
    bins = len(edges) - 1
    gaps = np.zeros((2, bins))
    scale = bins / edges[bins]
    for i in range(len(conf)):
        # Rounding may miss the bin by one.
        at = min(int(conf[i] * scale), bins - 1)
        if conf[i] < edges[at]:
            at -= 1
        elif conf[i] >= edges[at + 1]:
            at += 1
        gaps[0, at] += count[i]
        gaps[1, at] += right[i] - count[i] * conf[i]
    return gaps
