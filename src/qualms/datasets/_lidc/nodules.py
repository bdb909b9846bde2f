"""Groups of readings that show the same nodule.

LIDC-IDRI (Armato et al., 2011) does not say which outlines of different radiologists
mean the same nodule. As in pylidc 0.2.3 (`Scan.cluster_annotations`), two readings
belong together if the smallest distance between their outlines is at most a tolerance,
and so do readings that are joined through others. The tolerance begins at the thickness
of a slice. While a group has more than four readings, it is made smaller by a tenth and
all readings of the CT are grouped again; below 0.1 this ends, and the groups that are
still too large stay.

Distances are between pixel numbers (row, column, slice), and pylidc compares them with
a tolerance in millimetres. Its documentation speaks of millimetres for both; that gives
one group of four less (`docs/lidc.md`). The paper's numbers are those of pixels.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._lidc.database import (
    CtScan,
    NoduleReading,
    Outline,
    outlines_of,
    readings_of,
    scans_of,
)

RATERS = 4
LARGEST = 64
"""Voxels along each axis that the outlines of a nodule may span."""
SMALLER = 0.9
LEAST = 0.1


class Nodule(NamedTuple):
    """Readings of one nodule."""

    scan: CtScan
    number: int
    """From 0 on, by rising mean slice of the groups of the CT."""
    readings: tuple[NoduleReading, ...]
    """All of them, in the order of the file; more than four in a crowded group."""
    low: tuple[int, int, int]
    """Smallest row, column and slice of the outlines of all readings."""
    high: tuple[int, int, int]
    """Largest row, column and slice."""

    @property
    def name(self) -> str:
        """Unique, e.g. "0001_02" for the third nodule of the first CT."""
        return f"{self.scan.number:04d}_{self.number:02d}"

    @property
    def centre(self) -> tuple[float, float, float]:
        """The centre of the outlines' box in millimetres."""
        return box_centre(self.scan, self.low, self.high)

    def fits(self) -> bool:
        """Return whether its outlines span at most 64 voxels along each axis."""
        return all(
            high - low < LARGEST for low, high in zip(self.low, self.high, strict=True)
        )


def box_centre(
    scan: CtScan, low: Sequence[int], high: Sequence[int]
) -> tuple[float, float, float]:
    """Return the centre of a box of voxels in millimetres: row, column and slice."""
    row, column = (scan.pixel * (low[axis] + high[axis]) / 2 for axis in (0, 1))
    return row, column, (scan.slices[low[2]] + scan.slices[high[2]]) / 2


def usable_nodules(file: Path, *, crowded: bool) -> list[Nodule]:
    """List the nodules with four readings that fit into 64 voxels, by CT and number.

    Args:
        file: the SQLite file.
        crowded: also take the groups of more than four readings, which show nodules
            that lie too close together, with the first four of their readings.
    """
    state = file.stat()
    groups = _nodules(file, (state.st_mtime_ns, state.st_size))
    most = (
        max(len(group.readings) for group in groups) if crowded and groups else RATERS
    )
    return [
        nodule._replace(readings=nodule.readings[:RATERS])
        for nodule in groups
        if RATERS <= len(nodule.readings) <= most and nodule.fits()
    ]


@lru_cache(maxsize=2)
def _nodules(file: Path, _state: tuple[int, int]) -> tuple[Nodule, ...]:
    """List every group of readings in the file."""
    scans, readings = scans_of(file), readings_of(file)
    voxels: dict[int, list[tuple[NoduleReading, NDArray[np.int64]]]] = defaultdict(list)
    for reading, outlines in zip(readings, outlines_of(file, readings), strict=True):
        voxels[reading.scan].append(
            (reading, outline_voxels(scans[reading.scan], outlines))
        )
    return tuple(
        Nodule(
            scan,
            number,
            tuple(voxels[scan.number][row][0] for row in group),
            *_box([voxels[scan.number][row][1] for row in group]),
        )
        for scan in scans.values()
        for number, group in enumerate(
            same_nodule_groups(scan, voxels.get(scan.number, []))
        )
    )


def outline_voxels(scan: CtScan, outlines: Sequence[Outline]) -> NDArray[np.int64]:
    """Return rows, columns and slices (n, 3) of all pixels of `outlines`."""
    slices = nearest_slices(scan, [outline.position for outline in outlines])
    return np.concatenate(
        [
            np.column_stack([drawing.pixels, np.full(len(drawing.pixels), number)])
            for drawing, number in zip(outlines, slices, strict=True)
        ]
    )


def nearest_slices(scan: CtScan, positions: Sequence[float]) -> NDArray[np.intp]:
    """Return the number of the slice that is nearest to each of `positions`."""
    gaps = np.abs(np.subtract.outer(np.array(positions), np.array(scan.slices)))
    return np.asarray(np.argmin(gaps, axis=1))


def same_nodule_groups(
    scan: CtScan, readings: Sequence[tuple[NoduleReading, NDArray[np.int64]]]
) -> list[list[int]]:
    """Group rows of `readings` that show the same nodule, by rising mean slice."""
    points = [voxels for _, voxels in readings]
    if len(points) < 2:
        return [[row] for row in range(len(points))]
    tolerance = scan.thickness
    distance = _distances(points, most=tolerance)
    groups = _connected_parts(distance <= tolerance)
    while max(map(len, groups)) > RATERS:
        tolerance *= SMALLER
        if tolerance < LEAST:
            break
        groups = _connected_parts(distance <= tolerance)
    depth = [voxels[:, 2].mean() for voxels in points]
    return sorted(groups, key=lambda group: np.mean([depth[row] for row in group]))


def _distances(
    points: Sequence[NDArray[np.int64]], *, most: float
) -> NDArray[np.float64]:
    """Compute the smallest distance between any two sets of points; inf above `most`.

    Most pairs are far apart, which their boxes tell without looking at the points.
    """
    from scipy.spatial import KDTree

    low = np.array([cloud.min(axis=0) for cloud in points])
    high = np.array([cloud.max(axis=0) for cloud in points])
    gap = np.maximum(low[:, None] - high, low - high[:, None]).max(axis=-1)
    trees = [KDTree(cloud) for cloud in points]
    distance = np.full((len(points), len(points)), np.inf)
    for first, second in np.argwhere(np.tril(gap <= most, -1)):
        nearest, _ = trees[first].query(points[second])
        distance[first, second] = distance[second, first] = nearest.min()
    return distance


def _connected_parts(near: NDArray[np.bool_]) -> list[list[int]]:
    """Return the connected parts of a graph, each by rising row."""
    from scipy.sparse.csgraph import connected_components

    count, label = connected_components(near, directed=False)
    return [np.flatnonzero(label == part).tolist() for part in range(count)]


def _box(
    points: Sequence[NDArray[np.int64]],
) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    together = np.concatenate(points)
    low, high = together.min(axis=0), together.max(axis=0)
    return tuple(low.tolist()), tuple(high.tolist())
