"""Elastic transforms, which stretch and contract small regions: ImageNet-C.

Hendrycks & Dietterich (2019): Benchmarking neural network robustness to common
corruptions and perturbations. Masks move with the picture. Pixels are interpolated
once; the released code first moves them by an affine map, and then once more.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from qualms.corruptions._by_size import by_size, is_small
from qualms.corruptions._corruption import Corruption

SMALL = (
    (0.0, 0.0, 0.08),
    (0.05, 0.2, 0.07),
    (0.08, 0.06, 0.06),
    (0.1, 0.04, 0.05),
    (0.1, 0.03, 0.03),
)
LARGE = (
    (2.0, 0.7, 0.1),
    (2.0, 0.08, 0.2),
    (0.05, 0.01, 0.02),
    (0.07, 0.01, 0.02),
    (0.12, 0.01, 0.02),
)
"""Size and smoothness of the displacement, and jitter of the three points of the affine
map, as shares of the side."""
SIDE, AS_PUBLISHED = 224, 244
"""The side of ImageNet-C, and the one that its code multiplies with."""


def elastic_transform() -> Corruption:
    """Move pixels by an affine map and by smooth noise."""
    return Corruption(families=("digital", "imagenet_c"), move=_move)


def _move(
    space: tuple[int, ...], severity: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    shares = by_size(space, severity, small=SMALL, large=LARGE)
    side = min(space) if is_small(space) else min(space) * AS_PUBLISHED / SIDE
    size, smooth, jitter = (side * share for share in shares)
    places = np.stack(np.meshgrid(*map(np.arange, space), indexing="ij")).astype(float)
    matrix, shift = _affine(space, jitter, rng)
    for axis in (1, 0):  # across, then down
        noise = rng.uniform(-1.0, 1.0, space)
        places[axis] += size * gaussian_filter(noise, smooth, truncate=3)
    moved = np.tensordot(matrix, places, 1)
    return np.asarray(moved + shift[:, None, None])


def _affine(
    space: tuple[int, ...], jitter: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the matrix and the shift from moved pixels to those they come from."""
    centre, reach = np.array(space) // 2, min(space) // 3
    corners = centre + reach * np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    moved = corners + rng.uniform(-jitter, jitter, corners.shape)
    columns = np.hstack([moved, np.ones((3, 1))])
    solved = np.linalg.solve(columns, corners)
    return solved[:2].T, solved[2]
