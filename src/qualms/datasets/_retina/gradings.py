"""Clinical grades from the label files of EyePACS and APTOS, without any photograph.

EyePACS (Kaggle, 2015) has `trainLabels.csv` (image, level) and, released later,
`retinopathy_solution.csv` (image, level, Usage), whose rows Kaggle's leaderboard
divided into Public and Private. APTOS (Kaggle, 2019) has `train.csv` (id_code,
diagnosis). Grades run from 0 (no retinopathy) to 4 (proliferative retinopathy).

Rows of EyePACS may come in any order, since photographs are sorted by name. The order
of the rows of APTOS decides its splits and is kept.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._publisher_files import CsvRow, contents, read_table
from qualms.datasets._recipe import DatasetError
from qualms.datasets._retina.protocol import GRADES

EYEPACS_FOLDERS = ("eyepacs", "diabetic-retinopathy-detection")
APTOS_FOLDERS = ("aptos", "aptos2019-blindness-detection")
TRAIN_LABELS = "trainLabels.csv"
TEST_LABELS = "retinopathy_solution.csv"
APTOS_LABELS = "train.csv"
USAGES = {"Public": "val", "Private": "test"}


class Gradings(NamedTuple):
    """Photographs, their grades and their patients."""

    item: NDArray[np.str_]
    grade: NDArray[np.int64]
    patient: NDArray[np.str_]

    def only(self, rows: NDArray[np.intp] | NDArray[np.bool_] | slice) -> "Gradings":
        """Return the photographs `rows`."""
        return Gradings(self.item[rows], self.grade[rows], self.patient[rows])


def eyepacs_folder(root: Path) -> Path:
    """Find the folder of EyePACS' label files: `root` or a folder in it."""
    return _label_folder(root, EYEPACS_FOLDERS, (TRAIN_LABELS, TEST_LABELS))


def aptos_folder(root: Path) -> Path:
    """Find the folder of APTOS' label file: `root` or a folder in it."""
    return _label_folder(root, APTOS_FOLDERS, (APTOS_LABELS,))


def eyepacs_gradings(root: Path) -> dict[str, Gradings]:
    """Read train, val (Kaggle's Public) and test (Private), sorted by name."""
    folder = eyepacs_folder(root)
    train, test = folder / TRAIN_LABELS, folder / TEST_LABELS
    train_rows = read_table(train, ("image", "level"))
    rows = read_table(test, ("image", "level", "Usage"))
    usage = np.array([_usage(row, test) for row in rows])
    graded = _eyes(rows, test)
    splits = {"train": _eyes(train_rows, train)}
    splits |= {split: graded.only(usage == split) for split in USAGES.values()}
    both = np.intersect1d(splits["train"].item, graded.item)
    if len(both):
        raise DatasetError(
            f"no photograph may be in both {TRAIN_LABELS} and {TEST_LABELS}, got"
            f" {both[0]}; take the files as Kaggle ships them"
        )
    return {
        split: graded_split.only(np.argsort(graded_split.item))
        for split, graded_split in splits.items()
    }


def aptos_gradings(root: Path) -> Gradings:
    """Read all of APTOS in the order of the file; its files do not name patients."""
    path = aptos_folder(root) / APTOS_LABELS
    rows = read_table(path, ("id_code", "diagnosis"))
    item = _unique(rows, "id_code", path)
    return Gradings(item, _grades(rows, "diagnosis", path), item)


def _label_folder(root: Path, folders: Sequence[str], files: Sequence[str]) -> Path:
    candidates = [root, *(root / folder for folder in folders)]
    for candidate in candidates:
        if all((candidate / name).is_file() for name in files):
            return candidate
    nearest = next((p for p in reversed(candidates) if p.is_dir()), root)
    raise DatasetError(
        f"expected {' and '.join(files)} in {root} or in its folder"
        f" {' or '.join(folders)}; {contents(nearest)}"
    )


def _eyes(rows: Sequence[CsvRow], path: Path) -> Gradings:
    for row in rows:
        name = row.fields["image"].strip()
        if not re.fullmatch(r"[0-9]+_(left|right)", name):
            raise DatasetError(
                f"image must be <patient>_left or <patient>_right, got {name!r} in line"
                f" {row.line} of {path}"
            )
    item = _unique(rows, "image", path)
    patient = np.array([name.partition("_")[0] for name in item.tolist()])
    return Gradings(item, _grades(rows, "level", path), patient)


def _unique(rows: Sequence[CsvRow], column: str, path: Path) -> NDArray[np.str_]:
    first: dict[str, int] = {}
    for row in rows:
        item, line = row.fields[column].strip(), row.line
        if not item:
            raise DatasetError(f"line {line} of {path} names no photograph")
        if first.setdefault(item, line) != line:
            raise DatasetError(
                f"a photograph has one row, got {item!r} in lines {first[item]} and"
                f" {line} of {path}; remove one"
            )
    return np.array(list(first))


def _grades(rows: Sequence[CsvRow], column: str, path: Path) -> NDArray[np.int64]:
    grades = [str(grade) for grade in range(GRADES)]
    for row in rows:
        grade = row.fields[column].strip()
        if grade not in grades:
            raise DatasetError(
                f"{column} must be a grade from 0 to {GRADES - 1}, got {grade!r} in"
                f" line {row.line} of {path}"
            )
    return np.array([int(row.fields[column]) for row in rows], dtype=np.int64)


def _usage(row: CsvRow, path: Path) -> str:
    usage = row.fields["Usage"].strip()
    if usage not in USAGES:
        raise DatasetError(
            f"Usage must be {' or '.join(USAGES)}, got {usage!r} for"
            f" {row.fields['image']} in line {row.line} of {path}"
        )
    return USAGES[usage]
