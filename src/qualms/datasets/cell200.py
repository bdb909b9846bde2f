"""Cell-200: simulated fluorescence microscopy, 200 cell counts x 1,000 pictures.

Ding et al. (2021, CcGAN); used as Cells, Cells-Tails and Cells-Gap by Gustafsson et al.
(2023, arXiv:2302.03679). The target is the number of cells, 1 to 200. Pictures are
stored with one channel; the released code repeats it three times for the network.

Read from the HDF5 file the authors now offer, or from the older folder of PNG files.
The published splits were drawn without a seed from an unsorted listing and cannot be
recovered; ours are a seeded permutation of the pictures in file order. The HDF5 file
and the sorted folder have different orders and so give different splits.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets import _hdf5
from qualms.datasets._options import check_choice, chosen_sizes, whole_number
from qualms.datasets._pictures import read_grey
from qualms.datasets._publisher_files import contents, file_names
from qualms.datasets._ranges import (
    GAP_RULES,
    GRADED_COUNTS,
    VARIANTS,
    GapRule,
    Variant,
    trained_counts,
)
from qualms.datasets._recipe import Card, DatasetError, LoadedItems, Recipe, Unit
from qualms.spec import Task

FILE = "Cell200_64x64.h5"
NAME = r"[^._][^_]*_(\d+)\.0\.\w+"
SIDE = 64
SIZES = {"train": 10_000, "val": 2_000, "test": 10_000}

CARD = Card(
    title="Cell-200",
    licence="none stated for the data (the code is MIT); see the publisher",
    citation=(
        "Ding, Wang, Xu, Welch, Wang: CcGAN: Continuous Conditional Generative "
        "Adversarial Networks for Image Generation. ICLR 2021."
    ),
    url="https://github.com/UBCDingXin/improved_CcGAN",
    obtain=(
        "Download Cell200_64x64.h5 from the repository's README and pass its folder: "
        "IMGs_grey (200000, 1, 64, 64) uint8, CellCounts (200000,). Or extract the "
        "older Cell200.zip and pass the folder that holds Cell200/: 200,000 grey files "
        "named <id>_<count>.0.png."
    ),
)

Source = Literal["hdf5", "png"]
Trained = Callable[[NDArray[Any]], NDArray[np.bool_]]
"""Function from counts (N,) to True where a count may occur in train and val."""


class _Pictures(NamedTuple):
    """The count of every picture, and how to make units of pictures and load them."""

    counts: NDArray[Any]
    units: Callable[[str, NDArray[np.int64]], list[Unit]]
    load: Callable[[Unit], LoadedItems]


def cell200(
    root: str | Path,
    *,
    variant: Variant = "plain",
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    source: Source | None = None,
    gap: GapRule = "released",
) -> Recipe:
    """Read images (64, 64, 1) of 1 to 200 cells, target the count.

    Args:
        root: the folder that holds Cell200_64x64.h5 or Cell200/.
        variant: "plain" has no shift. "tails" trains on counts 51..150 and "gap" on
            1..49 and 150..200; both are tested half inside and half outside that
            range, which the array `shifted` marks. "tails" has the graded subsets
            test/v1, v2 and v3.
        sizes: items per split, if fewer than 10,000/2,000/10,000 are wanted.
        seed: seeds the division into splits.
        source: "hdf5" or "png"; None takes the HDF5 file if it is there.
        gap: "released" lets "gap" train on a count of 150, as the released code does;
            "text" does not, as the paper's text says.
    """
    check_choice("variant", variant, VARIANTS)
    check_choice("gap", gap, GAP_RULES)
    seed = whole_number("seed", seed, least=0)
    counts = chosen_sizes(sizes, SIZES)
    root = Path(root)
    source = source or _present(root)
    check_choice("source", source, ("hdf5", "png"))
    pictures = _hdf5_file(root) if source == "hdf5" else _png_folder(root)
    trained = partial(trained_counts, variant=variant, gap=gap)
    beyond = 0 if variant == "plain" else counts["test"] // 2
    plan = _plan(trained(pictures.counts), counts, seed, beyond=beyond)
    subsets = GRADED_COUNTS if variant == "tails" else {}
    shifted = () if variant == "plain" else ("test", *subsets)
    options = {"variant": variant, "sizes": counts}
    return Recipe(
        name="cell200",
        options=options | {"seed": seed, "source": source, "gap": gap},
        card=CARD,
        task=Task(name="regression"),
        units=tuple(u for split in plan for u in pictures.units(split, plan[split])),
        load=partial(_load, pictures.load, trained),
        counts=counts,
        shifts=dict.fromkeys(shifted, "count range"),
        subsets=subsets,
    )


def _present(root: Path) -> Source:
    if root.suffix == ".h5" or (root / FILE).is_file():
        return "hdf5"
    if not root.is_dir():
        raise DatasetError(f"expected {FILE} or Cell200 in {root}; {contents(root)}")
    return "png"


def _hdf5_file(root: Path) -> _Pictures:
    path = root if root.suffix == ".h5" else root / FILE
    column = _hdf5.read_columns(path, pictures="IMGs_grey", needed=("CellCounts",))
    return _Pictures(
        counts=column["CellCounts"],
        units=_hdf5.chunk_units,
        load=partial(_load_chunk, path),
    )


def _png_folder(root: Path) -> _Pictures:
    folder = root / "Cell200" if (root / "Cell200").is_dir() else root
    files = file_names(folder, NAME, like="123_45.0.png")
    return _Pictures(
        counts=np.array([_count(name) for name in files]),
        units=partial(_picture_units, files),
        load=partial(_load_picture, folder),
    )


def _plan(
    inside: NDArray[np.bool_], sizes: Mapping[str, int], seed: int, *, beyond: int
) -> dict[str, NDArray[np.int64]]:
    """Choose the pictures of each split at random; `beyond` of test are outside."""
    rows = np.random.default_rng(seed).permutation(len(inside))
    near, far = rows[inside[rows]], rows[~inside[rows]]
    _check_enough("in", len(near), sum(sizes.values()) - beyond)
    _check_enough("out of", len(far), beyond)
    start, stop = sizes["train"], sizes["train"] + sizes["val"]
    test = near[stop : stop + sizes["test"] - beyond]
    return {
        "train": near[:start],
        "val": near[start:stop],
        # Alternating, so that any beginning of the split has as many of both.
        "test": np.insert(test, np.arange(1, beyond + 1), far[:beyond]),
    }


def _check_enough(where: str, available: int, needed: int) -> None:
    if available < needed:
        raise DatasetError(
            f"the splits need {needed} pictures {where} the training range, found "
            f"{available}; complete the download or pass smaller sizes"
        )


def _count(name: str) -> int:
    match = re.fullmatch(NAME, name)
    assert match is not None
    return int(match[1])


def _picture_units(
    files: tuple[str, ...], split: str, rows: NDArray[np.int64]
) -> list[Unit]:
    return [Unit(key=files[row], split=split) for row in rows.tolist()]


def _load_picture(folder: Path, unit: Unit) -> LoadedItems:
    image = read_grey(folder / unit.key)
    if image.shape != (SIDE, SIDE):
        raise ValueError(
            f"{folder / unit.key} must be {SIDE} x {SIDE} pixels, got {image.shape}"
        )
    return LoadedItems(
        image=image[None, :, :, None],
        target=np.array([_count(unit.key)], np.float32),
        item=(Path(unit.key).stem,),
    )


def _load_chunk(path: Path, unit: Unit) -> LoadedItems:
    row = _hdf5.read_rows(path, unit.args, pictures="IMGs_grey", others=("CellCounts",))
    return LoadedItems(
        image=row["IMGs_grey"],
        target=row["CellCounts"].astype(np.float32),
        item=tuple(f"{i:06d}" for i in unit.args),
    )


def _load(
    load: Callable[[Unit], LoadedItems], trained: Trained, unit: Unit
) -> LoadedItems:
    loaded = load(unit)
    if unit.split != "test":
        return loaded
    return replace(loaded, extra={"shifted": ~trained(loaded.target)})
