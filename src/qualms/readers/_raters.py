"""Label maps of raters: one folder per rater, with a file for each case."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.predictions import PredictionsError
from qualms.readers._images import (
    LABEL_ENDINGS,
    files_by_stem,
    labels_on_grid,
    listed_cases,
    subfolders,
)
from qualms.readers._labels import LabelNames
from qualms.wording import plural

FOLDERS = ("raters", "labels", "labelsTs", "labelsTr", "masks", "gt_segmentations")
"""Names of folders with label maps of raters beside predictions."""
POSTFIXES = ("", "_label", "_labels", "_mask", "_seg", "_gt")
"""Suffixes that may follow the name of a case in the name of its label map."""


class Raters(NamedTuple):
    """The label maps of each case, in the order of the raters."""

    files: dict[str, tuple[Path, ...]]
    notes: tuple[str, ...]

    def labels(
        self, case: str, space: tuple[int, ...], like: Path | None, names: LabelNames
    ) -> NDArray[np.uint8]:
        """Return the labels of a case, (R, *space), or (R, K, *space) of regions."""
        rated = [
            names.rated(labels_on_grid(path, space, like), str(path))
            for path in self.files.get(case, ())
        ]
        regions = (len(names.values),) if names.regions else ()
        return np.stack(rated) if rated else np.empty((0, *regions, *space), np.uint8)


def raters_of(
    source: Path, named_folders: Sequence[Path], cases: Iterable[str], *, beside: Path
) -> Raters:
    """Return the label maps of `cases` in the folders `named_folders` of the user.

    Without any, folders beside the predictions with one of the names in `FOLDERS` are
    used. A folder of folders has a rater in each of them.

    Raises:
        PredictionsError: If a folder is missing, or has no label map of any case.
    """
    named = bool(named_folders)
    folders = list(named_folders) if named else _conventional(source, beside)
    cases = list(cases)
    each = [rater for folder in folders for rater in _raters_in(folder, named=named)]
    matches = [_of_cases(folder, cases) for folder in each]
    if named and not any(matches):
        raise PredictionsError(
            f"the folders of raters ({', '.join(map(str, folders))}) hold no label map"
            f" of any case, such as {cases[0]}{LABEL_ENDINGS[0]}; a label map must have"
            " the name of its case"
        )
    files = {case: tuple(m[case] for m in matches if case in m) for case in cases}
    used = [folder for folder, match in zip(each, matches, strict=True) if match]
    return Raters(
        {case: some for case, some in files.items() if some}, _notes(used, files)
    )


def _notes(
    folders: Sequence[Path], files: dict[str, tuple[Path, ...]]
) -> tuple[str, ...]:
    if not folders:
        return (
            "no folder of raters was named (--raters, raters=...), and none lies beside"
            f" the predictions ({', '.join(FOLDERS)})",
        )
    words = plural(len(folders), "rater")
    places = ", ".join(map(str, folders))
    bare = {case: some for case, some in files.items() if not some}
    without = f"; {len(bare)} without any: {listed_cases(bare)}" if bare else ""
    return (f"labels of {len(folders)} {words} from {places}{without}",)


def _conventional(source: Path, beside: Path) -> list[Path]:
    places = dict.fromkeys((source, beside))
    candidates = [place / name for place in places for name in FOLDERS]
    return [folder for folder in candidates if folder.is_dir()]


def _raters_in(folder: Path, *, named: bool) -> list[Path]:
    """Return the folder itself, or its subfolders if it has no label maps."""
    if not folder.is_dir():
        raise PredictionsError(
            f"there is no folder of raters {folder}; check the path of --raters"
        )
    if files_by_stem(folder, LABEL_ENDINGS):
        return [folder]
    several = [
        each for each in subfolders(folder) if files_by_stem(each, LABEL_ENDINGS)
    ]
    if named and not several:
        raise PredictionsError(
            f"the folder of raters {folder} holds no label maps"
            f" ({', '.join(LABEL_ENDINGS)}); name the folder that does"
        )
    return several


def _of_cases(folder: Path, cases: Sequence[str]) -> dict[str, Path]:
    files = files_by_stem(folder, LABEL_ENDINGS)
    matches = {}
    for case in cases:
        names = (f"{case}{postfix}" for postfix in POSTFIXES)
        path = next((files[name] for name in names if name in files), None)
        if path is not None:
            matches[case] = path
    return matches
