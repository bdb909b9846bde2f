"""Rules by which an epoch, or a configuration, is chosen on validation items.

"val_auroc" and "val_referral" are the two of RETINA (Band et al., 2021): without and
with shifted items among those that are looked at.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets import Dataset
from qualms.training._error import TrainingError
from qualms.training.options import Selection, Training

SEEN: Mapping[Selection, tuple[str, ...]] = {
    "last": (),
    "val_loss": ("val",),
    "val_auroc": ("val",),
    "val_referral": ("val", "val/shifted"),
}
"""Splits that a rule looks at."""


class PredictedSplit(NamedTuple):
    """What is predicted for a split, and what should be."""

    probs: NDArray[Any]
    """(M, N, C)."""
    target: NDArray[Any]
    """(N,) classes."""


def check_selection(options: Training, dataset: Dataset) -> None:
    """Refuse a rule that the dataset has no items, or no classes, for."""
    by = options.select_by
    if options.schedule == "plateau" and "val" not in dataset.splits:
        raise TrainingError(
            f"schedule='plateau' needs the split 'val', which {dataset.name!r} does not"
            " have; take another schedule"
        )
    for split in SEEN[by]:
        if split not in (*dataset.splits, *dataset.subsets):
            raise TrainingError(
                f"select_by={by!r} needs the split {split!r}, which {dataset.name!r}"
                " does not have; select by another rule"
            )
    task = dataset.task
    if by in _SCORES and task.name != "classification":
        raise TrainingError(
            f"select_by={by!r} is for classification, and {dataset.name!r} is"
            f" {task.name}; select by 'val_loss'"
        )
    if by == "val_auroc":
        _check_two_classes(dataset)


def selection_score(by: Selection, judged: list[PredictedSplit]) -> float:
    """The score of the rule `by`, larger is better, of the splits `SEEN` names."""
    return _SCORES[by](*judged)


def _check_two_classes(dataset: Dataset) -> None:
    if dataset.task.classes != 2:
        raise TrainingError(
            "select_by='val_auroc' needs two classes, and"
            f" {dataset.name!r} has {dataset.task.classes}; select by 'val_loss'"
        )
    if len(np.unique(dataset.split("val").target)) < 2:
        raise TrainingError(
            "select_by='val_auroc' needs items of both classes in the split 'val', and"
            " all of them are of one; select by 'val_loss'"
        )


def _auroc(val: PredictedSplit) -> float:
    from qualms.scores import auroc  # compiles kernels, which few runs need

    return auroc(_mean(val)[:, 1], val.target == 1)


def _referral(val: PredictedSplit, shifted: PredictedSplit) -> float:
    """Area under the referral curve of accuracy on as many shifted items as others.

    The most uncertain go first, by the entropy of the mean over draws.
    """
    from qualms.scores import balanced_joint, referral_curve

    probs = np.concatenate([_mean(val), _mean(shifted)])
    target = np.concatenate([val.target, shifted.target])
    sides = len(val.target), len(shifted.target)
    rows = balanced_joint(np.repeat([False, True], sides))
    return referral_curve("accuracy", probs[rows], target[rows]).area


def _mean(judged: PredictedSplit) -> NDArray[np.float64]:
    """(N, C) mean over draws; float32 would tie items that are almost certain."""
    mean: NDArray[np.float64] = judged.probs.astype(np.float64).mean(0)
    return mean


_SCORES: Mapping[Selection, Callable[..., float]] = {
    "val_auroc": _auroc,
    "val_referral": _referral,
}
