"""Rules by which an epoch, or a configuration, is chosen on validation items.

`RULES` holds every value of the training option `select_by`, and which splits each of
them looks at. A rule that looks at "val/shifted" has seen shifted items, which changes
what a score on shifted test items means.

"val_auroc" and "val_referral" are the rules of RETINA (Band et al., 2021), without and
with shifted items. The paper describes the accuracy of the items that are kept; when
its runs were tuned and their epochs chosen, referred items counted as right. Version 1
of the benchmark follows what was run; the rule of the text is "val_referral_kept".

"val_r_auroc" and "val_recall" are the rules of URL (Kirchhof et al., 2023): the mean
over validation splits of further datasets, which the option `select_on` names. An epoch
that retrieves less than a tenth of the items correctly does not count for the first.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets import Dataset
from qualms.shelf import tasks_with
from qualms.training._error import TrainingError
from qualms.training._splits import Splits

if TYPE_CHECKING:
    from qualms.training.options import EpochSelection


class PredictedSplit(NamedTuple):
    """Predicted probabilities and true classes of a split."""

    probs: NDArray[Any]
    """(M, N, C)."""
    target: NDArray[Any]
    """(N,) classes."""


class RetrievedSplit(NamedTuple):
    """Hits and uncertainty of the items of a split, (N,) each."""

    hits: NDArray[np.float64]
    """Probability that the nearest other item is of the same class."""
    uncertainty: NDArray[Any]


LEAST_RECALL = 0.1
"""R@1 from which on an epoch counts for "val_r_auroc" (Kirchhof et al., 2023)."""


_RETRIEVAL = "vectors"


class SelectionRule(NamedTuple):
    """A value of `select_by`."""

    splits: tuple[str, ...] = ()
    """Splits that the rule looks at; for retrieval the run names them."""
    score: Callable[..., float] | None = None
    """Function of the `PredictedSplit` of each split, larger is better; None for rules
    that need no predictions."""
    needs: str = "items probabilities"
    """Traits of a task whose predictions the rule can read, if it needs any."""

    @property
    def retrieves(self) -> bool:
        """True if the rule looks at neighbours among embeddings."""
        return self.needs == _RETRIEVAL

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks that the rule is for."""
        return tasks_with(self.needs) if self.score else tasks_with()

    @property
    def needs_shifted(self) -> bool:
        """True if the rule looks at shifted validation items."""
        return "val/shifted" in self.splits


def score_alike(rule: str, other: str) -> bool:
    """Return whether two rules score predictions of the same kind."""
    first, second = RULES[rule], RULES[other]
    scored = first.score is not None and second.score is not None
    return scored and first.needs == second.needs


def check_selection(options: "EpochSelection", splits: Splits) -> None:
    """Raise unless the datasets have the items and classes that the rule needs."""
    by, dataset = options.select_by, splits.dataset
    rule, task = RULES[by], dataset.task
    if options.select_on and not rule.retrieves:
        raise TrainingError(
            f"select_on={list(options.select_on)} is for rules by retrieval, and"
            f" select_by={by!r} looks at {', '.join(rule.splits) or 'no split'}; leave"
            " it out"
        )
    if task.name not in rule.tasks:
        raise TrainingError(
            f"select_by={by!r} is for {' and '.join(rule.tasks)}, and"
            f" {dataset.name!r} is {task.name}; select by 'val_loss'"
        )
    for split in selection_splits(options, splits):
        if not splits.has(split):
            raise TrainingError(
                f"select_by={by!r} needs the split {split!r}, which {dataset.name!r}"
                " does not have; select by another rule"
            )
    if by == "val_auroc":
        _check_two_classes(dataset)


def selection_splits(options: "EpochSelection", splits: Splits) -> tuple[str, ...]:
    """Return the splits that the rule of a run looks at.

    Rules by retrieval look at the splits that the run names, otherwise at the split
    `val` of every further dataset, except datasets with the votes of people.
    """
    rule = RULES[options.select_by]
    if not rule.retrieves:
        return rule.splits
    if options.select_on:
        return options.select_on
    further = [f"{name}:val" for name in splits.further]
    without_votes = [
        split
        for split in further
        if splits.has(split) and "votes" not in splits.stored(split).extra
    ]
    if not without_votes:
        raise TrainingError(
            f"select_by={options.select_by!r} needs validation items of further"
            " datasets, and there are none; name splits in 'select_on', or select by"
            " another rule"
        )
    return tuple(without_votes)


def stated_uncertainty(arrays: Mapping[str, Any], name: str = "") -> Any:
    """Return the array `uncertainty/<name>` of predictions.

    '' is the method's main uncertainty: that of its uncertainty head, else the entropy,
    else the first array.
    """
    keys = {
        key.removeprefix(_UNCERTAINTY): key
        for key in arrays
        if key.startswith(_UNCERTAINTY)
    }
    if not keys:
        raise TrainingError(
            f"predict of a method must return an array '{_UNCERTAINTY}<name>' for"
            f" embedding, got {', '.join(map(repr, arrays))}; use"
            " summarise(draws, task)"
        )
    if name and name not in keys:
        raise TrainingError(
            f"select_uncertainty must be one of {', '.join(keys)}, which this method"
            f" gives, got {name!r}"
        )
    main = next((name for name in _MAIN if name in keys), next(iter(keys)))
    return arrays[keys[name or main]]


def predicted_split(
    by: str, arrays: Mapping[str, NDArray[Any]], uncertainty: str = ""
) -> PredictedSplit | RetrievedSplit:
    """Return what the rule `by` needs of a file of predictions."""
    if not RULES[by].retrieves:
        return PredictedSplit(arrays["probs"], arrays["target"])
    from qualms.scores import retrieval_hits

    labelled = np.asarray(arrays["target"]) >= 0
    hits = retrieval_hits(arrays["embedding"][labelled], arrays["target"][labelled])
    return RetrievedSplit(hits, stated_uncertainty(arrays, uncertainty)[labelled])


def selection_score(
    by: str, predicted: Sequence[PredictedSplit | RetrievedSplit]
) -> float:
    """Return the score of the rule `by` on its splits; larger is better.

    It is nan where the rule leaves the epoch out.
    """
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
    if len(np.unique(np.asarray(dataset.split("val").target))) < 2:
        raise TrainingError(
            "select_by='val_auroc' needs items of both classes in the split 'val', and"
            " all of them are of one; select by 'val_loss'"
        )


def _auroc(val: PredictedSplit) -> float:
    from qualms.scores import auroc  # compiles kernels, which few runs need

    return auroc(score=_mean(val)[:, 1], positive=val.target == 1)


def _referral(val: PredictedSplit, shifted: PredictedSplit) -> float:
    """Return the area under the referral curve of accuracy; referred items are right.

    There are as many shifted items as others. The most uncertain are referred first, by
    the entropy of the mean over draws.
    """
    return _referral_area(val, shifted, oracle=True)


def _referral_kept(val: PredictedSplit, shifted: PredictedSplit) -> float:
    """Return the same area, where only the items that are kept count."""
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
    """Return the (N, C) mean over draws; float32 would tie almost certain items."""
    mean: NDArray[np.float64] = predicted.probs.astype(np.float64).mean(0)
    return mean


def _r_auroc(*splits: RetrievedSplit) -> float:
    """Return the mean R-AUROC; nan if the mean R@1 is low, or all items are hits."""
    from qualms.scores import weighted_auroc

    if _recall(*splits) < LEAST_RECALL:
        return float("nan")
    return float(
        np.mean(
            [
                weighted_auroc(score=u, positive_weight=1 - hits, negative_weight=hits)
                for hits, u in splits
            ]
        )
    )


def _recall(*splits: RetrievedSplit) -> float:
    """Return the mean R@1."""
    return float(np.mean([hits.mean() for hits, _ in splits]))


_UNCERTAINTY = "uncertainty/"
_MAIN = ("head", "entropy")
_JOINT = ("val", "val/shifted")
RULES: Mapping[str, SelectionRule] = {
    "last": SelectionRule(),
    "val_loss": SelectionRule(("val",)),
    "val_auroc": SelectionRule(("val",), _auroc),
    "val_referral": SelectionRule(_JOINT, _referral),
    "val_referral_kept": SelectionRule(_JOINT, _referral_kept),
    "val_r_auroc": SelectionRule((), _r_auroc, _RETRIEVAL),
    "val_recall": SelectionRule((), _recall, _RETRIEVAL),
}
"""Every value of `select_by`: the last epoch, or the best by a score on `val` (and
`val/shifted`), or on validation splits of further datasets."""
