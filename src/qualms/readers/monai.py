"""Maps of probabilities that MONAI's `SaveImage` wrote (Cardoso et al., 2022).

`SaveImage` writes `case/case_trans.nii.gz`, or `case_trans.nii.gz` without a folder of
its own, and has other postfixes such as seg, pred and prob. A volume of several
channels has them last. A folder of such folders has a draw in each, as the networks of
an ensemble.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from qualms.predictions import PredictionsError
from qualms.readers import ForeignContents, ForeignRequest, Reader
from qualms.readers._images import ending_of, natural, stem_of, subfolders
from qualms.readers._probability_maps import (
    MAP_ENDINGS,
    PICKLES,
    MapFiles,
    contents_of_maps,
    refuse_pickles,
)
from qualms.readers._raters import FOLDERS

POSTFIXES = ("trans", "seg", "pred", "prob", "probs", "probabilities")
"""Postfixes after the name of a case; "trans" is the default of `SaveImage`."""


def monai(*, postfix: str = "", regions: Sequence[str] = ()) -> Reader:
    """Read maps of MONAI's SaveImage; `regions` names sigmoids that may overlap.

    `postfix` says which files hold probabilities where there are several of a case.
    """
    postfixes = (postfix,) if postfix else POSTFIXES
    return Reader(
        recognise=partial(_recognise, postfixes),
        read=partial(_read, postfixes, tuple(regions)),
    )


def _recognise(postfixes: tuple[str, ...], path: Path) -> bool:
    return path.is_dir() and bool(_draws(path, postfixes, (*MAP_ENDINGS, *PICKLES)))


def _read(
    postfixes: tuple[str, ...],
    regions: tuple[str, ...],
    path: Path,
    request: ForeignRequest,
) -> ForeignContents:
    folders = _draws(path, postfixes, MAP_ENDINGS) if path.is_dir() else []
    if not folders:
        pickles = [
            file
            for folder in (_draws(path, postfixes, PICKLES) if path.is_dir() else ())
            for files in _cases(folder, postfixes, PICKLES).values()
            for file in files
        ]
        refuse_pickles(path, pickles)
    each = []
    for folder in folders:
        cases = _cases(folder, postfixes, MAP_ENDINGS)
        several = next((files for files in cases.values() if len(files) > 1), None)
        if several is not None:
            raise PredictionsError(
                f"{several[0].name} and {several[1].name} are of one case; say which"
                " holds the probabilities, such as qualms convert monai ... -o"
                f" postfix={stem_of(several[0]).rpartition('_')[2]}"
            )
        each.append({name: files[0] for name, files in cases.items()})
    maps = MapFiles(tuple(folders), tuple(each))
    return contents_of_maps(
        path, maps, request.raters, regions=regions, called="maps of MONAI"
    )


def _draws(
    path: Path, postfixes: tuple[str, ...], endings: tuple[str, ...]
) -> list[Path]:
    """Return the folders of draws: this one, or each one below."""
    if _cases(path, postfixes, endings):
        return [path]
    below = (folder for folder in subfolders(path) if folder.name not in FOLDERS)
    return [folder for folder in below if _cases(folder, postfixes, endings)]


def _cases(
    folder: Path, postfixes: tuple[str, ...], endings: tuple[str, ...]
) -> dict[str, list[Path]]:
    """Return the maps of a folder by case: in it, or in a folder for each case."""
    cases: dict[str, list[Path]] = {}
    for entry in sorted(folder.iterdir(), key=lambda entry: natural(entry.name)):
        if entry.is_file():
            case = _case_of(entry, postfixes, endings)
            if case:
                cases.setdefault(case, []).append(entry)
        elif entry.is_dir() and entry.name not in FOLDERS:
            for file in sorted(entry.iterdir()):
                if file.is_file() and _case_of(file, postfixes, endings) == entry.name:
                    cases.setdefault(entry.name, []).append(file)
    return cases


def _case_of(path: Path, postfixes: tuple[str, ...], endings: tuple[str, ...]) -> str:
    """Return the name of the case of a file; '' if the file is no map."""
    if ending_of(path) not in endings:
        return ""
    case, underscore, postfix = stem_of(path).rpartition("_")
    return case if underscore and postfix in postfixes else ""
