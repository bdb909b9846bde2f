"""The chest around a nodule: lung tissue, vessels and the chest wall, in HU.

All volumes have the axes row (towards the back), column and slice, in voxels of 1 mm.
"""

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._lidc.nodules import Nodule

Volume = NDArray[np.float32]
Rng = np.random.Generator
AIR, BONE, FAT, MUSCLE = -1000.0, 550.0, -95.0, 45.0
PIXELS = 512
"""Rows and columns of every CT of LIDC-IDRI."""
HALF_CHEST = (105.0, 145.0)
"""Rows and columns in mm from the middle of the image to the ribs."""
DENSITY = 5.0
"""Vessel trees that enter a volume with sides of 64 mm."""


def tissue_noise(rng: Rng, shape: tuple[int, ...], width: float) -> Volume:
    """Draw Gaussian noise of mean 0 and variance 1, correlated over `width` voxels."""
    from scipy.ndimage import gaussian_filter

    noise = rng.standard_normal(shape, dtype=np.float32)
    smooth = gaussian_filter(noise, width, mode="wrap")
    return np.asarray(smooth / smooth.std(), np.float32)


def lung_tissue(rng: Rng, side: int, *, aerated: float) -> Volume:
    """Draw air and the finest structures of the lung; denser towards the back.

    Args:
        rng: draws the structures.
        side: of the volume.
        aerated: HU in its middle.
    """
    shape = (side, side, side)
    cloudy, fine = tissue_noise(rng, shape, 5.0), tissue_noise(rng, shape, 1.1)
    # Strands and small vessels are brighter than the rest is dark.
    strands = np.exp(0.55 * fine)
    behind = np.linspace(-0.5, 0.5, side, dtype=np.float32)[:, None, None] * side
    tissue = aerated + 0.5 * behind + 14 * cloudy + 24 * (strands - strands.mean())
    return np.asarray(tissue, np.float32)


def outward(nodule: Nodule) -> tuple[NDArray[np.float64], float]:
    """Return the direction from the middle of the chest to a nodule, and how far it is.

    The second is 0 in the middle of the image and about 1 at the ribs.
    """
    middle = PIXELS * nodule.scan.pixel / 2
    offset = np.array([nodule.centre[axis] - middle for axis in (0, 1)])
    reach = offset / HALF_CHEST
    direction = np.array([*reach, 0.0]) / max(float(np.hypot(*reach)), 1e-6)
    return direction / max(float(np.linalg.norm(direction)), 1e-6), float(
        np.hypot(*reach)
    )


def vessel_share(rng: Rng, depth: Volume, away: NDArray[np.float64]) -> Volume:
    """Draw how much of each voxel is vessel, in branching trees that grow outward.

    Args:
        rng: draws the trees.
        depth: of each voxel in the nodule, in mm; negative outside. No vessel grows
            into it.
        away: the direction from the middle of the chest.
    """
    side = len(depth)
    share = np.zeros(depth.shape, np.float32)
    for _ in range(1 + rng.poisson(DENSITY * (side / 64) ** 2)):
        start = side * (0.5 - 0.62 * away) + rng.normal(0, side / 3.2, 3)
        heading = away + rng.normal(0, 0.5, 3)
        width = 0.8 + 2.2 * rng.beta(1.2, 3.5)
        _grow_tree(rng, share, depth, (start, heading, width))
    return share


def _grow_tree(
    rng: Rng,
    share: Volume,
    depth: Volume,
    trunk: tuple[NDArray[np.float64], NDArray[np.float64], float],
) -> None:
    growing, remaining = [trunk], 700
    while growing and remaining:
        position, heading, width = growing.pop()
        while width > 0.4 and remaining:
            remaining -= 1
            heading = heading / np.linalg.norm(heading) + rng.normal(0, 0.13, 3)
            position = position + heading / np.linalg.norm(heading)
            voxel = tuple(np.round(position).astype(int))
            inside = all(0 <= at < len(depth) for at in voxel)
            if inside and depth[voxel] > -width:
                break
            if np.abs(position - len(depth) / 2).max() > 0.8 * len(depth):
                break
            stamp_ball(share, position, width)
            width *= 0.992
            if rng.random() < 0.07:
                growing.append(
                    (position, heading + rng.normal(0, 0.7, 3), 0.72 * width)
                )
                width *= 0.92


def stamp_ball(share: Volume, centre: NDArray[np.float64], radius: float) -> None:
    """Raise `share` to 1 inside a ball, with an edge of one voxel; thin ones are faint.

    The ball may lie partly or wholly outside the volume.
    """
    low = np.maximum(np.floor(centre - radius - 1).astype(int), 0)
    high = np.minimum(np.ceil(centre + radius + 2).astype(int), share.shape)
    if (low >= high).any():
        return
    rows, columns, slices = (
        np.arange(a, b) - at for a, b, at in zip(low, high, centre, strict=True)
    )
    squares = rows[:, None, None] ** 2 + columns[:, None] ** 2 + slices**2
    box = share[low[0] : high[0], low[1] : high[1], low[2] : high[2]]
    ball = np.clip(radius + 0.5 - np.sqrt(squares), 0, min(1.0, 1.4 * radius))
    np.maximum(box, ball, out=box, casting="same_kind")


def wall_distance(
    rng: Rng, nodule: Nodule, depth: Volume, away: NDArray[np.float64]
) -> Volume | None:
    """Return how deep each voxel lies in the chest wall, in mm; None if far away.

    The nodule's real place in the chest says how far the wall is. It touches nodules
    that lie at the ribs, and covers none.
    """
    side = len(depth)
    steps = np.arange(side, dtype=np.float32) - (side - 1) / 2
    grid = (steps[:, None, None], steps[:, None], steps)
    tilted = away + np.array([0, 0, rng.normal(0, 0.25)])
    tilted /= np.linalg.norm(tilted)
    along = sum(
        axis * float(direction) for axis, direction in zip(grid, tilted, strict=True)
    )
    covered = depth > 0
    reach = float(np.max(along, where=covered, initial=-side))
    gap = max(110 * (1 - outward(nodule)[1]) + rng.normal(0, 6), reach + 0.7)
    if gap > 0.75 * side:
        return None
    squares = sum(axis**2 for axis in grid)
    aside = np.maximum(squares - along**2, 0)
    return np.asarray(along - gap + aside / (2 * rng.uniform(70, 130)), np.float32)


def chest_wall(rng: Rng, inward: Volume) -> Volume:
    """Draw HU of muscle, fat and one rib, by the depth in the wall."""
    layers = tissue_noise(rng, inward.shape, 3.5) + np.sin(inward / 3.0 + 2.0)
    tissue = np.where(layers > 0.7, FAT, MUSCLE)
    tissue = np.where(inward < 3, MUSCLE, tissue)
    side = len(inward)
    across = rng.normal(0, side / 5) + rng.normal(0, 0.35) * (
        np.arange(side) - side / 2
    )
    from_rib = np.hypot(inward - 9, np.arange(side) - side / 2 - across[:, None, None])
    bone = np.clip(6.5 - from_rib, 0, 1) * np.where(from_rib > 4.5, 1.0, 0.45)
    return np.asarray(tissue + bone * (BONE - tissue), np.float32)
