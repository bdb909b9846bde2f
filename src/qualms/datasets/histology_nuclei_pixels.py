"""HistologyNucleiPixels: how many pixels of a histology patch are nuclei.

CoNSeP (Graham et al., 2019) and Kumar (Kumar et al., 2017) for train and val, TNBC
(Naylor et al., 2019) for test, as in Gustafsson et al. (2023, arXiv:2302.03679): other
hospitals, other preparation and staining. Patches of 64 x 64 at native resolution from
a regular grid over each tile; patches without nuclei are dropped.

Patches, not tiles, are split 80 to 20 into train and val, as published, so both hold
patches of the same tile. The published split was drawn without a seed and cannot be
recovered; ours is seeded. Stored RGB; the released code kept OpenCV's BGR.
"""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._hdf5 import open_hdf5
from qualms.datasets._options import whole_number
from qualms.datasets._pictures import Tile, patches, read_rgb
from qualms.datasets._publisher_files import file_names, locate, reading
from qualms.datasets._recipe import Card, Divide, LoadedItems, Recipe, Unit
from qualms.spec import Task

CARD = Card(
    title="CoNSeP, Kumar and TNBC nuclei",
    licence=(
        "CoNSeP: see the publisher; Kumar: CC BY-NC-SA 4.0 as part of MoNuSeg; TNBC: "
        "CC BY 4.0"
    ),
    citation=(
        "Graham et al.: HoVer-Net. Medical Image Analysis 58, 2019. Kumar et al.: A "
        "Dataset and a Technique for Generalized Nuclear Segmentation. IEEE TMI 36, "
        "2017. Naylor et al.: Segmentation of Nuclei in Histopathology Images by Deep "
        "Regression of the Distance Map. IEEE TMI 38, 2019."
    ),
    url="https://warwick.ac.uk/fac/cross_fac/tia/data/hovernet/",
    obtain=(
        "Extract consep.zip, and kumar.zip and tnbc.zip as prepared by the HoVer-Net "
        "authors, in one folder and pass it: CoNSeP/{Train,Test}/{Images/*.png,"
        "Labels/*.mat}, kumar/{train,test_same,test_diff}/{Images/*.tif,Labels/*.mat}, "
        "tnbc/Images/5784/*.png and tnbc/Labels/*.mat, each with inst_map."
    ),
)


class _TileSet(NamedTuple):
    """The folders of the pictures and labels of one part of the three sets."""

    group: str
    split: str
    pictures: str
    labels: str
    suffix: str


PARTS = (
    _TileSet(
        "CoNSeP", "trainval", "CoNSeP/Train/Images", "CoNSeP/Train/Labels", ".png"
    ),
    _TileSet("CoNSeP", "trainval", "CoNSeP/Test/Images", "CoNSeP/Test/Labels", ".png"),
    _TileSet("Kumar", "trainval", "kumar/train/Images", "kumar/train/Labels", ".tif"),
    _TileSet(
        "Kumar", "trainval", "kumar/test_same/Images", "kumar/test_same/Labels", ".tif"
    ),
    _TileSet(
        "Kumar", "trainval", "kumar/test_diff/Images", "kumar/test_diff/Labels", ".tif"
    ),
    _TileSet("TNBC", "test", "tnbc/Images/5784", "tnbc/Labels", ".png"),
)


def histology_nuclei_pixels(root: str | Path, *, seed: int = 0) -> Recipe:
    """Read patches (64, 64, 3), target the nuclei pixels; clusters are tiles."""
    seed = whole_number("seed", seed, least=0)
    sets = ["CoNSeP", "kumar", "tnbc"]
    folder = locate(Path(root), "HistologyNucleiPixels", holding=sets)
    return Recipe(
        name="histology_nuclei_pixels",
        options={"seed": seed},
        card=CARD,
        task=Task(name="regression"),
        units=tuple(unit for part in PARTS for unit in _units(folder, part)),
        load=partial(_load, folder),
        divide={"trainval": Divide(into=("train", "val"), first=0.8, seed=seed)},
        counts={"train": 10_808, "val": 2_702, "test": 2_267},
        shifts={"test": "other hospitals and staining"},
    )


def _units(folder: Path, part: _TileSet) -> list[Unit]:
    pictures = file_names(
        folder / part.pictures, rf"[^.].*\{part.suffix}", like=f"*{part.suffix}"
    )
    labels = file_names(folder / part.labels, r"[^.].*\.mat", like="*.mat")
    tiles = {Path(name).stem for name in (*pictures, *labels)}
    home = part.labels.removesuffix("/Labels")
    return [
        Unit(
            key=f"{home}/{tile}",
            split=part.split,
            args=(
                part.group,
                f"{part.pictures}/{tile}{part.suffix}",
                f"{part.labels}/{tile}.mat",
            ),
        )
        for tile in sorted(tiles)
    ]


def _load(folder: Path, unit: Unit) -> LoadedItems:
    group, picture, labels = unit.args
    return patches(
        Tile(
            name=unit.key,
            group=group,
            image=read_rgb(folder / picture),
            mask=_instances(folder / labels) > 0,
        )
    )


def _instances(path: Path) -> NDArray[Any]:
    """Read `inst_map` (H, W) of a MATLAB file: 0, or the number of a nucleus."""
    from scipy.io import loadmat

    with reading(path), path.open("rb") as file:
        modern = file.read(10) == b"MATLAB 7.3"
    if modern:
        # These files are HDF5, with MATLAB's axes reversed.
        with open_hdf5(path) as variables:
            return np.asarray(_only(variables)[()]).T
    with reading(path):
        return np.asarray(_only(loadmat(path, variable_names=["inst_map"])))


def _only(file: Any) -> Any:
    if "inst_map" not in file:
        raise ValueError("it must have a variable inst_map, got none")
    return file["inst_map"]
