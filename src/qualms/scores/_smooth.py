"""The residual smoothed by a reflected Gaussian of the bandwidth that equals its size.

Reflection at 0 and 1 makes the smoothing a heat equation with closed ends: in the
cosine basis on [0, 1], each coefficient k only shrinks by exp(-(pi k sigma)^2 / 2). One
transform of the residual therefore serves every bandwidth.
"""

import numpy as np

from qualms.scores._arrays import Array

# Grid steps on [0, 1]; the bandwidth is resolved to about one of them.
STEPS = 1 << 13
# What a bootstrap replicate needs: its grid error stays below 1e-4, far inside the
# interval, at a tenth of the time.
COARSE_STEPS, COARSE_TOLERANCE = 1 << 9, 1e-7
ROUNDS, TOLERANCE = 60, 1e-13


def fixed_point(
    position: Array,
    residual: Array,
    *,
    steps: int = STEPS,
    tolerance: float = TOLERANCE,
) -> float:
    """The sigma at which the smoothed residual has the size sigma.

    `residual` (N,) stands at `position` (N,) in [0, 1]. Smoothing more never enlarges
    the residual, so there is exactly one such sigma; it is found by false position,
    sped up as by Anderson & Bjorck (1973).
    """
    return crossing(on_grid(position, residual, steps), tolerance=tolerance)


def crossing(grid: Array, *, tolerance: float) -> float:
    """The fixed point for a residual that already stands on a grid (steps + 1,)."""
    spectrum = _spectrum(grid)
    # The size is at most 1, so that 2 is above the answer, however bad the residual.
    low, high = 0.0, 2.0
    above, below = _size(spectrum, low), _size(spectrum, high) - high
    middle, excess = low, above
    for _ in range(ROUNDS):
        if abs(excess) <= tolerance:
            break
        middle = low + (high - low) * above / (above - below)
        excess = _size(spectrum, middle) - middle
        if excess > 0.0:
            below *= _share_kept(excess / above)
            low, above = middle, excess
        else:
            above *= _share_kept(excess / below)
            high, below = middle, excess
    return middle


def _share_kept(ratio: float) -> float:
    """By how much the end that stays is scaled down, lest it stay for ever."""
    return 1.0 - ratio if ratio < 1.0 else 0.5


def on_grid(position: Array, residual: Array, steps: int) -> Array:
    """(steps + 1,) the residual shared between the two grid points around each item."""
    scaled = position * steps
    left = np.minimum(scaled.astype(np.int64), steps - 1)
    right_share = scaled - left
    grid: Array = np.zeros(steps + 1)
    grid += np.bincount(left, residual * (1.0 - right_share), minlength=steps + 1)
    grid += np.bincount(left + 1, residual * right_share, minlength=steps + 1)
    return grid


def _spectrum(grid: Array) -> Array:
    """(steps + 1,) cosine coefficients of masses on the grid."""
    # Mirrored into a period of length 2, the end points meet their own image.
    mirrored = np.concatenate([grid, grid[-2:0:-1]])
    mirrored[[0, len(grid) - 1]] *= 2.0
    coefficients: Array = np.fft.rfft(mirrored).real
    return coefficients


def _size(spectrum: Array, sigma: float) -> float:
    """Integral over [0, 1] of the absolute residual, smoothed with bandwidth sigma."""
    count = len(spectrum)
    decay = np.exp(-0.5 * (np.pi * sigma * np.arange(count)) ** 2)
    smoothed = np.abs(np.fft.irfft(spectrum * decay, 2 * (count - 1))[:count])
    return float(smoothed.sum() - (smoothed[0] + smoothed[-1]) / 2)
