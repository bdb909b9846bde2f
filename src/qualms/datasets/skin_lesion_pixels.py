"""SkinLesionPixels: how many pixels of a dermatoscopic photo are lesion.

HAM10000 (Tschandl et al., 2018) with the segmentations of Tschandl et al. (2020), as in
Gustafsson et al. (2023, arXiv:2302.03679). The Australian part ("rosendahl") is test,
the three Austrian parts are split 85 to 15 into train and val. Photos shrink to
64 x 64; the target counts lesion pixels there, and photos without any are kept.

The published split was drawn without a seed and cannot be recovered; ours is seeded. It
is a split by photo, as published, so train and val may both have photos of one lesion.
Photos are stored RGB; the released code kept OpenCV's BGR.
"""

from functools import partial
from pathlib import Path

import numpy as np

from qualms.datasets._options import whole_number
from qualms.datasets._pictures import read_mask, read_rgb
from qualms.datasets._publisher_files import contents, locate, read_table
from qualms.datasets._recipe import (
    Card,
    DatasetError,
    Divide,
    LoadedItems,
    Recipe,
    Unit,
)
from qualms.datasets._resize import bilinear, nearest
from qualms.spec import Task

SIDE = 64
METADATA = ("HAM10000_metadata", "HAM10000_metadata.csv", "HAM10000_metadata.tab")
MASKS = "HAM10000_segmentations_lesion_tschandl"
PARTS = (".", "HAM10000_images_part_1", "HAM10000_images_part_2")

CARD = Card(
    title="HAM10000",
    licence="CC BY-NC 4.0",
    citation=(
        "Tschandl, Rosendahl, Kittler: The HAM10000 dataset, a large collection of "
        "multi-source dermatoscopic images of common pigmented skin lesions. "
        "Scientific Data 5, 2018."
    ),
    url="https://doi.org/10.7910/DVN/DBW86T",
    obtain=(
        "Download both HAM10000_images_part_*.zip, HAM10000_metadata and "
        "HAM10000_segmentations_lesion_tschandl.zip from Harvard Dataverse, extract "
        "all in ham10000/ and pass its parent: ham10000/<image_id>.jpg (or in the two "
        "part folders), HAM10000_metadata (comma or tab separated: lesion_id, "
        "image_id, dx, dataset, ...), HAM10000_segmentations_lesion_tschandl/"
        "<image_id>_segmentation.png. Kaggle's copy of the metadata lacks `dataset`."
    ),
)


def skin_lesion_pixels(root: str | Path, *, seed: int = 0) -> Recipe:
    """Read photos (64, 64, 3), target the lesion pixels; clusters are lesions."""
    seed = whole_number("seed", seed, least=0)
    folder = locate(Path(root), "ham10000", holding=[MASKS])
    table = read_table(_metadata(folder), ("lesion_id", "image_id", "dx", "dataset"))
    rows = [row.fields for row in table]
    units = [
        Unit(
            key=row["image_id"],
            split="test" if row["dataset"] == "rosendahl" else "trainval",
            args=(row["lesion_id"], row["dx"]),
        )
        for row in sorted(rows, key=lambda row: row["image_id"])
    ]
    return Recipe(
        name="skin_lesion_pixels",
        options={"seed": seed},
        card=CARD,
        task=Task(name="regression"),
        units=tuple(units),
        load=partial(_load, folder),
        divide={"trainval": Divide(into=("train", "val"), first=0.85, seed=seed)},
        counts={"train": 6_592, "val": 1_164, "test": 2_259},
        shifts={"test": "Australia instead of Austria"},
    )


def _metadata(folder: Path) -> Path:
    for name in METADATA:
        if (folder / name).is_file():
            return folder / name
    raise DatasetError(f"expected {METADATA[0]} in {folder}; {contents(folder)}")


def _load(folder: Path, unit: Unit) -> LoadedItems:
    lesion, diagnosis = unit.args
    candidates = [folder / part / f"{unit.key}.jpg" for part in PARTS]
    path = next(
        (candidate for candidate in candidates if candidate.is_file()), candidates[0]
    )
    mask = read_mask(folder / MASKS / f"{unit.key}_segmentation.png")
    return LoadedItems(
        image=bilinear(read_rgb(path), SIDE)[None],
        target=np.array([nearest(mask, SIDE).sum()], dtype=np.float32),
        item=(unit.key,),
        extra={"cluster": np.array([lesion]), "group": np.array([diagnosis])},
    )
