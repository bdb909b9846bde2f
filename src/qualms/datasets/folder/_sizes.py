"""The size that a user's images get: one for all of them, or each keeps its own.

Volumes keep their voxels as they are, whatever the spacing of these is, unless a size
of voxels is stated. Nothing is resampled silently.
"""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from qualms.datasets._options import whole_number
from qualms.datasets._recipe import DatasetError
from qualms.datasets.folder._fitting import Fit, ItemSize
from qualms.datasets.folder.files import PictureFacts, side_words, voxel_sides
from qualms.datasets.folder.listing import OwnItem

KEEP = "keep"
KEPT = {2: 256, 3: 96}
"""Longest side, by the number of sides, up to which images of one size are kept."""
USUAL = {2: 128, 3: 64}
"""The side that others get."""
MOST = 2**29
"""Most pixels of an image after it is resized."""
VOXEL = re.compile(r"\d+(\.\d+)?(x\d+(\.\d+)?)*mm")


class OwnSize(NamedTuple):
    """Size of a user's images."""

    space: tuple[int, ...] | None
    """Of all images; None where each has its own."""
    fit: Fit
    voxel: tuple[float, ...] = ()
    """Sides of a voxel, in millimetres, that volumes are brought to."""

    def of(self, path: Path, space: tuple[int, ...]) -> ItemSize:
        """Return the size of the image at `path`, whose sides are `space`."""
        if self.space is not None:
            return ItemSize(self.space, self.fit)
        if not self.voxel:
            return ItemSize(space)
        lengths = zip(space, voxel_sides(path), self.voxel, strict=False)
        sides = tuple(max(1, round(n * old / new)) for n, old, new in lengths)
        _check_pixels(sides)
        return ItemSize(sides)


def checked_side(side: int | str | None) -> int | str | None:
    """Validate `side` and return it."""
    if side is None or side == KEEP:
        return side
    if not isinstance(side, str):
        return whole_number("side", side, least=1)
    if not VOXEL.fullmatch(side) or min(_voxel(side)) <= 0:
        raise ValueError(
            "side must be a number of pixels, 'keep', or sides of a voxel such as '1mm'"
            f" or '1x1x3mm', got {side!r}"
        )
    return side


def own_side(
    items: Sequence[OwnItem],
    pictures: Mapping[str, PictureFacts],
    side: int | str | None,
    *,
    masked: bool,
) -> int | str:
    """Return the stated side, or the usual one. Images with masks keep theirs."""
    first = items[0]
    space = pictures[first.path].space
    for item in items:
        other = pictures[item.path].space
        if len(other) != len(space):
            raise DatasetError(
                f"all images must be pictures, or all volumes, got the sides"
                f" {side_words(space)} in {first.where} and {side_words(other)} in"
                f" {item.where}; remove one of them"
            )
        if side == KEEP and other != space and not masked:
            raise DatasetError(
                f"side='keep' needs images of one size, got {side_words(space)} in"
                f" {first.where} and {side_words(other)} in {item.where}; state a side,"
                " such as 128"
            )
    if side is not None:
        _check_voxel(side, first, len(space), masked=masked)
        return side
    same = len({pictures[item.path].space for item in items}) == 1
    small = max(space) <= KEPT[len(space)]
    return KEEP if masked or (same and small) else USUAL[len(space)]


def own_size(side: int | str, spaces: Sequence[tuple[int, ...]], fit: Fit) -> OwnSize:
    """Return the size that `side` states for images of the sides `spaces`."""
    axes = len(spaces[0])
    if isinstance(side, int):
        _check_pixels((side,) * axes)
        return OwnSize((side,) * axes, fit)
    if side == KEEP:
        return OwnSize(spaces[0] if len(set(spaces)) == 1 else None, fit)
    voxel = _voxel(side)
    return OwnSize(None, fit, voxel if len(voxel) > 1 else voxel * axes)


def _check_pixels(space: tuple[int, ...]) -> None:
    """Raise if images of these sides would fill the memory."""
    if math.prod(space) > MOST:
        raise DatasetError(
            f"images must have at most {MOST:,} pixels, and would have"
            f" {side_words(space)}; state a smaller side, or larger voxels"
        )


def _voxel(side: str) -> tuple[float, ...]:
    return tuple(float(length) for length in side.removesuffix("mm").split("x"))


def _check_voxel(side: int | str, item: OwnItem, axes: int, *, masked: bool) -> None:
    if isinstance(side, int) or side == KEEP:
        return
    if not masked or not item.path.lower().endswith((".nii", ".nii.gz")):
        raise DatasetError(
            f"side={side!r} states voxels of NIfTI files with masks, got"
            f" {item.path!r} in {item.where}; state a number of pixels, or 'keep'"
        )
    if len(_voxel(side)) not in (1, axes):
        raise DatasetError(
            f"side={side!r} must state one length or {axes}, as images have {axes}"
            " sides"
        )
