"""From outlines to masks of voxels with sides of 1 mm."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._lidc.database import CtScan, Outline
from qualms.datasets._lidc.nodules import nearest_slices, outline_voxels

Axes = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
"""Positions in millimetres along rows, columns and slices."""


def crop_axes(centre: Sequence[float], side: int) -> Axes:
    """Return positions of `side` voxels of 1 mm around `centre`, along each axis."""
    steps = np.arange(side, dtype=np.float64) - (side - 1) / 2
    row, column, position = centre
    return row + steps, column + steps, position + steps


def resample(
    volume: NDArray[np.float32], axes: Axes, targets: Axes, *, outside: float = 0.0
) -> NDArray[np.float32]:
    """Interpolate a volume (rows, columns, slices) linearly at other positions.

    Args:
        volume: the values at the positions `axes`, which rise along each axis.
        axes: where they are.
        targets: where to interpolate.
        outside: the value beyond the first and last position.
    """
    values = volume - np.float32(outside)
    for at, knots in zip(targets, axes, strict=True):
        # The first axis is used up and comes back last, so after three all are in turn.
        weights = _hats(at, knots).astype(np.float32)
        values = np.tensordot(values, weights, axes=(0, 1))
    return np.asarray(values + np.float32(outside), np.float32)


def rater_mask(
    scan: CtScan, outlines: Sequence[Outline], targets: Axes, *, touched: bool = False
) -> NDArray[np.uint8]:
    """Return what one radiologist marked, as ones at the positions `targets`.

    Args:
        scan: the CT that was drawn on.
        outlines: of one reading.
        targets: positions of the voxels.
        touched: as in pylidc, count each voxel that interpolation gives more than 0.
            Masks then grow by up to one pixel and one slice on each side. Without, the
            value must be at least a half.
    """
    marked, low = _marked_box(scan, outlines)
    axes = (
        scan.pixel * np.arange(low[0], low[0] + marked.shape[0], dtype=np.float64),
        scan.pixel * np.arange(low[1], low[1] + marked.shape[1], dtype=np.float64),
        _slice_positions(scan, low[2], marked.shape[2]),
    )
    share = resample(marked.astype(np.float32), axes, targets)
    return np.asarray(share > 0 if touched else share >= 0.5, np.uint8)


def inside_outline(
    pixels: NDArray[np.int64], shape: tuple[int, int]
) -> NDArray[np.bool_]:
    """Return the pixels that lie inside a closed outline, without the outline itself.

    A pixel is inside if the outline crosses the row to the right of it an odd number
    of times.

    >>> diamond = np.array([[0, 1], [1, 2], [2, 1], [1, 0]])
    >>> np.argwhere(inside_outline(diamond, (3, 3))).tolist()
    [[1, 1]]
    """
    start, end = pixels, np.roll(pixels, -1, axis=0)
    level = start[:, 0] == end[:, 0]
    start, end = start[~level], end[~level]
    rows, columns = np.arange(shape[0])[:, None], np.arange(shape[1])
    spans = (start[:, 0] > rows) != (end[:, 0] > rows)
    slope = (end[:, 1] - start[:, 1]) / (end[:, 0] - start[:, 0])
    crossing = start[:, 1] + (rows - start[:, 0]) * slope
    right = spans[:, None, :] & (columns[:, None] < crossing[:, None, :])
    inside: NDArray[np.bool_] = right.sum(axis=-1) % 2 == 1
    inside[pixels[:, 0], pixels[:, 1]] = False
    return inside


def _marked_box(
    scan: CtScan, outlines: Sequence[Outline]
) -> tuple[NDArray[np.bool_], tuple[int, int, int]]:
    """Return the box of marked pixels, one empty slice on each side, and its corner."""
    voxels = outline_voxels(scan, outlines)
    empty = np.array([0, 0, 1])
    low, high = voxels.min(axis=0) - empty, voxels.max(axis=0) + empty
    rows, columns, slices = (high - low + 1).tolist()
    marked = np.zeros((rows, columns, slices), bool)
    numbers = nearest_slices(scan, [outline.position for outline in outlines]) - low[2]
    order = sorted(range(len(outlines)), key=lambda row: not outlines[row].inside)
    for row in order:  # holes come last
        drawing, layer = outlines[row], marked[..., numbers[row]]
        corners = drawing.pixels - low[:2]
        inside = inside_outline(corners, (rows, columns))
        if drawing.inside:
            layer |= inside
        else:
            layer &= ~inside
        layer[corners[:, 0], corners[:, 1]] = False
    return marked, (int(low[0]), int(low[1]), int(low[2]))


def _slice_positions(scan: CtScan, first: int, count: int) -> NDArray[np.float64]:
    """Return positions of slices; one may lie before or after the CT."""
    positions = np.array(scan.slices)
    gap = float(np.median(np.diff(positions))) if len(positions) > 1 else scan.thickness
    longer = np.concatenate([[positions[0] - gap], positions, [positions[-1] + gap]])
    return longer[first + 1 : first + 1 + count]


def _hats(at: NDArray[np.float64], knots: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute weights (positions, knots) of linear interpolation; 0 beyond."""
    right = np.clip(np.searchsorted(knots, at, side="right"), 1, len(knots) - 1)
    share = (at - knots[right - 1]) / (knots[right] - knots[right - 1])
    weights = np.zeros((len(at), len(knots)))
    rows = np.arange(len(at))
    weights[rows, right - 1], weights[rows, right] = 1 - share, share
    weights[(share < 0) | (share > 1)] = 0
    return weights
