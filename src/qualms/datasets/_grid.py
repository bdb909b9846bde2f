"""Cutting a large tile into patches, and counting the marked pixels of each.

Shared by the datasets whose items are the patches of a regular grid (Gustafsson et al.,
2023): no overlap, the remainder at the right and the bottom is dropped, and so are
patches without a single marked pixel.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._recipe import Examples

SIDE = 64


class Tile(NamedTuple):
    """A large picture with its mask, and the names its patches inherit."""

    name: str
    group: str
    image: NDArray[np.uint8]
    """(H, W, 3)."""
    mask: NDArray[np.bool_]
    """(H, W)."""


def patches(tile: Tile) -> Examples:
    """The marked patches of `tile`, row by row; the target counts marked pixels."""
    if tile.image.shape[:2] != tile.mask.shape:
        raise ValueError(
            f"the picture and the mask of {tile.name} must have the same size, "
            f"got {tile.image.shape[:2]} and {tile.mask.shape}"
        )
    marked = _cut(tile.mask).sum(axis=(2, 3))
    row, column = np.nonzero(marked)
    place = zip(row.tolist(), column.tolist(), strict=True)
    return Examples(
        image=_cut(tile.image)[row, column],
        target=marked[row, column].astype(np.float32),
        item=tuple(f"{tile.name}/{r:02d}-{c:02d}" for r, c in place),
        extra={
            "cluster": np.full(len(row), tile.name),
            "group": np.full(len(row), tile.group),
        },
    )


def _cut(array: NDArray[Any]) -> NDArray[Any]:
    rows, columns = array.shape[0] // SIDE, array.shape[1] // SIDE
    whole = array[: rows * SIDE, : columns * SIDE]
    cells = whole.reshape(rows, SIDE, columns, SIDE, *array.shape[2:])
    return cells.swapaxes(1, 2)
