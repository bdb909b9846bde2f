"""Folders of masks and of maps of probabilities, such as PNG pictures.

`probabilities/case.png` is a grey picture of P(foreground), or `case.npz` an array of
several classes; a folder of folders has a draw in each. `masks/case.png` is the label
map of the only rater, and `masks/anna/case.png` that of one of several. `dataset.json`
may name the labels as in nnU-Net: {"labels": {"background": 0, "vessel": 255}}.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from qualms.readers import ForeignContents, ForeignRequest, Reader
from qualms.readers._images import files_by_stem, subfolders
from qualms.readers._probability_maps import (
    MAP_ENDINGS,
    PICKLES,
    MapFiles,
    contents_of_maps,
    refuse_pickles,
)

PROBABILITIES = ("probabilities", "probs")
"""Names of the folder with maps of probabilities."""


def masks(*, regions: Sequence[str] = ()) -> Reader:
    """Read a folder `probabilities` of maps, and `masks` of label maps beside it.

    `regions` names sigmoids that may overlap.
    """
    return Reader(recognise=_recognise, read=partial(_read, tuple(regions)))


def _recognise(path: Path) -> bool:
    return any((path / name).is_dir() for name in PROBABILITIES)


def _read(
    regions: tuple[str, ...], path: Path, request: ForeignRequest
) -> ForeignContents:
    inner = next((path / n for n in PROBABILITIES if (path / n).is_dir()), path)
    draws = [inner]
    if inner.is_dir() and not files_by_stem(inner, MAP_ENDINGS):
        draws = [each for each in subfolders(inner) if files_by_stem(each, MAP_ENDINGS)]
    if not draws or not inner.is_dir():
        pickles = [file for ending in PICKLES for file in inner.rglob(f"*{ending}")]
        refuse_pickles(inner, pickles)
    maps = MapFiles(
        tuple(draws), tuple(files_by_stem(each, MAP_ENDINGS) for each in draws)
    )
    return contents_of_maps(
        path, maps, request.raters, regions=regions, called="maps of probabilities"
    )
