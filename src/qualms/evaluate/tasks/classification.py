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
from qualms.evaluate.entry import (
    Curve,
    Entry,
    Histogram,
    Judgement,
    ScoreOptions,
    entry_of,
    settled,
)
from qualms.evaluate.subsets import (
    design_of,
    known_items,
    outside,
    subsets,
    unknown_notes,
)
from qualms.predictions import Predictions

Array = NDArray[np.float64]
Index = NDArray[np.int64]

Fitted = scores.Temperature | scores.Isotonic

MANY = 8
"""With more classes than this, probabilities are let go of as soon as they can be."""
BLOCK = 1 << 20
"""Probabilities that are recalibrated at a time."""
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
    fitted = _fitted(predictions, val)
    chosen = subsets(predictions, by_group=options.by_group, seed=options.seed)
    entries: list[Entry] = []
    for subset, index in chosen.items():
        items = _items(probs, target, index)
        entries += _plain(items, subset, index)
        for name, value in uncertainties.items():
            entries += _selective(items, value[index], subset, index, {"u": name})
        for name, fit in fitted.items():
            changed = _items(_applied(fit, items.probs), items.target)
            entries += _calibration(changed, subset, index, {"recalibration": name})
    entries += _shift(predictions, probs, uncertainties)
    drawn = {name: index for name, index in chosen.items() if "group=" not in name}
    drawings = _drawings(predictions, probs, uncertainties, fitted, drawn)
    return Judgement(
        entries=tuple(entries),
        curves=drawings.curves,
        histograms=drawings.histograms,
        notes=(*_notes(predictions, val, fitted), *unknown_notes(predictions)),
        design=design_of(predictions),
    )


def _items(probs: Array, target: Index, index: Index | None = None) -> _Classified:
    # A file of a thousand classes is large: all of its items are not copied.
    if index is not None and not np.array_equal(index, np.arange(len(probs))):
        probs, target = probs[index], target[index]
    return _Classified(probs, target, scores.correct(probs, target))


def _uncertainties(predictions: Predictions) -> dict[str, Array]:
    """Entropy of the mean, the epistemic part where there are draws, the file's own."""
    parts = decomposed(predictions.arrays["probs"])
    found = {"entropy": parts.total}
    if predictions.draws > 1:
        found["epistemic"] = parts.epistemic
    return found | predictions.named("uncertainty")


def _fitted(predictions: Predictions, val: Predictions | None) -> dict[str, Fitted]:
    """The maps of probabilities that validation items settle, by name."""
    if val is None:
        return {}
    if val.classes != predictions.classes:
        raise ValueError(
            f"val must have the {predictions.classes} classes of {predictions.source}, "
            f"got {val.classes} in {val.source}"
        )
    index = known_items(val)
    known = scores.mean_probabilities(val.arrays["probs"])[index]
    target = val.arrays["target"][index]
    return {
        "temperature": scores.fit_temperature(known, target),
        "isotonic": scores.fit_isotonic(known, target),
    }


def _applied(fit: Fitted, probs: Array) -> Array:
    """`probs` (N, C) recalibrated, a few items at a time."""
    changed = np.empty_like(probs)
    step = max(1, BLOCK // probs.shape[1])
    for start in range(0, len(probs), step):
        changed[start : start + step] = fit.apply(probs[start : start + step])
    return changed


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
    found = entry_of(
        score, arrays, index, subset=subset, settings=settings, why=ONE_CLASS
    )
    # With many classes what items contribute is smaller than their probabilities.
    return settled(found) if arrays[0].size > MANY * len(index) else found


def _shift(
    predictions: Predictions, probs: Array, uncertainties: dict[str, Array]
) -> Iterator[Entry]:
    """Does the uncertainty tell shifted items, and failures of both kinds, apart?"""
    moved = outside(predictions)
    if moved is None:
        return
    index = np.arange(predictions.n)
    known = known_items(predictions)
    correct = np.zeros(predictions.n, np.bool_)
    correct[known] = _items(probs, predictions.arrays["target"], known).correct
    for name, value in uncertainties.items():
        for score in (scores.ood_auroc, scores.ood_auprc, scores.ood_fpr95):
            yield _entry(score, (value, moved), "all", index, {"u": name})
        for joint in (scores.scod_auroc, scores.scod_aurc):
            yield _entry(joint, (correct, moved, value), "all", index, {"u": name})


def _drawings(
    predictions: Predictions,
    probs: Array,
    uncertainties: dict[str, Array],
    fitted: dict[str, Fitted],
    drawn: dict[str, Index],
) -> Drawings:
    curves: list[Curve] = []
    for subset, index in drawn.items():
        items = _items(probs, predictions.arrays["target"], index)
        for name, value in uncertainties.items():
            curves += referral_curves(
                items.probs, items.target, value[index], subset=subset, u=name
            )
        if subset == "all":
            curves += _reliability(items, fitted)
    index = drawn["all"]
    items = _items(probs, predictions.arrays["target"], index)
    known = {name: value[index] for name, value in uncertainties.items()}
    group = predictions.get("group")
    groups = None if group is None else group[index]
    return Drawings(tuple(curves), tuple(_histograms(known, items.correct, groups)))


def _reliability(items: _Classified, fitted: dict[str, Fitted]) -> Iterator[Curve]:
    """As predicted, and recalibrated."""
    yield reliability_curve(items.probs, items.target, settings={})
    for name, fit in fitted.items():
        changed = _applied(fit, items.probs)
        at = {"recalibration": name}
        yield reliability_curve(changed, items.target, settings=at)


def _histograms(
    uncertainties: dict[str, Array],
    correct: NDArray[np.bool_],
    group: NDArray[Any] | None,
) -> Iterator[Histogram]:
    parts = {"correct": correct, "wrong": ~correct}
    for name, value in uncertainties.items():
        yield histogram(value, parts, name=name)
    if group is None:
        return
    first = next(iter(uncertainties.values()))
    for g in np.unique(group):
        yield histogram(
            first[group == g],
            {name: part[group == g] for name, part in parts.items()},
            name="entropy",
            subset=f"group={g}",
        )


def _notes(
    predictions: Predictions, val: Predictions | None, fitted: dict[str, Fitted]
) -> tuple[str, ...]:
    notes = ["risk at coverage keeps the most certain 80 % of the items"]
    if "cluster" in predictions.arrays:
        clusters = len(np.unique(predictions.arrays["cluster"]))
        notes.append(f"intervals are over {clusters} clusters, not items")
    if val is not None:
        names, known = " and ".join(fitted), len(known_items(val))
        notes.append(f"{names} fitted on {known} validation items of {val.source}")
    return tuple(notes)
