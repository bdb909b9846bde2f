"""The scores of one repeat on every set: ours, and those of the released code.

Ours are tie exact and exact at every threshold, and the balanced set is balanced for
all of them. The released code (Band et al., 2021) takes AUROC and AUPRC of its balanced
set on the plain joint one; its published areas are those with an oracle, which counts
referred items as answered perfectly.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from qualms import scores
from qualms.evaluate._referral_items import Array, Flags, Index, Items, Sets
from qualms.scores import ReferralCurve
from qualms.scores.as_published import retina as published

CURVES = ("accuracy", "nll", "auroc", "auprc")
POINTS = (("accuracy", 0.5), ("accuracy", 0.7), ("auroc", 0.5), ("auroc", 0.7))
"""What tables show of a curve: score and share referred."""
THRESHOLDS = 2_000
"""An AUPRC takes time in proportion to the positives at every threshold. On sets of
more than twice so many items it is taken at evenly spaced ones, linear in between."""
_PERFECT = {"accuracy": 1.0, "nll": 0.0, "auroc": 1.0, "auprc": 1.0}
_RANKED = ("auroc", "auprc")

Values = dict[str, float]
"""By "<set>/<score>"."""


class Scored(NamedTuple):
    """All scores of one repeat, with the curves they were read from."""

    ours: Values
    theirs: Values
    curves: Mapping[tuple[str, str], ReferralCurve]
    """Ours without an oracle, by set and score."""


def scored(items: Items, sets: Sets) -> Scored:
    """Every score of a repeat by both rules."""
    curves = {
        (where, name): curve_of(name, *_taken(items, rows))
        for where, rows in sets.ours.items()
        for name in CURVES
    }
    ours = dict(_detection(items.uncertainty.total, items.shifted))
    for where, rows in sets.ours.items():
        found = dict(_plain(items, rows))
        for name in CURVES:
            found |= _read(curves[where, name], _kept(curves[where, name]))
        ours |= {f"{where}/{name}": value for name, value in found.items()}
    return Scored(ours, _theirs(items, sets), curves)


def curve_of(
    name: str, probs: Array, target: Index, uncertainty: Array
) -> ReferralCurve:
    """The referral curve, exact at every threshold but for the AUPRC of large sets."""
    if name == "auprc" and len(target) > 2 * THRESHOLDS:
        rank = rankdata(uncertainty, "max")
        # Items of one bin count as tied, between whose ends a curve is linear.
        uncertainty = np.ceil(rank * (THRESHOLDS / len(target)))
    return scores.referral_curve(name, probs, target, uncertainty)


def _taken(items: Items, rows: Index) -> tuple[Array, Index, Array]:
    return items.probs[rows], items.target[rows], items.uncertainty.total[rows]


def _plain(items: Items, rows: Index) -> Iterator[tuple[str, float]]:
    probs, target, _ = _taken(items, rows)
    yield "accuracy", scores.accuracy(probs, target)
    yield "nll", scores.nll(probs, target)
    yield "auroc", scores.auroc(probs[:, 1], target == 1)
    yield "auprc", scores.auprc(probs[:, 1], target == 1)
    yield "ece", scores.ece(probs, target)


def _detection(total: Array, shifted: Flags) -> Iterator[tuple[str, float]]:
    yield "joint/ood_auroc", scores.ood_auroc(total, shifted)
    yield "joint/ood_auprc", scores.ood_auprc(total, shifted)


def _theirs(items: Items, sets: Sets) -> Values:
    # The released code knows P(y=1) alone, and no more digits of P(y=0).
    total = scores.entropy(items.probs[:, 1], class_axis=None).astype(np.float64)
    items = items._replace(uncertainty=items.uncertainty._replace(total=total))
    curves = {
        (where, name): published.referral_curve(name, *_taken(items, rows))
        for where, rows in sets.theirs.items()
        for name in CURVES
        if not _misplaced(where, name)
    }
    found = dict(_detection(total, items.shifted))
    for where, rows in sets.theirs.items():
        there = dict(_plain_as_published(items, rows))
        for name in CURVES:
            source = "joint" if _misplaced(where, name) else where
            curve = curves[source, name]
            there |= _read(curve, _kept_as_published(curve, len(sets.theirs[source])))
        found |= {f"{where}/{name}": value for name, value in there.items()}
    for name in _RANKED:
        found[f"balanced/{name}"] = found[f"joint/{name}"]
    return found


def _misplaced(where: str, name: str) -> bool:
    """Whether the released code takes a balanced score on the plain joint set."""
    return where == "balanced" and name in _RANKED


def _plain_as_published(items: Items, rows: Index) -> Iterator[tuple[str, float]]:
    probs, target, _ = _taken(items, rows)
    yield from _plain(items, rows)
    yield "nll", published.log_loss(probs, target)
    yield "auprc", published.auprc(probs[:, 1], target == 1)


def _read(
    curve: ReferralCurve | published.PublishedReferralCurve, kept: Array
) -> Values:
    """Points and areas of a curve whose i-th value is of a share `kept` of the items.

    With an oracle the rest counts as perfect, which is `referral_curve(oracle=True)`
    without making the curve again.
    """
    name = curve.name
    found = {f"{at}@{tau:g}": curve.at(tau) for at, tau in POINTS if at == name}
    helped = kept * curve.value + (1 - kept) * _PERFECT[name]
    found[f"referral_{name}_area"] = curve.area
    found[f"referral_{name}_oracle_area"] = _mean_defined(helped)
    return found


def _kept(curve: ReferralCurve) -> Array:
    share: Array = 1 - curve.referred
    return share


def _kept_as_published(curve: published.PublishedReferralCurve, items: int) -> Array:
    """Shares that the released code keeps: it cuts off a part of an item."""
    share: Array = 1 - curve.referred
    if curve.name not in _RANKED:
        return share
    last = len(curve.value) - 1
    whole = [int(((last - k) / last) * items) for k in range(last + 1)]
    return np.array(whole) / items


def _mean_defined(values: Array) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")
