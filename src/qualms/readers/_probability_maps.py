"""Maps of probabilities in files: volumes, pictures and arrays, one for each draw.

A map of one channel is P(foreground) of two classes; several channels are classes, or
regions if the user names some. Pictures hold shares of their largest value: 255 is 1.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.predictions import ARRAY_FILES, Maps, PredictionsError, read_array
from qualms.readers import ForeignCases, ForeignContents
from qualms.readers._images import (
    PICTURES,
    VOLUMES,
    ending_of,
    grid_of,
    listed_cases,
    pixels_in,
    stored_volume,
)
from qualms.readers._items import item_columns
from qualms.readers._labels import FILE, LabelNames, read_label_names, unnamed_labels
from qualms.readers._raters import Raters, raters_of
from qualms.wording import plural

MAP_ENDINGS = (*VOLUMES, *PICTURES, *ARRAY_FILES)
PICKLES = (".pt", ".pth", ".pkl")
"""Endings of files that are never opened: reading them could run any code."""
_SLACK = 1e-3
"""Largest excess of probabilities over [0, 1] that rounding explains."""
_ROUNDED = 0.02
"""Largest difference of the sum of probabilities from 1 that rounding explains."""


class MapFiles(NamedTuple):
    """The files of each case in the folder of each draw."""

    folders: tuple[Path, ...]
    files: tuple[Mapping[str, Path], ...]


class _MapPlan(NamedTuple):
    """Options for reading the cases of a folder."""

    cases: tuple[tuple[Path, ...], ...]
    names: tuple[str, ...]
    labels: LabelNames | None
    """Names of labels; None if the first file shows the number of classes."""
    raters: Raters


def contents_of_maps(
    path: Path,
    maps: MapFiles,
    raters: Sequence[Path],
    *,
    regions: Sequence[str],
    called: str,
) -> ForeignContents:
    """Return the contents of folders of maps; all draws must have the same cases.

    Raises:
        PredictionsError: If a draw lacks a case, or names of labels do not fit.
    """
    first = maps.files[0]
    for folder, files in zip(maps.folders, maps.files, strict=True):
        unlike = sorted(files.keys() ^ first.keys())
        if unlike:
            raise PredictionsError(
                f"every draw must have the same cases, and {unlike[0]} is in only one"
                f" of {maps.folders[0]} and {folder}; predict it there too, or read"
                " each folder by itself"
            )
    names = tuple(first)
    labels = _labels(path, regions)
    rated = raters_of(path, raters, names, beside=maps.folders[0])
    cases = tuple(tuple(files[name] for files in maps.files) for name in names)
    plan = _MapPlan(cases, names, labels, rated)
    draws = len(maps.files)
    several = f", {draws} draws ({listed_cases(_by_name(maps))})" if draws > 1 else ""
    header: dict[str, Any] = {} if labels is None else labels.header()
    header |= {"method": "ensemble", "pooled": draws} if draws > 1 else {}
    note = f"read as {called}: {len(names)} {plural(len(names), 'case')}{several}"
    return ForeignContents(
        arrays={"item": names, **item_columns(path, names)},
        header=header,
        cases=ForeignCases(
            partial(_maps, plan),
            names,
            draws,
            [
                (*own, *rated.files.get(n, ()))
                for n, own in zip(names, cases, strict=True)
            ],
        ),
        notes=(note, *_named(plan), *rated.notes),
    )


def refuse_pickles(path: Path, files: Sequence[Path]) -> None:
    """Raise an error for a folder without maps; `files` are pickles of torch.save."""
    if files:
        raise PredictionsError(
            f"{files[0].name} was written by torch.save, and such files are never"
            " opened, since they may run any code; save tensors with"
            " safetensors.torch.save_file or numpy.savez_compressed"
        )
    raise PredictionsError(f"{path} holds no maps of probabilities")


def _by_name(maps: MapFiles) -> dict[str, Path]:
    return {folder.name: folder for folder in maps.folders}


def _labels(path: Path, regions: Sequence[str]) -> LabelNames | None:
    """Return the names of labels: the user's regions, else those of dataset.json."""
    if regions:
        values = tuple((number,) for number in range(1, len(regions) + 1))
        if not (path / FILE).is_file():
            return LabelNames(tuple(regions), values, True)
    if not (path / FILE).is_file():
        return None
    labels = read_label_names(path / FILE)
    if regions and tuple(regions) != labels.names:
        raise PredictionsError(
            f"{path / FILE} must name the regions {', '.join(regions)}, got"
            f" {', '.join(labels.names)}; correct one of them"
        )
    return labels._replace(regions=labels.regions or bool(regions))


def _named(plan: _MapPlan) -> tuple[str, ...]:
    if plan.labels is None:
        return ()
    kind = "regions" if plan.labels.regions else "classes"
    return (f"{kind} {', '.join(plan.labels.names)}",)


def _maps(plan: _MapPlan, row: int) -> Maps:
    from qualms.readers._maps import maps_of  # loads all scores

    files = plan.cases[row]
    regions = plan.labels is not None and plan.labels.regions
    draws = (_probabilities(file, plan.labels) for file in files)
    maps = maps_of(draws, np.empty(0, np.uint8), regions=regions)
    space = maps.expected_entropy.shape
    like = files[0] if ending_of(files[0]) in VOLUMES else None
    labels = plan.labels or unnamed_labels(len(maps.mean_probs))
    return Maps(
        mean_probs=maps.mean_probs,
        expected_entropy=maps.expected_entropy,
        draw_labels=maps.draw_labels,
        raters=plan.raters.labels(plan.names[row], space, like, labels),
        grid=None if like is None else grid_of(like, len(space)),
    )


def _probabilities(path: Path, labels: LabelNames | None) -> NDArray[np.float32]:
    """Return probabilities (C, *space), or sigmoids of regions (K, *space)."""
    probs = _stored(path)
    regions = labels is not None and labels.regions
    if len(probs) == 1 and not regions:
        probs = np.concatenate([1.0 - probs, probs])
    if labels is not None and len(labels.values) != len(probs):
        kind = "regions" if regions else "classes"
        raise PredictionsError(
            f"{path} must have a channel for each of the {len(labels.values)} {kind}"
            f" ({', '.join(labels.names)}), got {len(probs)}; correct the names"
        )
    _check_probabilities(path, probs, regions=regions)
    return probs


def _stored(path: Path) -> NDArray[np.float32]:
    """Return the channels (C, *space) of a file."""
    ending = ending_of(path)
    if ending in ARRAY_FILES:
        array = read_array(path)
        if array.ndim < 3 or array.dtype.kind != "f":
            raise PredictionsError(
                f"{path} must be probabilities (classes, *space), got shape"
                f" {array.shape} of {array.dtype}; save the channels first"
            )
        return array.astype(np.float32, copy=False)
    if ending in VOLUMES:
        kind = stored_volume(path).get_data_dtype()
        if kind.kind != "f":
            raise PredictionsError(
                f"{path} holds whole numbers ({kind}), a label map, and no"
                " probabilities; save the output before it is made discrete"
            )
    pixels = pixels_in(path)
    if ending in PICTURES and pixels.shape[-1] != 1:
        raise PredictionsError(
            f"{path} must be a grey picture of P(foreground), got"
            f" {pixels.shape[-1]} colours; save probabilities of several classes as"
            " .npz with an array (classes, height, width)"
        )
    scale = np.float32(255 if pixels.dtype == np.uint8 else 1)
    return np.ascontiguousarray(np.moveaxis(pixels.astype(np.float32) / scale, -1, 0))


def _check_probabilities(
    path: Path, probs: NDArray[np.float32], *, regions: bool
) -> None:
    """Raise unless values are probabilities, of classes with a sum of 1."""
    low, high = float(probs.min()), float(probs.max())
    if not (low >= -_SLACK and high <= 1 + _SLACK):  # nan too
        raise PredictionsError(
            f"{path} must hold probabilities from 0 to 1, got values from {low:.4g} to"
            f" {high:.4g}; save them after the softmax or sigmoid"
        )
    np.clip(probs, 0.0, 1.0, out=probs)
    if regions:
        return
    total = probs.sum(axis=0)
    worst = float(total.flat[np.abs(total - 1).argmax()])
    if abs(worst - 1) > _ROUNDED:
        raise PredictionsError(
            f"{path} must hold probabilities that sum to 1 over its {len(probs)}"
            f" channels, got {worst:.4g}; if they are sigmoids of regions that may"
            ' overlap, name these: qualms convert ... -o \'regions=["whole","core"]\''
        )
    probs /= total
