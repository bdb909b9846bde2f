"""TaskJudging classification: proper scores, calibration, referral, and shift."""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.arrays import Array, Index
from qualms.evaluate.chosen_uncertainty import chosen_uncertainty
from qualms.evaluate.drawings import (
    calibration_band,
    histograms,
    referral_curves,
    reliability_curve,
    whole_roc,
)
from qualms.evaluate.draws import decomposed, draws_notes
from qualms.evaluate.entry import (
    Curve,
    Entry,
    Histogram,
    Judgement,
    ScoreOptions,
    bound_entry,
    with_known_influence,
)
from qualms.evaluate.judging import ShownScores, TaskJudging
from qualms.evaluate.main_scores import MainScore
from qualms.evaluate.rows import ScoreRow
from qualms.evaluate.subsets import (
    design_of,
    drawn_subsets,
    group_arrays,
    grouped,
    is_group,
    known_items,
    outside,
    subsets,
    unknown_notes,
)
from qualms.inference import Design
from qualms.predictions import Predictions
from qualms.scores.arguments import FLOOR, at_class
from qualms.scores.calibration import MOST_CLASSES
from qualms.scores.calibration_line import why_no_slope
from qualms.tasks.classification._prediction_sets import (
    Probabilities,
    conformal_entries,
    enough_of_each_class,
    group_entries,
    label_shift_entries,
)
from qualms.tasks.classification._thresholds import KnownItems, judge_points
from qualms.tasks.classification._verdict import RULES
from qualms.wording import plural

Fitted = (
    scores.Temperature
    | scores.Isotonic
    | scores.Linear
    | scores.Binned
    | scores.VennAbers
)

MANY = 8
"""Most classes for which probabilities stay in memory until intervals are made."""
BLOCK = 1 << 20
"""Number of probabilities that are recalibrated at a time."""
TOP_K = 5
"""Most classes without a top-5 accuracy."""
MANY_RANKED = 100
"""Most classes with a macro AUROC, which ranks items by each class."""
MANY_MAPPED = 20
"""Most classes for all recalibration maps; beyond, only temperature and isotonic."""
OF_CLASSES = (scores.accuracy, scores.balanced_accuracy, scores.mcc, scores.macro_f1)
RECALIBRATED = (scores.nll, scores.brier, scores.ece, scores.adaptive_ece)
"""Scores that are also computed for recalibrated probabilities."""
AGAINST_DISTRIBUTION = (scores.expected_nll, scores.expected_brier)
"""Scores of files with the true distribution of each item's class."""
DISTRIBUTION_USED = (
    "target_probs, the true distribution of each item's class, is what expected NLL and"
    " expected Brier are about; all other scores go by 'target'"
)
OF_CLASS_1 = "ECE of P(y=1)"
"""The class-wise ECE of two classes."""
OF_GROUPS = "groups have no interval of the class-wise error of more than two classes"
"""It takes too long where there are many groups."""
ON_LOGITS = (
    (scores.calibration_slope, 1.0, "Slope (ideal 1)"),
    (scores.calibration_intercept, 0.0, "Intercept (ideal 0)"),
)
"""Scores of the calibration line on the logit scale: best values, and titles."""
SHIFT = (
    scores.ood_auroc,
    scores.ood_auprc,
    scores.ood_fpr95,
    scores.scod_auroc,
    scores.scod_aurc,
)
MOST_CERTAIN, MOST_CLIPPED = 0.01, 0.1
"""Largest share of items with a probability of 1, and of the NLL of items with 0, that
need no note."""
ONE_CLASS = "only one class among these items"


class _Classified(NamedTuple):
    """The arrays that the scores of a subset read."""

    probs: Array
    target: Index
    correct: NDArray[np.bool_]
    unsure: Mapping[str, Array]
    """Uncertainties by name."""
    true: Array | None = None
    """(N, C) true distribution of the class of each item; None if it is not known."""

    def at(self, index: Index) -> "_Classified":
        """Return the items at `index`; without a copy if these are all items."""
        if np.array_equal(index, np.arange(len(self.target))):
            return self
        return _Classified(
            self.probs[index],
            self.target[index],
            self.correct[index],
            {name: values[index] for name, values in self.unsure.items()},
            None if self.true is None else self.true[index],
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by the names of the parameters that read them."""
        arrays = {"probs": self.probs, "target": self.target}
        if self.true is not None:
            arrays["target_probs"] = self.true
        if self.probs.shape[1] == 2:
            yes = self.probs[:, 1]
            arrays |= {"score": yes, "prob": yes, "positive": self.target == 1}
        return arrays

    def recalibrated(self, fit: Fitted) -> "_Classified":
        """Return the items with probabilities recalibrated by `fit`, in blocks."""
        changed = np.empty_like(self.probs)
        step = max(1, BLOCK // changed.shape[1])
        for start in range(0, len(changed), step):
            part = self.probs[start : start + step]
            changed[start : start + step] = fit.apply(part)
        return self._replace(probs=changed)


class _Parts:
    """The items of each subset; large subsets are copied whenever they are needed."""

    NUMBERS = 1 << 20
    """Most probabilities of copies that stay in memory beside the latest copy."""

    def __init__(self, everyone: _Classified, chosen: Mapping[str, Index]) -> None:
        self.chosen = chosen
        self._everyone = everyone
        self._latest: OrderedDict[str, _Classified] = OrderedDict()
        self._lock = Lock()

    def of(self, subset: str) -> _Classified:
        """Return the items of a subset; wait if another thread is copying them."""
        with self._lock:
            if subset not in self._latest:
                self._latest[subset] = self._everyone.at(self.chosen[subset])
            self._latest.move_to_end(subset)
            while len(self._latest) > 1 and self._numbers() > self.NUMBERS:
                self._latest.popitem(last=False)
            return self._latest[subset]

    def _numbers(self) -> int:
        return sum(part.probs.size for part in self._latest.values())


def judge_classes(
    predictions: Predictions, val: Predictions | None, options: ScoreOptions
) -> Judgement:
    """Judge one classification file; `val` adds recalibrated rows."""
    everyone = _classified(predictions)
    known_val = None if val is None else _validation(predictions, val)
    fitted = _fitted(known_val)
    chosen = subsets(predictions, by_group=options.by_group, seed=options.seed)
    parts = _Parts(everyone, chosen)
    changed = _recalibrated(everyone, fitted, chosen)
    entries: list[Entry] = []
    curves: list[Curve] = []
    for subset in chosen:
        entries += (*_of_subset(parts, subset), *changed.entries[subset])
        if options.ordinal:
            entries.append(_plain_entry(scores.quadratic_kappa, parts, subset))
        if not is_group(subset):
            items = parts.of(subset)
            curves += _referral(items, subset, options.curve_points)
            curves += _roc(items, subset)
    entries += _shift(predictions, everyone)
    design = design_of(predictions)
    if val is not None and known_val is not None:
        design = design.joined(design_of(val))
        entries += _sets(predictions, everyone, (val, known_val), chosen, options)
    points = judge_points(
        KnownItems(predictions, everyone.probs, np.arange(predictions.n)),
        _judged_validation(val, known_val),
        chosen,
        design,
        options,
    )
    drawn = drawn_subsets(chosen)
    first = chosen_uncertainty(
        predictions, everyone.unsure, requested=options.uncertainty
    )
    asked = draws_notes(predictions.header) if predictions.draws > 1 else ()
    return Judgement(
        entries=(*entries, *points.entries),
        warnings=tuple(asked),
        curves=(
            *curves,
            *_ood_roc(predictions, everyone),
            *(_reliability(parts.of(subset), subset) for subset in drawn),
            *_calibration_bands(parts, drawn, design),
            *changed.curves,
        ),
        histograms=tuple(_histograms(everyone, drawn, predictions.get("group"), first)),
        notes=(
            *_notes(predictions, val, fitted),
            *_saturated(parts.of("all")),
            *_set_notes(known_val, options.alpha),
            *unknown_notes(predictions),
        ),
        design=design,
        points=points.points,
    )


def _classified(predictions: Predictions) -> _Classified:
    draws, target = predictions.arrays["probs"], predictions.arrays["target"]
    # A single draw is its own mean, so no second array is made.
    probs = scores.mean_probabilities(draws[0] if len(draws) == 1 else draws)
    correct = scores.predicted_class(probs) == target
    true = predictions.get("target_probs")
    return _Classified(probs, target, correct, _uncertainties(predictions), true)


def _uncertainties(predictions: Predictions) -> dict[str, Array]:
    """Return the entropy, its epistemic part (of several draws), and the file's own.

    If it is not known what the draws vary, the part is the mutual information, and is
    called so.
    """
    parts = decomposed(predictions.arrays["probs"])
    values = {"entropy": parts.total}
    if predictions.draws > 1:
        draws = predictions.header.draws
        if draws == "labels":
            values["epistemic"] = parts.aleatoric
        else:
            values[scores.uncertainty_type("MI", draws)] = parts.epistemic
    return values | predictions.named("uncertainty")


def _validation(predictions: Predictions, val: Predictions) -> Probabilities:
    """Return the validation items whose class is known."""
    if val.classes != predictions.classes:
        raise ValueError(
            f"val must have the {predictions.classes} classes of {predictions.source}, "
            f"got {val.classes} in {val.source}"
        )
    index = known_items(val)
    probs = scores.mean_probabilities(val.arrays["probs"])[index]
    return Probabilities(probs, val.arrays["target"][index])


def _judged_validation(
    val: Predictions | None, known: Probabilities | None
) -> KnownItems | None:
    if val is None or known is None:
        return None
    return KnownItems(val, known.probs, known_items(val))


def _fitted(val: Probabilities | None) -> dict[str, Fitted]:
    """Return the recalibration maps fitted on validation items, by name."""
    if val is None:
        return {}
    fitted: dict[str, Fitted] = {
        "temperature": scores.fit_temperature(*val),
        "isotonic": scores.fit_isotonic(*val),
    }
    classes = val.probs.shape[1]
    if classes <= MANY_MAPPED:
        fitted["histogram"] = scores.fit_histogram(*val)
        fitted["vector"] = scores.fit_vector(*val)
        fitted["dirichlet"] = scores.fit_dirichlet(*val)
        fitted["venn-abers"] = scores.fit_venn_abers(*val)
    return fitted


class _Recalibrated(NamedTuple):
    """Entries and curves of recalibrated probabilities."""

    entries: Mapping[str, list[Entry]]
    """Entries by subset."""
    curves: list[Curve]


def _recalibrated(
    everyone: _Classified, fitted: Mapping[str, Fitted], chosen: Mapping[str, Index]
) -> _Recalibrated:
    """Judge every subset by each fit, with each fit applied once."""
    result = _Recalibrated({subset: [] for subset in chosen}, [])
    for name, fit in fitted.items():
        at = {"recalibration": name}
        parts = _Parts(everyone.recalibrated(fit), chosen)
        for subset in chosen:
            result.entries[subset].extend(_calibration(parts, subset, at))
        result.curves.extend(
            _reliability(parts.of(subset), subset, at)
            for subset in drawn_subsets(chosen)
        )
    return result


def _of_subset(parts: _Parts, subset: str) -> Iterator[Entry]:
    yield from _plain(parts, subset)
    for name in parts.of(subset).unsure:
        yield from _selective(parts, name, subset)


def _plain(parts: _Parts, subset: str) -> Iterator[Entry]:
    classes = parts.of(subset).probs.shape[1]
    several: list[Callable[..., float]] = []
    if classes > TOP_K:
        several.append(scores.top_k_accuracy)
    if 2 < classes <= MANY_RANKED:
        several.append(scores.macro_auroc)
    if classes == 2:
        several += (scores.auroc, scores.auprc, scores.average_precision)
    if parts.of(subset).true is not None:
        several += AGAINST_DISTRIBUTION
    for score in (*OF_CLASSES, *several, *RECALIBRATED):
        yield _plain_entry(score, parts, subset)
    yield from _of_classes(parts, subset, classes)


def _of_classes(parts: _Parts, subset: str, classes: int) -> Iterator[Entry]:
    """Yield errors of the probability of each class, and the line of class 1 of two."""
    by_class = _plain_entry(scores.classwise_ece, parts, subset)
    if classes > 2:
        yield replace(by_class, no_interval=OF_GROUPS if is_group(subset) else "")
    else:
        yield replace(by_class, title=OF_CLASS_1)
    yield _plain_entry(scores.smooth_ece, parts, subset)
    if classes == 2:
        for line, aim, title in ON_LOGITS:
            entry = _plain_entry(line, parts, subset)
            yield replace(entry, aim=aim, title=title)


def _calibration(
    parts: _Parts, subset: str, settings: Mapping[str, str]
) -> Iterator[Entry]:
    for score in RECALIBRATED:
        yield _plain_entry(score, parts, subset, settings)


def _plain_entry(
    score: Callable[..., float],
    parts: _Parts,
    subset: str,
    settings: Mapping[str, str] | None = None,
) -> Entry:
    inputs = partial(_plain_inputs, parts, subset)
    entry = _entry(score, inputs, subset, parts.chosen[subset], settings)
    # With many classes influences take less memory than probabilities, except that on
    # the class-wise error, which holds them.
    classes = parts.of(subset).probs.shape[1]
    holds = score is scores.classwise_ece and classes <= MOST_CLASSES
    return with_known_influence(entry) if classes > MANY and not holds else entry


def _plain_inputs(parts: _Parts, subset: str) -> dict[str, NDArray[Any]]:
    return parts.of(subset).arrays()


def _selective(parts: _Parts, name: str, subset: str) -> Iterator[Entry]:
    inputs = partial(_selective_inputs, parts, name, subset)
    at = {"uncertainty": name}
    for score in (scores.aurc, scores.eaurc, scores.augrc, scores.risk_at_coverage):
        yield _entry(score, inputs, subset, parts.chosen[subset], at)


def _selective_inputs(parts: _Parts, name: str, subset: str) -> dict[str, NDArray[Any]]:
    items = parts.of(subset)
    return {"risk": 1.0 - items.correct, "uncertainty": items.unsure[name]}


def _entry(
    score: Callable[..., float],
    inputs: Mapping[str, NDArray[Any]] | Callable[[], Mapping[str, NDArray[Any]]],
    subset: str,
    index: Index,
    settings: Mapping[str, str] | None = None,
) -> Entry:
    entry = bound_entry(
        score, inputs, index, subset=subset, settings=settings, why=ONE_CLASS
    )
    if score is not scores.calibration_slope or not math.isnan(entry.value):
        return entry
    arrays = entry.inputs()
    return replace(entry, why=why_no_slope(arrays["prob"], arrays["positive"]))


def _shift(predictions: Predictions, everyone: _Classified) -> Iterator[Entry]:
    """Yield scores of the detection of shifted items, and of failures of both kinds."""
    moved = outside(predictions)
    if moved is None:
        return
    index = np.arange(predictions.n)
    for name, value in everyone.unsure.items():
        arrays = {"uncertainty": value, "shifted": moved, "correct": everyone.correct}
        for score in SHIFT:
            yield _entry(score, arrays, "all", index, {"uncertainty": name})


def _sets(
    predictions: Predictions,
    everyone: _Classified,
    val: tuple[Predictions, Probabilities],
    chosen: Mapping[str, Index],
    options: ScoreOptions,
) -> Iterator[Entry]:
    """Yield scores of conformal sets on all subsets except the balanced one."""
    # Items of no known class are in no subset, so their class may be any number.
    test = Probabilities(everyone.probs, np.maximum(everyone.target, 0))
    known = known_items(val[0])
    rows = predictions.n + known
    by_subset = {name: index for name, index in chosen.items() if name != "balanced"}
    yield from conformal_entries(test, val[1], (rows, by_subset), alpha=options.alpha)
    for further in options.further_alphas:
        entries = conformal_entries(test, val[1], (rows, by_subset), alpha=further)
        for entry in entries:
            yield replace(entry, settings={**entry.settings, "alpha": further})
    own = group_arrays(val[0])
    for array, group in group_arrays(predictions).items():
        if array in own:
            groups = group.astype(np.str_), own[array][known].astype(np.str_)
            name = array.removeprefix("group/")
            yield from group_entries(
                test, val[1], groups, by_subset, alpha=options.alpha, name=name
            )
    drawn = drawn_subsets(chosen)
    yield from label_shift_entries(test, val[1], drawn, alpha=options.alpha)


def _referral(items: _Classified, subset: str, most: int | None) -> Iterator[Curve]:
    for name, value in items.unsure.items():
        yield from referral_curves(
            items.probs, items.target, value, subset=subset, kind=name, most=most
        )


def _roc(items: _Classified, subset: str) -> Iterator[Curve]:
    """Yield the ROC curve of two classes if there are items of both."""
    if items.probs.shape[1] == 2 and 0 < items.target.sum() < len(items.target):
        yield whole_roc(items.probs[:, 1], items.target == 1, name="roc", subset=subset)


def _ood_roc(predictions: Predictions, everyone: _Classified) -> Iterator[Curve]:
    """Yield ROC curves of each uncertainty for shifted items against others."""
    moved = outside(predictions)
    if moved is None:
        return
    for name, value in everyone.unsure.items():
        yield whole_roc(value, moved, name="ood_roc", settings={"uncertainty": name})


def _reliability(
    items: _Classified, subset: str, settings: Mapping[str, str] | None = None
) -> Curve:
    return reliability_curve(
        items.probs, items.target, subset=subset, settings=settings or {}
    )


def _calibration_bands(
    parts: _Parts, drawn: Mapping[str, Index], design: Design
) -> Iterator[Curve]:
    """Yield the smooth calibration curve of two classes."""
    for subset, index in drawn.items():
        items = parts.of(subset)
        if items.probs.shape[1] != 2:
            return
        yield calibration_band(
            items.probs[:, 1],
            items.target == 1,
            subset=subset,
            design=design.of(index),
        )


def _histograms(
    everyone: _Classified,
    drawn: Mapping[str, Index],
    group: NDArray[Any] | None,
    first: str,
) -> Iterator[Histogram]:
    """Yield histograms of every uncertainty, and of the `first` one for each group."""
    parts = {"correct": everyone.correct, "wrong": ~everyone.correct}
    for name, value in everyone.unsure.items():
        yield from histograms(value, parts, drawn, name=name)
    if group is not None:
        name = first or next(iter(everyone.unsure))
        value = everyone.unsure[name]
        yield from histograms(value, parts, grouped(drawn, group), name=name)


def _notes(
    predictions: Predictions, val: Predictions | None, fitted: Mapping[str, Fitted]
) -> tuple[str, ...]:
    notes = ["risk at coverage keeps the most certain 80 % of the items"]
    if "target_probs" in predictions.arrays:
        notes.append(DISTRIBUTION_USED)
    if "cluster" in predictions.arrays:
        clusters = len(np.unique(predictions.arrays["cluster"]))
        units = plural(clusters, "cluster")
        over = f"intervals are over {clusters} {units}, not items"
        notes.append(design_of(predictions).why_too_few() or over)
    if val is not None:
        names, count = ", ".join(fitted), len(known_items(val))
        notes.append(f"{names} fitted on {count} validation items of {val.source}")
    return tuple(notes)


def _saturated(items: _Classified) -> Iterator[str]:
    """Yield a note if probabilities of exactly 0 and 1 decide scores."""
    certain = float((np.count_nonzero(items.probs, axis=1) == 1).mean())
    loss = scores.item_nll(items.probs, items.target)
    # A class that was given 0 costs as much as the floor says.
    clipped = at_class(items.probs, items.target) <= 0.0
    part = float(loss[clipped].sum() / max(loss.sum(), FLOOR))
    if certain > MOST_CERTAIN or part > MOST_CLIPPED:
        yield (
            f"{certain:.0%} of the items have a probability of exactly 1, as float16 "
            f"and few decimals leave it, and {int(clipped.sum())} items give their true"
            f" class exactly 0, which counts as 1e-15: {part:.0%} of the NLL. Slope and"
            " intercept of calibration depend on it, too; store probabilities in "
            "float32, or logits"
        )


def _set_notes(val: Probabilities | None, alpha: float) -> tuple[str, ...]:
    if val is None:
        return ()
    aim = f"conformal sets aim at coverage {1 - alpha:g}"
    if enough_of_each_class(val, alpha):
        return (aim,)
    few = f"{aim}; some classes have too few validation items for their own threshold"
    return (few,)


_ORDER = (MainScore("aurc", beside=True), MainScore("risk_at_coverage"))
_SETS = (MainScore("set_coverage"), MainScore("set_size"), MainScore("ood_auroc"))
_SEVERAL = ShownScores(
    main=(
        MainScore("accuracy"),
        MainScore("balanced_accuracy"),
        MainScore("macro_auroc"),
        MainScore("nll"),
        MainScore("expected_nll"),
        MainScore("ece"),
        MainScore("classwise_ece"),
        *_ORDER,
        *_SETS,
        MainScore("brier"),
        MainScore("mcc"),
        MainScore("macro_f1"),
    ),
    grouped=("accuracy", "nll", "ece", "aurc"),
)
_TWO = ShownScores(
    main=(
        MainScore("accuracy"),
        MainScore("auroc"),
        MainScore("nll"),
        MainScore("expected_nll"),
        MainScore("classwise_ece"),
        MainScore("calibration_intercept"),
        MainScore("calibration_slope"),
        *_ORDER,
        *_SETS,
        MainScore("balanced_accuracy"),
        MainScore("brier"),
        MainScore("mcc"),
    ),
    grouped=("accuracy", "nll", "classwise_ece", "aurc"),
)
"""Scores of two classes, whose calibration is that of P(y=1)."""


def _shown(rows: Sequence[ScoreRow]) -> ShownScores:
    two = any(row.score == "calibration_intercept" for row in rows)
    return _TWO if two else _SEVERAL


JUDGING = TaskJudging(judge=judge_classes, rules=RULES, shown=_shown)
