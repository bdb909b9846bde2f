"""Comparison of the parts of the uncertainty with the truth of a simulator.

A simulator, unlike a dataset of photographs, knows how far the graders of an item
disagree. Aleatoric uncertainty should follow the entropy of their labels, in size and
in order; epistemic uncertainty should detect the shift. The total uncertainty is
reported for comparison, and so is the detection of the shift by the true entropy, since
graders may agree more, or less, about shifted items.
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.arrays import Array
from qualms.evaluate.entry import Entry
from qualms.inference import influence_of, mean_influence
from qualms.scores import spearman
from qualms.scores.human import spearman_influence

PARTS = ("aleatoric", "total", "epistemic")
UNKNOWN = "the true probabilities of the labels are not known"
ONE_DRAW = "one draw has no epistemic part"
EQUAL = "all values are equal"


class Uncertainty(NamedTuple):
    """Entropy of the mean prediction in nats, and its parts, (N,) each."""

    total: Array
    aleatoric: Array
    epistemic: Array
    draws: int


def truth_entries(
    uncertainty: Uncertainty, shifted: NDArray[np.bool_], truth: Array | None
) -> Iterator[Entry]:
    """Yield AUROC of the shift, and distance from and rank correlation with the truth.

    `truth` (N, C) are the true probabilities of the classes. Scores that need them are
    undefined without them, and those of the epistemic part if there is one draw.
    """
    entropy = None
    if truth is not None:
        entropy = scores.entropy(truth).astype(np.float64, copy=False)
    for part in PARTS:
        defined = part != "epistemic" or uncertainty.draws > 1
        values = getattr(uncertainty, part) if defined else None
        yield _shift(f"{part}_shift_auroc", values, shifted)
        yield _spearman(part, values, entropy, ~shifted)
        if part != "epistemic":
            yield _distance(part, values, entropy, ~shifted)
    yield _shift("true_entropy_shift_auroc", entropy, shifted)


def _shift(name: str, values: Array | None, shifted: NDArray[np.bool_]) -> Entry:
    missing = UNKNOWN if name.startswith("true") else ONE_DRAW
    return Entry(
        name=name,
        score=scores.ood_auroc,
        subset="joint",
        index=np.arange(len(shifted)),
        influence=None
        if values is None
        else partial(
            influence_of, scores.ood_auroc, uncertainty=values, shifted=shifted
        ),
        value=math.nan
        if values is None
        else scores.ood_auroc(uncertainty=values, shifted=shifted),
        why=missing if values is None else EQUAL,
        ranked=False,
    )


def _spearman(
    part: str, values: Array | None, entropy: Array | None, inside: NDArray[np.bool_]
) -> Entry:
    pair = None
    if values is not None and entropy is not None:
        pair = values[inside], entropy[inside]
    return Entry(
        name=f"{part}_spearman",
        score=scores.human_alignment,
        subset="in_domain",
        index=np.flatnonzero(inside),
        influence=None if pair is None else partial(spearman_influence, *pair),
        value=math.nan if pair is None else spearman(*pair),
        why=_missing(entropy) if pair is None else EQUAL,
        ranked=False,
    )


def _distance(
    part: str, values: Array | None, entropy: Array | None, inside: NDArray[np.bool_]
) -> Entry:
    errors = None
    if values is not None and entropy is not None:
        errors = np.abs(values - entropy)[inside]
    return Entry(
        name=f"{part}_mae",
        score=scores.mae,
        subset="in_domain",
        index=np.flatnonzero(inside),
        influence=None if errors is None else partial(mean_influence, errors),
        value=math.nan if errors is None else float(errors.mean()),
        why=_missing(entropy),
        ranked=False,
    )


def _missing(entropy: Array | None) -> str:
    return UNKNOWN if entropy is None else ONE_DRAW
