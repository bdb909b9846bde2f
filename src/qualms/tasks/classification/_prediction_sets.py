"""Conformal sets of classes, fitted on validation items and judged on others.

Intervals of coverage, size and singletons allow for other validation items, which would
move the threshold, and for other test items. Intervals of size-stratified coverage, and
of sets with a threshold for each class, allow for other test items only.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.arrays import Array, Flags, Index
from qualms.evaluate.entry import Entry
from qualms.evaluate.estimates import influences_of
from qualms.inference import (
    Influence,
    OrderStatistic,
    interval_of,
    mean_influence,
    quantile_influence,
    worst_stratum_influence,
)
from qualms.scores.conformal import rank_reaching, thresholds_by_group
from qualms.scores.conformal_sets import (
    FREE,
    conforms,
    own_nonconformity,
    set_threshold,
    worst_stratum,
)

BLOCK = 1 << 18
"""Probabilities that are turned into sets at a time."""


class _InSets(NamedTuple):
    """The sets of some items."""

    inside: Flags
    """(N,) True where the set holds the target."""
    size: Array
    """(N,) number of classes in the set."""


PerItem = Callable[[_InSets], NDArray[Any]]
MEANS: Mapping[Callable[..., float], PerItem] = {
    scores.set_coverage: lambda covered: covered.inside,
    scores.set_size: lambda covered: covered.size,
    scores.singleton_share: lambda covered: covered.size == 1.0,
}
"""Contribution of each item to the scores that are means."""


class Probabilities(NamedTuple):
    """Items that sets are fitted on or judged on."""

    probs: Array
    """(N, C)"""
    target: Index
    """(N,) classes; any class for items of no known class."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sets:
    """The sets of all items of a file by one rule."""

    name: str
    classes: int
    target_values: Array
    """(N,) nonconformity of the target."""
    threshold: float | Array
    """Threshold of all classes, or (N,) of each item's target."""
    size: Mapping[float, Array]
    """(N,) sizes by threshold; under the key nan if every class has its own."""
    statistic: OrderStatistic | None
    """The threshold of all classes; None if every class has its own."""


def conformal_entries(
    test: Probabilities,
    val: Probabilities,
    rows: tuple[Index, Mapping[str, Index]],
    *,
    alpha: float,
) -> Iterator[Entry]:
    """Yield entries of every rule and subset.

    `rows` are the numbers of the validation items in the judgement's design, and the
    items of each subset.
    """
    val_rows, chosen = rows
    for sets in _all_sets(test, val, alpha):
        for subset, index in chosen.items():
            yield from _entries(sets, subset, (index, val_rows), alpha)


def group_entries(
    test: Probabilities,
    val: Probabilities,
    groups: tuple[NDArray[Any], NDArray[Any]],
    chosen: Mapping[str, Index],
    *,
    alpha: float,
    name: str,
) -> Iterator[Entry]:
    """Yield entries of sets with a threshold for each group of items.

    Items of groups with too few validation items are left out. `groups` are those of
    the test and of the validation items, and `name` is the name of the grouping.
    """
    values = own_nonconformity(*val, rule="lac")
    threshold = thresholds_by_group(values, groups[1], groups[0], alpha=alpha)
    if np.isinf(threshold).all():
        return
    at = np.where(np.isinf(threshold), 1.0, threshold)
    target_values, sizes = _target_values_and_sizes(test, "lac", at[None, :, None])
    sets = _Sets(
        name=f"lac by {name}",
        classes=test.probs.shape[1],
        target_values=target_values,
        threshold=at,
        size={np.nan: sizes[0]},
        statistic=None,
    )
    for subset, index in chosen.items():
        rows = index[np.isfinite(threshold[index])]
        if len(rows):
            yield from _entries(sets, subset, (rows, rows), alpha)


def label_shift_entries(
    test: Probabilities,
    val: Probabilities,
    chosen: Mapping[str, Index],
    *,
    alpha: float,
) -> Iterator[Entry]:
    """Yield entries of sets that allow for other class frequencies in each subset.

    The frequencies are estimated from the predictions for the subset, without its
    targets.
    """
    for subset, index in chosen.items():
        some = Probabilities(test.probs[index], test.target[index])
        weight = scores.label_shift_weights(*val, some.probs)
        fitted = scores.fit_label_shift_sets(*val, weight, alpha=alpha)
        target_values, sizes = _target_values_and_sizes(
            some, "lac", fitted.threshold[None]
        )
        sets = _Sets(
            name="lac, label shift",
            classes=test.probs.shape[1],
            target_values=target_values,
            threshold=fitted.threshold[some.target],
            size={np.nan: sizes[0]},
            statistic=None,
        )
        own = np.arange(len(index))
        for entry in _entries(sets, subset, (own, own), alpha):
            yield replace(entry, index=index)


def _all_sets(test: Probabilities, val: Probabilities, alpha: float) -> Iterator[_Sets]:
    # With few classes RAPS has nothing to penalise.
    rules: list[scores.SetRule] = ["lac", "aps"]
    classes = test.probs.shape[1]
    rules += ["raps"] if classes > FREE else []
    # With two classes the rank adds nothing to the probability.
    rules += ["saps"] if classes > 2 else []
    for rule in rules:
        yield _one_threshold(test, val, rule, alpha)
    if enough_of_each_class(val, alpha):
        yield _threshold_by_class(test, val, alpha)


def enough_of_each_class(val: Probabilities, alpha: float) -> bool:
    """Return whether every class has enough validation items for its threshold."""
    count = np.bincount(val.target, minlength=val.probs.shape[1])
    return all(rank_reaching(1 - alpha, int(n) + 1) <= n for n in count)


def _one_threshold(
    test: Probabilities, val: Probabilities, rule: scores.SetRule, alpha: float
) -> _Sets:
    values = own_nonconformity(*val, rule=rule)
    statistic = OrderStatistic(values, rank_reaching(1 - alpha, len(values) + 1))
    threshold = set_threshold(values, alpha=alpha)
    thresholds = np.array(sorted({*statistic.around(), threshold}))
    target_values, sizes = _target_values_and_sizes(test, rule, thresholds[:, None])
    return _Sets(
        name=rule,
        classes=test.probs.shape[1],
        target_values=target_values,
        threshold=threshold,
        size=dict(zip(thresholds.tolist(), sizes, strict=True)),
        statistic=statistic,
    )


def _threshold_by_class(test: Probabilities, val: Probabilities, alpha: float) -> _Sets:
    fitted = scores.fit_conformal_sets(*val, alpha=alpha, rule="lac", by_class=True)
    target_values, sizes = _target_values_and_sizes(test, "lac", fitted.threshold[None])
    return _Sets(
        name="lac by class",
        classes=test.probs.shape[1],
        target_values=target_values,
        threshold=fitted.threshold[test.target],
        size={np.nan: sizes[0]},
        statistic=None,
    )


def _target_values_and_sizes(
    test: Probabilities, rule: scores.SetRule, thresholds: Array
) -> tuple[Array, Array]:
    """Return (N,) nonconformity of targets, and (T, N) numbers of conforming classes.

    Thresholds have shape (T, 1), (T, C) for one per class, or (T, N, 1) for one per
    item.
    """
    items, classes = test.probs.shape
    target_values, sizes = np.empty(items), np.empty((len(thresholds), items))
    step = max(1, BLOCK // classes)
    for start in range(0, items, step):
        rows = slice(start, start + step)
        part = scores.nonconformity(test.probs[rows], rule=rule)
        target_values[rows] = part[np.arange(len(part)), test.target[rows]]
        for place, threshold in enumerate(thresholds):
            at = threshold[rows] if threshold.shape == (items, 1) else threshold
            sizes[place, rows] = conforms(part, at).sum(axis=1)
    return target_values, sizes


def _entries(
    sets: _Sets, subset: str, rows: tuple[Index, Index], alpha: float
) -> Iterator[Entry]:
    index, val_rows = rows
    subset_sets = _sets_at(sets, index)
    everyone = index if sets.statistic is None else np.concatenate([index, val_rows])
    shared: dict[str, Any] = {
        "subset": subset,
        "settings": {"sets": sets.name},
        "items": len(index),
    }
    means = [
        Entry(
            score=score,
            value=float(values(subset_sets).mean()),
            index=everyone,
            influence=partial(_influence, sets, index, values, score),
            aim=1 - alpha if score is scores.set_coverage else None,
            **shared,
        )
        for score, values in MEANS.items()
    ]
    # Small sets with too little coverage are not better.
    reached = _reached(means[0], alpha)
    yield means[0]
    yield from (replace(entry, ranked=reached) for entry in means[1:])
    yield Entry(
        score=scores.size_stratified_coverage,
        value=worst_stratum(subset_sets.size, subset_sets.inside),
        index=index,
        influence=partial(
            worst_stratum_influence, subset_sets.size, subset_sets.inside
        ),
        **shared,
    )


def _reached(covered: Entry, alpha: float) -> bool:
    """Return whether a coverage of 1 - `alpha` is possible or exceeded."""
    interval = interval_of(influences_of([covered]))
    return covered.value >= 1 - alpha or interval.high >= 1 - alpha


def _sets_at(sets: _Sets, index: Index, threshold: float | None = None) -> _InSets:
    """Return the sets of the items at `index`, by another `threshold` if not None."""
    if isinstance(sets.threshold, np.ndarray):
        inside = conforms(sets.target_values[index], sets.threshold[index])
        return _InSets(inside, next(iter(sets.size.values()))[index])
    at = sets.threshold if threshold is None else threshold
    return _InSets(conforms(sets.target_values[index], at), sets.size[at][index])


def _influence(
    sets: _Sets, index: Index, values: PerItem, score: Callable[..., float]
) -> Influence:
    bound = float(sets.classes) if score is scores.set_size else None

    def at(threshold: float | None = None) -> Influence:
        per_item = values(_sets_at(sets, index, threshold)).astype(np.float64)
        return mean_influence(per_item, bound=bound)

    return at() if sets.statistic is None else quantile_influence(at, [sets.statistic])
