"""Rules that choose training items: the values of `ItemRule.name`.

A rule is a function of this file. It takes the `Candidates` and its options, and
returns the rows that it chooses. Its keyword arguments are the options that
`ItemRule.options` may state, besides `keep`, which all rules have (see `_items.py`).
"""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.predictions import Maps, Predictions, pool
from qualms.shelf import traits
from qualms.training._error import TrainingError
from qualms.wording import suggest

Rows = NDArray[np.int64]
Values = NDArray[np.float64]
MEASURES = ("PE", "EE", "MI", "MSR")
AGGREGATIONS = ("image", "patch", "threshold")
_THREADS = 4
"""Maps that are read and aggregated at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Items of a split, from which a rule chooses."""

    split: str
    item: NDArray[np.str_]
    """(N,) names."""
    target: NDArray[Any]
    """(N,) or (N, R, *space)."""
    seed: int
    """Seed of the run that will train on them."""
    predictions: Callable[[str], list[Predictions]]
    """From the name of a split to the predictions of each of the rule's runs."""


def choose(name: str, candidates: Candidates, options: Mapping[str, Any]) -> Rows:
    """Return the rows that the rule `name` chooses.

    Raises:
        TrainingError: If there is no such rule, if it does not take the options, or if
            it cannot choose from the candidates.
    """
    if name not in RULES:
        raise TrainingError(
            f"no item rule {name!r}.{suggest(name, RULES)} Known: {', '.join(RULES)}."
        )
    names = [*inspect.signature(RULES[name]).parameters][1:]
    for option in options:
        if option not in names:
            raise TrainingError(
                f"item rule {name!r} has no option {option!r}."
                f"{suggest(option, names)} Known: {', '.join((*names, 'keep'))}."
            )
    try:
        return RULES[name](candidates, **options)
    except (ValueError, TypeError) as error:
        raise TrainingError(f"item rule {name!r} cannot choose: {error}") from error


def most_uncertain(
    candidates: Candidates,
    *,
    share: float | None = None,
    count: int | None = None,
    measure: str = "PE",
    aggregation: str | Mapping[str, Any] = "image",
    uncertainty: str | None = None,
) -> Rows:
    """Choose the most uncertain items by the pooled predictions of the rule's runs.

    Of items that are equally uncertain, those whose names come first are chosen.

    Args:
        candidates: what to choose from.
        share: share of the items to choose, rounded down; or
        count: number of items to choose.
        measure: "PE", the entropy of the mean prediction; "EE", the mean entropy of
            the draws; "MI", their difference; "MSR", one minus the largest mean
            probability. For regression they are variances: "PE" the total, "EE" the
            mean variance of the draws, "MI" the variance of their means.
        aggregation: how the pixels of a label map become one value: "image" (their
            sum), "patch" or "threshold"; with options as in {"name": "patch", "size":
            10} or {"name": "threshold", "threshold": 0.3}. Without a number the
            threshold is chosen on the predictions of the split `val`, or of the split
            that "validation" names (Kahl et al., 2024).
        uncertainty: name of an array `uncertainty/<name>` or `select/<name>` of the
            predictions, to be used instead of a measure, averaged over the runs.
    """
    runs = candidates.predictions(candidates.split)
    _check_items(candidates, runs)
    if uncertainty is not None or "vectors" in traits(runs[0].task):
        value = _array_mean(runs, uncertainty)
    elif "pixels" in traits(runs[0].task):
        value = _of_maps(pool(runs), measure, aggregation, candidates)
    else:
        value = _of_items(pool(runs), measure)
    names = _names(runs[0])
    order = np.lexsort((names, -value))
    row_of = {name: row for row, name in enumerate(candidates.item.astype(str))}
    chosen = order[: _number(len(names), share, count)]
    return np.array([row_of[names[row]] for row in chosen], dtype=np.int64)


def random_items(
    candidates: Candidates,
    *,
    share: float | None = None,
    count: int | None = None,
    seed: int | None = None,
) -> Rows:
    """Choose as many items as `most_uncertain` does, at random.

    Args:
        candidates: what to choose from.
        share: share of the items to choose, rounded down; or
        count: number of items to choose.
        seed: seed of the draw, by default that of the run. Runs of one pool train on
            the same items if all of them state the same seed.
    """
    items = len(candidates.item)
    rng = np.random.default_rng(candidates.seed if seed is None else seed)
    chosen = rng.choice(items, _number(items, share, count), replace=False)
    return chosen.astype(np.int64)


def few_shot(candidates: Candidates, *, k: int, spaced: bool = False) -> Rows:
    """Choose `k` items of every class, or all items of a class that has fewer.

    Args:
        candidates: what to choose from.
        k: number of items of each class.
        spaced: take every (n // k)-th item of a class, as the released code of
            Kirchhof et al. (2023) does; otherwise items are drawn with the run's seed.
    """
    target = candidates.target
    if target.ndim != 1 or target.dtype.kind not in "iu":
        raise ValueError("few-shot items are of classes, and these have other targets")
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ValueError(f"k must be a whole number from 1 on, got {k!r}")
    rng = np.random.default_rng(candidates.seed)
    chosen = []
    for label in np.unique(target[target >= 0]):  # -1 marks an unknown class
        rows = np.flatnonzero(target == label)
        few = min(k, len(rows))
        spread = np.arange(few) * (len(rows) // few)
        chosen.append(rows[spread] if spaced else rng.choice(rows, few, replace=False))
    return np.concatenate(chosen).astype(np.int64)


RULES: Mapping[str, Callable[..., Rows]] = {
    rule.__name__: rule for rule in (most_uncertain, random_items, few_shot)
}
UNSEEDED = ("most_uncertain",)
"""Rules that choose the same items whatever the seed of the run."""


def _number(items: int, share: float | None, count: int | None) -> int:
    if (share is None) == (count is None):
        raise ValueError("state either a share or a count of items, and not both")
    if share is not None and not 0 < share <= 1:
        raise ValueError(f"share must be above 0 and at most 1, got {share!r}")
    # 0.29 * 100 is 28.999..., and 29 is meant.
    number = math.floor(share * items + 1e-9) if share is not None else count
    assert number is not None
    if not 1 <= number <= items:
        raise ValueError(f"{number} of {items} items cannot be chosen")
    return number


def _check_items(candidates: Candidates, runs: Sequence[Predictions]) -> None:
    for run in runs:
        if set(_names(run)) != set(candidates.item.astype(str)):
            raise ValueError(
                f"{run.source} must be predictions of the split {candidates.split!r},"
                " and has other items; let the run predict that split of this dataset"
            )
        if list(_names(run)) != list(_names(runs[0])):
            raise ValueError(f"{run.source} has its items in another order than others")


def _names(run: Predictions) -> NDArray[np.str_]:
    names = run.get("item")
    if names is None:
        raise ValueError(f"{run.source} has no names of items")
    return names.astype(str)


def _array_mean(runs: Sequence[Predictions], name: str | None) -> Values:
    """Return an array (N,) that the predictions hold, averaged over the runs."""
    keys = {
        short: f"{family}/{short}"
        for family in ("select", "uncertainty")
        for short in runs[0].named(family)
    }
    if name is None and len(keys) == 1:
        (name,) = keys
    if name not in keys:
        raise ValueError(
            f"'uncertainty' must name one of {', '.join(keys) or 'no array'} in"
            f" {runs[0].source}, got {name!r}"
        )
    arrays = [np.atleast_2d(_array(run, keys[name])).mean(0) for run in runs]
    return np.asarray(np.mean(arrays, axis=0, dtype=np.float64))


def _array(run: Predictions, name: str) -> NDArray[Any]:
    array = run.get(name)
    if array is None:
        raise ValueError(f"{run.source} has no array {name!r}, which other runs have")
    return array.astype(np.float64)


def _of_items(pooled: Predictions, measure: str) -> Values:
    from qualms.scores import decompose

    _check_measure(measure)
    if "values" in traits(pooled.task):
        return _variance(pooled, measure)
    probs = _array(pooled, "probs")
    if measure == "MSR":
        # One minus the largest, without the digits that a difference loses.
        return np.asarray(np.sort(probs.mean(0), axis=-1)[:, :-1].sum(-1))
    parts = decompose(probs)
    by = {"PE": parts.total, "EE": parts.aleatoric, "MI": parts.epistemic}
    return by[measure].astype(np.float64)


def _variance(pooled: Predictions, measure: str) -> Values:
    if pooled.get("mean") is None:
        return np.asarray(_array(pooled, "upper") - _array(pooled, "lower"))
    mean = _array(pooled, "mean")
    var = np.zeros_like(mean) if pooled.get("var") is None else _array(pooled, "var")
    by = {"PE": var.mean(0) + mean.var(0), "EE": var.mean(0), "MI": mean.var(0)}
    if measure not in by:
        raise ValueError("measure 'MSR' is of probabilities, and these are none")
    if not by[measure].any():
        raise ValueError(
            f"measure {measure!r} is 0 for every item; it needs a variance, or several"
            " draws or runs"
        )
    return np.asarray(by[measure])


def _check_measure(measure: str) -> None:
    if measure not in MEASURES:
        raise ValueError(
            f"measure must be one of {', '.join(MEASURES)}, got {measure!r}"
        )


def _of_maps(
    pooled: Predictions,
    measure: str,
    aggregation: str | Mapping[str, Any],
    candidates: Candidates,
) -> Values:
    from qualms.scores import aggregate_image, aggregate_threshold

    _check_measure(measure)
    named = {"name": aggregation} if isinstance(aggregation, str) else aggregation
    options: dict[str, Any] = dict(named)
    name = options.pop("name", None)
    if name not in AGGREGATIONS:
        names = ", ".join(AGGREGATIONS)
        raise ValueError(f"aggregation must be one of {names}, got {name!r}")
    if name == "threshold" and "threshold" not in options:
        split = options.pop("validation", "val")
        options["threshold"] = _threshold(candidates.predictions(split), measure)
    by: dict[str, Callable[..., float]] = {
        "image": aggregate_image,
        "patch": _patch,
        "threshold": aggregate_threshold,
    }
    maps = pooled.maps
    assert maps is not None

    def value(row: int) -> float:
        return by[name](_map(maps[row], measure), **options)

    with ThreadPoolExecutor(_THREADS) as threads:
        return np.array([*threads.map(value, range(len(maps)))])


def _patch(values: NDArray[Any], *, size: int = 10) -> float:
    """Return the value of the most uncertain patch, as scores compute it."""
    from qualms.scores import aggregate_patch, patch_size

    return aggregate_patch(values, size=patch_size(values.shape, size=size))


def _threshold(runs: Sequence[Predictions], measure: str) -> float:
    """Return the threshold of validation items, as scores compute it.

    All pixels are counted, and none is kept in memory.
    """
    from qualms.scores import background_share, leading_counts, nearby_counts

    items = pool(runs).maps
    assert items is not None
    share = background_share(
        np.stack([*maps.draw_labels, maps.mean_probs.argmax(0)]) for maps in items
    )
    leading = reduce(add, (leading_counts(_map(maps, measure)) for maps in items))
    around = leading.around(share)
    nearby = (nearby_counts(_map(maps, measure), around) for maps in items)
    return leading.quantile(share, reduce(add, nearby))


def _map(maps: Maps, measure: str) -> NDArray[Any]:
    from qualms.scores import uncertainty_maps

    uncertainty = uncertainty_maps(maps.mean_probs, maps.expected_entropy)
    by = {
        "PE": uncertainty.predictive,
        "EE": uncertainty.aleatoric,
        "MI": uncertainty.epistemic,
        "MSR": uncertainty.max_softmax,
    }
    return by[measure]
