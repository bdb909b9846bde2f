"""How the viewer turns and cuts volumes: by the axes of the body, in millimetres.

Pixels are turned so that slices lead from feet to head, rows of an axial slice from
front to back, and columns from the patient's right to left, as radiologists see them.
Volumes without a grid are shown as they are stored.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.predictions import Grid

CUTS = {"axial": ("S", "I"), "coronal": ("P", "A"), "sagittal": ("L", "R")}
"""Cuts, by the directions of the axis that they are across: wanted, and opposite."""
SIDES = (("R", "A"), ("R", "S"), ("A", "S"))
"""What lies left and on top in each of these cuts."""
OBLIQUE = 1.0
"""Degrees from which on a grid is called oblique."""


class _Placed(NamedTuple):
    """An axis of the picture: the axis of the grid, and whether it is reversed."""

    axis: int | None
    turned: bool


def upright(panel: Mapping[str, Any], grid: Grid | None) -> dict[str, Any]:
    """Return a panel whose `pixels` stand upright (z, y, x), with its `spacing`."""
    if grid is None:
        return dict(panel)
    pixels: NDArray[Any] = panel["pixels"]
    placed = list(_placed(grid))
    order = [each.axis for each in placed if each.axis is not None]
    volume = pixels.transpose(*order, *range(len(order), pixels.ndim))
    for place, each in enumerate(placed):
        if each.axis is None:
            volume = np.expand_dims(volume, place)
        elif each.turned:
            volume = np.flip(volume, place)
    return {**panel, "pixels": volume, "spacing": _spacing(grid)}


def view_of(grid: Grid | None) -> dict[str, Any]:
    """Return cuts, spacing and sides, for `assets/charts/viewer.js`."""
    if grid is None:
        cuts = [f"axis {number}" for number in range(3)]
        return {"cuts": cuts, "spacing": [1, 1, 1], "upright": None}
    return {"cuts": list(CUTS), "spacing": list(_spacing(grid)), "upright": SIDES}


def grid_words(grid: Grid | None) -> str:
    """Return the spacing of the pixels, and whether their grid is oblique.

    >>> grid_words(Grid("RAS", (0.5, 0.5, 5.0), 12.34))
    ' of 0.5 x 0.5 x 5 mm (axes RAS, up to 12° oblique)'
    """
    if grid is None:
        return ""
    spacing = " x ".join(f"{side:.3g}" for side in grid.spacing)
    oblique = f", up to {grid.tilt:.0f}° oblique" if grid.tilt >= OBLIQUE else ""
    return f" of {spacing} mm (axes {grid.axes}{oblique})"


def middle_slice(panel: Mapping[str, Any]) -> NDArray[Any]:
    """Return the picture of a panel; of a volume its middle slice, in square pixels."""
    pixels: NDArray[Any] = panel["pixels"]
    if pixels.ndim - (panel["kind"] == "colour") < 3:
        return pixels
    shape, spacing = pixels.shape[:3], panel.get("spacing")
    across = shape.index(1) if 1 in shape else 0
    picture: NDArray[Any] = np.take(pixels, shape[across] // 2, axis=across)
    if spacing is None:
        return picture
    if across:
        picture = picture[::-1]  # z grows upwards
    sides = [side for axis, side in enumerate(spacing) if axis != across]
    rows, columns = (
        _repeated(count, side / min(sides))
        for count, side in zip(picture.shape, sides, strict=False)
    )
    return np.asarray(picture[rows][:, columns])


def _repeated(count: int, ratio: float) -> NDArray[np.int64]:
    """Return the places of `count` pixels, each repeated `ratio` times on average."""
    longer = max(1, round(count * ratio))
    return np.arange(longer) * count // longer


def _placed(grid: Grid) -> Iterator[_Placed]:
    for wanted, opposite in CUTS.values():
        along = (grid.axes.find(letter) for letter in (wanted, opposite))
        axis = next((place for place in along if place >= 0), None)
        yield _Placed(axis, axis is not None and grid.axes[axis] == opposite)


def _spacing(grid: Grid) -> tuple[float, ...]:
    """Return the spacing along z, y and x; 1 along an axis that the grid lacks."""
    axes = (each.axis for each in _placed(grid))
    return tuple(1.0 if axis is None else grid.spacing[axis] for axis in axes)
