"""Protocol of RETINA: referral in-domain, under shift, and on both together.

The protocol of Band et al. (2021): every row is scored on the in-domain and the shifted
test items, on both together, on a joint set with as many of either kind, and on shifted
items with the grades of the in-domain ones. All sets are rows of one joint set,
in-domain items first, so that one replicate of its items serves every set.

Our scores are exact at every threshold and under ties, and the balanced set is balanced
for all of them. The released code takes AUROC and AUPRC of its balanced set on the
plain joint one; its published areas are those with an oracle, which counts referred
items as answered perfectly.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from qualms import scores
from qualms.arrays import Array, Flags, Index
from qualms.benchmarks.retina._findings import NHS
from qualms.evaluate.drawings import graded_histograms, roc, thinned_referral
from qualms.evaluate.entry import (
    Curve,
    Entry,
    Judgement,
    ScoreOptions,
    entry_of,
)
from qualms.evaluate.protocol import AbsentError, Protocol, Repeat
from qualms.evaluate.subsets import rebalanced
from qualms.evaluate.truth import Uncertainty, truth_entries
from qualms.inference import (
    Influence,
    influence_of,
    referral_influence,
    sampling_design,
)
from qualms.labels import Labels
from qualms.predictions import Predictions
from qualms.scores import ReferralCurve
from qualms.scores.arguments import called_in_order
from qualms.scores.as_published import retina as published
from qualms.study import RunPlan

Values = dict[str, float]

SETS = ("in_domain", "shifted", "joint", "balanced", "rebalanced")
ONCE = SETS[:3]
"""Sets that hold every item once; the other sets repeat some."""
CURVES = ("accuracy", "nll", "auroc", "auprc")
POINTS = (("accuracy", 0.5), ("accuracy", 0.7), ("auroc", 0.5), ("auroc", 0.7))
"""Points of referral curves in tables: score and share referred."""
THRESHOLDS = 2_000
"""Most thresholds of the AUPRC of a large set, linear in between, to save time."""
_SCORES = {name: getattr(scores, name) for name in (*CURVES, "ece")}
_PERFECT = {"accuracy": 1.0, "nll": 0.0, "auroc": 1.0, "auprc": 1.0}
_RANKED = ("auroc", "auprc")
_UNDEFINED = {
    "auroc": "only one class among these items",
    "auprc": "no positive among these items",
}
_NO_SET = "some grades of the in-domain items have no shifted item"
_NO_GRADES = "the grades of the items are not known"


class Patients(NamedTuple):
    """One repeat of a row on the joint set; N items, in-domain first."""

    probs: Array
    """(N, 2) mean over draws."""
    target: Index
    uncertainty: Uncertainty
    shifted: Flags
    group: NDArray[Any] | None
    """(N,) clinical grade."""
    cluster: NDArray[Any] | None
    """(N,) patient."""
    truth: Array | None
    """(N, 2) true probabilities of the classes, where a simulator knows them."""
    own: Mapping[str, Array]
    """(N,) each: uncertainties of the method's own, by name."""


Sets = Mapping[str, Index]
"""Rows of the joint set by the name of the set that they form."""


def _judge(repeat: Repeat) -> Judgement:
    test = repeat.line.variant.test
    items = _patients(repeat.read(test), repeat.read(f"{test}/shifted"))
    sets, released_sets = _sets_of(items, repeat.options.seed)
    curves = {
        (where, name): _curve_of(name, *_set_arrays(items, rows))
        for where, rows in sets.items()
        for name in CURVES
    }
    is_published = not repeat.line.row.beyond and repeat.part_of is None
    released = _as_published(items, released_sets) if is_published else {}
    return Judgement(
        entries=(
            *_entries(items, sets, curves, (_values(items, sets, curves), released)),
            *_own_entries(items, sets),
            *_screening_entries(items, sets),
            *truth_entries(items.uncertainty, items.shifted, items.truth),
        ),
        design=sampling_design(
            len(items.target), sample=items.shifted, cluster=items.cluster
        ),
        curves=tuple(_curves(items, sets, curves)),
        histograms=tuple(_histograms(items, sets)),
    )


def _patients(inside: Predictions, outside: Predictions) -> Patients:
    """Join the items of an in-domain and a shifted split to one set."""
    splits = inside, outside
    for split in splits:
        if split.classes != 2:
            raise AbsentError(
                f"{split.source} must have two classes to be referred by, got "
                f"{split.classes}"
            )
    if inside.draws != outside.draws:
        names = f"{inside.source} and {outside.source}"
        raise AbsentError(
            f"{names} must have as many draws, got {inside.draws} and {outside.draws}"
        )
    parts = [split.arrays["probs"] for split in splits]
    draws = np.concatenate(parts, axis=1, dtype=np.float64)
    total, aleatoric, epistemic = (
        part.astype(np.float64, copy=False) for part in scores.decompose(draws)
    )
    if inside.header.draws == "labels":
        aleatoric, epistemic = epistemic, aleatoric
    return Patients(
        probs=scores.mean_probabilities(draws),
        target=np.concatenate([split.arrays["target"] for split in splits]),
        uncertainty=Uncertainty(total, aleatoric, epistemic, inside.draws),
        shifted=np.repeat([False, True], [split.n for split in splits]),
        group=_join_arrays(splits, "group"),
        cluster=_join_arrays(splits, "cluster"),
        truth=_join_arrays(splits, "target_probs"),
        own=_own_uncertainties(splits),
    )


def _own_uncertainties(splits: tuple[Predictions, ...]) -> dict[str, Array]:
    """Return the uncertainties that both splits hold."""
    inside, outside = (split.named("uncertainty") for split in splits)
    return {
        name: np.concatenate([values, outside[name]])
        for name, values in inside.items()
        if name in outside
    }


def _join_arrays(splits: tuple[Predictions, ...], name: str) -> NDArray[Any] | None:
    """Return the array `name` of both splits; None unless both have it."""
    arrays = [split.get(name) for split in splits]
    present = [array for array in arrays if array is not None]
    return np.concatenate(present) if len(present) == len(arrays) else None


def _sets_of(items: Patients, seed: int) -> tuple[Sets, Sets]:
    """Return the rows of every set, by our rule and by that of the released code."""
    corrected = {
        "in_domain": np.flatnonzero(~items.shifted),
        "shifted": np.flatnonzero(items.shifted),
        "joint": np.arange(len(items.shifted)),
    }
    released = {
        **corrected,
        "balanced": published.balanced_joint(items.shifted, seed=seed),
    }
    corrected["balanced"] = scores.balanced_joint(items.shifted, seed=seed)
    if items.group is not None:
        sample = rebalanced(items.group, items.shifted, seed=seed)
        if sample is not None:
            corrected["rebalanced"] = released["rebalanced"] = sample
    return corrected, released


def _set_arrays(items: Patients, rows: Index) -> tuple[Array, Index, Array]:
    return items.probs[rows], items.target[rows], items.uncertainty.total[rows]


def _entries(
    items: Patients,
    sets: Sets,
    curves: Mapping[tuple[str, str], ReferralCurve],
    values: tuple[Values, Values],
) -> Iterator[Entry]:
    """Yield an entry for each score of each set, undefined ones included."""
    corrected, released = values
    absent = _NO_GRADES if items.group is None else _NO_SET
    for where in SETS:
        rows = sets.get(where)
        influences = {} if rows is None else _influences(items, where, sets, curves)
        for name, score, labels in _scores():
            key = f"{where}/{name}"
            yield Entry(
                name="" if labels else name,
                score=score,
                subset=where,
                settings=labels,
                index=np.arange(0) if rows is None else rows,
                influence=influences.get(name),
                value=corrected.get(key, math.nan),
                as_published=released.get(key, math.nan),
                why=_why(name) if rows is not None else absent,
            )
    for score in (scores.ood_auroc, scores.ood_auprc):
        key = f"joint/{score.__name__}"
        yield Entry(
            score=score,
            subset="joint",
            index=sets["joint"],
            influence=partial(
                influence_of, score, items.uncertainty.total, items.shifted
            ),
            value=corrected[key],
            as_published=released.get(key, math.nan),
        )


def _own_entries(items: Patients, sets: Sets) -> Iterator[Entry]:
    """Yield what depends on the order of items, by each uncertainty of the method."""
    for name, values in items.own.items():
        ordered = items._replace(uncertainty=items.uncertainty._replace(total=values))
        curves = {
            (where, score): _curve_of(score, *_set_arrays(ordered, rows))
            for where, rows in sets.items()
            for score in CURVES
        }
        numbers: tuple[Values, Values] = _values(ordered, sets, curves), {}
        for entry in _entries(ordered, sets, curves, numbers):
            if entry.score_name not in _SCORES or "referred" in entry.settings:
                at = {**entry.settings, "uncertainty": name}
                yield replace(entry, settings=at)


def _screening_entries(items: Patients, sets: Sets) -> Iterator[Entry]:
    """Yield the sensitivity at the specificity that the NHS asks of screening."""
    score = partial(scores.sensitivity_at_specificity, specificity=1 - NHS[0])
    for where in ONCE:
        rows = sets[where]
        yield entry_of(
            score,
            [items.probs[rows, 1], items.target[rows] == 1],
            rows,
            subset=where,
            settings={"specificity": 1 - NHS[0]},
            why=_UNDEFINED["auroc"],
        )


def _scores() -> Iterator[tuple[str, Callable[..., Any], Labels]]:
    """Yield the scores of a set: name, function and labels."""
    for name, score in _SCORES.items():
        yield name, score, {}
    for name, tau in POINTS:
        yield _point(name, tau), _SCORES[name], {"referred": tau}
    for ending in ("area", "oracle_area"):
        for name in CURVES:
            yield f"referral_{name}_{ending}", _SCORES[name], {}


def _point(name: str, tau: float) -> str:
    """Name a score of the items kept when a share is referred."""
    return f"{name} of {1 - tau:.0%}"


def _why(name: str) -> str:
    reasons = (why for part, why in _UNDEFINED.items() if part in name)
    return next(reasons, "undefined for these items")


def _influences(
    items: Patients,
    where: str,
    sets: Sets,
    curves: Mapping[tuple[str, str], ReferralCurve],
) -> dict[str, Callable[[], Influence | None]]:
    """Return the influence of a set's items on every score of the set."""
    arrays = probs, target, _ = _set_arrays(items, sets[where])
    influences: dict[str, Callable[[], Influence | None]] = {
        name: partial(influence_of, _SCORES[name], probs, target)
        for name in ("accuracy", "nll", "ece")
    }
    for name in _RANKED:
        influences[name] = partial(
            influence_of, _SCORES[name], probs[:, 1], target == 1
        )
    for name, tau in POINTS:
        curve = curves[where, name]
        influences[_point(name, tau)] = partial(
            referral_influence, curve, *arrays, tau=tau
        )
    for name in CURVES:
        curve = curves[where, name]
        helped = replace(
            curve, oracle=True, value=_with_oracle(curve, 1 - curve.referred)
        )
        influences[f"referral_{name}_area"] = partial(
            referral_influence, curve, *arrays
        )
        influences[f"referral_{name}_oracle_area"] = partial(
            referral_influence, helped, *arrays
        )
    return influences


def _values(
    items: Patients, sets: Sets, curves: Mapping[tuple[str, str], ReferralCurve]
) -> Values:
    """Return every score by the right rule."""
    values = dict(_detection(items.uncertainty.total, items.shifted))
    for where, rows in sets.items():
        set_values = dict(_plain(items, rows))
        for name in CURVES:
            curve = curves[where, name]
            set_values |= _curve_values(curve, 1 - curve.referred)
        values |= {f"{where}/{name}": value for name, value in set_values.items()}
    return values


def _curve_of(
    name: str, probs: Array, target: Index, uncertainty: Array
) -> ReferralCurve:
    """Return the referral curve, exact at every threshold but for a large AUPRC."""
    if name == "auprc" and len(target) > 2 * THRESHOLDS:
        rank = rankdata(uncertainty, "max")
        # Items of one bin count as tied, between whose ends a curve is linear.
        uncertainty = np.ceil(rank * (THRESHOLDS / len(target)))
    return scores.referral_curve(name, probs, target, uncertainty)


def _plain(items: Patients, rows: Index) -> Iterator[tuple[str, float]]:
    probs, target, _ = _set_arrays(items, rows)
    for name, score in _SCORES.items():
        arrays = (probs[:, 1], target == 1) if name in _RANKED else (probs, target)
        yield name, called_in_order(score, *arrays)


def _detection(total: Array, shifted: Flags) -> Iterator[tuple[str, float]]:
    yield "joint/ood_auroc", scores.ood_auroc(uncertainty=total, shifted=shifted)
    yield "joint/ood_auprc", scores.ood_auprc(uncertainty=total, shifted=shifted)


def _as_published(items: Patients, sets: Sets) -> Values:
    """Return every score as the released code computes it."""
    # The released code stores P(y=1) alone, so P(y=0) has no more digits.
    total = scores.entropy(items.probs[:, 1], class_axis=None).astype(np.float64)
    items = items._replace(uncertainty=items.uncertainty._replace(total=total))
    curves = {
        (where, name): published.referral_curve(name, *_set_arrays(items, rows))
        for where, rows in sets.items()
        for name in CURVES
        if not _uses_joint_set(where, name)
    }
    values = dict(_detection(total, items.shifted))
    for where, rows in sets.items():
        set_values = dict(_plain_as_published(items, rows))
        for name in CURVES:
            source = "joint" if _uses_joint_set(where, name) else where
            curve = curves[source, name]
            set_values |= _curve_values(
                curve, _published_shares(curve, len(sets[source]))
            )
        values |= {f"{where}/{name}": value for name, value in set_values.items()}
    for name in _RANKED:
        values[f"balanced/{name}"] = values[f"joint/{name}"]
    return values


def _uses_joint_set(where: str, name: str) -> bool:
    """Return whether the released code takes a balanced score on the joint set."""
    return where == "balanced" and name in _RANKED


def _plain_as_published(items: Patients, rows: Index) -> Iterator[tuple[str, float]]:
    probs, target, _ = _set_arrays(items, rows)
    yield from _plain(items, rows)
    yield "nll", published.log_loss(probs, target)
    yield "auprc", published.auprc(score=probs[:, 1], positive=target == 1)


def _curve_values(curve: Any, retained: Array) -> Values:
    """Return points and areas of a curve of scores of the `retained` shares of items.

    With an oracle they are those of `referral_curve(oracle=True)`.
    """
    name = curve.name
    values = {_point(at, tau): curve.at(tau) for at, tau in POINTS if at == name}
    helped = _with_oracle(curve, retained)
    some = helped[~np.isnan(helped)]
    area = float(some.mean()) if some.size else math.nan
    return values | {
        f"referral_{name}_area": curve.area,
        f"referral_{name}_oracle_area": area,
    }


def _with_oracle(curve: Any, retained: Array) -> Array:
    """Return the curve with an oracle, which answers referred items perfectly."""
    helped: Array = retained * curve.value + (1 - retained) * _PERFECT[curve.name]
    return helped


def _published_shares(curve: Any, items: int) -> Array:
    """Return the shares that the released code keeps, of items rounded down."""
    share: Array = 1 - curve.referred
    if curve.name not in _RANKED:
        return share
    last = len(curve.value) - 1
    counts = [int(((last - k) / last) * items) for k in range(last + 1)]
    return np.array(counts) / items


def _curves(
    items: Patients, sets: Sets, curves: Mapping[tuple[str, str], ReferralCurve]
) -> Iterator[Curve]:
    """Yield referral curves, ROC, and ROC of the shift."""
    for (where, _), curve in curves.items():
        yield thinned_referral(curve, subset=where)
    for where, rows in sets.items():
        positive = items.target[rows] == 1
        if positive.any() and not positive.all():
            yield roc(items.probs[rows, 1], positive, name="roc", subset=where)
    total = items.uncertainty.total
    yield roc(total, items.shifted, name="ood_roc", subset="joint")


def _histograms(items: Patients, sets: Sets) -> Iterator[Any]:
    """Yield histograms of the total uncertainty, one for each clinical grade."""
    if items.group is None:
        return
    right = scores.correct(items.probs, items.target)
    for where in ONCE:
        rows = sets[where]
        yield from graded_histograms(
            items.uncertainty.total[rows], right[rows], items.group[rows], subset=where
        )


def _notes(_plan: RunPlan, _options: ScoreOptions) -> tuple[str, ...]:
    return (
        "all items of a split count; the released code leaves out the last incomplete "
        "batch",
        "ours: exact at every threshold (AUPRC at 2,000 of a large set), ties shared, "
        "balanced scores on the balanced set; beside the paper: its released code, "
        "whose balanced AUROC and AUPRC are those of the plain joint set, and areas, "
        "which count referred items as right",
    )


PROTOCOL = Protocol(judge=_judge, notes=_notes)
"""Protocol that scores every set by the right rule and by the released code's."""
