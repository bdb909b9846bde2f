"""Scores and answers at thresholds: stated, chosen on validation items, or promised.

A threshold that was chosen on validation items is judged as a fixed number: intervals
allow for other test items at this threshold, because it is the one that will be used.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from qualms import scores
from qualms.arrays import Array, Flags, Index
from qualms.evaluate.entry import Entry, ScoreOptions, bound_entry, entry_of
from qualms.evaluate.operating_points import (
    ANY,
    OperatingPoint,
    PointOptions,
    ThresholdRule,
    YesNo,
)
from qualms.inference import Design, exact_interval, influence_of, interval_of
from qualms.predictions import Predictions
from qualms.wording import plural

AT_THRESHOLD = (
    scores.sensitivity,
    scores.specificity,
    scores.ppv,
    scores.npv,
    scores.lr_positive,
    scores.lr_negative,
)
AT_PREVALENCE = (scores.ppv, scores.npv)
ABSENT = "no item of the kind that it is about"
NO_VALIDATION = (
    "the threshold {!r} is chosen on validation items, and there are none; give --val "
    "(val=...), since one that is chosen on the items that are scored looks too good"
)


class Binary(NamedTuple):
    """Scores of items or clusters, with a mask of the positive ones."""

    score: Array
    positive: Flags
    rows: Index
    """Row of each item in the file; of a cluster, the row of its first item."""
    cluster: Index | None
    """(N,) numbers of the clusters of items; None if units are independent."""


class PointResults(NamedTuple):
    """Entries and answers at all thresholds."""

    entries: tuple[Entry, ...] = ()
    points: tuple[OperatingPoint, ...] = ()


class KnownItems(NamedTuple):
    """Items of a file with their probabilities."""

    predictions: Predictions
    probs: Array
    """(N, C) probabilities of the items at `rows`."""
    rows: Index


def judge_points(
    test: KnownItems,
    val: KnownItems | None,
    chosen: Mapping[str, Index],
    design: Design,
    options: ScoreOptions,
) -> PointResults:
    """Judge the thresholds in `options`.

    Args:
        test: All items of the file that is scored.
        val: The validation items whose class is known.
        chosen: Item indices by subset.
        design: The sampling design of the items.
        options: The options of the caller.
    """
    asked = options.points
    if not asked.asked:
        return PointResults()
    classes = _positive_classes(asked, test.predictions)
    items = _binary(test, classes)
    val_items = None if val is None else _binary(val, classes)
    entries: list[Entry] = []
    points: list[OperatingPoint] = []
    for unit in ("item", "cluster") if asked.per_cluster else ("item",):
        at = _ChosenThresholds(asked, unit, val_items, options.seed)
        for subset, index in chosen.items():
            if subset == "balanced":
                continue
            units = _units(items, index, unit)
            own = design.of(units.rows)
            for rule, threshold in at.thresholds.items():
                place = subset, {"threshold": rule.text, **at.settings}
                entries += _entries(units, threshold, place, asked)
                answer = _answer(units, threshold, own, asked, options.level)
                points.append(at.point(rule, threshold, subset, answer))
            if asked.whole_curve:
                entry, answer = _of_curve(units, own, subset, at, options.level)
                entries.append(entry)
                points.append(at.point(None, math.nan, subset, answer))
    return PointResults(tuple(entries), tuple(points))


def _positive_classes(asked: PointOptions, predictions: Predictions) -> tuple[int, ...]:
    classes = predictions.classes or 0
    if not asked.positive:
        if classes != 2:
            raise ValueError(
                f"{predictions.source} has {classes} classes: say which of them are "
                "positive with --positive (positive=), such as --positive 2 --positive "
                "3; class numbers begin at 0"
            )
        return (1,)
    beyond = [number for number in asked.positive if number >= classes]
    if beyond or len({*asked.positive}) == classes:
        raise ValueError(
            f"positive must name some, but not all, of the classes 0 to {classes - 1} "
            f"of {predictions.source}, got {', '.join(map(str, asked.positive))}"
        )
    return tuple(sorted({*asked.positive}))


def _binary(judged: KnownItems, classes: tuple[int, ...]) -> Binary:
    probs, rows, arrays = judged.probs, judged.rows, judged.predictions.arrays
    # A single class is read directly: a sum could change it by a rounding error.
    score = (
        probs[:, classes[0]]
        if len(classes) == 1
        else probs[:, list(classes)].sum(axis=1)
    )
    cluster = None
    if "cluster" in arrays:
        numbers = np.unique(arrays["cluster"][rows], return_inverse=True)[1]
        cluster = numbers.astype(np.int64)
    positive = np.isin(arrays["target"][rows], classes)
    return Binary(np.minimum(score, 1.0), positive, rows, cluster)


def _units(items: Binary, index: Index, unit: str) -> Binary:
    """Return the items at `index`, or their clusters by their most positive item."""
    score, positive = items.score[index], items.positive[index]
    cluster = None if items.cluster is None else items.cluster[index]
    if unit == "item":
        return Binary(score, positive, index, cluster)
    if cluster is None:
        raise ValueError(
            "scores per cluster need an array 'cluster', such as the patient of each "
            "item, and there is none"
        )
    _, first, number = np.unique(cluster, return_index=True, return_inverse=True)
    highest = np.full(len(first), -np.inf)
    np.maximum.at(highest, number, score)
    any_positive = np.bincount(number, positive) > 0
    return Binary(highest, any_positive, index[first], None)


class _ChosenThresholds:
    """The thresholds of all rules for items, or for clusters."""

    def __init__(
        self, asked: PointOptions, unit: str, val: Binary | None, seed: int
    ) -> None:
        self.asked = asked
        self.unit = unit
        self.settings = {} if unit == "item" else {"unit": unit}
        self._val = (
            None if val is None else _units(val, np.arange(len(val.score)), unit)
        )
        self._seed = seed
        self.thresholds = {rule: self._threshold(rule) for rule in asked.rules}

    def _threshold(self, rule: ThresholdRule) -> float:
        if not rule.chosen:
            return rule.value
        if self._val is None:
            raise ValueError(NO_VALIDATION.format(rule.text))
        items, confidence = self._val, None
        if rule.promised:
            kind = items.positive if rule.rate == "sensitivity" else ~items.positive
            items = _one_per_cluster(items, kind, self._seed)
            confidence = self.asked.confidence
        score, positive = items.score, items.positive
        if rule.rate == "sensitivity":
            return scores.threshold_at_sensitivity(
                score=score,
                positive=positive,
                sensitivity=rule.value,
                confidence=confidence,
            )
        if rule.rate == "specificity":
            return scores.threshold_at_specificity(
                score=score,
                positive=positive,
                specificity=rule.value,
                confidence=confidence,
            )
        if rule.kind == "cost":
            return scores.cost_threshold(
                score=score, positive=positive, cost=rule.value
            )
        return scores.youden_threshold(score=score, positive=positive)

    def point(
        self,
        rule: ThresholdRule | None,
        threshold: float,
        subset: str,
        answer: "_TargetAnswer",
    ) -> OperatingPoint:
        """Return the record of one threshold on one subset."""
        return OperatingPoint(
            rule=ANY if rule is None else rule.text,
            unit=self.unit,
            subset=subset,
            threshold=threshold,
            source=self._source(rule, threshold),
            answer=answer.answer,
            because=answer.because,
        )

    def _source(self, rule: ThresholdRule | None, threshold: float) -> str:
        if rule is None:
            return "the ROC curve of these items"
        if not rule.chosen or self._val is None:
            return "given"
        count = len(self._val.score)
        units = f"{count} validation {plural(count, self.unit)}"
        if not rule.promised:
            return f"chosen on {units}"
        if math.isinf(threshold):
            every = "all are called" if threshold < 0 else "none is called"
            return f"{units} are too few to promise it, so {every}"
        return (
            f"promised for new {self.unit}s with confidence "
            f"{self.asked.confidence:g}, from {units}"
        )


def _one_per_cluster(items: Binary, kind: Flags, seed: int) -> Binary:
    """Return one random item of this kind per cluster, and all items of other kinds.

    Nothing is promised about other kinds, so all of their items stay.
    """
    if items.cluster is None:
        return items
    order = np.random.default_rng((seed, 29)).permutation(np.flatnonzero(kind))
    _, first = np.unique(items.cluster[order], return_index=True)
    rows = np.sort(np.concatenate([order[first], np.flatnonzero(~kind)]))
    return Binary(items.score[rows], items.positive[rows], items.rows[rows], None)


def _entries(
    units: Binary,
    threshold: float,
    place: tuple[str, Mapping[str, Any]],
    asked: PointOptions,
) -> Iterator[Entry]:
    subset, settings = place
    called = scores.called_positive(units.score, threshold)
    arrays = {"called": called, "positive": units.positive}
    bound = partial(
        bound_entry, arrays=arrays, index=units.rows, subset=subset, why=ABSENT
    )
    yield _unranked(bound(scores.called_share, settings=settings))
    for score in AT_THRESHOLD:
        yield _unranked(bound(score, settings=settings))
    for prevalence in asked.prevalences:
        at = {**settings, "prevalence": prevalence}
        for score in AT_PREVALENCE:
            yield _unranked(bound(partial(score, prevalence=prevalence), settings=at))


def _unranked(entry: Entry) -> Entry:
    # A file with more calls at its threshold may only have a lower threshold.
    return replace(entry, ranked=False)


class _TargetAnswer(NamedTuple):
    answer: YesNo = "not asked"
    because: str = ""


_SHARES: Mapping[str, Callable[[Flags, Flags], tuple[Flags, Flags]]] = {
    "sensitivity": lambda called, positive: (called, positive),
    "specificity": lambda called, positive: (~called, ~positive),
    "ppv": lambda called, positive: (positive, called),
    "npv": lambda called, positive: (~positive, ~called),
}
"""By score: functions that return the hits and the units that count."""


def _answer(
    units: Binary, threshold: float, design: Design, asked: PointOptions, level: float
) -> _TargetAnswer:
    """Return whether every target is met, by exact intervals of the shares.

    Yes if all lower ends reach their target. No if an upper end misses it; with several
    targets these ends have a higher level (Bonferroni).
    """
    if not asked.meets:
        return _TargetAnswer()
    called = scores.called_positive(units.score, threshold)
    stricter = 1.0 - (1.0 - level) / len(asked.meets)
    clauses, reached, missed = [], [], []
    for name, least in asked.meets.items():
        hit, among = _SHARES[name](called, units.positive)
        if not among.any():
            return _TargetAnswer("cannot be told", f"{name}: {ABSENT}")
        counted = np.flatnonzero(among)
        own = design.of(counted)
        low, high = exact_interval(hit[among], design=own, level=level)
        upper = exact_interval(hit[among], design=own, level=stricter)[1]
        reached.append(low >= least)
        missed.append(upper < least)
        share = float(hit[among].mean())
        clauses.append(f"{name} {_with_ends(share, low, high)}, {least:g} asked for")
    return _TargetAnswer(_decided(all(reached), any(missed)), "; ".join(clauses))


def _decided(reached: bool, missed: bool) -> YesNo:
    if reached:
        return "yes"
    return "no" if missed else "cannot be told"


def _with_ends(value: float, low: float, high: float) -> str:
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def _of_curve(
    units: Binary, design: Design, subset: str, at: _ChosenThresholds, level: float
) -> tuple[Entry, _TargetAnswer]:
    """Return the sensitivity at the specificity of the target, and the answer."""
    wanted = at.asked.meets
    score = partial(
        scores.sensitivity_at_specificity, specificity=wanted["specificity"]
    )
    arrays = [units.score, units.positive]
    entry = entry_of(
        score,
        arrays,
        units.rows,
        subset=subset,
        settings={"specificity": wanted["specificity"], **at.settings},
        why=ABSENT,
    )
    influence = influence_of(score, *arrays)
    if influence is None or not math.isfinite(entry.value):
        return entry, _TargetAnswer("cannot be told", ABSENT)
    ends = interval_of(influence, design=design, level=level)
    if math.isnan(ends.low):
        return entry, _TargetAnswer("cannot be told", ends.reason)
    least = wanted["sensitivity"]
    shown = _with_ends(entry.value, ends.low, ends.high)
    because = (
        f"sensitivity {shown} at specificity {wanted['specificity']:g}, {least:g} "
        "asked for"
    )
    return entry, _TargetAnswer(_decided(ends.low >= least, ends.high < least), because)
