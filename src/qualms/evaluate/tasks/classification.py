"""Judging classification: proper scores, calibration, referral, and shift."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.evaluate.drawings import (
    Drawings,
    histogram,
    referral_curves,
    reliability_curve,
)
from qualms.evaluate.draws import decomposed
from qualms.evaluate.entry import Curve, Entry, Judgement, ScoreOptions, entry_of
from qualms.evaluate.subsets import design_of, subsets
from qualms.predictions import Predictions

Array = NDArray[np.float64]
Index = NDArray[np.int64]

ONE_CLASS = "only one class among these items"


class _Classified(NamedTuple):
    """The arrays every score of a subset reads."""

    probs: Array
    target: Index
    correct: NDArray[np.bool_]


def classification(
    predictions: Predictions, val: Predictions | None, options: ScoreOptions
) -> Judgement:
    """Entries of one classification file; `val` adds recalibrated rows."""
    target = predictions.arrays["target"]
    probs = scores.mean_probabilities(predictions.arrays["probs"])
    uncertainties = _uncertainties(predictions)
    recalibrated = _recalibrate(probs, predictions, val)
    chosen = subsets(predictions, by_group=options.by_group, seed=options.seed)
    entries: list[Entry] = []
    for subset, index in chosen.items():
        items = _items(probs, target, index)
        entries += _plain(items, subset, index)
        for name, value in uncertainties.items():
            entries += _selective(items, value[index], subset, index, {"u": name})
        for name, changed in recalibrated.items():
            entries += _calibration(
                _items(changed, target, index), subset, index, {"recalibration": name}
            )
    entries += _shift(predictions, probs, uncertainties)
    drawn = {name: index for name, index in chosen.items() if "group=" not in name}
    drawings = _drawings(predictions, probs, uncertainties, recalibrated, drawn)
    return Judgement(
        entries=tuple(entries),
        curves=drawings.curves,
        histograms=drawings.histograms,
        notes=_notes(predictions, val, recalibrated),
        design=design_of(predictions),
    )


def _items(probs: Array, target: Index, index: Index) -> _Classified:
    # A file of a thousand classes is large: all of its items are not copied.
    chosen = probs if len(index) == len(probs) else probs[index]
    return _Classified(chosen, target[index], scores.correct(chosen, target[index]))


def _uncertainties(predictions: Predictions) -> dict[str, Array]:
    """Entropy of the mean, the epistemic part where there are draws, the file's own."""
    parts = decomposed(predictions.arrays["probs"])
    found = {"entropy": parts.total}
    if predictions.draws > 1:
        found["epistemic"] = parts.epistemic
    return found | predictions.named("uncertainty")


def _recalibrate(
    probs: Array, predictions: Predictions, val: Predictions | None
) -> dict[str, Array]:
    if val is None:
        return {}
    if val.classes != predictions.classes:
        raise ValueError(
            f"val must have the {predictions.classes} classes of {predictions.source}, "
            f"got {val.classes} in {val.source}"
        )
    known = scores.mean_probabilities(val.arrays["probs"])
    target = val.arrays["target"]
    return {
        "temperature": scores.fit_temperature(known, target).apply(probs),
        "isotonic": scores.fit_isotonic(known, target).apply(probs),
    }


def _plain(items: _Classified, subset: str, index: Index) -> Iterator[Entry]:
    probs, target, _ = items
    yield _entry(scores.accuracy, (probs, target), subset, index)
    yield _entry(scores.balanced_accuracy, (probs, target), subset, index)
    yield _entry(scores.mcc, (probs, target), subset, index)
    if probs.shape[1] == 2:
        for score in (scores.auroc, scores.auprc, scores.average_precision):
            yield _entry(score, (probs[:, 1], target == 1), subset, index)
    yield from _calibration(items, subset, index, {})
    yield _entry(scores.classwise_ece, (probs, target), subset, index)
    yield _entry(scores.smooth_ece, (probs, target), subset, index)


def _calibration(
    items: _Classified, subset: str, index: Index, settings: Mapping[str, str]
) -> Iterator[Entry]:
    for score in (scores.nll, scores.brier, scores.ece, scores.adaptive_ece):
        yield _entry(score, (items.probs, items.target), subset, index, settings)


def _selective(
    items: _Classified,
    uncertainty: Array,
    subset: str,
    index: Index,
    settings: Mapping[str, str],
) -> Iterator[Entry]:
    risk = 1.0 - items.correct
    for score in (scores.aurc, scores.eaurc, scores.augrc, scores.risk_at_coverage):
        yield _entry(score, (risk, uncertainty), subset, index, settings)


def _entry(
    score: Callable[..., float],
    arrays: tuple[NDArray[Any], ...],
    subset: str,
    index: Index,
    settings: Mapping[str, str] | None = None,
) -> Entry:
    return entry_of(
        score, arrays, index, subset=subset, settings=settings, why=ONE_CLASS
    )


def _shift(
    predictions: Predictions, probs: Array, uncertainties: dict[str, Array]
) -> Iterator[Entry]:
    """Does the uncertainty tell shifted items, and failures of both kinds, apart?"""
    shifted = predictions.get("shifted")
    if shifted is None or shifted.all() or not shifted.any():
        return
    index = np.arange(predictions.n)
    correct = scores.correct(probs, predictions.arrays["target"])
    for name, value in uncertainties.items():
        for score in (scores.ood_auroc, scores.ood_auprc, scores.ood_fpr95):
            yield _entry(score, (value, shifted), "all", index, {"u": name})
        for joint in (scores.scod_auroc, scores.scod_aurc):
            yield _entry(joint, (correct, shifted, value), "all", index, {"u": name})


def _drawings(
    predictions: Predictions,
    probs: Array,
    uncertainties: dict[str, Array],
    recalibrated: dict[str, Array],
    drawn: dict[str, Index],
) -> Drawings:
    target = predictions.arrays["target"]
    correct = scores.correct(probs, target)
    curves: list[Curve] = []
    for subset, index in drawn.items():
        for name, value in uncertainties.items():
            curves += referral_curves(
                probs[index], target[index], value[index], subset=subset, u=name
            )
    for name, changed in {"": probs, **recalibrated}.items():
        settings = {"recalibration": name} if name else {}
        curves.append(reliability_curve(changed, target, settings=settings))
    parts = {"correct": correct, "wrong": ~correct}
    histograms = [
        histogram(value, parts, name=name) for name, value in uncertainties.items()
    ]
    group = predictions.get("group")
    if group is not None:
        first = next(iter(uncertainties.values()))
        histograms += [
            histogram(
                first[group == g],
                {k: v[group == g] for k, v in parts.items()},
                name="entropy",
                subset=f"group={g}",
            )
            for g in np.unique(group)
        ]
    return Drawings(tuple(curves), tuple(histograms))


def _notes(
    predictions: Predictions, val: Predictions | None, recalibrated: dict[str, Array]
) -> tuple[str, ...]:
    notes = ["risk at coverage keeps the most certain 80 % of the items"]
    if "cluster" in predictions.arrays:
        clusters = len(np.unique(predictions.arrays["cluster"]))
        notes.append(f"intervals are over {clusters} clusters, not items")
    if val is not None:
        names = " and ".join(recalibrated)
        notes.append(f"{names} fitted on {val.n} validation items of {val.source}")
    return tuple(notes)
