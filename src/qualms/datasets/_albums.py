"""Albums of fundus photographs, enhanced and kept as JPEG.

RETINA keeps the enhanced photographs as JPEG of quality 72 and decodes them in every
epoch; so do we. An album holds every photograph of its source once, whatever the shift,
the onset and the size that a dataset shows it in.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._contrast import enhanced
from qualms.datasets._encoded import jpeg
from qualms.datasets._gradings import (
    aptos_folder,
    aptos_gradings,
    eyepacs_folder,
    eyepacs_gradings,
)
from qualms.datasets._layout import reading
from qualms.datasets._pictures import read_rgb
from qualms.datasets._recipe import Card, Examples, Recipe, Unit
from qualms.datasets._retina_protocol import BLURS
from qualms.datasets._simulated import whole
from qualms.spec import Task

QUALITY = 72
SIDE = 540
"""Of an enhanced photograph that shows the whole eye."""
FOLDERS = {"train": "train", "val": "test", "test": "test"}
"""Where Kaggle keeps the photographs of each part of EyePACS."""
JPEG_BEGINS, JPEG_ENDS = b"\xff\xd8", b"\xff\xd9"
SCAN = b"\xff\xda"
"""Begins the coded pixels of a JPEG; what is before it are segments with a length."""


def eyepacs_album(root: Path, card: Card, *, blur: int) -> Recipe:
    """Every graded photograph of EyePACS."""
    files = {
        item: f"{FOLDERS[split]}/{item}.jpeg"
        for split, one in eyepacs_gradings(root).items()
        for item in one.item.tolist()
    }
    return _album("eyepacs_photographs", eyepacs_folder(root), files, card, blur)


def aptos_album(root: Path, card: Card, *, blur: int) -> Recipe:
    """Every graded photograph of APTOS."""
    items = aptos_gradings(root).item.tolist()
    files = {item: f"train_images/{item}.png" for item in items}
    return _album("aptos_photographs", aptos_folder(root), files, card, blur)


def checked_blur(blur: int) -> int:
    """`blur` as an int that RETINA knows; anything else is refused."""
    blur = whole("blur", blur)
    if blur not in BLURS:
        known = ", ".join(map(str, BLURS))
        raise ValueError(f"blur must be one of {known}, got {blur}")
    return blur


def _album(
    name: str, folder: Path, files: Mapping[str, str], card: Card, blur: int
) -> Recipe:
    units = [
        Unit(key=item, split="photographs", args=(file,))
        for item, file in files.items()
    ]
    return Recipe(
        name=name,
        options={"blur": blur},
        card=card,
        task=Task(name="embedding"),
        units=tuple(units),
        load=partial(_load, folder, blur),
        counts={"photographs": len(units)},
        side=SIDE,
    )


def _load(folder: Path, blur: int, unit: Unit) -> Examples:
    path = folder / unit.args[0]
    photograph = _read(path)
    # OpenCV raises what is no ValueError, and would end the whole preparation.
    with reading(path):
        picture = jpeg(enhanced(photograph, blur=blur), quality=QUALITY)
    # Whoever shows the photograph says what is to be predicted.
    return Examples(image=(picture,), target=np.zeros(1, np.uint8), item=(unit.key,))


def _read(path: Path) -> NDArray[np.uint8]:
    """The photograph (H, W, 3) at `path`, blue first.

    OpenCV is faster than Pillow, with the same pixels, but may fill what is missing of
    a JPEG with grey; one that may be damaged is left to Pillow.
    """
    import cv2

    with reading(path):
        data = path.read_bytes()
        if path.suffix == ".jpeg" and _seems_whole(data):
            found = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
            if found is not None:
                return np.asarray(found, np.uint8)
    return np.ascontiguousarray(read_rgb(path)[..., ::-1])


def _seems_whole(data: bytes) -> bool:
    """Whether a JPEG ends as it should, and no other begins after its first scan.

    Coded pixels never hold the marker that a JPEG begins with; where it is found there,
    the whole of a download was appended to a part of it. The segments before them may
    hold it, in a thumbnail.
    """
    if not (data.startswith(JPEG_BEGINS) and data.endswith(JPEG_ENDS)):
        return False
    place = len(JPEG_BEGINS)
    while not data.startswith(SCAN, place):
        if not data.startswith(b"\xff", place):
            return False
        place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")
    return data.find(JPEG_BEGINS, place) < 0
