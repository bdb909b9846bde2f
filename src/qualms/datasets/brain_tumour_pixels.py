"""BrainTumourPixels: how many pixels of an MRI slice are tumour.

Task01 of the Medical Segmentation Decathlon (Antonelli et al., 2022), as in Gustafsson
et al. (2023, arXiv:2302.03679). Axial slices with at least one tumour pixel after
shrinking to 64 x 64; the target counts the pixels with a label above 0. Volumes are
split by number: below 295 train, 295 to 389 val, 390 and above test. The paper speaks
of a random 80/20/20 split, but its code does this, and so do we.

The modalities FLAIR, T1w and T1gd are stored in this order as RGB; the released code
wrote them so but read them back as BGR. Float slices become 8 bit as old versions of
imageio saved them: from minimum to maximum over the three channels together.
"""

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._publisher_files import file_names_in_either, locate, reading
from qualms.datasets._recipe import Card, LoadedItems, Recipe, Unit
from qualms.datasets._resize import bilinear, nearest
from qualms.spec import Task

SIDE = 64
NAME = r"BRATS_(\d+)\.nii\.gz"
FIRST_VAL = 295
FIRST_TEST = 390
MODALITIES = 3

CARD = Card(
    title="Medical Segmentation Decathlon, Task01 BrainTumour",
    licence="CC BY-SA 4.0",
    citation=(
        "Antonelli et al.: The Medical Segmentation Decathlon. Nature Communications "
        "13, 2022."
    ),
    url="http://medicaldecathlon.com/",
    obtain=(
        "Extract Task01_BrainTumour.tar and pass the folder that holds "
        "Task01_BrainTumour/: imagesTr/BRATS_<number>.nii.gz (240, 240, 155, 4) and "
        "labelsTr with the same names, 484 volumes. Needs qualms-bench[seg]."
    ),
)


def brain_tumour_pixels(root: str | Path) -> Recipe:
    """Read slices (64, 64, 3), target the tumour pixels; clusters are patients."""
    folder = locate(Path(root), "Task01_BrainTumour", holding=["imagesTr", "labelsTr"])
    files = file_names_in_either(
        folder / "imagesTr", folder / "labelsTr", NAME, like="BRATS_001.nii.gz"
    )
    return Recipe(
        name="brain_tumour_pixels",
        options={},
        card=CARD,
        task=Task(name="regression"),
        units=tuple(Unit(key=name, split=_split(name)) for name in files),
        load=partial(_load, folder),
        counts={"train": 20_614, "val": 6_116, "test": 6_252},
        shifts={"test": "other patients"},
    )


def _split(name: str) -> str:
    match = re.fullmatch(NAME, name)
    assert match is not None
    patient = int(match[1])
    if patient < FIRST_VAL:
        return "train"
    return "val" if patient < FIRST_TEST else "test"


def _load(folder: Path, unit: Unit) -> LoadedItems:
    patient = unit.key.removesuffix(".nii.gz")
    marked = _volume(folder / "labelsTr" / unit.key) > 0
    volume = _volume(folder / "imagesTr" / unit.key, MODALITIES)
    if marked.ndim != 3 or volume.shape != (*marked.shape, MODALITIES):
        raise ValueError(
            f"{patient} must have {MODALITIES} or more modalities of the same size as "
            f"its labels, got {volume.shape} and {marked.shape}"
        )
    mask = {z: nearest(marked[:, :, z], SIDE) for z in range(marked.shape[2])}
    slices = [z for z in mask if mask[z].any()]
    with reading(folder / "imagesTr" / unit.key):
        image = [bilinear(eight_bit(volume[:, :, z]), SIDE) for z in slices]
    return LoadedItems(
        image=np.array(image, dtype=np.uint8).reshape(-1, SIDE, SIDE, MODALITIES),
        target=np.array([mask[z].sum() for z in slices], dtype=np.float32),
        item=tuple(f"{patient}/{z:03d}" for z in slices),
        extra={"cluster": np.full(len(slices), patient)},
    )


def eight_bit(image: NDArray[Any]) -> NDArray[np.uint8]:
    """Convert a float image to 8 bit as old versions of imageio saved it to PNG.

    >>> eight_bit(np.array([-1.0, 0.0, 3.0])).tolist()
    [0, 64, 255]
    """
    exact = np.asarray(image, dtype=np.float64)
    low, high = exact.min(), exact.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError("a slice holds values that are not finite")
    if low < 0 or high > 1:
        if low == high:
            return exact.astype(np.int64).astype(np.uint8)
        exact = (exact - low) / (high - low)
    return (exact * 255 + 0.499999999).astype(np.uint8)


def _volume(path: Path, channels: int | None = None) -> NDArray[Any]:
    """Read the voxels of a NIfTI file; of a fourth axis only the first `channels`."""
    import nibabel

    with reading(path):
        voxels = nibabel.Nifti1Image.from_filename(path).dataobj
        return np.asarray(voxels if channels is None else voxels[..., :channels])
