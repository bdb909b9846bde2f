"""AerialBuildingPixels: how many pixels of an aerial patch are buildings.

Inria Aerial Image Labeling (Maggiori et al., 2017), as in Gustafsson et al. (2023,
arXiv:2302.03679): Austin and Chicago for train and val, rural West Tyrol for test;
figure A15 tests the same networks on Kitsap County and Vienna, which are further test
splits. Tiles shrink from 5,000 to 1,000 pixels a side and are cut into patches of
64 x 64; patches without buildings are dropped.

Patches, not tiles, are split 80 to 20 into train and val, as published, so both hold
patches of the same tile. The published split was drawn without a seed and cannot be
recovered; ours is seeded. Stored RGB; the released code kept OpenCV's BGR.
"""

from functools import partial
from pathlib import Path

from qualms.datasets._options import whole_number
from qualms.datasets._pictures import Tile, patches, read_mask, read_rgb
from qualms.datasets._publisher_files import file_names_in_either, locate
from qualms.datasets._recipe import Card, Divide, LoadedItems, Recipe, Unit
from qualms.datasets._resize import bilinear, nearest
from qualms.spec import Task

TILE_SIDE = 1_000
SPLITS = {
    "austin": "trainval",
    "chicago": "trainval",
    "tyrol-w": "test",
    "kitsap": "test/kitsap",
    "vienna": "test/vienna",
}

CARD = Card(
    title="Inria Aerial Image Labeling",
    licence="see the publisher; registration required",
    citation=(
        "Maggiori, Tarabalka, Charpiat, Alliez: Can Semantic Labeling Methods "
        "Generalize to Any City? The Inria Aerial Image Labeling Benchmark. "
        "IGARSS 2017."
    ),
    url="https://project.inria.fr/aerialimagelabeling/",
    obtain=(
        "Register, extract and pass the folder that holds AerialImageDataset/: "
        "train/images/<city><number>.tif (5000 x 5000) and train/gt with the same "
        "names, 36 tiles for each of austin, chicago, kitsap, tyrol-w, vienna."
    ),
)


def aerial_building_pixels(root: str | Path, *, seed: int = 0) -> Recipe:
    """Read patches (64, 64, 3), target the building pixels; clusters are tiles."""
    seed = whole_number("seed", seed, least=0)
    folder = locate(Path(root), "AerialImageDataset", holding=["train"]) / "train"
    return Recipe(
        name="aerial_building_pixels",
        options={"seed": seed},
        card=CARD,
        task=Task(name="regression"),
        units=tuple(unit for city in SPLITS for unit in _units(folder, city)),
        load=partial(_load, folder),
        divide={"trainval": Divide(into=("train", "val"), first=0.8, seed=seed)},
        # The sizes of the other test sets are not published.
        counts={"train": 11_184, "val": 2_797, "test": 3_890},
        shifts={
            "test": "rural West Tyrol instead of American cities",
            "test/kitsap": "rural Kitsap County instead of dense American cities",
            "test/vienna": "Vienna instead of American cities",
        },
    )


def _units(folder: Path, city: str) -> list[Unit]:
    files = file_names_in_either(
        folder / "images", folder / "gt", rf"{city}\d+\.tif", like=f"{city}1.tif"
    )
    return [Unit(key=name, split=SPLITS[city], args=(city,)) for name in files]


def _load(folder: Path, unit: Unit) -> LoadedItems:
    (city,) = unit.args
    image = read_rgb(folder / "images" / unit.key)
    mask = read_mask(folder / "gt" / unit.key)
    return patches(
        Tile(
            name=unit.key.removesuffix(".tif"),
            group=city,
            image=bilinear(image, TILE_SIDE),
            mask=nearest(mask, TILE_SIDE),
        )
    )
