"""Predictions of nnU-Net v2 (Isensee et al., 2021), with their probabilities.

`nnUNetv2_predict --save_probabilities` writes three files for each case: the label map
(`case.nii.gz`), the probabilities (`case.npz`, array `probabilities`) and a pickle,
which is never opened. Training with `--npz` writes the same for the validation cases of
a fold. Probabilities have their axes in the order z, y, x. The header of the label map
says which axes of the body these are, so that a case without it is refused.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.predictions import Maps, PredictionsError, read_array, read_json
from qualms.readers import ForeignCases, ForeignContents, ForeignRequest, Reader
from qualms.readers._images import (
    LABEL_ENDINGS,
    files_by_stem,
    grid_of,
    labels_in,
    listed_cases,
    stem_of,
    stored_volume,
    subfolders,
)
from qualms.readers._items import item_columns
from qualms.readers._labels import (
    FILE,
    LabelNames,
    class_order,
    read_label_names,
)
from qualms.readers._raters import FOLDERS, Raters, raters_of
from qualms.wording import plural

ARRAY = "probabilities"
_TURNING = "NibabelIOWithReorient"
"""Reader of nnU-Net that turns images to RAS before it predicts them."""
_AGREE = 0.999
"""Least share of voxels in which a label map must agree with its probabilities."""


def nnunet() -> Reader:
    """Read predictions that nnU-Net v2 wrote with --save_probabilities, by fold."""
    return Reader(recognise=_recognise, read=_read)


class _Fold(NamedTuple):
    """A folder of predictions: the files of each case."""

    name: str
    folder: Path
    cases: dict[str, Path]
    """The label map of each case."""


class _Plan(NamedTuple):
    """Options for reading the cases of a folder."""

    labels: LabelNames
    order: tuple[int, ...]
    """Label of each region in a label map."""
    turned: bool
    """True if nnU-Net turned images to RAS before it predicted them."""
    raters: Raters


class _FoldedCase(NamedTuple):
    """A case, and its label maps, each of which has its probabilities beside it."""

    name: str
    files: tuple[Path, ...]


def _recognise(path: Path) -> bool:
    if not path.is_dir():
        return False
    return any(_is_fold(folder) for folder in (path, *_below(path)))


def _is_fold(folder: Path) -> bool:
    """Return whether a folder has label maps with probabilities or dataset.json."""
    names = {entry.name for entry in folder.iterdir()}
    stems = {
        name.removesuffix(ending)
        for ending in LABEL_ENDINGS
        for name in names
        if name.endswith(ending)
    }
    with_probs = any(f"{stem}.npz" in names for stem in stems)
    return with_probs or (FILE in names and "plans.json" in names and bool(stems))


def _below(path: Path) -> list[Path]:
    """Return folders that may be folds: those below, or their folder `validation`."""
    return [
        below / "validation" if (below / "validation").is_dir() else below
        for below in subfolders(path)
        if below.name not in FOLDERS
    ]


def _read(path: Path, request: ForeignRequest) -> ForeignContents:
    if not path.is_dir():
        raise PredictionsError("must be a folder of predictions of nnU-Net, got a file")
    folds = _folds(path)
    about = _stated(folds[0].folder, FILE)
    if about is None:
        raise PredictionsError(
            f"needs {FILE}, which names the labels, in {folds[0].folder} or above it;"
            " copy it from the folder of the trained network"
        )
    for fold in folds:
        _check_fold(fold)
    labels = read_label_names(about)
    cases = _cases(folds)
    plans = _stated(folds[0].folder, "plans.json")
    settings = {} if plans is None else read_json(plans)
    names = [case.name for case in cases]
    rated = raters_of(path, request.raters, names, beside=folds[0].folder)
    plan = _Plan(
        labels=labels,
        order=class_order(about) if labels.regions else (),
        turned=settings.get("image_reader_writer") == _TURNING,
        raters=rated,
    )
    draws = len(cases[0].files)
    arrays: dict[str, Any] = {"item": names}
    if len(folds) > draws:
        arrays["group"] = [fold.name for fold in folds for _ in fold.cases]
    arrays |= item_columns(path, names)
    return ForeignContents(
        arrays=arrays,
        header=_header(settings, labels, draws),
        cases=ForeignCases(
            partial(_maps, plan, cases),
            tuple(names),
            draws,
            [_files(case, rated) for case in cases],
        ),
        notes=(_note(labels, cases, folds), *rated.notes),
    )


def _folds(path: Path) -> list[_Fold]:
    if _is_fold(path):
        return [_fold(path, path.name)]
    below = [folder for folder in _below(path) if _is_fold(folder)]
    # Beside the folds, nnU-Net stores a folder with the label maps of all folds.
    numbered = [folder for folder in below if _name(folder, path).startswith("fold_")]
    folds = [_fold(folder, _name(folder, path)) for folder in numbered or below]
    if not folds:
        raise PredictionsError(
            "holds no predictions of nnU-Net: a label map and probabilities for each"
            " case, such as case_01.nii.gz and case_01.npz; predict with"
            " --save_probabilities"
        )
    return folds


def _name(folder: Path, path: Path) -> str:
    """Return the name of a fold: `fold_0` for `fold_0/validation` too."""
    return folder.relative_to(path).parts[0]


def _fold(folder: Path, name: str) -> _Fold:
    return _Fold(name, folder, files_by_stem(folder, LABEL_ENDINGS))


def _check_fold(fold: _Fold) -> None:
    """Raise unless every case has a label map and probabilities."""
    stored = {path.stem: path for path in fold.folder.glob("*.npz")}
    bare = {case: path for case, path in stored.items() if case not in fold.cases}
    if bare:
        raise PredictionsError(
            f"{fold.folder}: {listed_cases(bare)} must have a label map beside the"
            f" probabilities ({next(iter(bare))}.nii.gz), whose header says how the"
            " axes lie; copy it there, or remove the .npz"
        )
    bare = {case: path for case, path in fold.cases.items() if case not in stored}
    if bare:
        raise PredictionsError(
            f"{fold.folder}: {listed_cases(bare)} must have probabilities beside the"
            f" label map ({next(iter(bare))}.npz); predict again with"
            " --save_probabilities"
        )


def _cases(folds: Sequence[_Fold]) -> list[_FoldedCase]:
    """Return the cases; folds with equal cases are draws, others have their own."""
    first = folds[0].cases
    if all(fold.cases.keys() == first.keys() for fold in folds):
        return [
            _FoldedCase(name, tuple(fold.cases[name] for fold in folds))
            for name in first
        ]
    owners: dict[str, str] = {}
    for fold in folds:
        for case in fold.cases:
            other = owners.setdefault(case, fold.name)
            if other != fold.name:
                missing = next(f for f in folds if f.cases.keys() != first.keys())
                raise PredictionsError(
                    "folds must all have the same cases, which makes them draws, or"
                    f" none in common: {case} is in {other} and {fold.name}, and"
                    f" {missing.name} has other cases than {folds[0].name}; predict the"
                    " missing ones, or read each fold by itself"
                )
    return [
        _FoldedCase(name, (path,))
        for fold in folds
        for name, path in fold.cases.items()
    ]


def _stated(folder: Path, name: str) -> Path | None:
    """Return the path of a file beside the predictions or up to two folders above."""
    places = (folder, *folder.resolve().parents[:2])
    return next((p / name for p in places if (p / name).is_file()), None)


def _files(case: _FoldedCase, rated: Raters) -> tuple[Path, ...]:
    """Return the label maps of a case, their probabilities and the raters' labels."""
    probs = (path.parent / f"{stem_of(path)}.npz" for path in case.files)
    return (*case.files, *probs, *rated.files.get(case.name, ()))


def _header(plans: Any, labels: LabelNames, draws: int) -> dict[str, Any]:
    header: dict[str, Any] = {"method": "nnunet", **labels.header()}
    if isinstance(plans.get("dataset_name"), str):
        header["dataset"] = plans["dataset_name"]
    if draws > 1:
        header |= {"method": "ensemble", "pooled": draws, "draws": "models"}
    return header


def _note(
    labels: LabelNames, cases: Sequence[_FoldedCase], folds: Sequence[_Fold]
) -> str:
    kind = "regions" if labels.regions else "classes"
    several = "" if len(folds) == 1 else f" of {len(folds)} folds"
    if len(folds) > 1:
        drawn = len(cases[0].files) > 1
        several += ", which are draws" if drawn else ", each with cases of its own"
    return (
        f"read as predictions of nnU-Net: {len(cases)} {plural(len(cases), 'case')}"
        f"{several}; {kind} {', '.join(labels.names)}"
    )


def _maps(plan: _Plan, cases: Sequence[_FoldedCase], row: int) -> Maps:
    from qualms.readers._maps import maps_of  # loads all scores

    case = cases[row]
    draws = (_probabilities(plan, path) for path in case.files)
    maps = maps_of(draws, np.empty(0, np.uint8), regions=plan.labels.regions)
    space = maps.expected_entropy.shape
    like = case.files[0] if case.files[0].suffix != ".png" else None
    rated = plan.raters.labels(case.name, space, like, plan.labels)
    return Maps(
        mean_probs=maps.mean_probs,
        expected_entropy=maps.expected_entropy,
        draw_labels=maps.draw_labels,
        raters=rated,
        grid=None if like is None else grid_of(like, len(space)),
    )


def _probabilities(plan: _Plan, label_map: Path) -> NDArray[Any]:
    """Return the probabilities (C, *space) beside a label map, on the same axes."""
    folder, stem = label_map.parent, stem_of(label_map)
    file = folder / f"{stem}.npz"
    stored = read_array(file, ARRAY).astype(np.float32, copy=False)
    heads = len(plan.labels.values)
    if stored.ndim < 3 or len(stored) != heads:
        raise PredictionsError(
            f"{file} must have probabilities of {heads} heads"
            f" ({', '.join(plan.labels.names)}), got shape {stored.shape}; take the"
            f" {FILE} of this network"
        )
    labels = labels_in(label_map)
    probs = _turned(plan, stored, label_map)
    if probs.shape[1:] != labels.shape:
        raise PredictionsError(
            f"{file} must have the shape of {label_map.name}, {labels.shape} after"
            f" turning both to RAS, got {probs.shape[1:]}; keep plans.json, which says"
            " how nnU-Net read the images, beside the predictions"
        )
    _check_agreement(plan, probs, labels, label_map)
    return probs


def _turned(plan: _Plan, stored: NDArray[Any], label_map: Path) -> NDArray[Any]:
    """Return probabilities (C, z, y, x) with the axes turned to RAS like the labels."""
    if label_map.suffix == ".png":
        return stored[:, 0] if stored.ndim == 4 else stored
    import nibabel

    volume = stored_volume(label_map)
    last = np.moveaxis(stored, 0, -1)
    sides = last.ndim - 1
    forward = np.transpose(last, (*range(sides)[::-1], sides))
    if not plan.turned:
        if forward.shape[:-1] != volume.shape[:sides]:
            return np.moveaxis(forward, -1, 0)  # the shapes are compared next
        order = nibabel.io_orientation(volume.affine)  # type: ignore[no-untyped-call]
        forward = nibabel.apply_orientation(forward, order[:sides])  # type: ignore[no-untyped-call]
    if forward.ndim == 4 and forward.shape[2] == 1:
        forward = forward[:, :, 0]  # a picture, like its label map
    return np.ascontiguousarray(np.moveaxis(forward, -1, 0))


def _check_agreement(
    plan: _Plan, probs: NDArray[Any], labels: NDArray[np.uint8], path: Path
) -> None:
    """Raise unless the label map is the one that these probabilities give."""
    if plan.labels.regions:
        shown = np.zeros(labels.shape, np.uint8)
        for region, label in zip(probs, plan.order, strict=False):
            shown[region > 0.5] = label
    else:
        values = np.array([each[0] for each in plan.labels.values], np.uint8)
        shown = values[probs.argmax(axis=0)]
    share = float((shown == labels).mean())
    if share < _AGREE:
        raise PredictionsError(
            f"{path} must be the label map of the probabilities beside it, and agrees"
            f" with them in {share:.1%} of the voxels; take both from the same"
            " prediction, before any postprocessing, and keep plans.json beside them"
        )
