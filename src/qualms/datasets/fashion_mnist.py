"""Fashion-MNIST: grey pictures of ten kinds of clothing (Xiao et al., 2017).

A small real task without an account. As a task of transfer, in the manner of URL
(Kirchhof et al., 2023, arXiv:2307.03810), six classes are upstream and four are unseen:
coats and shirts, sneakers and ankle boots. Four classes are too few to be divided, so
`val` has the classes of `test`: the last 1,000 pictures of each class that the
publisher trains on.
"""

import gzip
import struct
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._options import check_choice, chosen_sizes, whole_number
from qualms.datasets._publisher_files import locate, reading
from qualms.datasets._recipe import HALVES, Card, LoadedItems, Recipe, Unit
from qualms.datasets._resize import bilinear
from qualms.datasets._simulated import chunked
from qualms.spec import Task

FamilyOfClasses = Literal["all", "upstream", "downstream"]
CLASSES: Mapping[str, tuple[int, ...]] = {
    "all": tuple(range(10)),
    "upstream": (0, 1, 2, 3, 5, 8),
    "downstream": (4, 6, 7, 9),
}
"""The publisher's labels: 0 T-shirt, 1 trouser, 2 pullover, 3 dress, 4 coat, 5 sandal,
6 shirt, 7 sneaker, 8 bag, 9 ankle boot."""
SIZES: Mapping[str, Mapping[str, int]] = {
    "all": {"train": 50_000, "val": 10_000, "test": 10_000},
    "upstream": {"train": 36_000, "test": 6_000},
    "downstream": {"train": 20_000, "val": 4_000, "test": 4_000},
}
VALIDATED = 1_000
"""Pictures of each class in `val`."""
SIDE = 28
TOGETHER = 10_000
"""Pictures in a unit; each unit reads a whole file."""
IMAGES, LABELS = "images-idx3-ubyte.gz", "labels-idx1-ubyte.gz"
PARTS = ("train", "t10k")
FILES = tuple(f"{part}-{kind}" for part in PARTS for kind in (IMAGES, LABELS))

CARD = Card(
    title="Fashion-MNIST",
    licence="MIT, Zalando SE",
    citation=(
        "Xiao, Rasul, Vollgraf. Fashion-MNIST: a novel image dataset for benchmarking "
        "machine learning algorithms. arXiv:1708.07747, 2017."
    ),
    url="https://github.com/zalandoresearch/fashion-mnist",
    obtain=(
        "On Debian or Ubuntu, `apt-get install dataset-fashion-mnist`; elsewhere "
        "download the four files and pass their folder: " + ", ".join(FILES) + "."
    ),
    place="/usr/share/datasets/fashion-mnist",
)


def fashion_mnist(
    root: str | Path,
    *,
    family: FamilyOfClasses = "all",
    side: int = SIDE,
    sizes: Mapping[str, int] | None = None,
) -> Recipe:
    """Read images (side, side, 1), target the class.

    Args:
        root: the folder that holds the publisher's four files.
        family: "all" is for classification into ten classes. "upstream" has six of
            them and "downstream" the other four, for embeddings. The subsets test/even
            and test/odd of "downstream" are the halves of each class.
        side: of the images in pixels; larger ones are interpolated.
        sizes: items per split, if fewer than 50,000/10,000/10,000, 36,000/6,000 or
            20,000/4,000/4,000 are wanted; a smaller split is the beginning.
    """
    check_choice("family", family, tuple(CLASSES))
    side = whole_number("side", side, least=SIDE)
    counts = chosen_sizes(sizes, SIZES[family])
    folder = locate(Path(root), "fashion-mnist", holding=FILES)
    rows = _rows(folder, family)
    units = [
        unit
        for split, size in counts.items()
        for unit in chunked(split, rows[split][:size].tolist(), most=TOGETHER)
    ]
    return Recipe(
        name="fashion_mnist",
        options={"family": family, "side": side, "sizes": counts},
        card=CARD,
        task=Task(
            name="classification" if family == "all" else "embedding",
            classes=len(CLASSES[family]),
        ),
        units=tuple(units),
        load=partial(_load, folder, CLASSES[family], side),
        counts=counts,
        subsets=HALVES if family == "downstream" else {},
    )


def _rows(folder: Path, family: FamilyOfClasses) -> dict[str, NDArray[np.intp]]:
    """Choose the rows of the publisher's files for each split, in their order."""
    train, test = (_read(folder / f"{part}-{LABELS}") for part in PARTS)
    classes = CLASSES[family]
    rows = {"test": np.flatnonzero(np.isin(test, classes))}
    trained = np.isin(train, classes)
    if "val" in SIZES[family]:
        last = [
            np.flatnonzero(train == label)[-VALIDATED:] for label in CLASSES[family]
        ]
        rows["val"] = np.sort(np.concatenate(last))
        trained[rows["val"]] = False
    return rows | {"train": np.flatnonzero(trained)}


def _load(folder: Path, classes: tuple[int, ...], side: int, unit: Unit) -> LoadedItems:
    part = "t10k" if unit.split == "test" else "train"
    (rows,) = unit.args
    image = _read(folder / f"{part}-{IMAGES}")[list(rows)][..., None]
    label = _read(folder / f"{part}-{LABELS}")[list(rows)]
    if side != SIDE:
        image = np.stack([bilinear(picture, side) for picture in image])
    return LoadedItems(
        image=image,
        target=np.searchsorted(classes, label).astype(np.int64),
        item=tuple(f"{part}-{row:05d}" for row in rows),
    )


def _read(path: Path) -> NDArray[np.uint8]:
    """Read the array in an IDX file of bytes, of pictures or of labels."""
    with reading(path), gzip.open(path) as file:
        content = file.read()
        zero, kind, axes = struct.unpack_from(">HBB", content)
        shape = struct.unpack_from(f">{axes}I", content, 4)
        expected = ("N", SIDE, SIDE) if IMAGES in path.name else ("N",)
        if (zero, kind, axes) != (0, 8, len(expected)) or shape[1:] != expected[1:]:
            raise ValueError(
                f"it must be an IDX file of bytes with the shape {expected}, got type"
                f" {kind} with the shape {shape}"
            )
        return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)
