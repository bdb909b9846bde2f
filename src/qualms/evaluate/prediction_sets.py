"""Conformal sets of classes, fitted on validation items and judged on others.

Intervals of coverage, size and singletons are about both: other validation items would
have moved the threshold. Those of size-stratified coverage, and of sets with a
threshold for each class, are about new items for the sets as they are.
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
from qualms.scores.conformal import rank_reaching
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
    """(N,) whether they hold the target."""
    size: Array
    """(N,) how many classes they hold."""


PerItem = Callable[[_InSets], NDArray[Any]]
MEANS: Mapping[Callable[..., float], PerItem] = {
    scores.set_coverage: lambda held: held.inside,
    scores.set_size: lambda held: held.size,
    scores.singleton_share: lambda held: held.size == 1.0,
}
"""What each item contributes to the scores that are means."""


class Probabilities(NamedTuple):
    """Items that sets are fitted on or judged on."""

    probs: Array
    """(N, C)"""
    target: Index
    """(N,), any class where it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sets:
    """The sets of all items of a file by one rule."""

    name: str
    classes: int
    own: Array
    """(N,) nonconformity of the target."""
    threshold: float | Array
    """The one of each item's target, where every class has its own."""
    size: Mapping[float, Array]
    """(N,) by threshold; only under nan where every class has its own."""
    known: OrderStatistic | None
    """What the threshold is; None where every class has its own."""


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
    known, chosen = rows
    for sets in _all_sets(test, val, alpha):
        for subset, index in chosen.items():
            yield from _entries(sets, subset, (index, known), alpha)


def _all_sets(test: Probabilities, val: Probabilities, alpha: float) -> Iterator[_Sets]:
    # With few classes RAPS has nothing to penalise.
    rules: tuple[scores.SetRule, ...] = ("lac", "aps", "raps")
    for rule in rules if test.probs.shape[1] > FREE else rules[:2]:
        yield _one_threshold(test, val, rule, alpha)
    if enough_of_each_class(val, alpha):
        yield _threshold_by_class(test, val, alpha)


def enough_of_each_class(val: Probabilities, alpha: float) -> bool:
    """Whether every class has the validation items that its own threshold needs."""
    count = np.bincount(val.target, minlength=val.probs.shape[1])
    return all(rank_reaching(1 - alpha, int(n) + 1) <= n for n in count)


def _one_threshold(
    test: Probabilities, val: Probabilities, rule: scores.SetRule, alpha: float
) -> _Sets:
    values = own_nonconformity(*val, rule=rule)
    known = OrderStatistic(values, rank_reaching(1 - alpha, len(values) + 1))
    threshold = set_threshold(values, alpha=alpha)
    thresholds = np.array(sorted({*known.around(), threshold}))
    own, sizes = _own_and_sizes(test, rule, thresholds[:, None])
    return _Sets(
        name=rule,
        classes=test.probs.shape[1],
        own=own,
        threshold=threshold,
        size=dict(zip(thresholds.tolist(), sizes, strict=True)),
        known=known,
    )


def _threshold_by_class(test: Probabilities, val: Probabilities, alpha: float) -> _Sets:
    fitted = scores.fit_conformal_sets(*val, alpha=alpha, rule="lac", by_class=True)
    own, sizes = _own_and_sizes(test, "lac", fitted.threshold[None])
    return _Sets(
        name="lac by class",
        classes=test.probs.shape[1],
        own=own,
        threshold=fitted.threshold[test.target],
        size={np.nan: sizes[0]},
        known=None,
    )


def _own_and_sizes(
    test: Probabilities, rule: scores.SetRule, thresholds: Array
) -> tuple[Array, Array]:
    """Return (N,) nonconformity of targets; (T, N) how many classes conform.

    Thresholds are (T, 1), or (T, C) with one for each class.
    """
    items, classes = test.probs.shape
    own, found = np.empty(items), np.empty((len(thresholds), items))
    step = max(1, BLOCK // classes)
    for start in range(0, items, step):
        rows = slice(start, start + step)
        part = scores.nonconformity(test.probs[rows], rule=rule)
        own[rows] = part[np.arange(len(part)), test.target[rows]]
        for place, threshold in enumerate(thresholds):
            found[place, rows] = conforms(part, threshold).sum(axis=1)
    return own, found


def _entries(
    sets: _Sets, subset: str, rows: tuple[Index, Index], alpha: float
) -> Iterator[Entry]:
    index, known = rows
    held = _judged(sets, index)
    everyone = index if sets.known is None else np.concatenate([index, known])
    shared: dict[str, Any] = {
        "subset": subset,
        "settings": {"sets": sets.name},
        "items": len(index),
    }
    means = [
        Entry(
            score=score,
            value=float(values(held).mean()),
            index=everyone,
            influence=partial(_influence, sets, index, values, score),
            aim=1 - alpha if score is scores.set_coverage else None,
            **shared,
        )
        for score, values in MEANS.items()
    ]
    # Small sets that do not cover are not better.
    reached = _reached(means[0], alpha)
    yield means[0]
    yield from (replace(entry, ranked=reached) for entry in means[1:])
    yield Entry(
        score=scores.size_stratified_coverage,
        value=worst_stratum(held.size, held.inside),
        index=index,
        influence=partial(worst_stratum_influence, held.size, held.inside),
        **shared,
    )


def _reached(covered: Entry, alpha: float) -> bool:
    """Whether a coverage of 1 - `alpha` cannot be ruled out, or is exceeded."""
    found = interval_of(influences_of([covered]))
    return covered.value >= 1 - alpha or found.high >= 1 - alpha


def _judged(sets: _Sets, index: Index, threshold: float | None = None) -> _InSets:
    """Return sets of the items at `index`, by another threshold where one is given."""
    if isinstance(sets.threshold, np.ndarray):
        inside = conforms(sets.own[index], sets.threshold[index])
        return _InSets(inside, next(iter(sets.size.values()))[index])
    at = sets.threshold if threshold is None else threshold
    return _InSets(conforms(sets.own[index], at), sets.size[at][index])


def _influence(
    sets: _Sets, index: Index, values: PerItem, score: Callable[..., float]
) -> Influence:
    bound = float(sets.classes) if score is scores.set_size else None

    def at(threshold: float | None = None) -> Influence:
        found = values(_judged(sets, index, threshold)).astype(np.float64)
        return mean_influence(found, bound=bound)

    return at() if sets.known is None else quantile_influence(at, [sets.known])
