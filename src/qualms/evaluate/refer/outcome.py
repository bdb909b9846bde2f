"""What a threshold does on a set of items: workload, what is kept, how good it is."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.evaluate.entry import Curve
from qualms.evaluate.refer.estimates import (
    auroc_estimate,
    balanced_estimate,
    mean_estimate,
    share_estimate,
)
from qualms.evaluate.refer.fall import fall_of
from qualms.evaluate.refer.items import ReferralItems, groups_of, independent
from qualms.evaluate.refer.plan import (
    Measure,
    Outcome,
    PerThousand,
    ReferralOptions,
    Request,
    Verdict,
)
from qualms.scores import Better, Estimate, kept_means

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

LABELS: dict[str, tuple[str, Better]] = {
    "accuracy": ("accuracy", "higher"),
    "balanced_accuracy": ("balanced accuracy", "higher"),
    "sensitivity": ("sensitivity", "higher"),
    "specificity": ("specificity", "higher"),
    "auroc": ("AUROC", "higher"),
    "nll": ("NLL", "lower"),
}
SHARES = ("accuracy", "sensitivity", "specificity")


def outcome_of(
    items: ReferralItems, threshold: float, options: ReferralOptions
) -> Outcome:
    """Everything about `items` at `threshold`; verdicts come where it is not theirs."""
    groups = groups_of(items) if options.by_group else ()
    return replace(
        _described(items, threshold, options.level),
        fall=fall_of(independent(items, options.seed), threshold),
        curve=_curve(items),
        groups=tuple(_described(group, threshold, options.level) for group in groups),
    )


def verdicts_of(
    items: ReferralItems, threshold: float, request: Request
) -> Mapping[str, Verdict]:
    """Is what was asked for met on items the threshold was not chosen on?

    Decided by one-sided bounds at the confidence of the request, for a threshold that
    is fixed beforehand: no correction is needed.
    """
    level = 2.0 * request.sure - 1.0
    if request.budget is not None:
        found = _referred(items, threshold, level)
        return {"budget": _verdict(-found.high, -found.low, -request.budget)}
    said: dict[str, Verdict] = {}
    for name, wanted in request.targets.items():
        found = _share(items, name, items.uncertainty < threshold, level)
        said[name] = _verdict(found.low, found.high, wanted)
    return said


def _verdict(low: float, high: float, wanted: float) -> Verdict:
    if low >= wanted:
        return "met"
    return "missed" if high < wanted else "undecided"


def _described(items: ReferralItems, threshold: float, level: float) -> Outcome:
    return Outcome(
        name=items.name,
        subset=items.subset,
        n=items.n,
        clusters=items.clusters,
        kept=int((items.uncertainty < threshold).sum()),
        referred=_referred(items, threshold, level),
        measures=_measures(items, threshold, level),
        per_thousand=_per_thousand(items, threshold),
    )


def _referred(items: ReferralItems, threshold: float, level: float) -> Estimate:
    referred = items.uncertainty >= threshold
    return share_estimate(referred, items.cluster, level=level)


def _measures(
    items: ReferralItems, threshold: float, level: float
) -> tuple[Measure, ...]:
    names = ["accuracy", "sensitivity", "specificity", "auroc", "nll"]
    if items.classes != 2:
        names = ["accuracy", "balanced_accuracy", "nll"]
    kept = items.uncertainty < threshold
    return tuple(_measure(items, name, kept, level) for name in names)


def _measure(items: ReferralItems, name: str, kept: Flags, level: float) -> Measure:
    label, better = LABELS[name]
    before = _estimate(items, name, np.ones(items.n, np.bool_), level)
    after = _estimate(items, name, kept, level)
    return Measure(
        score=name,
        label=label,
        better=better,
        before=before,
        kept=after,
        with_expert=_with_expert(items, name, kept),
        why=_why(items, name, kept) if np.isnan(after.value) else "",
    )


def _estimate(items: ReferralItems, name: str, chosen: Flags, level: float) -> Estimate:
    if name in SHARES:
        return _share(items, name, chosen, level)
    cluster = None if items.cluster is None else items.cluster[chosen]
    if name == "auroc":
        positive = (items.target == 1)[chosen]
        return auroc_estimate(items.positive[chosen], positive, cluster, level=level)
    if name == "nll":
        return mean_estimate(items.nll[chosen], cluster, level=level)
    right, target = items.correct[chosen], items.target[chosen]
    return balanced_estimate(right, target, cluster, level=level)


def _share(items: ReferralItems, name: str, chosen: Flags, level: float) -> Estimate:
    among = chosen & items.among(name)
    cluster = None if items.cluster is None else items.cluster[among]
    return share_estimate(items.correct[among], cluster, level=level)


def _with_expert(items: ReferralItems, name: str, kept: Flags) -> float:
    if name not in SHARES:
        return float("nan")
    among = items.among(name)
    right = items.correct | ~kept
    return float(right[among].mean()) if among.any() else float("nan")


def _why(items: ReferralItems, name: str, kept: Flags) -> str:
    if not kept.any():
        return "no item is kept"
    if name in ("sensitivity", "specificity"):
        side = "positive" if name == "sensitivity" else "negative"
        known = items.among(name).any()
        return f"no {side} item is kept" if known else f"there is no {side} item"
    return "only one class among the kept items"


def _per_thousand(items: ReferralItems, threshold: float) -> PerThousand:
    kept = items.uncertainty < threshold
    wrong = kept & ~items.correct
    each = 1000.0 / items.n
    two = items.classes == 2
    return PerThousand(
        referred=each * float((~kept).sum()),
        kept=each * float(kept.sum()),
        wrong=each * float(wrong.sum()),
        missed=each * float((wrong & (items.target == 1)).sum()) if two else np.nan,
        false_alarms=(
            each * float((wrong & (items.target == 0)).sum()) if two else np.nan
        ),
    )


def _curve(items: ReferralItems) -> Curve:
    """The accuracy curve of `scores.referral_curve`."""
    order, start = items.rank
    kept = kept_means(items.correct[order].astype(np.float64), start)
    return Curve(
        name="referral_accuracy",
        label=f"{scores.about(scores.accuracy).label} of the kept items",
        subset=items.subset,
        x_label="share referred",
        x=np.arange(items.n) / items.n,
        y=kept[::-1].copy(),
    )
