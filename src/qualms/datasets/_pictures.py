"""Read picture files, and cut large pictures into patches.

Pictures are in RGB order. Pillow decodes to the same pixels as OpenCV, which the
papers' code used: the alpha channel is dropped, a palette is looked up and the EXIF
orientation is applied. But Pillow refuses a truncated file, which OpenCV may silently
fill with grey.
"""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._png import check_png
from qualms.datasets._publisher_files import reading
from qualms.datasets._recipe import LoadedItems

if TYPE_CHECKING:
    from PIL.Image import Image

EIGHT_BIT = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")
PATCH_SIDE = 64


class Tile(NamedTuple):
    """A large picture with its mask, and the names its patches inherit."""

    name: str
    group: str
    image: NDArray[np.uint8]
    """(H, W, 3)."""
    mask: NDArray[np.bool_]
    """(H, W)."""


def read_rgb(path: Path) -> NDArray[np.uint8]:
    """Read the picture at `path` as (H, W, 3)."""
    return _decode(path, "RGB")


def read_grey(path: Path) -> NDArray[np.uint8]:
    """Read the grey picture at `path` as (H, W)."""
    return _decode(path, "L")


def read_mask(path: Path) -> NDArray[np.bool_]:
    """Read where the first channel is above 0 in OpenCV's order of channels, (H, W)."""
    with reading(path), _open(path) as picture:
        grey = picture.mode in ("1", "L")
    # OpenCV's first channel is blue
    return (read_grey(path) if grey else read_rgb(path)[..., 2]) > 0


def patches(tile: Tile) -> LoadedItems:
    """Cut `tile` into its marked patches, row by row; targets count marked pixels.

    Patches do not overlap. The remainder at the right and at the bottom is dropped,
    and so are patches without a marked pixel (Gustafsson et al., 2023).
    """
    if tile.image.shape[:2] != tile.mask.shape:
        raise ValueError(
            f"the picture and the mask of {tile.name} must have the same size, "
            f"got {tile.image.shape[:2]} and {tile.mask.shape}"
        )
    marked = _cut(tile.mask).sum(axis=(2, 3))
    row, column = np.nonzero(marked)
    cells = zip(row.tolist(), column.tolist(), strict=True)
    return LoadedItems(
        image=_cut(tile.image)[row, column],
        target=marked[row, column].astype(np.float32),
        item=tuple(f"{tile.name}/{r:02d}-{c:02d}" for r, c in cells),
        extra={
            "cluster": np.full(len(row), tile.name),
            "group": np.full(len(row), tile.group),
        },
    )


def _decode(path: Path, mode: str) -> NDArray[Any]:
    from PIL import ImageOps

    with reading(path), _open(path) as picture:
        _check_depth(picture)
        return np.asarray(ImageOps.exif_transpose(picture).convert(mode))


def _open(path: Path) -> "Image":
    from PIL import Image, UnidentifiedImageError

    content = path.read_bytes()
    check_png(content)
    try:
        return Image.open(io.BytesIO(content))
    except UnidentifiedImageError as error:
        kind = path.suffix.lstrip(".").upper()
        raise ValueError(f"it is not a {kind} picture; copy it again") from error


def _check_depth(picture: "Image") -> None:
    if picture.mode not in EIGHT_BIT:
        raise ValueError(f"expected 8 bits per channel, got Pillow mode {picture.mode}")


def _cut(array: NDArray[Any]) -> NDArray[Any]:
    rows, columns = array.shape[0] // PATCH_SIDE, array.shape[1] // PATCH_SIDE
    trimmed = array[: rows * PATCH_SIDE, : columns * PATCH_SIDE]
    cells = trimmed.reshape(rows, PATCH_SIDE, columns, PATCH_SIDE, *array.shape[2:])
    return cells.swapaxes(1, 2)
