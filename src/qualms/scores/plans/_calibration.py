"""Plans of calibration and of the scores of predicted classes."""

import numpy as np
from numpy.typing import ArrayLike

from qualms.scores import _weighted as kernel
from qualms.scores._arrays import Array, Index, flags, labels, vector
from qualms.scores._copies import Copies
from qualms.scores._labelled import labelled
from qualms.scores._smooth import COARSE_STEPS, COARSE_TOLERANCE, crossings
from qualms.scores.plans._plan import Plan, edge_plan, share


def ece_plan(confidence: ArrayLike, correct: ArrayLike, *, bins: int = 15) -> Plan:
    """`ece` of the top label: its probability and whether it is right, both (N,)."""
    claim, gap = _claims(confidence, correct)
    return _binned_plan(claim[None], gap[None], bins)


def classwise_ece_plan(probs: ArrayLike, target: ArrayLike, *, bins: int = 15) -> Plan:
    """`classwise_ece` of `probs` (N, C) for `target` (N,)."""
    claim, truth = labelled(probs, target)
    gap = claim - (truth[:, None] == np.arange(claim.shape[1]))
    return _binned_plan(claim.T, gap.T, bins)


def adaptive_ece_plan(
    confidence: ArrayLike, correct: ArrayLike, *, bins: int = 15
) -> Plan:
    """`adaptive_ece` of the top label: its probability and whether it is right."""
    claim, gap = _claims(confidence, correct)
    _check_bins(bins)

    def edges(total: Array) -> Array:
        return np.ascontiguousarray(np.linspace(0.0, total, bins + 1, axis=1))

    def value(sums: Array, edge: Array) -> Array:
        off: Array = np.abs(np.diff(sums)).sum(axis=1) / edge[:, -1]
        return off

    return edge_plan(gap, claim, edges, value)


def smooth_ece_plan(confidence: ArrayLike, correct: ArrayLike) -> Plan:
    """`smooth_ece` of the top label on a coarse grid, within 1e-4 of the score."""
    claim, gap = _claims(confidence, correct)

    scaled = claim * COARSE_STEPS
    left = np.minimum(scaled.astype(np.uint32), COARSE_STEPS - 1)
    to_right = gap * (scaled - left)
    to_left = gap - to_right

    def value(copies: Copies) -> Array:
        grid = np.zeros((len(copies.weights), COARSE_STEPS + 1))
        grid[:, :-1] += kernel.binned(copies.weights, left, to_left, COARSE_STEPS)
        grid[:, 1:] += kernel.binned(copies.weights, left, to_right, COARSE_STEPS)
        return crossings(grid / copies.total()[:, None], tolerance=COARSE_TOLERANCE)

    return Plan(len(claim), value)


def balanced_accuracy_plan(correct: ArrayLike, target: ArrayLike) -> Plan:
    """`balanced_accuracy`: the mean recall (N,) over the classes that have weight."""
    hit = flags("correct", correct)
    truth, classes = _classes("target", target, len(hit))
    cell = (2 * truth + hit).astype(np.uint32)

    def value(copies: Copies) -> Array:
        counts = kernel.counted(copies.weights, cell, 2 * classes)
        found, size = counts[:, 1::2], counts[:, ::2] + counts[:, 1::2]
        recall = found / np.maximum(size, 1)
        return share(recall.sum(axis=1), (size > 0).sum(axis=1))

    return Plan(len(hit), value)


def mcc_plan(predicted: ArrayLike, target: ArrayLike) -> Plan:
    """`mcc` of the predicted and true classes (N,)."""
    truth, true_classes = _classes("target", target, None)
    guess, guessed_classes = _classes("predicted", predicted, len(truth))
    classes = max(true_classes, guessed_classes)
    cell = (truth * classes + guess).astype(np.uint32)

    def value(copies: Copies) -> Array:
        counts = kernel.counted(copies.weights, cell, classes**2)
        table = counts.reshape(-1, classes, classes)
        items, true, said = copies.total(), table.sum(axis=2), table.sum(axis=1)
        chance = (true * said).sum(axis=1)
        true_spread = items**2 - np.square(true).sum(axis=1)
        said_spread = items**2 - np.square(said).sum(axis=1)
        right = np.trace(table, axis1=1, axis2=2)
        return share(items * right - chance, np.sqrt(true_spread * said_spread))

    return Plan(len(truth), value)


def _binned_plan(claim: Array, gap: Array, bins: int) -> Plan:
    """Mean over the K rows of `claim` and `gap` (K, N) of the binned absolute gap."""
    _check_bins(bins)
    cell = np.minimum((claim * bins).astype(np.uint32, order="C"), bins - 1)
    gap = np.ascontiguousarray(gap)

    def value(copies: Copies) -> Array:
        off = np.zeros(len(copies.weights))
        for row in zip(cell, gap, strict=True):
            off += np.abs(kernel.binned(copies.weights, *row, bins)).sum(axis=1)
        return off / (len(cell) * copies.total())

    return Plan(claim.shape[1], value)


def _claims(confidence: ArrayLike, correct: ArrayLike) -> tuple[Array, Array]:
    """Confidence (N,) and how far it lies above being right."""
    claim = vector("confidence", confidence)
    if claim.min() < 0.0 or claim.max() > 1.0:
        row = int(np.argmax((claim < 0.0) | (claim > 1.0)))
        raise ValueError(f"confidence must lie in [0, 1], row {row} is {claim[row]}")
    return claim, claim - flags("correct", correct, length=len(claim))


def _classes(name: str, values: ArrayLike, length: int | None) -> tuple[Index, int]:
    """Classes 0, 1, ... (N,) and how many there may be."""
    classes = max(0, int(vector(name, values, length=length).max())) + 1
    return labels(name, values, classes=classes), classes


def _check_bins(bins: int) -> None:
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}")
