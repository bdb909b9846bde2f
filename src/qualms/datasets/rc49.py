"""RC-49: 49 chairs rendered at 899 yaw angles, 0.1 to 89.9 degrees.

Ding et al. (2021, CcGAN); used as ChairAngle, ChairAngle-Tails and ChairAngle-Gap by
Gustafsson et al. (2023, arXiv:2302.03679). The target is the yaw in degrees. The file's
own training list (the odd tenths) becomes train and val, 80 to 20. Of the other angles,
at most 25 chairs each become test. All 49 chairs occur in every split.

The published splits were drawn without a seed and cannot be recovered; ours are seeded.
Channels are kept in the file's order (RGB).
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.datasets import _hdf5
from qualms.datasets._options import check_choice, chosen_sizes, whole_number
from qualms.datasets._publisher_files import locate
from qualms.datasets._ranges import GRADED_YAWS, VARIANTS, Variant, trained_tenths
from qualms.datasets._recipe import Card, DatasetError, LoadedItems, Recipe, Unit
from qualms.spec import Task

FILE = "RC-49_64x64.h5"
PER_ANGLE = 25
TRAIN_SHARE = 0.8
NARROW = {"train": 11_760, "val": 2_940, "test": 11_225}
SIZES = {
    "plain": {"train": 17_640, "val": 4_410, "test": 11_225},
    "tails": NARROW,
    "gap": NARROW,
}

CARD = Card(
    title="RC-49",
    licence="none stated for the data (the code is MIT); see the publisher",
    citation=(
        "Ding, Wang, Xu, Welch, Wang: CcGAN: Continuous Conditional Generative "
        "Adversarial Networks for Image Generation. ICLR 2021."
    ),
    url="https://github.com/UBCDingXin/improved_CcGAN",
    obtain=(
        "Download RC-49_64x64.h5 from the repository's README and pass its folder: "
        "images (44051, 3, 64, 64) uint8, labels (44051,) yaw in degrees, indx_train "
        "(22050,) row numbers, types (44051,) which chair (optional)."
    ),
)

Ints = NDArray[np.int64]


def rc49(
    root: str | Path,
    *,
    variant: Variant = "plain",
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
) -> Recipe:
    """Read images (64, 64, 3) of 49 chairs, target the yaw in degrees.

    Args:
        root: the folder that holds RC-49_64x64.h5.
        variant: "plain" has no shift and 17,640/4,410/11,225 items. "tails" trains on
            angles strictly between 15 and 75, "gap" on those below 30 or above 60;
            both have 11,760/2,940 items in train and val, and the same test split as
            "plain", in which the array `shifted` marks the other angles. "gap" has the
            graded subsets test/v1, v2 and v3.
        sizes: items per split, if fewer are wanted; a smaller split is the beginning
            of the full one.
        seed: seeds the division into splits.
    """
    check_choice("variant", variant, VARIANTS)
    seed = whole_number("seed", seed, least=0)
    counts = chosen_sizes(sizes, SIZES[variant])
    root = Path(root)
    path = (
        root if root.suffix == ".h5" else locate(root, "RC-49", holding=[FILE]) / FILE
    )
    column = _hdf5.read_columns(
        path, pictures="images", needed=("labels", "indx_train"), optional=("types",)
    )
    plan = _plan(_tenths(column["labels"]), column["indx_train"], variant, seed)
    units = [
        _hdf5.chunk_units(split, plan[split][:size]) for split, size in counts.items()
    ]
    subsets = GRADED_YAWS if variant == "gap" else {}
    shifted = () if variant == "plain" else ("test", *subsets)
    return Recipe(
        name="rc49",
        options={"variant": variant, "sizes": counts, "seed": seed},
        card=CARD,
        task=Task(name="regression"),
        units=tuple(unit for chunks in units for unit in chunks),
        load=partial(_load, path, variant, "types" in column),
        counts=counts,
        shifts=dict.fromkeys(shifted, "yaw range"),
        subsets=subsets,
    )


def _tenths(yaw: NDArray[Any]) -> Ints:
    """Return yaws (N,) in whole tenths of a degree."""
    exact = yaw.astype(np.float64) * 10
    tenths = np.rint(exact)
    # float32 holds 89.9 to about 1e-5 degrees.
    off = np.flatnonzero(~(np.abs(exact - tenths) < 1e-3))
    if len(off):
        raise DatasetError(
            "labels must be yaws in whole tenths of a degree, "
            f"got {yaw[off[0]]} in row {off[0]}"
        )
    return tenths.astype(np.int64)


def _plan(
    tenth: Ints, train_rows: NDArray[Any], variant: Variant, seed: int
) -> dict[str, Ints]:
    """Choose the rows of each full split, in random order."""
    if not np.all((train_rows >= 0) & (train_rows < len(tenth))):
        raise DatasetError(f"indx_train must hold row numbers below {len(tenth)}")
    rng = np.random.default_rng(seed)
    train = np.isin(np.arange(len(tenth)), train_rows)
    both = rng.permutation(np.flatnonzero(train))
    both = both[trained_tenths(tenth[both], variant)]
    first = int(TRAIN_SHARE * len(both))
    others = rng.permutation(np.flatnonzero(~train))
    test = others[_rank(tenth[others]) < PER_ANGLE]
    return {"train": both[:first], "val": both[first:], "test": test}


def _rank(value: Ints) -> Ints:
    """Count how many equal values come before each value."""
    order = np.argsort(value, kind="stable")
    start = np.searchsorted(value[order], value[order])
    rank = np.empty(len(value), dtype=np.int64)
    rank[order] = np.arange(len(value)) - start
    return rank


def _load(path: Path, variant: Variant, chairs: bool, unit: Unit) -> LoadedItems:
    others = ("labels", "types") if chairs else ("labels",)
    row = _hdf5.read_rows(path, unit.args, pictures="images", others=others)
    extra: dict[str, NDArray[Any]] = {}
    if unit.split == "test":
        extra["shifted"] = ~trained_tenths(_tenths(row["labels"]), variant)
    if chairs:
        extra["cluster"] = np.array([f"chair {t:.0f}" for t in row["types"]])
    return LoadedItems(
        image=row["images"],
        target=row["labels"].astype(np.float32),
        item=tuple(f"{i:05d}" for i in unit.args),
        extra=extra,
    )
