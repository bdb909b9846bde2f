"""Shift detection: does the uncertainty separate shifted from in-domain items?

It also has selective classification in the presence of shifted items (SCOD; Jaeger et
al., 2023; Xia & Bouganis, 2022): an item fails if it is shifted or answered wrongly.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from qualms.scores._about import as_score
from qualms.scores.arguments import by_name, flags
from qualms.scores.influence import Influence
from qualms.scores.ranking import (
    auprc,
    auprc_influence,
    auroc,
    auroc_influence,
    fpr_at_tpr,
    fpr_at_tpr_influence,
)
from qualms.scores.selective import aurc, aurc_influence, risk_coverage_curve

__all__ = [
    "ood_auprc",
    "ood_auroc",
    "ood_found",
    "ood_fpr95",
    "scod_aurc",
    "scod_auroc",
]


@as_score(label="OOD AUROC", better="higher", influence=auroc_influence)
@by_name
def ood_auroc(*, uncertainty: ArrayLike, shifted: ArrayLike) -> float:
    """Return the chance that shifted items are less certain than others, ties half.

    Hendrycks & Gimpel (2017). Both (N,); nan unless both kinds are present.

    >>> ood_auroc(uncertainty=[0.1, 0.4, 0.4, 0.9], shifted=[False, False, True, True])
    0.875
    """
    return auroc(score=uncertainty, positive=flags("shifted", shifted))


def _ood_auprc_influence(uncertainty: ArrayLike, shifted: ArrayLike) -> Influence:
    influence = auprc_influence(uncertainty, shifted)
    return _of_two_samples(influence, shifted)


def _of_two_samples(influence: Influence, shifted: ArrayLike) -> Influence:
    """Return `influence` with shifted and in-domain items in fixed numbers."""
    part = flags("shifted", shifted).astype(np.int64)
    return dataclasses.replace(influence, part=part)


@as_score(label="OOD AUPRC", better="higher", influence=_ood_auprc_influence)
@by_name
def ood_auprc(*, uncertainty: ArrayLike, shifted: ArrayLike) -> float:
    """Return the area under precision against recall of shifted items, by trapezoids.

    Both (N,); nan without a shifted item (Hendrycks & Gimpel, 2017).

    >>> ood_auprc(uncertainty=[0.1, 0.2, 0.8, 0.9], shifted=[False, False, True, True])
    1.0
    """
    return auprc(score=uncertainty, positive=flags("shifted", shifted))


@as_score(label="OOD FPR95", better="lower", influence=fpr_at_tpr_influence)
@by_name
def ood_fpr95(*, uncertainty: ArrayLike, shifted: ArrayLike) -> float:
    """Return share of in-domain items flagged when 95 % of the shifted ones are caught.

    The threshold is the largest that catches at least 95 % of the shifted items; an
    item at the threshold is flagged (Liang et al., 2018). Both (N,); nan unless both
    kinds are present.

    >>> ood_fpr95(uncertainty=[0.1, 0.5, 0.4, 0.9], shifted=[False, False, True, True])
    0.5
    """
    return fpr_at_tpr(score=uncertainty, positive=flags("shifted", shifted), tpr=0.95)


@as_score(label="OOD found", better="higher")
@by_name
def ood_found(
    *, uncertainty: ArrayLike, shifted: ArrayLike, share: float = 0.5
) -> float:
    """Return the share of shifted items that are among the least certain `share`.

    It is the yield of a query of an unlabelled pool (Kahl et al., 2024): floor(share N)
    items are queried, equally uncertain ones with the same chance. Both (N,); nan
    without a shifted item.

    >>> ood_found(uncertainty=[0.1, 0.2, 0.8, 0.9], shifted=[False, True, False, True])
    0.5
    """
    moved = flags("shifted", shifted)
    _check_share(share)
    curve = risk_coverage_curve(risk=moved.astype(np.float64), uncertainty=uncertainty)
    left = len(moved) - int(share * len(moved) + 1e-9)
    if not moved.any():
        return float("nan")
    return float(1.0 - left * curve.risk[left - 1] / moved.sum())


def _check_share(share: float) -> None:
    if not 0.0 < share < 1.0:
        raise ValueError(f"share must lie between 0 and 1, got {share}")


def _scod_auroc_influence(
    correct: ArrayLike, shifted: ArrayLike, uncertainty: ArrayLike
) -> Influence:
    moved = flags("shifted", shifted)
    failed = moved | ~flags("correct", correct, length=len(moved))
    influence = auroc_influence(uncertainty, failed)
    if influence.part is None:
        return influence
    # Failures may be shifted or not, so there are three kinds of items.
    return dataclasses.replace(influence, part=influence.part + moved)


@as_score(label="SCOD AUROC", better="higher", influence=_scod_auroc_influence)
@by_name
def scod_auroc(
    *, correct: ArrayLike, shifted: ArrayLike, uncertainty: ArrayLike
) -> float:
    """Return the chance that a failure is less certain than a success, ties half.

    A failure is a shifted item or a wrong one (Jaeger et al., 2023); whether a shifted
    item is marked correct does not matter. All (N,); nan unless both kinds are present.

    >>> scod_auroc(
    ...     correct=[1, 0, 1], shifted=[False, False, True], uncertainty=[0.1, 0.2, 0.3]
    ... )
    1.0
    """
    moved = flags("shifted", shifted)
    wrong = ~flags("correct", correct, length=len(moved))
    return auroc(score=uncertainty, positive=wrong | moved)


def _scod_aurc_influence(
    correct: ArrayLike,
    shifted: ArrayLike,
    uncertainty: ArrayLike,
    *,
    cost: float = 1.0,
) -> Influence:
    moved = flags("shifted", shifted)
    wrong = ~flags("correct", correct, length=len(moved))
    influence = aurc_influence(np.where(moved, cost, wrong), uncertainty)
    return _of_two_samples(influence, shifted)


@as_score(
    label="SCOD AURC", better="lower", high=np.inf, influence=_scod_aurc_influence
)
@by_name
def scod_aurc(
    *,
    correct: ArrayLike,
    shifted: ArrayLike,
    uncertainty: ArrayLike,
    cost: float = 1.0,
) -> float:
    """Return `aurc` of risk 1 per wrong in-domain item, and `cost` per shifted one.

    The costs of SCOD (Xia & Bouganis, 2022) on the risk-coverage curve; arrays (N,).

    >>> scod_aurc(
    ...     correct=[1, 0, 1],
    ...     shifted=[False, False, True],
    ...     uncertainty=[0.1, 0.2, 0.3],
    ...     cost=2.0,
    ... )
    0.5
    """
    if not 0.0 <= cost < np.inf:
        raise ValueError(f"cost must be a number of 0 or more, got {cost}")
    moved = flags("shifted", shifted)
    wrong = ~flags("correct", correct, length=len(moved))
    return aurc(risk=np.where(moved, cost, wrong), uncertainty=uncertainty)
