"""Whether each part of the uncertainty is about what it is named after.

A simulator knows what no dataset of photographs does: how far the graders of an item
disagree. Aleatoric uncertainty should follow the entropy of their labels, in size and
in order; epistemic uncertainty should tell the shift. The total stands beside them for
contrast, and so does what the true entropy itself tells of the shift: graders may agree
more, or less, about shifted items.
"""

from typing import NamedTuple

import numpy as np

from qualms import scores
from qualms.evaluate._referral_items import Array, Items
from qualms.scores import spearman

PARTS = ("aleatoric", "total", "epistemic")
ENDINGS = ("_spearman", "_mae", "_shift_auroc")
"""How the names of these scores end."""
UNKNOWN = "the true probabilities of the labels are not known"
ONE_DRAW = "one draw has no epistemic part"
EQUAL = "all values are equal"


class TruthParts(NamedTuple):
    """By score, (N,) values over the joint set that it is a simple function of."""

    shift: dict[str, Array]
    """Of which the AUROC of the shift is taken."""
    distance: dict[str, Array]
    """Of which the mean over in-domain items is taken."""


def truth_parts(items: Items) -> TruthParts:
    """Those of the scores that are cheap to resample."""
    parts = {part: getattr(items.uncertainty, part) for part in _parts(items)}
    entropy = _true_entropy(items)
    return TruthParts(
        {f"joint/{part}_shift_auroc": values for part, values in parts.items()},
        {
            f"in_domain/{part}_mae": np.abs(values - entropy)
            for part, values in parts.items()
            if entropy is not None and part != "epistemic"
        },
    )


def truth_scores(items: Items) -> dict[str, float]:
    """Rank correlation with, and distance from, the true entropy; AUROC of the shift.

    Those of the truth only where it is known, and of an epistemic part only where there
    are draws to have one.
    """
    inside = ~items.shifted
    shift, distance = truth_parts(items)
    found = {
        name: scores.ood_auroc(values, items.shifted) for name, values in shift.items()
    }
    found |= {name: float(values[inside].mean()) for name, values in distance.items()}
    entropy = _true_entropy(items)
    if entropy is None:
        return found
    found["joint/true_entropy_shift_auroc"] = scores.ood_auroc(entropy, items.shifted)
    for part in _parts(items):
        doubt = getattr(items.uncertainty, part)[inside]
        found[f"in_domain/{part}_spearman"] = spearman(doubt, entropy[inside])
    return found


def truth_why(score: str, items: Items) -> str:
    """Why one of these scores is undefined."""
    of_truth = "true" in score or not score.endswith("_shift_auroc")
    if items.truth is None and of_truth:
        return UNKNOWN
    return ONE_DRAW if items.draws == 1 and "epistemic" in score else EQUAL


def _true_entropy(items: Items) -> Array | None:
    if items.truth is None:
        return None
    return scores.entropy(items.truth).astype(np.float64, copy=False)


def _parts(items: Items) -> tuple[str, ...]:
    return PARTS if items.draws > 1 else PARTS[:2]
