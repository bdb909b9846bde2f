"""The ranges of targets that the variants of cells and chairs train and test on.

Gustafsson et al. (2023, arXiv:2302.03679), section 3.1 and appendix A; shared by the
real datasets and their simulators. A variant tests on all targets; "tails" is trained
on the middle of the range and "gap" on its two ends. The graded ranges of figure 4 are
subsets of the test split.

Cells-Gap trains on a count of 150 in the released code, but not in the paper's text.
The real Cell-200 follows the code by default, so that its numbers compare with the
published ones. The simulator follows the text.
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._recipe import Subset

Variant = Literal["plain", "tails", "gap"]
VARIANTS = ("plain", "tails", "gap")
GapRule = Literal["released", "text"]
GAP_RULES = ("released", "text")

GRADED_COUNTS: Mapping[str, Subset] = {
    "test/v1": Subset(of="test", within=((37.5, 163.5),)),
    "test/v2": Subset(of="test", within=((25.0, 176.0),)),
    "test/v3": Subset(of="test", within=((12.5, 188.5),)),
}
"""Subsets of "tails": 126, 152 and 176 of the 200 counts."""

# The paper's ranges are open, but no test angle lies on one of their ends.
GRADED_YAWS: Mapping[str, Subset] = {
    "test/v1": Subset(of="test", within=((0.0, 33.75), (56.25, 90.0))),
    "test/v2": Subset(of="test", within=((0.0, 37.45), (52.55, 90.0))),
    "test/v3": Subset(of="test", within=((0.0, 41.25), (48.75, 90.0))),
}
"""Subsets of "gap": 336, 374 and 412 of the 449 test angles."""


def trained_counts(
    count: NDArray[Any], variant: Variant, *, gap: GapRule = "text"
) -> NDArray[np.bool_]:
    """Return which cell counts (N,) may occur in train and val of `variant`.

    >>> trained_counts(np.array([49, 50, 149, 150, 151]), "gap").tolist()
    [True, False, False, False, True]
    >>> trained_counts(np.array([149, 150, 151]), "gap", gap="released").tolist()
    [False, True, True]
    """
    if variant == "tails":
        return (count > 50) & (count <= 150)
    if variant == "gap":
        return (count < 50) | (count > (149 if gap == "released" else 150))
    return np.ones(count.shape, dtype=bool)


def trained_tenths(tenth: NDArray[Any], variant: Variant) -> NDArray[np.bool_]:
    """Return which yaws (N,) in tenths of a degree may occur in train and val.

    >>> trained_tenths(np.array([150, 151, 749, 750]), "tails").tolist()
    [False, True, True, False]
    """
    if variant == "tails":
        return (tenth > 150) & (tenth < 750)
    if variant == "gap":
        return (tenth < 300) | (tenth > 600)
    return np.ones(tenth.shape, dtype=bool)
