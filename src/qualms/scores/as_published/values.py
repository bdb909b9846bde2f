"""Scores as the released code of VALUES computes them (Kahl et al., 2024).

The code is IML-DKFZ/values at commit 83c9588, with torchmetrics 0.11.4 for its Dice.
Each function has the name of the correct score and describes the difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.arrays import Array, Index
from qualms.scores._about import as_score
from qualms.scores._pixels import (
    IGNORED,
    Labels,
    check_same_space,
    check_stack,
    checked_labels,
    overlaps,
    sizes,
)
from qualms.scores.aggregation import item_shares, pooled_quantile
from qualms.scores.arguments import by_name, vector
from qualms.scores.platt import Platt
from qualms.scores.platt import ace as average_error
from qualms.scores.platt import fit_platt as fit_pooled
from qualms.scores.raters import ncc as pearson

Sort = Literal["stable", "unstable"]


class BestDice(NamedTuple):
    """Best matches between draws and raters."""

    of_raters: Array
    """(R,) best Dice that any draw reaches with each rater."""
    of_draws: float
    """Mean over draws of their best Dice with any rater."""


@as_score(label="Dice as published", better="higher")
@by_name
def dice(
    *,
    prediction: ArrayLike,
    reference: ArrayLike,
    classes: int = 2,
    ignore: int | None = None,
) -> float:
    """Return the Dice of two maps of the same shape, by test_3D.py and test_2D.py.

    Two empty masks give 0, not 1. Of ignored pixels only the reference is dropped, so
    each remains as a false positive: with more than two classes the value is
    2 correct / (all pixels + pixels that count).

    >>> dice(
    ...     prediction=[0, 1, 2, 2], reference=[0, 1, 2, 255], classes=3, ignore=255
    ... ).__round__(6)
    0.857143
    """
    predicted, rated = (
        np.asarray(maps)[np.newaxis] for maps in (prediction, reference)
    )
    names = ("prediction", "reference")
    first, second = _flat(names, predicted, rated, classes, ignore)
    return float(_pair_dice(first, second, classes)[0, 0])


@as_score(label="GED as published", better="lower", low=-2.0, high=2.0)
@by_name
def ged(
    *,
    draws: ArrayLike,
    raters: ArrayLike,
    classes: int = 2,
    ignore: int | None = None,
) -> float:
    """Return the generalised energy distance by `calculate_ged` of test_3D.py.

    `draws` are (M, *space), `raters` (R, *space). Each term is one minus a single Dice
    whose counts are pooled over all ordered pairs, where the paper has the mean of the
    pairs' distances; large masks so weigh more, and the value may be negative. Ignored
    pixels count as false positives between raters and draws and count fully between
    draws. Nothing segmented anywhere gives 0.

    >>> round(ged(draws=[[0, 1, 1, 0]], raters=[[0, 1, 1, 0], [0, 1, 0, 0]]), 6)
    0.119048
    """
    names = ("draws", "raters")
    first, second = _flat(names, np.asarray(draws), np.asarray(raters), classes, ignore)
    pairs = ((first, first), (second, second), (second, first))
    within_draws, within_raters, across = (
        _ratio(*(part.sum() for part in _counts(a, b, classes))) for a, b in pairs
    )
    return float(within_draws + within_raters - 2.0 * across)


@by_name
def max_dice(
    *,
    draws: ArrayLike,
    raters: ArrayLike,
    classes: int = 2,
    ignore: int | None = None,
) -> BestDice:
    """Return best `dice` of every rater, and the mean best of the draws, by test_3D.py.

    `draws` are (M, *space), `raters` (R, *space). The released metrics.json calls them
    "max dice rater" and "max dice pred".

    >>> max_dice(draws=[[0, 1, 1, 0]], raters=[[0, 1, 1, 0], [0, 1, 0, 0]]).of_draws
    1.0
    """
    names = ("draws", "raters")
    first, second = _flat(names, np.asarray(draws), np.asarray(raters), classes, ignore)
    table = _pair_dice(first, second, classes)
    return BestDice(table.max(axis=0), float(table.max(axis=1).mean()))


@as_score(label="NCC as published", better="higher", low=-1.0)
def ncc(uncertainty: ArrayLike, reference: ArrayLike) -> float:
    """Return the cross-correlation of two maps of n pixels by ncc.py.

    It divides a sum over n by sample standard deviations, which is (n - 1) / n of
    Pearson's: a map scores below 1 with itself. Ignored pixels stay in, with whatever
    the reference holds there. nan where a map does not vary; one nan makes the mean
    over items nan in the released code.

    >>> ncc([0.0, 0.5, 1.0, 0.5], [0.0, 0.5, 1.0, 0.5]).__round__(9)
    0.75
    """
    pixels = np.asarray(uncertainty).size
    return pearson(uncertainty, reference) * (pixels - 1) / max(pixels, 1)


@as_score(label="ACE as published", better="lower")
@by_name
def ace(
    *,
    confidence: ArrayLike,
    correct: ArrayLike,
    total: ArrayLike | None = None,
    bins: int = 20,
) -> float:
    """Return the calibration error of one item by ace.py; arguments as `scores.ace`.

    An item with every pixel right is scored as if every pixel were wrong, because its
    only label becomes the negative one.

    >>> round(ace(confidence=[0.97, 0.97], correct=[1, 1]), 6)
    0.97
    """
    right = np.asarray(correct)
    highest = np.ones(right.shape) if total is None else np.asarray(total)
    if right.shape == highest.shape and (right == highest).all():
        right = np.zeros(right.shape)
    return average_error(confidence=confidence, correct=right, total=total, bins=bins)


@by_name
def fit_platt(
    *,
    uncertainty: Iterable[ArrayLike],
    correct: Iterable[ArrayLike],
    total: Iterable[ArrayLike] | None = None,
) -> Platt:
    """Return Platt parameters by ace.py: one fit per validation item, then their mean.

    Each argument holds one array per item, as `scores.fit_platt` takes them. The
    correct fit pools the pixels of a run. An average of separate fits fits nothing, and
    one item without errors changes it much.
    """
    values = list(uncertainty)
    counts: Sequence[ArrayLike | None] = (
        [None] * len(values) if total is None else list(total)
    )
    items = zip(values, correct, counts, strict=True)
    fits = [fit_pooled(uncertainty=u, correct=right, total=n) for u, right, n in items]
    if not fits:
        raise ValueError("uncertainty must hold at least one item, got none")
    return Platt(
        a=float(np.mean([fit.a for fit in fits])),
        b=float(np.mean([fit.b for fit in fits])),
    )


def threshold_from_validation(
    maps: Iterable[ArrayLike], label_maps: Iterable[ArrayLike]
) -> float:
    """Return the threshold by find_threshold.py: every stored label map weighs alike.

    The correct one weighs items alike. The released code also chains all seeds, and
    both shifts of LIDC, into one call per method; pass them all to do the same.
    """
    shares: Sequence[Array] = [item_shares(item) for item in label_maps]
    if not shares:
        raise ValueError("label_maps must hold at least one item, got none")
    return pooled_quantile(maps, float(np.concatenate(shares).mean()))


@as_score(label="AURC as published", better="lower", high=np.inf)
@by_name
def aurc(*, risk: ArrayLike, uncertainty: ArrayLike, sort: Sort = "stable") -> float:
    """Return the area under the risk-coverage curve by aurc.py, both arguments (N,).

    A trapezoid from coverage 1 to 1 / N; what lies below is left out, so its weights
    sum to (N - 1) / N. Of tied items the curve gets a point after the first is removed,
    not the last, so the value depends on their order. The released code leaves that
    order to an unstable sort; `stable` takes the order of the items, which is also what
    its pinned NumPy 1.24 does for up to 16 items, and `unstable` whatever NumPy's
    default sort does on this machine.

    >>> round(aurc(risk=[0.0, 0.5, 1.0], uncertainty=[0.1, 0.2, 0.3]), 6)
    0.166667
    """
    values = vector("risk", risk)
    certainty = -vector("uncertainty", uncertainty, length=len(values))
    if sort not in ("stable", "unstable"):
        raise ValueError(f"sort must be 'stable' or 'unstable', got {sort!r}")
    order = np.argsort(certainty, kind="stable" if sort == "stable" else None)
    ascending = certainty[order]
    first = np.append(True, ascending[1:] != ascending[:-1])[:-1]
    count = np.append(len(values), np.arange(len(values) - 1, 0, -1)[first])
    remaining = np.cumsum(values[order][::-1])
    height = remaining[count - 1] / count
    # A tied tail repeats the last risk down to the one item that is never removed.
    width = -np.diff(np.append(count, 1)) / len(values)
    return float(width @ (height + np.append(height[1:], height[-1])) / 2.0)


@as_score(label="E-AURC as published", better="lower", low=-np.inf, high=np.inf)
@by_name
def eaurc(*, risk: ArrayLike, uncertainty: ArrayLike, sort: Sort = "stable") -> float:
    """Return AURC as published in excess of the best ranking, by aurc.py, both (N,).

    The best is a plain mean over all N coverages while `aurc` is a trapezoid on a
    shorter range, so a perfect ranking gives -(lowest + mean risk) / 2N, not 0.

    >>> round(eaurc(risk=[0.0, 0.5, 1.0], uncertainty=[0.1, 0.2, 0.3]), 6)
    -0.083333
    """
    ascending = np.sort(vector("risk", risk))
    best = np.cumsum(ascending) / np.arange(1, len(ascending) + 1)
    return aurc(risk=risk, uncertainty=uncertainty, sort=sort) - float(best.mean())


def _flat(
    names: tuple[str, str],
    predicted: NDArray[Any],
    rated: NDArray[Any],
    classes: int,
    ignore: int | None,
) -> tuple[Labels, Labels]:
    """Return classes (M, P) and (R, P), raters' ignored pixels kept as `IGNORED`."""
    check_stack(names[0], predicted)
    check_stack(names[1], rated)
    check_same_space(names, predicted.shape[1:], rated.shape[1:])
    first = checked_labels(names[0], predicted, classes=classes)
    second = checked_labels(names[1], rated, classes=classes, ignore=ignore)
    return first.reshape(len(first), -1), second.reshape(len(second), -1)


def _counts(first: Labels, second: Labels, classes: int) -> tuple[Index, Index]:
    """Return twice the shared pixels, and the pixels of both, of every pair of maps."""
    shared = overlaps(first, second, classes=classes)
    unknown = [(maps == IGNORED).astype(np.uint8) for maps in (first, second)]
    if classes > 2 and unknown[0].any():
        shared -= overlaps(*unknown, classes=2)
    pixels = (sizes(maps, classes=classes) for maps in (first, second))
    return 2 * shared, np.add.outer(*pixels)


def _pair_dice(first: Labels, second: Labels, classes: int) -> Array:
    shared, total = _counts(first, second, classes)
    return np.where(total > 0, shared / np.maximum(total, 1), 0.0)


def _ratio(shared: int, total: int) -> float:
    return shared / total if total else 0.0
