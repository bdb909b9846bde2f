"""Whether each part of the uncertainty is about what it is named after.

A simulator knows what no dataset of photographs does: how far the graders of an item
disagree. Aleatoric uncertainty should follow the entropy of their labels, in size and
in order, and tell nothing about the shift; epistemic uncertainty should do the reverse.
The total stands beside them for contrast.
"""

from collections.abc import Iterator

import numpy as np

from qualms import scores
from qualms.evaluate._referral_items import Array, Items
from qualms.scores import Plan, plans
from qualms.scores.human import spearman

PARTS = ("aleatoric", "total", "epistemic")
ENDINGS = ("_spearman", "_mae", "_shift_auroc")
"""How the names of these scores end."""
UNKNOWN = "the true probabilities of the labels are not known"
ONE_DRAW = "one draw has no epistemic part"


def truth_scores(items: Items) -> Iterator[tuple[str, float]]:
    """Rank correlation with, and distance from, the true entropy; AUROC of the shift.

    nan where the truth is not known, and of an epistemic part that is 0 throughout.
    """
    inside = ~items.shifted
    entropy = _true_entropy(items)
    for part in PARTS:
        doubt = getattr(items.uncertainty, part)
        known = entropy[inside] if entropy is not None and _there(part, items) else None
        yield (
            f"in_domain/{part}_spearman",
            np.nan if known is None else spearman(doubt[inside], known),
        )
        if part != "epistemic":
            yield f"in_domain/{part}_mae", _distance(doubt[inside], known)
        yield f"joint/{part}_shift_auroc", _told_apart(part, items)


def truth_plans(items: Items) -> Iterator[tuple[str, Plan]]:
    """Those of the scores that are cheap to resample, as plans over the joint set."""
    for part in PARTS:
        if _there(part, items):
            doubt = getattr(items.uncertainty, part)
            yield f"joint/{part}_shift_auroc", plans.auroc_plan(doubt, items.shifted)
    entropy = _true_entropy(items)
    if entropy is None:
        return
    inside = (~items.shifted).astype(np.float64)
    for part in ("aleatoric", "total"):
        off = np.abs(getattr(items.uncertainty, part) - entropy) * inside
        yield f"in_domain/{part}_mae", plans.ratio_plan(off, inside)


def truth_why(score: str, items: Items) -> str:
    """Why one of these scores is undefined."""
    about_shift = score.endswith("_shift_auroc")
    return UNKNOWN if items.truth is None and not about_shift else ONE_DRAW


def _true_entropy(items: Items) -> Array | None:
    if items.truth is None:
        return None
    return scores.entropy(items.truth).astype(np.float64, copy=False)


def _there(part: str, items: Items) -> bool:
    return part != "epistemic" or items.draws > 1


def _distance(doubt: Array, entropy: Array | None) -> float:
    return np.nan if entropy is None else float(np.abs(doubt - entropy).mean())


def _told_apart(part: str, items: Items) -> float:
    if not _there(part, items):
        return np.nan
    return scores.ood_auroc(getattr(items.uncertainty, part), items.shifted)
