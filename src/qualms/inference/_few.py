"""Limits of comparisons with few items, or with few right or wrong ones."""

from collections.abc import Iterable, Sequence

import numpy as np

from qualms.arrays import Array
from qualms.inference._design import Design
from qualms.scores.influence import Influence, Strata
from qualms.wording import plural

FEWEST_UNITS = 10
"""With fewer items, or clusters, no row is said to be better than another."""
FEWEST_DIFFERENT = 10
"""With fewer items on which two rows differ, one more is added to the spread."""
DIFFERENT_IN_STRATUM = 5
"""The corresponding limit for the items of one class."""
LEAST_INFLATION = 1.1
"""Smallest factor on the variance that changes differences."""
ROUNDING = 1e-10
"""Rows whose values differ by less, relative to their size, are equal."""


def why_uncompared(rows: Iterable[Sequence[Influence]], design: Design) -> str:
    """Return why no row can be called better; empty if one can be.

    Every row is a list of its repeats.
    """
    units = design.units()
    if units < FEWEST_UNITS:
        kind = plural(units, "item" if design.cluster is None else "cluster")
        return (
            f"{units} {kind} are too few to tell which is better, at least "
            f"{FEWEST_UNITS} are needed"
        )
    return next((i.uncompared for row in rows for i in row if i.uncompared), "")


def small_inflation(*rows: Sequence[Influence]) -> float:
    """Return the factor on the variance where a class has few items; 1 elsewhere."""
    largest = max(repeat.inflation for row in rows for repeat in row)
    return largest if largest > LEAST_INFLATION else 1.0


def unseen_variance(
    a: Sequence[Influence], b: Sequence[Influence], change: Array
) -> float:
    """Return the variance that one more item, decided differently, would add.

    The spread of a difference is too small where rows differ in few decisions: half
    an item is added in favour of each row (Agresti & Min, 2005). 0 where many differ,
    or where the score is not made of decisions. `change` (N,) is the mean influence of
    the repeats `a` minus that of `b`.
    """
    repeats = [*a, *b]
    if not all(np.any(repeat.step) for repeat in repeats):
        return 0.0
    strata = repeats[0].construction
    if isinstance(strata, Strata):
        return _of_strata(strata, np.asarray(repeats[0].step), change)
    step = float(max(np.max(repeat.step) for repeat in repeats))
    few = float(np.square(change).sum()) < FEWEST_DIFFERENT * step**2
    return step**2 if few else 0.0


def _of_strata(strata: Strata, step: Array, change: Array) -> float:
    items = np.bincount(strata.stratum)
    present = items > 0
    differs = np.abs(change) > ROUNDING * float(step.min())
    different = np.bincount(strata.stratum, differs)[present]
    return float(np.square(step[different < DIFFERENT_IN_STRATUM]).sum())
