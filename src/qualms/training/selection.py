"""Rules by which an epoch, or a configuration, is chosen on validation items.

`RULES` names all of them: what the training option `select_by` may be, and which splits
each of them looks at. A rule that looks at "val/shifted" has seen shifted items, which
changes what a score on shifted test items means.

"val_auroc" and "val_referral" are those of RETINA (Band et al., 2021), without and with
shifted items. Its text describes the accuracy of the items that are kept; when its runs
were tuned and their epochs chosen, items that were referred counted as right. Version 1
of the benchmark follows what was run, and the rule of the text is "val_referral_kept".
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets import Dataset
from qualms.training._error import TrainingError

if TYPE_CHECKING:
    from qualms.training.options import Training


class PredictedSplit(NamedTuple):
    """What is predicted for a split, and what should be."""

    probs: NDArray[Any]
    """(M, N, C)."""
    target: NDArray[Any]
    """(N,) classes."""


class SelectionRule(NamedTuple):
    """A value of `select_by`."""

    splits: tuple[str, ...] = ()
    """The splits that it looks at."""
    score: Callable[..., float] | None = None
    """Of the `PredictedSplit` of each of them, larger is better; None for rules that
    need no predictions."""

    @property
    def needs_shifted(self) -> bool:
        """Whether it looks at shifted validation items."""
        return "val/shifted" in self.splits


def check_selection(options: "Training", dataset: Dataset) -> None:
    """Refuse a rule that the dataset has no items, or no classes, for."""
    by = options.select_by
    if options.schedule == "plateau" and "val" not in dataset.splits:
        raise TrainingError(
            f"schedule='plateau' needs the split 'val', which {dataset.name!r} does not"
            " have; take another schedule"
        )
    for split in RULES[by].splits:
        if split not in (*dataset.splits, *dataset.subsets):
            raise TrainingError(
                f"select_by={by!r} needs the split {split!r}, which {dataset.name!r}"
                " does not have; select by another rule"
            )
    task = dataset.task
    if RULES[by].score is not None and task.name != "classification":
        raise TrainingError(
            f"select_by={by!r} is for classification, and {dataset.name!r} is"
            f" {task.name}; select by 'val_loss'"
        )
    if by == "val_auroc":
        _check_two_classes(dataset)


def selection_score(by: str, predicted: list[PredictedSplit]) -> float:
    """The score of the rule `by`, larger is better, of the splits it looks at."""
    score = RULES[by].score
    if score is None:
        raise ValueError(f"the rule {by!r} does not score predictions")
    return score(*predicted)


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
    """Area under the referral curve of accuracy, where referred items count as right.

    Of as many shifted items as others; the most uncertain are referred first, by the
    entropy of the mean over draws.
    """
    return _referral_area(val, shifted, oracle=True)


def _referral_kept(val: PredictedSplit, shifted: PredictedSplit) -> float:
    """The same area, where the items that are kept count and no others."""
    return _referral_area(val, shifted, oracle=False)


def _referral_area(
    val: PredictedSplit, shifted: PredictedSplit, *, oracle: bool
) -> float:
    from qualms.scores import balanced_joint, referral_curve

    probs = np.concatenate([_mean(val), _mean(shifted)])
    target = np.concatenate([val.target, shifted.target])
    sides = len(val.target), len(shifted.target)
    rows = balanced_joint(np.repeat([False, True], sides))
    return referral_curve("accuracy", probs[rows], target[rows], oracle=oracle).area


def _mean(predicted: PredictedSplit) -> NDArray[np.float64]:
    """(N, C) mean over draws; float32 would tie items that are almost certain."""
    mean: NDArray[np.float64] = predicted.probs.astype(np.float64).mean(0)
    return mean


_JOINT = ("val", "val/shifted")
RULES: Mapping[str, SelectionRule] = {
    "last": SelectionRule(),
    "val_loss": SelectionRule(("val",)),
    "val_auroc": SelectionRule(("val",), _auroc),
    "val_referral": SelectionRule(_JOINT, _referral),
    "val_referral_kept": SelectionRule(_JOINT, _referral_kept),
}
"""Every value of `select_by`: the last epoch, or the best by a score on `val` (and
`val/shifted`)."""
