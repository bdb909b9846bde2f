"""Judging segmentation: items are streamed, and a few numbers of each are kept.

Five questions per file, as in VALUES: is the segmentation right (Dice), does an image's
uncertainty announce failures (AURC) and shifted images (AUROC), is it calibrated (ACE),
and does it follow the raters' disagreement (NCC, GED)?
"""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.evaluate.entry import Curve, Entry, Judgement, ScoreOptions, entry_of
from qualms.evaluate.subsets import (
    design_of,
    outside,
    subsets,
    unknown_notes,
)
from qualms.evaluate.tasks._maps import (
    MapScores,
    Validation,
    measure_items,
    roles,
    validate,
)
from qualms.predictions import Predictions
from qualms.scores.inference import mean_influence

Array = NDArray[np.float64]
Index = NDArray[np.int64]

NO_VAL = (
    "threshold aggregation and calibration (ACE) need validation predictions: --val"
)
CONSTANT = "the map or the raters' disagreement is constant on every item"


def segmentation(
    predictions: Predictions, val: Predictions | None, options: ScoreOptions
) -> Judgement:
    """Entries of one segmentation folder; `val` fits thresholds and Platt scaling."""
    if val is not None:
        _refuse_unlike(predictions, val)
    fitted = None if val is None else validate(val, options)
    measured = measure_items(predictions, fitted, options)
    chosen = subsets(predictions, by_group=options.by_group, seed=options.seed)
    chosen = {name: index for name, index in chosen.items() if name != "balanced"}
    entries: list[Entry] = []
    for subset, index in chosen.items():
        entries += _quality(measured, subset, index)
        entries += _failure(measured, subset, index)
    entries += _shift(predictions, measured)
    return Judgement(
        entries=tuple(entries),
        curves=tuple(_curves(measured, chosen["all"])),
        notes=(*_notes(predictions, measured, fitted), *unknown_notes(predictions)),
        design=design_of(predictions),
    )


def _refuse_unlike(predictions: Predictions, val: Predictions) -> None:
    """Thresholds and Platt fits carry over between maps of one kind only."""
    files = (predictions, val)
    kinds = [
        (
            file.classes,
            [roles(file.header, file.draws) == m for m in ("softmax", "ssn")],
        )
        for file in files
    ]
    if kinds[0] != kinds[1]:
        mine, theirs = (
            f"method {file.header.method}, {file.draws} draws, {file.classes} classes"
            for file in files
        )
        raise ValueError(
            f"val must hold the same kind of maps as {predictions.source} ({mine}), "
            f"got {theirs} in {val.source}; predict both splits with the same run"
        )


def _quality(measured: MapScores, subset: str, index: Index) -> Iterator[Entry]:
    yield _mean_entry(scores.dice, measured.dice, subset, index, {})
    yield _mean_entry(scores.ged, measured.ged, subset, index, {})
    for name, values in measured.ncc.items():
        yield _mean_entry(scores.ncc, values, subset, index, {"measure": name})
    for name, values in measured.ace.items():
        yield _mean_entry(scores.ace, values, subset, index, {"measure": name})


def _mean_entry(
    score: Callable[..., Any],
    values: Array,
    subset: str,
    index: Index,
    settings: Mapping[str, str],
) -> Entry:
    """The mean over items where the score is defined."""
    chosen = values[index]
    defined = chosen[np.isfinite(chosen)]
    return Entry(
        score=score,
        value=float(defined.mean()) if defined.size else math.nan,
        influence=partial(mean_influence, chosen, about=scores.about(score)),
        index=index,
        subset=subset,
        settings=settings,
        why=CONSTANT,
    )


def _failure(measured: MapScores, subset: str, index: Index) -> Iterator[Entry]:
    risk = 1.0 - measured.dice[index]
    for at, value in measured.uncertainty.items():
        for score in (scores.aurc, scores.eaurc, scores.augrc):
            yield entry_of(
                score,
                (risk, value[index]),
                index,
                subset=subset,
                settings=at._asdict(),
            )


def _shift(predictions: Predictions, measured: MapScores) -> Iterator[Entry]:
    shifted = outside(predictions)
    if shifted is None:
        return
    everyone = np.arange(predictions.n)
    for at, value in measured.uncertainty.items():
        yield entry_of(
            scores.ood_auroc, (value, shifted), everyone, settings=at._asdict()
        )


def _curves(measured: MapScores, index: Index) -> Iterator[Curve]:
    risk = 1.0 - measured.dice[index]
    for at, value in measured.uncertainty.items():
        curve = scores.risk_coverage_curve(risk, value[index])
        yield Curve(
            name="risk_coverage",
            label="1 - Dice of the kept items",
            subset="all",
            settings=at._asdict(),
            x_label="share kept",
            x=curve.coverage,
            y=curve.risk,
        )


def _notes(
    predictions: Predictions, measured: MapScores, fitted: Validation | None
) -> tuple[str, ...]:
    notes = [] if fitted is not None else [NO_VAL]
    for name, values in measured.ncc.items():
        left_out = int(np.isnan(values).sum())
        if left_out:
            notes.append(f"NCC ({name}) is undefined on {left_out} items, left out")
    if predictions.header.method == "ssn":
        notes.append("SSN: aleatoric is mutual information, epistemic expected entropy")
    return tuple(notes)
