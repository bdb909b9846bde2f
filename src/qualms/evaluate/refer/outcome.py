"""What a threshold does on a set: how many items it refers, how good the others are."""

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from qualms import scores
from qualms.evaluate.entry import Curve
from qualms.evaluate.refer.items import ReferralItems, groups_of, independent
from qualms.evaluate.refer.plan import (
    Fall,
    Measure,
    Outcome,
    PerThousand,
    Verdict,
)
from qualms.evaluate.refer.promise import cuts_of
from qualms.evaluate.refer.request import ReferralOptions, Request
from qualms.inference import (
    Design,
    Influence,
    exact_interval,
    influence_of,
    interval_of,
    mean_influence,
    recall_influence,
    wilson_ends,
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
    "mae": ("mean absolute error", "lower"),
}
SHARES = ("accuracy", "sensitivity", "specificity")
TENTHS = np.arange(10) / 10
ALARM = 0.05
"""Chance of finding a fall that is noise, for all pairs of shares together."""
# Of a million items any fall is beyond noise; below half a point it is of no account.
LEAST = 0.005
UNDEFINED = Estimate(value=math.nan, low=math.nan, high=math.nan, undefined=1.0)


def outcome_of(
    items: ReferralItems, threshold: float, options: ReferralOptions
) -> Outcome:
    """Everything about `items` at `threshold` but the verdicts."""
    groups = groups_of(items) if options.by_group else ()
    return replace(
        _described(items, threshold, options.level),
        fall=_fall(items, threshold, options.seed),
        curve=_curve(items),
        groups=tuple(_described(group, threshold, options.level) for group in groups),
    )


def verdicts_of(
    items: ReferralItems, threshold: float, request: Request
) -> Mapping[str, Verdict]:
    """Whether the request is met on items that the threshold was not chosen on.

    Decided by one-sided bounds at the confidence of the request. The threshold is fixed
    beforehand, so no correction is needed.
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
    everyone = np.ones(items.n, np.bool_)
    return _exact(items, items.uncertainty >= threshold, everyone, level)


def _measures(
    items: ReferralItems, threshold: float, level: float
) -> tuple[Measure, ...]:
    names = ["accuracy", "sensitivity", "specificity", "auroc", "nll"]
    if items.classes is None:
        names = ["mae"]
    elif items.classes != 2:
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
    """A score of the `chosen` items with its interval."""
    if name in SHARES:
        return _share(items, name, chosen, level)
    if not chosen.any():
        return UNDEFINED
    found = _influence(items, name, chosen)
    if math.isnan(found.value):
        return UNDEFINED
    interval = interval_of(found, design=_design(items, chosen), level=level)
    known = not math.isnan(interval.low)
    return Estimate(
        value=found.value,
        # Too few items or clusters rule out no value at all.
        low=interval.low if known else found.low,
        high=interval.high if known else found.high,
        undefined=0.0,
    )


def _influence(items: ReferralItems, name: str, chosen: Flags) -> Influence:
    target = items.target[chosen]
    if name == "nll":
        return mean_influence(items.loss[chosen])
    if name == "balanced_accuracy":
        return recall_influence(items.correct[chosen], target)
    if name == "auroc":
        found = influence_of(scores.auroc, items.positive[chosen], target == 1)
    else:
        found = influence_of(scores.mae, items.predicted[chosen], target)
    assert found is not None
    return found


def _share(items: ReferralItems, name: str, chosen: Flags, level: float) -> Estimate:
    return _exact(items, items.correct, chosen & items.among(name), level)


def _exact(items: ReferralItems, hit: Flags, among: Flags, level: float) -> Estimate:
    """The share of `hit` among some items: it stands beside exact promises."""
    if not among.any():
        return UNDEFINED
    low, high = exact_interval(hit[among], design=_design(items, among), level=level)
    value = float(hit[among].mean())
    return Estimate(value=value, low=low, high=high, undefined=0.0)


def _design(items: ReferralItems, chosen: Flags) -> Design:
    cluster = None if items.cluster is None else items.cluster[chosen]
    return Design(items=int(chosen.sum()), cluster=cluster)


def _with_expert(items: ReferralItems, name: str, kept: Flags) -> float:
    if name == "mae":
        return float(np.where(kept, items.loss, 0.0).mean())
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
    two, judged = items.classes == 2, items.classes is not None
    return PerThousand(
        referred=each * float((~kept).sum()),
        kept=each * float(kept.sum()),
        wrong=each * float(wrong.sum()) if judged else np.nan,
        missed=each * float((wrong & (items.target == 1)).sum()) if two else np.nan,
        false_alarms=(
            each * float((wrong & (items.target == 0)).sum()) if two else np.nan
        ),
    )


def _curve(items: ReferralItems) -> Curve:
    """The accuracy curve of `scores.referral_curve`; for values, the absolute error."""
    order, start = items.rank
    name, each = "accuracy", items.correct.astype(np.float64)
    if items.classes is None:
        name, each = "mae", items.loss
    kept = kept_means(each[order], start)
    return Curve(
        name=f"referral_{name}",
        label=f"{scores.about(getattr(scores, name)).label} of the kept items",
        subset=items.subset,
        x_label="share referred",
        x=np.arange(items.n) / items.n,
        y=kept[::-1].copy(),
    )


def _fall(items: ReferralItems, threshold: float, seed: int) -> Fall | None:
    if items.classes is None:
        return None
    return fall_of(independent(items, seed), threshold)


def fall_of(sample: ReferralItems, threshold: float) -> Fall | None:
    """The largest fall of the referral curve; None where it does not fall.

    Between tenths of the items referred and the share that `threshold` refers. The
    curve falls where the items kept are worse than those referred in between, by more
    than half a percentage point and more than noise: both are shares of separate items,
    whose difference has Newcombe's (1998) interval, with Bonferroni's correction for
    all pairs of shares. `sample` must hold independent items.
    """
    kept, right = _kept_at_shares(sample, threshold)
    accuracy = right / kept
    pairs = np.array(list(combinations(range(len(kept)), 2)), np.int64).reshape(-1, 2)
    # Cuts ascend: the first of a pair keeps less, so it refers more.
    less, more = pairs.T
    between = kept[more] - kept[less], right[more] - right[less]
    drop = accuracy[more] - accuracy[less]
    sure = _below(right[less], kept[less], between[1], between[0])
    drop = np.where(sure & (drop >= LEAST), drop, 0.0)
    if not drop.any():
        return None
    worst = int(drop.argmax())
    i, j = int(more[worst]), int(less[worst])
    return Fall(
        from_referred=float(1.0 - kept[i] / sample.n),
        to_referred=float(1.0 - kept[j] / sample.n),
        from_accuracy=float(accuracy[i]),
        to_accuracy=float(accuracy[j]),
    )


def _kept_at_shares(sample: ReferralItems, threshold: float) -> tuple[Array, Array]:
    """Items and right ones kept at each share, fewest first, tied items together."""
    cuts = cuts_of(sample, {"accuracy": 0.0})
    ranks = np.floor((1.0 - TENTHS) * sample.n + 1e-9)
    cut = np.searchsorted(cuts.kept, ranks, side="right") - 1
    own = np.searchsorted(cuts.threshold, threshold, side="left")
    cut = np.unique(np.append(cut, own))
    kept, right = cuts.kept[cut], cuts.right["accuracy"][cut]
    some = kept > 0
    return kept[some].astype(np.float64), right[some].astype(np.float64)


def _below(hits: Array, n: Array, others: Array, m: Array) -> Flags:
    """Whether hits / n lies below others / m by more than noise, for each pair."""
    if not len(n):
        return np.zeros(0, np.bool_)
    z = float(ndtri(1.0 - ALARM / len(n)))
    first, second = hits / n, others / m
    up = wilson_ends(first, n, z)[1] - first
    down = second - wilson_ends(second, m, z)[0]
    found: Flags = first - second + np.hypot(up, down) < 0.0
    return found
