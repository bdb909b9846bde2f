"""The smooth calibration error: the bandwidth that equals the smoothed residual.

Reflection at 0 and 1 makes the smoothing a heat equation with closed ends: in the
cosine basis on [0, 1], each coefficient k only shrinks by exp(-(pi k sigma)^2 / 2). One
transform of the residual therefore serves every bandwidth.
"""

import numpy as np

from qualms.arrays import Array
from qualms.jit import jit

# Grid steps on [0, 1]; the bandwidth is resolved to about one of them.
STEPS = 1 << 13
ROUNDS, TOLERANCE = 60, 1e-13
# exp(-x^2 / 2) beyond this x is less than 1e-18.
DECAYED = 9.2


def fixed_point(
    position: Array,
    residual: Array,
    *,
    steps: int = STEPS,
    tolerance: float = TOLERANCE,
) -> float:
    """Return the sigma at which the smoothed residual has the size sigma.

    `residual` (N,) stands at `position` (N,) in [0, 1]. Smoothing more never enlarges
    the residual, so there is exactly one such sigma; it is found by false position,
    sped up as by Anderson & Bjorck (1973).
    """
    grid = on_grid(position, residual, steps)
    return float(crossings(grid[None], tolerance=tolerance)[0])


def crossings(grids: Array, *, tolerance: float) -> Array:
    """Return fixed points (K,) of residuals that stand on a grid (K, steps + 1)."""
    spectrum = _spectrum(grids)
    # The size of a residual is at most 1, so the answer is below 2.
    low, high = np.zeros(len(grids)), np.full(len(grids), 2.0)
    above, below = _size(spectrum, low), _size(spectrum, high) - high
    middle, excess = low.copy(), above.copy()
    for _ in range(ROUNDS):
        (row,) = np.nonzero(np.abs(excess) > tolerance)
        if not row.size:
            break
        width = high[row] - low[row]
        middle[row] = low[row] + width * above[row] / (above[row] - below[row])
        excess[row] = _size(spectrum[row], middle[row]) - middle[row]
        short, far = row[excess[row] > 0.0], row[excess[row] <= 0.0]
        below[short] *= _share_kept(excess[short] / above[short])
        low[short], above[short] = middle[short], excess[short]
        above[far] *= _share_kept(excess[far] / below[far])
        high[far], below[far] = middle[far], excess[far]
    return middle


def _share_kept(ratio: Array) -> Array:
    """Return the factor on the value at the end that has not moved."""
    return np.where(ratio < 1.0, 1.0 - ratio, 0.5)


def on_grid(position: Array, residual: Array, steps: int) -> Array:
    """Return the residual (steps + 1,), shared by the grid points around each item."""
    grid = np.zeros(steps + 1)
    _share_out(position, residual, grid)
    return grid


@jit
def _share_out(position: Array, residual: Array, grid: Array) -> None:
    """Add each residual to the grid points around its position."""
    steps = len(grid) - 1
    for item in range(len(position)):
        scaled = position[item] * steps
        left = min(int(scaled), steps - 1)
        right_share = scaled - left
        grid[left] += residual[item] * (1.0 - right_share)
        grid[left + 1] += residual[item] * right_share


def _spectrum(grids: Array) -> Array:
    """Return (K, steps + 1) cosine coefficients of masses on the grid."""
    # In the mirrored period of length 2, the end points meet their own image.
    mirrored = np.concatenate([grids, grids[:, -2:0:-1]], axis=1)
    mirrored[:, [0, grids.shape[1] - 1]] *= 2.0
    coefficients: Array = np.fft.rfft(mirrored).real
    return coefficients


def _size(spectrum: Array, sigma: Array) -> Array:
    """Return integrals (K,) of the absolute residuals, smoothed by sigma (K,)."""
    count = spectrum.shape[1]
    # Coefficients below the last digit need not be computed.
    left = int(min(count, 1 + DECAYED // max(np.pi * sigma.min(), 1e-300)))
    decay = np.exp(-0.5 * (np.pi * sigma[:, None] * np.arange(left)) ** 2)
    period = np.fft.irfft(spectrum[:, :left] * decay, 2 * (count - 1))
    smoothed = np.abs(period[:, :count])
    size: Array = smoothed.sum(axis=1) - (smoothed[:, 0] + smoothed[:, -1]) / 2
    return size
