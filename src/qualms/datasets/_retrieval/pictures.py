"""Albums of photographs, shrunk and cropped once as networks are evaluated with them.

The short side is shrunk to floor(side / crop_share) pixels with Pillow's bicubic filter
and a square of `side` pixels is cut from the middle, as torchvision's `Resize` and
`CenterCrop` do it for timm. timm's weights of both networks of URL ask for a crop share
of 0.95. The released code used 0.875, because it did not see what they ask for.

Pictures are kept as JPEG of quality 95 with full colour, so pixels differ on average by
one or two grey levels from those not compressed again. Photographs are turned the right
way up where EXIF says how; the released code did not look at it.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._encoded import jpeg
from qualms.datasets._options import whole_number
from qualms.datasets._pictures import read_rgb
from qualms.datasets._publisher_files import contents, file_names, reading
from qualms.datasets._recipe import (
    Card,
    DatasetError,
    Labels,
    LoadedItems,
    Recipe,
    Shown,
    Unit,
)
from qualms.spec import Task

CROP_SHARE = 0.95
QUALITY = 95
PART = "pictures"
"""The only split of an album."""
IS_PICTURE = r"(?i)(?!\._).*\.(jpe?g|png)"
"""Names of pictures; those that begin with ._ are left behind by macOS."""


class Fit(NamedTuple):
    """Size and crop of the square picture that a photograph becomes."""

    side: int
    crop_share: float


class PublisherFolder(NamedTuple):
    """A dataset as its publisher ships it."""

    name: str
    card: Card
    folder: Path
    """Where the paths of items begin."""


def checked_fit(side: int, crop_share: float) -> Fit:
    """Return both options; raise if they make no picture."""
    side = whole_number("side", side, least=1)
    number = isinstance(crop_share, (int, float, np.floating))
    if not number or isinstance(crop_share, bool) or not 0 < crop_share <= 1:
        raise ValueError(
            f"crop_share must be larger than 0 and at most 1, got {crop_share!r}"
        )
    return Fit(side, float(crop_share))


def picture_album(
    source: PublisherFolder, items: Sequence[str], fit: Fit, *, total: int | None = None
) -> Recipe:
    """Make an album of all `items`, which are paths below the folder of `source`.

    Args:
        source: the dataset.
        items: paths of pictures; they are the names of items too.
        fit: how pictures are shrunk and cropped.
        total: the publisher's number of pictures; that of `items` by default.
    """
    return Recipe(
        name=f"{source.name}_pictures",
        options=fit._asdict(),
        card=source.card,
        task=Task(name="embedding"),
        units=tuple(Unit(key=item, split=PART) for item in items),
        load=partial(_load, source.folder, fit),
        counts={PART: len(items) if total is None else total},
        side=fit.side,
    )


def shown_in(album: Recipe, splits: Mapping[str, Labels]) -> dict[str, Shown]:
    """Make splits that show pictures of one album."""
    return {
        split: Shown(album=album, labels=labels) for split, labels in splits.items()
    }


def pictures_in(folder: Path, classes: Sequence[str]) -> list[list[str]]:
    """List paths of the pictures of each class below `folder`, in order.

    Every class is a folder, and must have a picture.
    """
    like = "0001.jpg"
    return [
        [f"{name}/{file}" for file in file_names(folder / name, IS_PICTURE, like=like)]
        for name in classes
    ]


def class_folders(folder: Path, *, like: str) -> list[str]:
    """List names of the folders in `folder`, sorted; raise if there is none."""
    entries = folder.iterdir() if folder.is_dir() else ()
    names = sorted(
        entry.name
        for entry in entries
        if entry.is_dir() and not entry.name.startswith(".")
    )
    if not names:
        raise DatasetError(
            f"expected a folder for each class, like {like}, in {folder};"
            f" {contents(folder)}"
        )
    return names


def fit_picture(image: NDArray[np.uint8], fit: Fit) -> NDArray[np.uint8]:
    """Shrink and crop a photograph (H, W, 3) to a picture (side, side, 3)."""
    from PIL import Image

    height, width = image.shape[:2]
    short = int(fit.side / fit.crop_share)
    if height <= width:
        high, wide = short, int(short * width / height)
    else:
        high, wide = int(short * height / width), short
    photograph = Image.fromarray(image)
    small = photograph.resize((wide, high), Image.Resampling.BICUBIC)
    top, left = round((high - fit.side) / 2), round((wide - fit.side) / 2)
    middle = small.crop((left, top, left + fit.side, top + fit.side))
    return np.asarray(middle, np.uint8)


def _load(folder: Path, fit: Fit, unit: Unit) -> LoadedItems:
    path = folder / unit.key
    photograph = read_rgb(path)
    # An error of OpenCV is no ValueError and would end the whole preparation.
    with reading(path):
        picture = fit_picture(photograph, fit)
        data = jpeg(picture[..., ::-1], quality=QUALITY, full_colour=True)
    # The datasets that show the picture have the real targets.
    return LoadedItems(image=(data,), target=np.zeros(1, np.uint8), item=(unit.key,))
