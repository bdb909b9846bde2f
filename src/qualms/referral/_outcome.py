"""The outcome of a threshold on a set: the share referred, scores of kept items."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Literal

import numpy as np
from scipy.special import ndtri

from qualms import scores
from qualms.arrays import Array, Flags
from qualms.evaluate.entry import Curve
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
from qualms.referral._items import ReferralItems
from qualms.referral._request import SHARE_SCORES, ReferralOptions, Request
from qualms.referral._task import referral_of
from qualms.referral._walks import count_below
from qualms.scores import Better, Estimate, about, kept_means

Verdict = Literal["met", "missed", "undecided"]

LABELS: dict[str, tuple[str, Better]] = {
    "accuracy": ("accuracy", "higher"),
    "balanced_accuracy": ("balanced accuracy", "higher"),
    "sensitivity": ("sensitivity", "higher"),
    "specificity": ("specificity", "higher"),
    "auroc": ("AUROC", "higher"),
    "nll": ("NLL", "lower"),
    "mae": ("mean absolute error", "lower"),
}
TENTHS = np.arange(10) / 10
FALSE_ALARMS = 0.05
"""Probability of reporting a fall that is noise, for all pairs of shares together."""
# With a million items any fall is beyond noise; below half a point it is negligible.
LEAST_FALL = 0.005
UNDEFINED = Estimate(value=math.nan, low=math.nan, high=math.nan, undefined=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One score of all items, of the kept items, and with an expert."""

    score: str
    label: str
    better: Better
    before: Estimate
    """Of all items: nothing is referred."""
    kept: Estimate
    """Score of the kept items."""
    with_expert: float
    """Score of all items with referred ones counted as right; nan where meaningless."""
    why: str = ""
    """Reason why a value is undefined; '' if all are defined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PerThousand:
    """Numbers of 1,000 such items that are referred, kept and decided wrongly."""

    referred: float
    kept: float
    wrong: float
    """Kept items that are decided wrongly."""
    missed: float
    """Kept positives decided as negatives; nan unless there are two classes."""
    false_alarms: float
    """Kept negatives decided as positives; nan unless there are two classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """The largest fall of the referral curve that noise does not explain."""

    from_referred: float
    to_referred: float
    from_accuracy: float
    to_accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Effect of the threshold on one set of items."""

    name: str
    """Name of the file."""
    subset: str
    """Part of the file: '' (all), 'in_domain', 'shifted' or 'group=...'."""
    n: int
    clusters: int | None
    kept: int
    referred: Estimate
    measures: tuple[Measure, ...]
    per_thousand: PerThousand
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    """Verdicts whether the request is met, for sets other than that of the choice."""
    fall: Fall | None = None
    curve: Curve | None = field(default=None, repr=False, compare=False)
    """Accuracy of the kept items for every share referred."""
    groups: "tuple[Outcome, ...]" = ()

    @property
    def label(self) -> str:
        """Name of the set in a sentence."""
        parts = (self.name, self.subset.replace("_", "-"))
        return ", ".join(filter(None, parts))

    def measure(self, score: str) -> Measure:
        """Return the measure called `score`."""
        for measure in self.measures:
            if measure.score == score:
                return measure
        names = ", ".join(measure.score for measure in self.measures)
        raise LookupError(f"no {score!r} in {self.name}; it has {names}")


def outcome_at(
    threshold: float, items: ReferralItems, options: ReferralOptions
) -> Outcome:
    """Describe `items` at `threshold`, without verdicts."""
    groups = items.groups() if options.by_group else ()
    return replace(
        _described(items, threshold, options.level),
        fall=_fall(items, threshold, options.seed),
        curve=_curve(items),
        groups=tuple(_described(group, threshold, options.level) for group in groups),
    )


def judged_outcome(
    threshold: float, items: ReferralItems, request: Request, options: ReferralOptions
) -> Outcome:
    """Describe items on which the threshold was not chosen, with verdicts."""
    verdicts = _verdicts(items, threshold, request)
    return replace(outcome_at(threshold, items, options), verdicts=verdicts)


def _verdicts(
    items: ReferralItems, threshold: float, request: Request
) -> Mapping[str, Verdict]:
    """Return verdicts whether the request is met, by budget or score.

    One-sided bounds at the confidence of the request decide. The threshold was fixed
    beforehand, so no correction is needed.
    """
    level = 2.0 * request.effective_confidence - 1.0
    if request.budget is not None:
        share = _share_referred(items, threshold, level)
        return {"budget": _verdict(-share.high, -share.low, -request.budget)}
    verdicts: dict[str, Verdict] = {}
    for name, least in request.at_least.items():
        share = _share_right(items, name, items.uncertainty < threshold, level)
        verdicts[name] = _verdict(share.low, share.high, least)
    return verdicts


def _verdict(low: float, high: float, least: float) -> Verdict:
    if low >= least:
        return "met"
    return "missed" if high < least else "undecided"


def _described(items: ReferralItems, threshold: float, level: float) -> Outcome:
    return Outcome(
        name=items.name,
        subset=items.subset,
        n=items.n,
        clusters=items.clusters,
        kept=int((items.uncertainty < threshold).sum()),
        referred=_share_referred(items, threshold, level),
        measures=_measures(items, threshold, level),
        per_thousand=_per_thousand(items, threshold),
    )


def _share_referred(items: ReferralItems, threshold: float, level: float) -> Estimate:
    everyone = np.ones(items.n, np.bool_)
    return _share(items, items.uncertainty >= threshold, everyone, level)


def _measures(
    items: ReferralItems, threshold: float, level: float
) -> tuple[Measure, ...]:
    names = ["accuracy", "sensitivity", "specificity", "auroc", "nll"]
    if not items.is_decided:
        names = ["mae"]
    elif items.classes is None:
        names = ["accuracy"]
    elif items.classes != 2:
        names = ["accuracy", "balanced_accuracy", "nll"]
    is_kept = items.uncertainty < threshold
    return tuple(_measure(items, name, is_kept, level) for name in names)


def _measure(items: ReferralItems, name: str, is_kept: Flags, level: float) -> Measure:
    label, better = score_label(items, name)
    after = estimate(items, name, is_kept, level)
    return Measure(
        score=name,
        label=label,
        better=better,
        before=estimate(items, name, np.ones(items.n, np.bool_), level),
        kept=after,
        with_expert=_with_expert(items, name, is_kept),
        why=_why_undefined(items, name, is_kept) if np.isnan(after.value) else "",
    )


def score_label(items: ReferralItems, name: str) -> tuple[str, Better]:
    """Return the label of a score and its direction.

    The accuracy of queries is called R@1.
    """
    label, better = LABELS[name]
    if name == "accuracy" and (share := referral_of(items.task).accuracy) != name:
        label = about(getattr(scores, share)).label
    return label, better


def estimate(items: ReferralItems, name: str, chosen: Flags, level: float) -> Estimate:
    """Return a score of the `chosen` items with its interval."""
    if name in SHARE_SCORES:
        return _share_right(items, name, chosen, level)
    if not chosen.any():
        return UNDEFINED
    influence = _influence(items, name, chosen)
    if math.isnan(influence.value):
        return UNDEFINED
    interval = interval_of(influence, design=_design(items, chosen), level=level)
    # With too few items or clusters no value is excluded.
    defined = not math.isnan(interval.low)
    return Estimate(
        value=influence.value,
        low=interval.low if defined else influence.low,
        high=interval.high if defined else influence.high,
        undefined=0.0,
    )


def _influence(items: ReferralItems, name: str, chosen: Flags) -> Influence:
    target = items.target[chosen]
    if name == "nll":
        return replace(mean_influence(items.loss[chosen]), skewed=False)
    if name == "balanced_accuracy":
        return recall_influence(items.correct[chosen], target)
    if name == "auroc":
        influence = influence_of(
            scores.auroc, score=items.positive[chosen], positive=target == 1
        )
    else:
        influence = influence_of(scores.mae, items.predicted[chosen], target)
    assert influence is not None
    return influence


def _share_right(
    items: ReferralItems, name: str, chosen: Flags, level: float
) -> Estimate:
    return _share(items, items.correct, chosen & items.counted(name), level)


def _share(items: ReferralItems, hit: Flags, counted: Flags, level: float) -> Estimate:
    """Return the share of `hit` with an exact interval, because promises are exact."""
    if not counted.any():
        return UNDEFINED
    design = _design(items, counted)
    low, high = exact_interval(hit[counted], design=design, level=level)
    value = float(hit[counted].mean())
    return Estimate(value=value, low=low, high=high, undefined=0.0)


def _design(items: ReferralItems, chosen: Flags) -> Design:
    cluster = None if items.cluster is None else items.cluster[chosen]
    return Design(items=int(chosen.sum()), cluster=cluster)


def _with_expert(items: ReferralItems, name: str, is_kept: Flags) -> float:
    if name == "mae":
        return float(np.where(is_kept, items.loss, 0.0).mean())
    if name not in SHARE_SCORES:
        return float("nan")
    counted = items.counted(name)
    right = items.correct | ~is_kept
    return float(right[counted].mean()) if counted.any() else float("nan")


def _why_undefined(items: ReferralItems, name: str, is_kept: Flags) -> str:
    if not is_kept.any():
        return "no item is kept"
    if name in SHARE_SCORES:
        side, exist = SHARE_SCORES[name].side, items.counted(name).any()
        return f"no {side} item is kept" if exist else f"there is no {side} item"
    return "only one class among the kept items"


def _per_thousand(items: ReferralItems, threshold: float) -> PerThousand:
    is_kept = items.uncertainty < threshold
    wrong = is_kept & ~items.correct
    each = 1000.0 / items.n
    two, judged = items.classes == 2, items.is_decided
    return PerThousand(
        referred=each * float((~is_kept).sum()),
        kept=each * float(is_kept.sum()),
        wrong=each * float(wrong.sum()) if judged else np.nan,
        missed=each * float((wrong & (items.target == 1)).sum()) if two else np.nan,
        false_alarms=(
            each * float((wrong & (items.target == 0)).sum()) if two else np.nan
        ),
    )


def _curve(items: ReferralItems) -> Curve:
    """Return the accuracy of the kept items at every share referred.

    For queries it is R@1, for values the mean absolute error.
    """
    order, start = items.rank
    values = items.correct.astype(np.float64)
    name = referral_of(items.task).accuracy
    if not items.is_decided:
        name, values = "mae", items.loss
    means = kept_means(values[order], start)
    return Curve(
        name=f"referral_{name}",
        label=f"{scores.about(getattr(scores, name)).label} of the kept items",
        subset=items.subset,
        x_label="share referred",
        x=np.arange(items.n) / items.n,
        y=means[::-1].copy(),
    )


def _fall(items: ReferralItems, threshold: float, seed: int) -> Fall | None:
    if not items.is_decided:
        return None
    return _largest_fall(items.independent(seed), threshold)


def _largest_fall(sample: ReferralItems, threshold: float) -> Fall | None:
    """Return the largest fall of the referral curve; None where it does not fall.

    Shares are compared at tenths of the items referred and at the share that
    `threshold` refers. The curve falls where the items kept are worse than those
    referred in between, by more than half a percentage point and more than noise: both
    are shares of separate items, whose difference has Newcombe's (1998) interval, with
    Bonferroni's correction for all pairs of shares. `sample` must hold independent
    items.
    """
    kept, right = _kept_at_shares(sample, threshold)
    accuracy = right / kept
    pairs = np.array(list(combinations(range(len(kept)), 2)), np.int64).reshape(-1, 2)
    # Cuts ascend: the first of a pair keeps less, so it refers more.
    less, more = pairs.T
    between = kept[more] - kept[less], right[more] - right[less]
    drop = accuracy[more] - accuracy[less]
    certain = _below(right[less], kept[less], between[1], between[0])
    drop = np.where(certain & (drop >= LEAST_FALL), drop, 0.0)
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
    """Return the numbers of kept items at each share and of right ones, ascending.

    Tied items are kept together.
    """
    counts = count_below(sample, {"accuracy": 0.0})
    ranks = np.floor((1.0 - TENTHS) * sample.n + 1e-9)
    places = np.searchsorted(counts.kept, ranks, side="right") - 1
    chosen = np.searchsorted(counts.threshold, threshold, side="left")
    places = np.unique(np.append(places, chosen))
    kept, right = counts.kept[places], counts.right["accuracy"][places]
    some = kept > 0
    return kept[some].astype(np.float64), right[some].astype(np.float64)


def _below(hits: Array, n: Array, other_hits: Array, other_n: Array) -> Flags:
    """Return for each pair whether the first share is lower by more than noise."""
    if not len(n):
        return np.zeros(0, np.bool_)
    z = float(ndtri(1.0 - FALSE_ALARMS / len(n)))
    first, second = hits / n, other_hits / other_n
    up = wilson_ends(first, n, z)[1] - first
    down = second - wilson_ends(second, other_n, z)[0]
    lower: Flags = first - second + np.hypot(up, down) < 0.0
    return lower
