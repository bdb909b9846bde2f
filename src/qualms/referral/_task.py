"""The record `Referral`: what a task states for plans of referral.

`tasks/<name>/referral.py` holds one as `REFERRAL`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.arrays import Array, Flags, Index
from qualms.predictions import Predictions
from qualms.shelf import task_part, tasks_stating


class ReferredOutcomes(NamedTuple):
    """Items of known outcome; all arrays are (n,) for the n items there."""

    rows: Index
    """(n,) where they are in the file."""
    correct: Flags
    """True where the decision is right; False for all items of values."""
    loss: Array
    positive: Array
    """Probability of class 1; of use with two classes only."""
    unit: NDArray[np.int64] | NDArray[np.str_] | None
    """Cluster of each item; None where all items are independent."""


def _same_name(_predictions: Predictions, name: str) -> str:
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Referral:
    """Uncertainties, decisions and outcomes of the items of a task."""

    computed: Mapping[str, str]
    """Descriptions of the uncertainties that can be computed, by name."""
    usual: Callable[[Predictions], str]
    """From predictions to the name of the one that is computed by default."""
    compute: Callable[[Predictions, str], Array]
    """From (predictions, name) to the uncertainty (N,) of all items."""
    lacking: Callable[[Predictions, str], str]
    """From (predictions, name) to what it needs and the file lacks; '' for nothing."""
    predicted: Callable[[Predictions], Index | Array]
    """From predictions to the predicted classes, values or lengths (N,)."""
    judged: Callable[[Predictions, Predictions | None], ReferredOutcomes]
    """From (predictions, gallery or None) to the items whose outcome is known."""
    other_names: tuple[str, ...] = ()
    """Further names that a user may give; `named` says which uncertainty they are."""
    named: Callable[[Predictions, str], str] = _same_name
    family: str = "uncertainty/<name>"
    """Family of arrays for a file's own uncertainty."""
    instead: str = ""
    """What to do where an uncertainty cannot be computed, before "give the values"."""
    is_decided: bool = True
    """True if items are right or wrong; values are neither."""
    accuracy: str = "accuracy"
    """Name of the share of right items, in `qualms.scores`."""
    promise: str = ""
    """Words after "at least 95%" for a promised accuracy; '' for the usual ones."""
    asks: str = ""
    """What to ask for in place of the scores that the task has not."""
    output: str = "predicted"
    """Column of what is predicted in lists of items."""
    outputs: str = "predicted values"
    """What is predicted, in words."""


def referral_of(task: str) -> Referral:
    """Return what a task states for plans."""
    referral: Referral = task_part(task, "referral")
    return referral


def referable_tasks() -> tuple[str, ...]:
    """Return the tasks for which plans can be made."""
    return tasks_stating("referral")
