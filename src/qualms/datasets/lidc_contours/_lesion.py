"""The nodule itself: its density follows the raters' outlines and ratings."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._lidc.database import RATINGS
from qualms.datasets._lidc.nodules import Nodule
from qualms.datasets.lidc_contours._lung import (
    AIR,
    Rng,
    Volume,
    stamp_ball,
    tissue_noise,
)

FAR = 12
"""Voxels beyond the raters' masks within which depths are exact."""
MEANS = ("subtlety", "margin", "spiculation", "texture", "malignancy")
LARGE = 500
"""Voxels from which on malignant nodules may have cavities and bubbles."""
ABSENT = 6
"""The rating of a nodule without calcification."""


class Look(NamedTuple):
    """The ratings of a nodule, each from 1 to 5: means over the raters."""

    subtlety: float
    margin: float
    spiculation: float
    texture: float
    malignancy: float
    calcification: int
    """Most common rating, 6 for none."""
    inner: int
    """Most common internal structure: 1 tissue, 2 fluid, 3 fat, 4 air."""


def look_of(nodule: Nodule) -> Look:
    """Return how a nodule was rated."""
    table = np.array([reading.ratings for reading in nodule.readings])
    columns = dict(zip(RATINGS, table.T, strict=True))
    means = {name: float(columns[name].mean()) for name in MEANS}
    return Look(
        **means,
        calcification=int(np.bincount(columns["calcification"]).argmax()),
        inner=int(np.bincount(columns["internalStructure"]).argmax()),
    )


def nodule_depth(raters: NDArray[np.uint8]) -> Volume:
    """Compute the depth in the nodule in mm, negative outside: the mean over raters."""
    from scipy.ndimage import distance_transform_edt, gaussian_filter

    depth = np.full(raters.shape[1:], -float(FAR), np.float32)
    marked = np.argwhere(raters.any(axis=0))
    low = np.maximum(marked.min(axis=0) - FAR, 0)
    high = np.minimum(marked.max(axis=0) + FAR + 1, depth.shape)
    box = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
    inside = [distance_transform_edt(mask[box]) for mask in raters]
    beyond = [distance_transform_edt(mask[box] == 0) for mask in raters]
    mean = np.mean(inside, axis=0) - np.mean(beyond, axis=0)
    depth[box] = np.maximum(gaussian_filter(mean, 0.7), -FAR)
    return depth


def edge_share(depth: Volume, look: Look) -> Volume:
    """Return how much of each voxel is nodule: sharp or fading as its margin is."""
    width = np.interp(look.margin, [1, 5], [1.0, 0.25])
    width += np.interp(look.texture, [1, 4], [0.35, 0.0])
    return np.asarray(1 / (1 + np.exp(np.clip(-depth / width, -30, 30))), np.float32)


def edge_haze(raters: NDArray[np.uint8], depth: Volume) -> Volume:
    """Return a faint density where only some raters saw nodule.

    It lets the image show why they disagree.

    Args:
        raters: masks (R, ...).
        depth: in mm.
    """
    from scipy.ndimage import gaussian_filter

    share = gaussian_filter(raters.mean(axis=0, dtype=np.float32), 0.8)
    return np.asarray(np.where(depth < 1, 0.6 * share, 0.0), np.float32)


def spicule_share(rng: Rng, depth: Volume, look: Look) -> Volume:
    """Draw how much of each voxel is spicule, a thin strand from the nodule."""
    share = np.zeros(depth.shape, np.float32)
    surface = np.argwhere(np.abs(depth) < 0.8).astype(np.float64)
    if not len(surface):
        return share
    middle = surface.mean(axis=0)
    radius = float(np.sqrt(((surface - middle) ** 2).sum(axis=1)).mean())
    for _ in range(rng.poisson(2.2 * (look.spiculation - 1) * np.sqrt(radius))):
        start = surface[rng.integers(len(surface))]
        heading = start - middle + rng.normal(0, 0.25 * radius + 0.2, 3)
        heading /= np.linalg.norm(heading)
        steps = int(rng.uniform(0.6, 1.5) * (2.5 + 0.6 * radius)) + 1
        for step in range(steps):
            stamp_ball(share, start + step * heading, 1.25 - 0.75 * step / steps)
    return share


def reaction_share(
    rng: Rng, depth: Volume, look: Look, away: NDArray[np.float64]
) -> Volume | None:
    """Draw a wedge of collapsed lung that many malignant nodules have on one side.

    No rater marks it. None where there is none.

    Args:
        rng: draws it.
        depth: in mm.
        look: its ratings.
        away: the direction from the middle of the chest.
    """
    if rng.random() > 0.75 * np.clip((look.malignancy - 3.1) / 0.9, 0, 1):
        return None
    marked = np.argwhere(depth > 0)
    radius = max((3 * len(marked) / (4 * np.pi)) ** (1 / 3), 2.0)
    heading = away + rng.normal(0, 0.6, 3)
    heading /= np.linalg.norm(heading)
    offset = np.indices(depth.shape, np.float32).reshape(3, -1).T - (
        marked.mean(axis=0) if len(marked) else np.array(depth.shape) / 2
    )
    along = (offset @ heading).reshape(depth.shape)
    aside = np.sqrt(
        np.maximum((offset**2).sum(axis=1).reshape(depth.shape) - along**2, 0)
    )
    reach = radius * rng.uniform(1.3, 2.1) + 3
    uneven = 2.0 * tissue_noise(rng, depth.shape, 2.5)
    edge = np.minimum(0.7 * radius + 0.2 * along - aside, reach - along) + uneven
    share = np.where(along > 0, 1 / (1 + np.exp(np.clip(-edge / 0.7, -30, 30))), 0)
    return np.asarray(rng.uniform(0.35, 0.85) * share, np.float32)


def nodule_tissue(rng: Rng, depth: Volume, look: Look, aerated: float) -> Volume:
    """Draw HU inside the nodule.

    Args:
        rng: draws its inner structures.
        depth: in mm.
        look: its ratings.
        aerated: HU of the lung around, of which ground glass lets much through.
    """
    shape = depth.shape
    relative = depth / max(float(depth.max()), 1.0)
    blotches, fine = tissue_noise(rng, shape, 2.2), tissue_noise(rng, shape, 1.2)
    glass = np.interp(look.texture, [1, 2, 3, 4, 5], [0.28, 0.38, 0.55, 0.80, 1.0])
    solid = np.interp(look.texture, [1, 2, 3, 4, 5], [1.5, 1.0, 0.5, 0.1, -1.0])
    core = 1 / (1 + np.exp(-(relative + 0.15 * blotches - solid) / 0.08))
    dense = glass + (1 - glass) * core
    if look.texture < 4.5:
        dense = dense * (1 + 0.12 * fine)
    dense *= np.interp(look.subtlety, [1, 4], [0.8, 1.0])
    flesh = {2: 5.0, 3: -80.0}.get(look.inner, rng.normal(30, 15))
    uneven = 6 + 7 * (look.malignancy - 1)
    tissue = aerated + dense * (flesh - aerated) + uneven * blotches * core
    hollow = _with_hollows(rng, np.asarray(tissue, np.float32), depth, look)
    return _with_calcium(rng, hollow, relative, look)


def _with_hollows(rng: Rng, tissue: Volume, depth: Volume, look: Look) -> Volume:
    """Add air in a cavity or in bubbles to some large malignant nodules."""
    large = np.count_nonzero(depth > 0) > LARGE and look.malignancy > 3.5
    if look.inner == 4 or (large and rng.random() < 0.3):
        hollow = 1 / (1 + np.exp(-(depth / max(float(depth.max()), 1.0) - 0.4) / 0.08))
        return np.asarray(tissue + hollow * (AIR + 80 - tissue), np.float32)
    inside = np.argwhere(depth > 2)
    if not large or not len(inside) or rng.random() > 0.6:
        return tissue
    share = np.zeros(depth.shape, np.float32)
    for _ in range(2 + rng.poisson(3)):
        centre = inside[rng.integers(len(inside))].astype(np.float64)
        stamp_ball(share, centre, rng.uniform(0.6, 1.8))
    return tissue + 0.8 * share * (-750 - tissue)


def _with_calcium(rng: Rng, tissue: Volume, relative: Volume, look: Look) -> Volume:
    """Add calcium in the pattern that was rated; the ratings are those of LIDC-IDRI."""
    kind = look.calcification
    if kind >= ABSENT or kind < 1:
        return tissue
    speckled = tissue_noise(rng, relative.shape, 1.4)
    if kind == 1:  # popcorn
        share = speckled > 0.4
    elif kind == 2:  # laminated
        share = np.cos(9 * relative) > 0.3
    elif kind == 3:  # solid
        share = relative > -0.2
    elif kind == 4:  # anywhere but in the middle
        share = (tissue_noise(rng, relative.shape, 3.0) > 0.5) & (relative < 0.6)
    else:  # central
        share = relative > 0.45
    added = rng.uniform(250, 800) * (1 + 0.15 * speckled)
    return np.asarray(tissue + share * added, np.float32)
