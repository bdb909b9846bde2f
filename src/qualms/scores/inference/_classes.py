"""Influence on the scores of predicted classes."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtri

from qualms.arrays import Array, Flags, Index
from qualms.jit import jit
from qualms.scores._arrays import labelled, most_probable
from qualms.scores.conformal_sets import item_in_set, item_set_size, size_stratum
from qualms.scores.inference._design import Design
from qualms.scores.inference._influence import Influence, undefined
from qualms.scores.inference._shares import effective_size, wilson
from qualms.scores.multiclass import class_auroc, present_classes
from qualms.scores.ties import ranked_items

ONE_CLASS = "all items are of one class"


def balanced_accuracy_influence(probs: ArrayLike, target: ArrayLike) -> Influence:
    """Mean over classes of the share found."""
    checked, truth = labelled(probs, target)
    return recall_influence(most_probable(checked) == truth, truth)


def recall_influence(correct: ArrayLike, target: ArrayLike) -> Influence:
    """Mean over classes of the share of `correct` items, both (N,).

    In small classes the share found is often 0 or 1, and its sample variance nothing.
    Two classes get Wilson's intervals, combined by squares (MOVER; Zou & Donner, 2008);
    more classes the variances of (hits + 1) among (items + 2), on the logit scale.
    """
    hit = np.asarray(correct, dtype=np.float64)
    truth = np.asarray(target, dtype=np.int64)
    size = np.bincount(truth)
    found = np.bincount(truth, hit)
    present = size > 0
    classes = int(present.sum())
    recall = np.divide(found, size, out=np.zeros(len(size)), where=present)
    change = (hit - recall[truth]) / size[truth] / classes

    def ends(design: Design, level: float) -> tuple[float, float]:
        sizes = _effective_sizes(design, hit, truth, size)[present]
        combined = _by_squares if classes == 2 else _shrunk
        return combined(recall[present], sizes, level)

    return Influence(
        value=float(recall.sum() / classes),
        values=change,
        scale="logit",
        ends=ends,
        method="Wilson's interval in every class, by squares"
        if classes == 2
        else "variance of every class from one more hit and miss, logit scale",
    )


def _by_squares(recall: Array, size: Array, level: float) -> tuple[float, float]:
    ends = [
        wilson(float(r), float(n), level) for r, n in zip(recall, size, strict=True)
    ]
    low, high = np.array(ends).T
    value = float(recall.mean())
    below = float(np.linalg.norm(recall - low)) / len(recall)
    return value - below, value + float(np.linalg.norm(high - recall)) / len(recall)


def _shrunk(recall: Array, size: Array, level: float) -> tuple[float, float]:
    share = (recall * size + 1.0) / (size + 2.0)
    error = math.sqrt(float(np.sum(share * (1.0 - share) / size))) / len(recall)
    value, middle = float(recall.mean()), float(share.mean())
    if not 0.0 < value < 1.0:
        value = middle
    logit = math.log(value / (1.0 - value))
    reach = float(ndtri(0.5 + level / 2.0)) * error / (value * (1.0 - value))
    low, high = (float(expit(logit + step)) for step in (-reach, reach))
    found = float(recall.mean())
    return min(low, found), max(high, found)


def _effective_sizes(design: Design, hit: Array, truth: Index, size: Index) -> Array:
    """(C,) how many independent items of each class know its share equally well."""
    counts = size.astype(np.float64)
    if design.cluster is None:
        return counts
    for label in np.flatnonzero(size):
        inside = truth == label
        share = float(hit[inside].mean())
        change = np.where(inside, hit - share, 0.0) / size[label]
        spread = design.spread(change, inside.astype(np.int64))
        counts[label] = effective_size(share, spread, size[label])
    return counts


def mcc_influence(probs: ArrayLike, target: ArrayLike) -> Influence:
    """Correlation of predicted and true class."""
    checked, truth = labelled(probs, target)
    items, classes = checked.shape
    guess = most_probable(checked)
    hit = (guess == truth).astype(np.float64)
    true = np.bincount(truth, minlength=classes) / items
    guessed = np.bincount(guess, minlength=classes) / items
    true_spread, guess_spread = 1.0 - true @ true, 1.0 - guessed @ guessed
    if min((true > 0).sum(), (guessed > 0).sum()) < 2:
        return undefined("all items are of one class, or predicted as one class")
    right, chance = float(hit.mean()), float(true @ guessed)
    scale = float(np.sqrt(true_spread * guess_spread))
    value = (right - chance) / scale
    agreement = hit - right - (true[guess] + guessed[truth] - 2.0 * chance)
    spread = (guessed[guess] - guessed @ guessed) / guess_spread
    spread += (true[truth] - true @ true) / true_spread
    change: Array = (agreement / scale + value * spread) / items
    least = float(true[true > 0].min())
    return Influence(
        value=value,
        values=change - change.mean(),
        scale="fisher",
        low=-1.0,
        extreme=items * least,
        floor=lambda chance: _worst_correlation(chance, items * least, least),
    )


def _worst_correlation(chance: float, size: float, share: float) -> float:
    """The correlation when all errors that were not seen are of the smallest class."""
    found = chance ** (1.0 / size)
    missed = (1.0 - found) * share / (1.0 - share)
    return math.sqrt(found / (1.0 + missed))


def macro_f1_influence(probs: ArrayLike, target: ArrayLike) -> Influence:
    """Mean of F1 over the classes that are a target or a prediction."""
    checked, truth = labelled(probs, target)
    classes = checked.shape[1]
    guess = most_probable(checked)
    hit = guess == truth
    true = np.bincount(truth, minlength=classes)
    size = true + np.bincount(guess, minlength=classes)
    present = size > 0
    count = int(present.sum())
    whole = np.where(present, size, 1).astype(np.float64)
    each = 2.0 * np.bincount(truth[hit], minlength=classes) / whole
    change = 2.0 * hit / whole[truth] - (each / whole)[truth] - (each / whole)[guess]
    least = float(true[true > 0].min())
    return Influence(
        value=float(each[present].mean()),
        values=change / count,
        scale="logit",
        # A handful of items of a class do not show how they vary.
        inflation=1.0 + 3.0 / max(least - 1.0, 1.0),
        extreme=least,
    )


def macro_auroc_influence(probs: ArrayLike, target: ArrayLike) -> Influence:
    """Mean over classes of the AUROC of one against the rest."""
    checked, truth = labelled(probs, target)
    classes = list(present_classes(truth))
    if len(classes) < 2:
        return undefined(ONE_CLASS)
    values, change = [], np.zeros(len(truth))
    for c in classes:
        rank = ranked_items(checked[:, c])
        values.append(class_auroc(rank.order, rank.start, truth, c))
        _add_placements(rank.order, rank.start, truth == c, values[-1], change)
    own = np.bincount(truth)[classes]
    smaller = float(np.minimum(own, len(truth) - own).min())
    return Influence(
        value=float(np.mean(values)),
        values=change / len(values),
        scale="logit",
        # As for one AUROC: a handful of items do not show how they vary.
        inflation=1.0 + 3.0 / max(smaller - 1.0, 1.0),
        extreme=smaller,
    )


@jit
def _add_placements(
    order: Index, start: Index, positive: Flags, value: float, change: Array
) -> None:
    """Add the influence of each item on an AUROC of this `value`."""
    found = positive.sum()
    passed = len(positive) - found
    above, below = 0, 0
    for group in range(len(start) - 1):
        inside = 0
        for place in range(start[group], start[group + 1]):
            inside += positive[order[place]]
        outside = start[group + 1] - start[group] - inside
        won = (below + outside / 2) / passed
        lost = 1.0 - (above + inside / 2) / found
        above += inside
        below += outside
        for place in range(start[group], start[group + 1]):
            item = order[place]
            if positive[item]:
                change[item] += (won - value) / found
            else:
                change[item] += (lost - value) / passed


def size_stratified_influence(sets: ArrayLike, target: ArrayLike) -> Influence:
    """Least coverage among sets of similar size."""
    return worst_stratum_influence(item_set_size(sets), item_in_set(sets, target))


def worst_stratum_influence(size: Array, inside: Flags) -> Influence:
    """The same from the size and coverage of each item's set, both (N,).

    Each stratum gets Wilson's interval at a level that holds for all of them at once
    (Bonferroni); the least coverage then lies between the least of both ends.
    """
    stratum, hit = size_stratum(size), inside.astype(np.float64)
    count = np.bincount(stratum)
    present = count > 0
    share = np.bincount(stratum, hit)[present] / count[present]

    def ends(design: Design, level: float) -> tuple[float, float]:
        sizes = _effective_sizes(design, hit, stratum, count)[present]
        each = 1.0 - (1.0 - level) / len(share)
        found = [
            wilson(float(s), float(n), each) for s, n in zip(share, sizes, strict=True)
        ]
        low, high = np.array(found).min(axis=0)
        return float(low), float(high)

    worst = int(np.flatnonzero(present)[share.argmin()])
    within = stratum == worst
    return Influence(
        value=float(share.min()),
        values=np.where(within, hit - share.min(), 0.0) / count[worst],
        scale="logit",
        ends=ends,
        method="Wilson's interval in every stratum, all at once (Bonferroni)",
    )
