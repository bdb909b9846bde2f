"""Lines and bars that a page draws: referral curves, reliability, histograms."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.arrays import Array, Flags, Index
from qualms.evaluate.entry import Curve, Histogram
from qualms.inference import Design, wilson_ends
from qualms.scores import ReferralCurve
from qualms.scores.calibration_line import local_shares

BINS = 40
RELIABILITY_BINS = 15
Z = 1.96
"""Normal quantile of a 95 % interval."""
ROC_GRID = np.linspace(0.0, 1.0, 51)
"""False positive rates at which ROC curves are evaluated, to average them."""
CALIBRATION_GRID = np.linspace(0.0, 1.0, 51)
"""Probabilities at which the smooth calibration curve is evaluated."""
POINTS = 500
"""Most points of a referral curve that are drawn."""
CURVE_POINTS = 400
"""Most points of a curve in JSON and pages."""


def referral_curves(
    probs: Array,
    target: Index,
    uncertainty: Array,
    *,
    subset: str,
    kind: str,
    most: int | None = None,
) -> Iterator[Curve]:
    """Yield accuracy and NLL after referral, and AUROC for two classes.

    Args:
        probs: (N, C) probabilities.
        target: (N,) classes.
        uncertainty: (N,) larger is referred first.
        subset: Name of the set of these items.
        kind: Name of the uncertainty, such as "entropy".
        most: Most points of a curve; None for all.
    """
    names = ("accuracy", "nll", "auroc") if probs.shape[1] == 2 else ("accuracy", "nll")
    referred = np.zeros(0)
    for name in names:
        curve = scores.referral_curve(name, probs, target, uncertainty)
        value = curve.value
        places = None if most is None or most >= len(value) else thin(value, limit=most)
        if places is not None:
            referred, value = places / len(value), value[places]
        elif not referred.size:
            referred = curve.referred
        yield Curve(
            name=f"referral_{name}",
            label=f"{scores.about(getattr(scores, name)).label} of the kept items",
            subset=subset,
            settings={"uncertainty": kind},
            x_label="share referred",
            x=referred,
            y=value,
            points=0 if places is None else len(curve.value),
        )


def recall_curve(
    hits: Array,
    uncertainty: Array,
    *,
    subset: str,
    kind: str,
    most: int | None = None,
) -> Curve:
    """Return R@1 of the kept queries when the most uncertain ones are referred.

    Args:
        hits: (N,) 1 where the nearest neighbour of a query is right.
        uncertainty: (N,) larger is referred first.
        subset: Name of the set of these queries.
        kind: Name of the uncertainty, such as "inverse_norm".
        most: Most points of the curve; None for all.
    """
    rank = scores.ranked_items(uncertainty)
    recall = scores.kept_means(hits[rank.order], rank.start)[::-1].copy()
    places = thin(recall, limit=len(recall) if most is None else most)
    return Curve(
        name="referral_recall_at_1",
        label="R@1 of the kept queries",
        subset=subset,
        settings={"uncertainty": kind},
        x_label="share referred",
        x=places / len(recall),
        y=recall[places],
        points=len(recall) if len(places) < len(recall) else 0,
    )


def thin(y: Array, *, limit: int = CURVE_POINTS) -> Index:
    """Return the indices of the points of a long curve that are drawn.

    These are both ends, and the lowest and highest of each of `limit` / 4 stretches. A
    line through them covers the same pixels as one through all points, if a stretch is
    no wider than a pixel.
    """
    if len(y) <= limit:
        return np.arange(len(y))
    edges = np.linspace(0, len(y), limit // 4 + 1).astype(np.int64)
    points: list[int] = []
    for start, stop in pairwise(edges):
        piece = y[start:stop]
        defined = np.flatnonzero(np.isfinite(piece))
        inner = defined if defined.size else np.arange(1)
        low, high = inner[piece[inner].argmin()], inner[piece[inner].argmax()]
        points += [start, start + low, start + high, stop - 1]
    return np.unique(points)


def thinned_referral(curve: ReferralCurve, *, subset: str) -> Curve:
    """Return evenly spaced points of a referral curve, with its first and last."""
    items = len(curve.value)
    chosen = np.unique(np.linspace(0, items - 1, POINTS).round().astype(np.int64))
    return Curve(
        name=f"referral_{curve.name}",
        label=f"{scores.about(getattr(scores, curve.name)).label} of the kept items",
        subset=subset,
        x_label="share referred",
        x=curve.referred[chosen],
        y=curve.value[chosen],
    )


def roc(values: Array, positive: Flags, *, name: str, subset: str) -> Curve:
    """Return the highest true positive rates at `ROC_GRID`, linear in between."""
    curve = scores.roc_curve(score=values, positive=positive)
    # Of several points with one rate only the last, highest one matters.
    last = np.append(np.diff(curve.fpr) > 0, True)
    return Curve(
        name=name,
        label="true positive rate",
        subset=subset,
        x_label="false positive rate",
        x=ROC_GRID,
        y=np.interp(ROC_GRID, curve.fpr[last], curve.tpr[last]),
        counts=(int(positive.sum()), int((~positive).sum())),
    )


def whole_roc(
    values: Array,
    positive: Flags,
    *,
    name: str,
    subset: str = "all",
    settings: Mapping[str, str] | None = None,
) -> Curve:
    """Return the ROC curve at its own points, thinned evenly if there are many."""
    curve = scores.roc_curve(score=values, positive=positive)
    last = len(curve.fpr) - 1
    chosen = np.unique(np.linspace(0, last, POINTS).round().astype(np.int64))
    return Curve(
        name=name,
        label="true positive rate",
        subset=subset,
        x_label="false positive rate",
        x=curve.fpr[chosen],
        y=curve.tpr[chosen],
        settings=settings or {},
    )


def graded_histograms(
    uncertainty: Array, correct: Flags, group: NDArray[Any], *, subset: str
) -> Iterator[Histogram]:
    """Yield shares of right and wrong items by entropy, for each group.

    All have the same bins, so that they can be averaged and compared.
    """
    edges = np.linspace(0.0, np.log(2.0), BINS + 1)
    # The entropy of two equal classes may exceed log 2 by a rounding error.
    inside = np.clip(uncertainty, edges[0], edges[-1])
    for name in np.unique(group):
        of_group = group == name
        yield Histogram(
            name=f"uncertainty/grade={name}",
            label=f"grade {name}",
            subset=subset,
            edges=edges,
            parts={
                part: np.histogram(inside[of_group & chosen], edges)[0] / of_group.sum()
                for part, chosen in (("correct", correct), ("incorrect", ~correct))
            },
        )


def reliability_curve(
    probs: Array, target: Index, *, subset: str, settings: Mapping[str, str]
) -> Curve:
    """Return the accuracy against confidence in 15 bins, with Wilson 95 % intervals."""
    bins = scores.reliability(probs, target, bins=RELIABILITY_BINS)
    filled = bins.count > 0
    confidence, accuracy = bins.confidence[filled], bins.accuracy[filled]
    low, high = wilson_ends(accuracy, bins.count[filled].astype(float), Z)
    return Curve(
        name="reliability",
        label="accuracy",
        subset=subset,
        settings=settings,
        x_label="confidence",
        x=confidence,
        y=accuracy,
        low=low,
        high=high,
    )


def calibration_band(
    prob: Array, positive: Flags, *, subset: str, design: Design
) -> Curve:
    """Return the share of positive items by P(y=1), with pointwise 95 % intervals.

    The intervals are Wilson's for the effective number of items, from the standard
    error of the curve over clusters; nan where there are too few items or clusters.
    """
    share, low, high = np.full((3, len(CALIBRATION_GRID)), np.nan)
    outcome = positive.astype(np.float64)
    few_clusters = bool(design.why_too_few())
    for place, local in enumerate(local_shares(prob, positive, CALIBRATION_GRID)):
        if local is None:
            continue
        rate, weight = local.share, local.weight
        error: Array = weight * (outcome[local.items] - rate)
        if design.cluster is not None:
            cluster = design.cluster[local.items]
            error = np.bincount(cluster, error).astype(np.float64)
        # If all items are alike, the weights give the effective number of items.
        likely = rate * (1.0 - rate)
        most = 1.0 / float(np.square(weight).sum())
        alike = likely / max(float(np.square(error).sum()), 1e-300)
        size = np.array([min(alike, most) if likely > 1e-12 else most])
        share[place] = rate
        if few_clusters:
            continue
        low[place], high[place] = np.concatenate(
            wilson_ends(share[place : place + 1], size, Z)
        )
    return Curve(
        name="calibration",
        label="share of positive items",
        subset=subset,
        x_label="P(y=1)",
        x=CALIBRATION_GRID,
        y=share,
        low=low,
        high=high,
    )


def histograms(
    values: Array,
    parts: Mapping[str, Flags],
    subsets: Mapping[str, Index],
    *,
    name: str,
) -> Iterator[Histogram]:
    """Yield counts of `values` in 40 equal bins for each subset, all with equal bins.

    Args:
        values: (N,) uncertainty of each item.
        parts: Masks (N,) of right and wrong items, by name.
        subsets: Item indices by subset.
        name: Name of the uncertainty.
    """
    chosen = [index for index in subsets.values() if len(index)]
    if not chosen:
        return
    edges = _edges(values[np.concatenate(chosen)])
    for subset, index in subsets.items():
        counts = {
            part: np.histogram(values[index[flags[index]]], bins=edges)[0].astype(float)
            for part, flags in parts.items()
        }
        yield Histogram(
            name=f"uncertainty/{name}",
            label=name,
            subset=subset,
            edges=edges,
            parts=counts,
        )


def _edges(values: Array) -> Array:
    low, high = float(values.min()), float(values.max())
    # Values that differ only by rounding leave no room for 40 bins.
    if high - low <= max(1e-9 * max(abs(low), abs(high)), 1e-300):
        pad = max(0.5, 1e-6 * abs(low))
        low, high = low - pad, high + pad
    return np.linspace(low, high, BINS + 1)
