"""Overlap of segmentations: one prediction, or a set of draws, against raters.

Label maps may have any number of axes. Pixels that a rater marks with `ignore` are
dropped before anything is counted. Two empty masks agree unless `empty` says otherwise.
`as_published.values` holds what the released code of Kahl et al. (2024) computes.
"""

from __future__ import annotations

from typing import Any

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
from qualms.scores.arguments import by_name

__all__ = [
    "al_improvement",
    "dice",
    "dice_drop",
    "ged",
    "macro_dice",
]


@as_score(label="Dice", better="higher")
@by_name
def dice(
    *,
    prediction: ArrayLike,
    reference: ArrayLike,
    classes: int = 2,
    ignore: int | None = None,
    empty: float = 1.0,
) -> float:
    """Return the overlap of two label maps, 2TP / (2TP + FP + FN) (Dice, 1945).

    Two classes: the Dice of class 1, the foreground. More classes: counts pooled over
    all classes (as in Kahl et al., 2024), which is the share of pixels that agree;
    `macro_dice` weighs classes alike.

    Args:
        prediction: Classes of any shape.
        reference: Classes of the same shape, `ignore` where a pixel does not count.
        classes: Number of classes.
        ignore: Value of `reference` that drops a pixel.
        empty: Value where neither map holds the foreground, or no pixel counts.

    >>> dice(
    ...     prediction=np.array([[0, 1], [1, 1]]), reference=np.array([[0, 1], [0, 1]])
    ... )
    0.8
    """
    predicted, target = _rated_pair(prediction, reference, classes, ignore)
    _check_empty(empty)
    return float(_pair_dice(predicted, target, classes, empty)[0, 0])


@as_score(label="Macro Dice", better="higher")
@by_name
def macro_dice(
    *,
    prediction: ArrayLike,
    reference: ArrayLike,
    classes: int,
    ignore: int | None = None,
    background: int | None = 0,
    empty: float = 1.0,
) -> float:
    """Return the mean Dice, 2TP / (2TP + FP + FN), of the foreground classes of a case.

    The classes that occur in either map weigh alike, without the background, so that
    many pixels of it cannot hide small objects that are missed, as they do in the
    pooled `dice` of more than two classes. A class that occurs in neither map is left
    out, as nnU-Net does (Isensee et al., 2021).

    Args:
        prediction: Classes of any shape.
        reference: Classes of the same shape, `ignore` where a pixel does not count.
        classes: Number of classes.
        ignore: Value of `reference` that drops a pixel.
        background: The class that is left out; None for the mean of all classes.
        empty: Value where no such class occurs in either map.

    >>> macro_dice(prediction=[0, 0, 1, 1], reference=[0, 2, 1, 1], classes=3)
    0.5
    """
    predicted, target = _rated_pair(prediction, reference, classes, ignore)
    _check_empty(empty)
    sizes_of = [np.bincount(maps[0], minlength=classes) for maps in (predicted, target)]
    total = np.add(*sizes_of)
    shared = np.bincount(target[predicted == target], minlength=classes)
    present = total > 0
    if background is not None:
        if not 0 <= background < classes:
            raise ValueError(
                f"background must be a class in 0..{classes - 1} or None, got"
                f" {background}"
            )
        present[background] = False
    if not present.any():
        return float(empty)
    return float(np.mean(2.0 * shared[present] / total[present]))


@as_score(label="GED", better="lower", high=2.0)
@by_name
def ged(
    *,
    draws: ArrayLike,
    raters: ArrayLike,
    classes: int = 2,
    ignore: int | None = None,
    empty: float = 1.0,
) -> float:
    """Return the generalised energy distance of draws and raters (Kohl et al., 2018).

    2 E[d(rater, draw)] - E[d(draw, draw)] - E[d(rater, rater)] with d = 1 - `dice`,
    each term the mean over all ordered pairs, a map with itself included. It is never
    negative, since Dice is a positive semidefinite kernel.

    Args:
        draws: Classes (M, *space).
        raters: Classes (R, *space); a pixel `ignore`d by any rater counts nowhere.
        classes: Number of classes.
        ignore: Value of `raters` that drops a pixel.
        empty: Dice of two maps without foreground, or where no pixel counts.

    >>> round(ged(draws=[[0, 1, 1, 0]], raters=[[0, 1, 1, 0], [0, 1, 0, 0]]), 6)
    0.166667
    """
    stacks = (np.asarray(draws), np.asarray(raters))
    maps, rated = _rated_pixels(("draws", "raters"), *stacks, classes, ignore)
    _check_empty(empty)
    pairs = ((maps, maps), (rated, rated), (rated, maps))
    within_draws, within_raters, across = (
        float(_pair_dice(a, b, classes, empty).mean()) for a, b in pairs
    )
    return within_draws + within_raters - 2.0 * across


@as_score(label="AL gain", better="higher", low=-np.inf, high=np.inf)
@by_name
def al_improvement(
    *, dice_before: float, dice_after: float, dice_random: float
) -> float:
    """Return the relative gain in Dice by querying uncertain items over random ones.

    (after / before - 1) - (random / before - 1) on the shifted test split, where the
    pool was queried by uncertainty or at random between the two trainings (Kahl et
    al., 2024, appendix A.4); nan where nothing was segmented before.

    >>> round(al_improvement(dice_before=0.5, dice_after=0.6, dice_random=0.55), 6)
    0.1
    """
    _check_dice(dice_before=dice_before, dice_after=dice_after, dice_random=dice_random)
    if dice_before == 0.0:
        return float("nan")
    return (float(dice_after) - float(dice_random)) / float(dice_before)


@as_score(label="Dice drop", better="lower", low=-np.inf, high=1.0)
@by_name
def dice_drop(*, dice_in_domain: float, dice_shifted: float) -> float:
    """Return the relative loss of Dice on shifted items.

    (in-domain - shifted) / in-domain, by which Kahl et al. (2024, table 2) choose
    shifts; nan where nothing was segmented in-domain.

    >>> round(dice_drop(dice_in_domain=0.8, dice_shifted=0.6), 6)
    0.25
    """
    _check_dice(dice_in_domain=dice_in_domain, dice_shifted=dice_shifted)
    if dice_in_domain == 0.0:
        return float("nan")
    return 1.0 - float(dice_shifted) / float(dice_in_domain)


def _check_dice(**values: float) -> None:
    for name, value in values.items():
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"{name} must be finite and lie in [0, 1], got {value}")


def _rated_pair(
    prediction: ArrayLike, reference: ArrayLike, classes: int, ignore: int | None
) -> tuple[Labels, Labels]:
    """Return two maps as stacks of one, (1, P) each, at the pixels that count."""
    names = ("prediction", "reference")
    stacks = (np.asarray(prediction)[np.newaxis], np.asarray(reference)[np.newaxis])
    return _rated_pixels(names, *stacks, classes, ignore)


def _rated_pixels(
    names: tuple[str, str],
    maps: NDArray[Any],
    rated: NDArray[Any],
    classes: int,
    ignore: int | None,
) -> tuple[Labels, Labels]:
    """Return (M, P) and (R, P) classes at the P pixels that no rater ignores."""
    check_stack(names[0], maps)
    check_stack(names[1], rated)
    check_same_space(names, maps.shape[1:], rated.shape[1:])
    second = checked_labels(names[1], rated, classes=classes, ignore=ignore)
    second = second.reshape(len(rated), -1)
    maps = maps.reshape(len(maps), -1)
    if ignore is not None:
        pixels = (second != IGNORED).all(axis=0)
        maps, second = (np.compress(pixels, stack, axis=1) for stack in (maps, second))
    if second.shape[1] == 0:
        return maps.astype(np.uint8), second
    return checked_labels(names[0], maps, classes=classes), second


def _pair_dice(first: Labels, second: Labels, classes: int, empty: float) -> Array:
    shared = overlaps(first, second, classes=classes)
    total: Index = np.add.outer(
        sizes(first, classes=classes), sizes(second, classes=classes)
    )
    return np.where(total > 0, 2.0 * shared / np.maximum(total, 1), empty)


def _check_empty(empty: float) -> None:
    if not (0.0 <= empty <= 1.0 or np.isnan(empty)):
        raise ValueError(f"empty must lie in [0, 1] or be nan, got {empty}")
