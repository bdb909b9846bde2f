"""Albums of fundus photographs, enhanced and kept as JPEG.

Like RETINA, we keep the enhanced photographs as JPEG of quality 72 and decode them in
every epoch. An album holds every photograph of its source once, for all shifts, onsets
and sizes that a dataset may ask for.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._encoded import jpeg
from qualms.datasets._options import whole_number
from qualms.datasets._pictures import read_rgb
from qualms.datasets._publisher_files import reading
from qualms.datasets._recipe import Card, LoadedItems, Recipe, Unit
from qualms.datasets._retina.contrast import enhance
from qualms.datasets._retina.gradings import (
    aptos_folder,
    aptos_gradings,
    eyepacs_folder,
    eyepacs_gradings,
)
from qualms.datasets._retina.protocol import BLURS
from qualms.spec import Task

QUALITY = 72
SIDE = 540
"""Side of an enhanced photograph that shows the whole eye, in pixels."""
FOLDERS = {"train": "train", "val": "test", "test": "test"}
"""Where Kaggle keeps the photographs of each part of EyePACS."""
JPEG_BEGINS, JPEG_ENDS = b"\xff\xd8", b"\xff\xd9"
SCAN = b"\xff\xda"
"""The marker before the coded pixels of a JPEG. Segments before it state a length."""


def eyepacs_album(root: Path, card: Card, *, blur: int) -> Recipe:
    """Make an album of every graded photograph of EyePACS."""
    files = {
        item: f"{FOLDERS[split]}/{item}.jpeg"
        for split, gradings in eyepacs_gradings(root).items()
        for item in gradings.item.tolist()
    }
    return _album("eyepacs_photographs", eyepacs_folder(root), files, card, blur)


def aptos_album(root: Path, card: Card, *, blur: int) -> Recipe:
    """Make an album of every graded photograph of APTOS."""
    items = aptos_gradings(root).item.tolist()
    files = {item: f"train_images/{item}.png" for item in items}
    return _album("aptos_photographs", aptos_folder(root), files, card, blur)


def checked_blur(blur: int) -> int:
    """Return `blur` as an int; raise unless it is one of RETINA's."""
    blur = whole_number("blur", blur)
    if blur not in BLURS:
        allowed = ", ".join(map(str, BLURS))
        raise ValueError(f"blur must be one of {allowed}, got {blur}")
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


def _load(folder: Path, blur: int, unit: Unit) -> LoadedItems:
    path = folder / unit.args[0]
    photograph = read_photograph(path)
    # An error of OpenCV is no ValueError and would end the whole preparation.
    with reading(path):
        picture = jpeg(enhance(photograph, blur=blur), quality=QUALITY)
    # The datasets that show the photograph have the real targets.
    return LoadedItems(image=(picture,), target=np.zeros(1, np.uint8), item=(unit.key,))


def read_photograph(path: Path) -> NDArray[np.uint8]:
    """Read the photograph (H, W, 3) at `path`, blue first.

    OpenCV gives the same pixels as Pillow and is faster, but it may fill missing parts
    of a JPEG with grey. So files that may be damaged are left to Pillow.
    """
    import cv2

    with reading(path):
        data = path.read_bytes()
        if path.suffix == ".jpeg" and _seems_whole(data):
            decoded = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
            if decoded is not None:
                return np.asarray(decoded, np.uint8)
    return np.ascontiguousarray(read_rgb(path)[..., ::-1])


def _seems_whole(data: bytes) -> bool:
    """Return whether a JPEG ends as it should and no other begins inside its pixels.

    Coded pixels never contain the marker that a JPEG begins with. If it is there, a
    whole download was appended to a part of it. The segments before the pixels may
    contain it, in a thumbnail.
    """
    if not (data.startswith(JPEG_BEGINS) and data.endswith(JPEG_ENDS)):
        return False
    position = len(JPEG_BEGINS)
    while not data.startswith(SCAN, position):
        if not data.startswith(b"\xff", position):
            return False
        position += 2 + int.from_bytes(data[position + 2 : position + 4], "big")
    return data.find(JPEG_BEGINS, position) < 0
