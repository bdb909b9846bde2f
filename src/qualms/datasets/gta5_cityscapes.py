"""GTA5 and Cityscapes: what does each pixel of a street show, in a game and in a city?

GTA5 (Richter et al., 2016) and Cityscapes (Cordts et al., 2016) as in VALUES (Kahl et
al., 2024, arXiv:2401.08501). Images are cropped around their centre to 1024 x 1912
pixels and shrunk to 256 x 478. There are 19 classes, five of which have a second label
(`_street.py`); everything else is 255 and counts nowhere.

Training and validation are on GTA5. Cityscapes is shifted: its training images are half
of the pool, and its validation images are part of the test set. Splits follow figure 7
and the random numbers of the released code, so they are the paper's if the same files
are there. GTA5's images 15188 and 17705 and those whose labels have another size are
left out, as in the paper.
"""

import struct
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._folds import fold_rows
from qualms.datasets._options import whole_number
from qualms.datasets._pictures import read_grey, read_rgb
from qualms.datasets._publisher_files import contents, file_names, reading
from qualms.datasets._recipe import Card, DatasetError, LoadedItems, Recipe, Unit
from qualms.datasets._street import (
    COLOURS,
    IGNORE,
    OUTPUTS,
    SWAP_SHARE,
    SWAPS,
    reference_draws,
)
from qualms.spec import Task

CARD = Card(
    title="GTA5 and Cityscapes",
    licence="GTA5: research only; Cityscapes: non-commercial, no redistribution",
    citation=(
        "Richter, Vineet, Roth, Koltun. Playing for data: ground truth from computer "
        "games. ECCV 2016. Cordts et al. The Cityscapes dataset for semantic urban "
        "scene understanding. CVPR 2016."
    ),
    url="https://download.visinf.tu-darmstadt.de/data/from_games/",
    obtain=(
        "Download all parts of GTA5 and extract them in gta5/ (gta5/images/00001.png, "
        "gta5/labels/00001.png). Register at www.cityscapes-dataset.com, download "
        "leftImg8bit_trainvaltest.zip and gtFine_trainvaltest.zip and extract them in "
        "cityscapes/ (cityscapes/leftImg8bit/train/aachen/..., "
        "cityscapes/gtFine/train/aachen/...). Pass the parent of both folders. The "
        "names OriginalData and CityScapesOriginalData of the released code work too."
    ),
)
COUNTS = {"train": 13_157, "val": 3_290, "pool": 5_950, "test": 5_982}
CROP = (1024, 1912)
SHRINK = 4
BROKEN = ("15188.png", "17705.png")
"""Images of GTA5 whose files are damaged."""
TRAIN_IDS = {
    **{7: 0, 8: 1, 11: 2, 12: 3, 13: 4, 17: 5, 19: 6, 20: 7, 21: 8, 22: 9, 23: 10},
    **{24: 11, 25: 12, 26: 13, 27: 14, 28: 15, 31: 16, 32: 17, 33: 18},
}
"""Train ids of the ids in label maps of Cityscapes; all others are ignored."""
IGNORED = (
    *((0, 0, 0), (111, 74, 0), (81, 0, 81), (250, 170, 160), (230, 150, 140)),
    *((180, 165, 180), (150, 100, 100), (150, 120, 90), (0, 0, 90), (0, 0, 110)),
    (20, 20, 20),
)
"""Colours in label maps of GTA5 that have no train id."""
UNKNOWN = 254
"""Marks a colour or an id that label maps must not have."""
IDS = (*range(34), 255)
"""All ids in label maps of Cityscapes; 255 stands for -1."""
PNG_HEADER = struct.Struct(">8s8xII")
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def gta5_cityscapes(root: str | Path, *, seed: int = 123) -> Recipe:
    """Read images (256, 478, 3), target (1 or 5, 256, 478) with labels 0 to 23, or 255.

    Splits `train` and `val` store the labels 0 to 18, of which training swaps five.
    Splits `pool` and `test` store five fixed draws of them.

    Args:
        root: the folder that has gta5/ and cityscapes/.
        seed: seeds splits and reference draws; 123 is the paper's.
    """
    seed = whole_number("seed", seed, least=0)
    root = Path(root)
    game = _image_folders(root, ("gta5", "OriginalData"), ("images", "labels"))
    city = _image_folders(root, ("cityscapes", "CityScapesOriginalData"), None)
    names, left_out = _game_images(game)
    cities = {part: _city_images(city, part) for part in ("train", "val")}
    units = [
        Unit(key=f"{where}/{name}", split=split)
        for split, where, chosen in _split_images(names, cities, seed)
        for name in chosen
    ]
    return Recipe(
        name="gta5_cityscapes",
        options={"seed": seed},
        card=CARD,
        task=Task(name="segmentation", classes=OUTPUTS, ignore=IGNORE),
        units=tuple(units),
        load=partial(_load, game, city, seed),
        counts=COUNTS,
        shifts=dict.fromkeys(("pool", "test"), "a city instead of a game"),
        swaps=SWAPS,
        swap_share=SWAP_SHARE,
        left_out=left_out,
    )


def _image_folders(
    root: Path, folders: Sequence[str], holding: tuple[str, str] | None
) -> tuple[Path, Path]:
    """Find the folders of images and labels, in any of the layouts."""
    layouts = [holding] if holding else [("leftImg8bit", "gtFine")]
    if holding is None:
        layouts.append(("images/leftImg8bit", "labels/gtFine"))
    for candidate in (*(root / folder for folder in folders), root):
        for images, labels in layouts:
            if (candidate / images).is_dir() and (candidate / labels).is_dir():
                return candidate / images, candidate / labels
    images, labels = layouts[0]
    raise DatasetError(
        f"expected {images} and {labels} in {root / folders[0]} or {root / folders[1]};"
        f" {contents(root)}"
    )


def _game_images(folders: tuple[Path, Path]) -> tuple[list[str], dict[str, str]]:
    """List names of GTA5's images in order, and those to leave out with the reason."""
    images, labels = folders
    left_out = {}
    names = file_names(images, r"\d{5}\.png", like="00001.png")
    for name in names:
        if name in BROKEN:
            left_out[f"gta5/{name}"] = "the publisher's file is damaged"
            continue
        sizes = _png_size(images / name), _png_size(labels / name)
        if None not in sizes and sizes[0] != sizes[1]:
            left_out[f"gta5/{name}"] = (
                f"image and labels must have the same size, got {sizes[0]} and"
                f" {sizes[1]}"
            )
    return [name for name in names if f"gta5/{name}" not in left_out], left_out


def _png_size(path: Path) -> tuple[int, int] | None:
    """Read width and height; None for a file that loading must complain about."""
    try:
        with path.open("rb") as file:
            signature, width, height = PNG_HEADER.unpack(file.read(PNG_HEADER.size))
    except (OSError, struct.error):
        return None
    return (int(width), int(height)) if signature == PNG_SIGNATURE else None


def _city_images(folders: tuple[Path, Path], part: str) -> list[str]:
    """List paths of Cityscapes' images below the folder of images, city by city."""
    parent = folders[0] / part
    if not parent.is_dir():
        raise DatasetError(f"expected a folder {parent}; {contents(folders[0])}")
    like = "aachen_000000_000019_leftImg8bit.png"
    cities = sorted(entry.name for entry in parent.iterdir() if entry.is_dir())
    return [
        f"{part}/{city}/{name}"
        for city in cities
        for name in file_names(parent / city, r"\w+_leftImg8bit\.png", like=like)
    ]


def _split_images(
    games: Sequence[str], cities: Mapping[str, Sequence[str]], seed: int
) -> list[tuple[str, str, Sequence[str]]]:
    """Return (split, dataset, names), as figure 7 and the released code divide them."""
    rng = np.random.RandomState(seed)
    half = min(len(cities["train"]), len(games))
    pool, rest = _draw_names(games, half, rng)
    test, rest = _draw_names(rest, len(rest) // 4, rng)
    val = fold_rows(len(rest), seed=seed, fold=0)
    return [
        ("train", "gta5", [name for row, name in enumerate(rest) if row not in val]),
        ("val", "gta5", [name for row, name in enumerate(rest) if row in val]),
        ("pool", "gta5", pool),
        ("pool", "cityscapes", cities["train"]),
        ("test", "gta5", test),
        ("test", "cityscapes", cities["val"]),
    ]


def _draw_names(
    names: Sequence[str], count: int, rng: np.random.RandomState
) -> tuple[list[str], list[str]]:
    """Draw some names, and return them and the others; both in order."""
    chosen = set(rng.choice(len(names), count, replace=False).tolist())
    return (
        [name for row, name in enumerate(names) if row in chosen],
        [name for row, name in enumerate(names) if row not in chosen],
    )


def _load(
    game: tuple[Path, Path], city: tuple[Path, Path], seed: int, unit: Unit
) -> LoadedItems:
    where, _, name = unit.key.partition("/")
    if where == "gta5":
        image = read_rgb(game[0] / name)
        labels = _colour_map(game[1] / name)
    else:
        image = read_rgb(city[0] / name)
        labels = _ids_map(city[1] / name.replace("_leftImg8bit", "_gtFine_labelIds"))
    image, labels = _shrink(image, labels)
    target = labels[None]
    if unit.split in ("pool", "test"):
        words = [seed, zlib.crc32(unit.key.encode()), 1]
        target = reference_draws(labels, np.random.default_rng(words))
    return LoadedItems(
        image=image[None],
        target=target[None],
        item=(unit.key.removesuffix(".png"),),
        extra={
            "group": np.array([where]),
            "shifted": np.array([where == "cityscapes"]),
        },
    )


def _colour_map(path: Path) -> NDArray[np.uint8]:
    """Read train ids of a label map in colours; GTA5 has these."""
    colours = read_rgb(path).astype(np.int32)
    codes = (colours[..., 0] << 16) | (colours[..., 1] << 8) | colours[..., 2]
    labels = _colour_table()[codes]
    with reading(path):
        if (labels == UNKNOWN).any():
            odd = tuple(colours[labels == UNKNOWN][0].tolist())
            raise ValueError(f"label colours must be those of Cityscapes, got {odd}")
    return np.asarray(labels, np.uint8)


@lru_cache(maxsize=1)
def _colour_table() -> NDArray[np.uint8]:
    """Return the train id of every colour, by its code."""
    table = np.full(2**24, UNKNOWN, np.uint8)
    for train_id, (red, green, blue) in enumerate(COLOURS):
        table[red << 16 | green << 8 | blue] = train_id
    for red, green, blue in IGNORED:
        table[red << 16 | green << 8 | blue] = IGNORE
    return table


def _ids_map(path: Path) -> NDArray[np.uint8]:
    """Read train ids of a label map with ids; Cityscapes has these."""
    table = np.full(256, UNKNOWN, np.uint8)
    table[list(IDS)] = IGNORE
    table[list(TRAIN_IDS)] = list(TRAIN_IDS.values())
    ids = read_grey(path)
    labels = table[ids]
    with reading(path):
        if (labels == UNKNOWN).any():
            odd = int(ids[labels == UNKNOWN][0])
            raise ValueError(
                f"label ids must be those of Cityscapes, 0 to 33 or 255, got {odd}"
            )
    return np.asarray(labels, np.uint8)


def _shrink(
    image: NDArray[np.uint8], labels: NDArray[np.uint8]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Shrink the middle of both to a quarter of its size."""
    import cv2

    if image.shape[:2] != labels.shape:
        raise ValueError(
            f"image and labels must have the same size, got {image.shape[:2]} and"
            f" {labels.shape}"
        )
    top, left = ((n - crop) // 2 for n, crop in zip(labels.shape, CROP, strict=True))
    if min(top, left) < 0:
        raise ValueError(
            f"images must have at least {CROP[0]} x {CROP[1]} pixels, got"
            f" {labels.shape[0]} x {labels.shape[1]}"
        )
    middle = (slice(top, top + CROP[0]), slice(left, left + CROP[1]))
    size = (CROP[1] // SHRINK, CROP[0] // SHRINK)
    small = cv2.resize(image[middle], size, interpolation=cv2.INTER_LINEAR)
    small_labels = cv2.resize(labels[middle], size, interpolation=cv2.INTER_NEAREST)
    return np.asarray(small, np.uint8), np.asarray(small_labels, np.uint8)
