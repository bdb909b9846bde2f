"""Reading picture files as the papers' code did, in RGB order.

Pillow decodes to the same pixels as OpenCV (the alpha channel is dropped, a palette is
looked up, the EXIF orientation applied) but refuses a truncated file, which OpenCV may
fill with grey without a word. Where released code used OpenCV its channels were BGR:
reversed here.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._layout import reading

if TYPE_CHECKING:
    from PIL.Image import Image

EIGHT_BIT = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")


def read_rgb(path: Path) -> NDArray[np.uint8]:
    """The picture at `path` as (H, W, 3)."""
    return _decoded(path, "RGB")


def read_grey(path: Path) -> NDArray[np.uint8]:
    """The grey picture at `path` as (H, W)."""
    return _decoded(path, "L")


def read_mask(path: Path) -> NDArray[np.bool_]:
    """Where the first channel OpenCV would give of the picture is above 0, (H, W)."""
    from PIL import Image

    with reading(path), Image.open(path) as picture:
        grey = picture.mode in ("1", "L")
    # OpenCV's first channel is blue
    return (read_grey(path) if grey else read_rgb(path)[..., 2]) > 0


def _decoded(path: Path, mode: str) -> NDArray[Any]:
    from PIL import Image, ImageOps

    with reading(path), Image.open(path) as picture:
        _check_depth(picture)
        return np.asarray(ImageOps.exif_transpose(picture).convert(mode))


def _check_depth(picture: "Image") -> None:
    if picture.mode not in EIGHT_BIT:
        raise ValueError(f"expected 8 bits per channel, got Pillow mode {picture.mode}")
