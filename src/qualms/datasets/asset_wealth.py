"""AssetWealth: satellite images of African villages and their asset wealth index.

PovertyMap-WILDS v1.1 (Koh et al., 2021, after Yeh et al., 2020), country fold A, with
the splits train, id_val and test of WILDS, as in Gustafsson et al. (2023,
arXiv:2302.03679). Seven Landsat channels and one of night lights, already standardised
by WILDS: nothing else is normalised. The target is `wealthpooled`. Test countries are
disjoint from those of train and val.

Images shrink from 224 x 224 to 64 x 64 without antialiasing, which is what torchvision
did on tensors when the paper was written; versions from 0.17 on would antialias.
"""

from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._publisher_files import (
    CsvRow,
    finite_number,
    locate,
    read_table,
    reading,
)
from qualms.datasets._recipe import Card, DatasetError, LoadedItems, Recipe, Unit
from qualms.datasets._resize import bilinear
from qualms.spec import Task

SIDE = 64
SHAPE = (8, 224, 224)
HELD_OUT = 2_000
# WILDS seeds fold A with the code of its letter plus a constant.
WILDS_SEED = ord("A") + 541433
VAL_COUNTRIES = ("benin", "burkina_faso", "guinea", "sierra_leone", "tanzania")
TEST_COUNTRIES = ("angola", "cote_d_ivoire", "ethiopia", "mali", "rwanda")
SETTLEMENT = {
    "true": "urban",
    "1": "urban",
    "1.0": "urban",
    "false": "rural",
    "0": "rural",
    "0.0": "rural",
}

CARD = Card(
    title="PovertyMap-WILDS v1.1",
    licence="imagery: U.S. public domain; survey data (DHS): see the publisher",
    citation=(
        "Koh et al.: WILDS: A Benchmark of in-the-Wild Distribution Shifts. ICML 2021. "
        "Yeh et al.: Using publicly available satellite imagery and deep learning to "
        "understand economic well-being in Africa. Nature Communications 11, 2020."
    ),
    url="https://wilds.stanford.edu/datasets/#povertymap",
    obtain=(
        "Download with the wilds package (13.1 GB) and pass the folder that holds "
        "poverty_v1.1/: dhs_metadata.csv (country, wealthpooled, urban, ...) and "
        "images/landsat_poverty_img_<row>.npz with x (8, 224, 224)."
    ),
)


def asset_wealth(root: str | Path) -> Recipe:
    """Read images (64, 64, 8), target the wealth index; clusters: countries."""
    folder = locate(Path(root), "poverty_v1.1", holding=["dhs_metadata.csv", "images"])
    rows = read_table(folder / "dhs_metadata.csv", ("country", "wealthpooled", "urban"))
    country = np.array([row.fields["country"] for row in rows])
    units = [
        _unit(i, split, rows[i])
        for split, index in _official_splits(country).items()
        for i in index.tolist()
    ]
    return Recipe(
        name="asset_wealth",
        options={},
        card=CARD,
        task=Task(name="regression"),
        units=tuple(units),
        load=partial(_load, folder / "images"),
        counts={"train": 9_797, "val": 1_000, "test": 3_963},
        shifts={"test": "other countries"},
    )


def _official_splits(country: NDArray[np.str_]) -> dict[str, NDArray[np.int64]]:
    """Return row numbers per split, as WILDS draws them for fold A."""
    home = np.flatnonzero(~np.isin(country, VAL_COUNTRIES + TEST_COUNTRIES))
    np.random.default_rng(WILDS_SEED).shuffle(home)
    return {
        "train": np.sort(home[HELD_OUT:]),
        # The other half of the held-out rows is WILDS' id_test, which is not used.
        "val": np.sort(home[: HELD_OUT // 2]),
        "test": np.flatnonzero(np.isin(country, TEST_COUNTRIES)),
    }


def _unit(i: int, split: str, row: CsvRow) -> Unit:
    fields, where = row.fields, f"line {row.line} of dhs_metadata.csv"
    urban = fields["urban"].strip().lower()
    if urban not in SETTLEMENT:
        raise DatasetError(
            f"urban must be True or False, got {fields['urban']!r} in {where}"
        )
    wealth = finite_number(fields, "wealthpooled", where=where)
    args = (wealth, fields["country"], SETTLEMENT[urban])
    return Unit(key=f"landsat_poverty_img_{i}", split=split, args=args)


def _load(folder: Path, unit: Unit) -> LoadedItems:
    wealth, country, settlement = unit.args
    path = folder / f"{unit.key}.npz"
    with reading(path), path.open("rb") as file, np.load(file) as arrays:
        image = np.asarray(arrays["x"], dtype=np.float32)
        if image.shape != SHAPE:
            raise ValueError(f"x must have the shape {SHAPE}, got {image.shape}")
    return LoadedItems(
        image=bilinear(np.moveaxis(image, 0, -1), SIDE)[None],
        target=np.array([wealth], dtype=np.float32),
        item=(unit.key,),
        extra={"cluster": np.array([country]), "group": np.array([settlement])},
    )
