"""Shift detection: does the uncertainty tell shifted items from in-domain ones?

Selective classification in the presence of shifted items (SCOD; Jaeger et al., 2023;
Xia & Bouganis, 2022) stands here too: an item fails when it is shifted or answered
wrongly.
"""

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array
from qualms.scores._about import as_score
from qualms.scores._arrays import flags, vector
from qualms.scores.ranking import (
    auprc,
    auprc_plan,
    auroc,
    auroc_plan,
    fpr_at_tpr,
    fpr_at_tpr_plan,
)
from qualms.scores.resampling import Plan, edge_plan
from qualms.scores.selective import aurc, aurc_plan, risk_coverage_curve


@as_score(label="OOD AUROC", better="higher", plan=auroc_plan)
def ood_auroc(uncertainty: ArrayLike, shifted: ArrayLike) -> float:
    """Chance that a shifted item is less certain than an in-domain one, ties half.

    Hendrycks & Gimpel (2017). Both (N,); nan unless both kinds are present.

    >>> ood_auroc([0.1, 0.4, 0.4, 0.9], [False, False, True, True])
    0.875
    """
    return auroc(uncertainty, flags("shifted", shifted))


@as_score(label="OOD AUPRC", better="higher", plan=auprc_plan)
def ood_auprc(uncertainty: ArrayLike, shifted: ArrayLike) -> float:
    """Area under precision against recall of shifted items, by the trapezoid rule.

    Both (N,); nan without a shifted item (Hendrycks & Gimpel, 2017).

    >>> ood_auprc([0.1, 0.2, 0.8, 0.9], [False, False, True, True])
    1.0
    """
    return auprc(uncertainty, flags("shifted", shifted))


@as_score(label="OOD FPR95", better="lower", plan=fpr_at_tpr_plan)
def ood_fpr95(uncertainty: ArrayLike, shifted: ArrayLike) -> float:
    """Share of in-domain items flagged when 95 % of the shifted ones are caught.

    The largest threshold that catches at least 95 % of the shifted items; an item at
    the threshold is flagged (Liang et al., 2018). Both (N,); nan unless both kinds are
    present.

    >>> ood_fpr95([0.1, 0.5, 0.4, 0.9], [False, False, True, True])
    0.5
    """
    return fpr_at_tpr(uncertainty, flags("shifted", shifted), tpr=0.95)


def ood_found_plan(
    uncertainty: ArrayLike, shifted: ArrayLike, *, share: float = 0.5
) -> Plan:
    """`ood_found` of `shifted` (N,) among the least certain by `uncertainty` (N,)."""
    moved = flags("shifted", shifted).astype(np.float64)
    values = vector("uncertainty", uncertainty, length=len(moved))
    _check_share(share)

    def left(total: Array) -> Array:
        return np.stack([total - np.floor(share * total + 1e-9), total], axis=1)

    def value(sums: Array, _edges: Array) -> Array:
        with np.errstate(invalid="ignore"):
            found: Array = 1.0 - sums[:, 0] / sums[:, 1]
        return found

    return edge_plan(moved, values, left, value)


@as_score(label="OOD found", better="higher", plan=ood_found_plan)
def ood_found(
    uncertainty: ArrayLike, shifted: ArrayLike, *, share: float = 0.5
) -> float:
    """Share of the shifted items that are among the least certain `share` of all.

    What a query of an unlabelled pool finds (Kahl et al., 2024): floor(share N) items
    are queried, of equally uncertain ones each with the same chance. Both (N,); nan
    without a shifted item.

    >>> ood_found([0.1, 0.2, 0.8, 0.9], [False, True, False, True])
    0.5
    """
    moved = flags("shifted", shifted)
    _check_share(share)
    curve = risk_coverage_curve(moved.astype(np.float64), uncertainty)
    left = len(moved) - int(share * len(moved) + 1e-9)
    if not moved.any():
        return float("nan")
    return float(1.0 - left * curve.risk[left - 1] / moved.sum())


def _check_share(share: float) -> None:
    if not 0.0 < share < 1.0:
        raise ValueError(f"share must lie between 0 and 1, got {share}")


def scod_auroc_plan(
    correct: ArrayLike, shifted: ArrayLike, uncertainty: ArrayLike
) -> Plan:
    """`scod_auroc` of items; all arguments (N,)."""
    failed = np.logical_or(shifted, np.logical_not(correct))
    return auroc_plan(uncertainty, failed)


@as_score(label="SCOD AUROC", better="higher", plan=scod_auroc_plan)
def scod_auroc(correct: ArrayLike, shifted: ArrayLike, uncertainty: ArrayLike) -> float:
    """Chance that a failure is less certain than a success, ties half.

    A failure is a shifted item or a wrong one (Jaeger et al., 2023); whether a shifted
    item is marked correct does not matter. All (N,); nan unless both kinds are present.

    >>> scod_auroc([1, 0, 1], [False, False, True], [0.1, 0.2, 0.3])
    1.0
    """
    moved = flags("shifted", shifted)
    wrong = ~flags("correct", correct, length=len(moved))
    return auroc(uncertainty, wrong | moved)


def scod_aurc_plan(
    correct: ArrayLike,
    shifted: ArrayLike,
    uncertainty: ArrayLike,
    *,
    cost: float = 1.0,
) -> Plan:
    """`scod_aurc` of items; arrays (N,)."""
    wrong = np.logical_not(correct)
    return aurc_plan(np.where(shifted, cost, wrong), uncertainty)


@as_score(label="SCOD AURC", better="lower", high=np.inf, plan=scod_aurc_plan)
def scod_aurc(
    correct: ArrayLike,
    shifted: ArrayLike,
    uncertainty: ArrayLike,
    *,
    cost: float = 1.0,
) -> float:
    """`aurc` of a risk of 1 per wrong in-domain item and `cost` per shifted item kept.

    The costs of SCOD (Xia & Bouganis, 2022) on the risk-coverage curve; arrays (N,).

    >>> scod_aurc([1, 0, 1], [False, False, True], [0.1, 0.2, 0.3], cost=2.0)
    0.5
    """
    if not 0.0 <= cost < np.inf:
        raise ValueError(f"cost must be a number of 0 or more, got {cost}")
    moved = flags("shifted", shifted)
    wrong = ~flags("correct", correct, length=len(moved))
    return aurc(np.where(moved, cost, wrong), uncertainty)
