"""The eyes of every split, and their grades.

Every split has its own patients, each with two eyes. Under the country shift the
shifted splits come from another country. Under the severity shift all splits come from
the same country, and a split keeps the eyes whose grade, as read, belongs to it.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._retina import protocol
from qualms.datasets._retina.protocol import GRADES, SPLITS, Shift
from qualms.datasets.fundus._camera import (
    HOSPITAL,
    INDIA,
    TREATED,
    UNITED_STATES,
    Profile,
)
from qualms.datasets.fundus._graders import (
    QUALITY,
    Readings,
    grade_probs,
    readings,
)

Floats = NDArray[np.float64]

GOOD = (60.0, 1.5)
"""Parameters of the beta distribution of the quality in a hospital abroad."""
BLOCK = 2_000
"""Patients whose readings are drawn together."""


class Clinic(NamedTuple):
    """The options that decide which eyes a split has."""

    shift: Shift
    onset: int
    """The first grade that is referred."""
    seed: int
    deceptive: bool = False

    def profile(self, split: str) -> Profile:
        """Return the people and cameras of the split."""
        if self._abroad(split):
            return HOSPITAL if self.deceptive else INDIA
        shifted = split.endswith("/shifted")
        return TREATED if shifted and self.deceptive else UNITED_STATES

    def quality(self, split: str) -> tuple[float, float]:
        """Return the parameters of the beta distribution of the quality."""
        return GOOD if self.deceptive and self._abroad(split) else QUALITY

    def shares(self, split: str) -> tuple[int, ...]:
        """Return the published numbers of the grades in the split's country."""
        grades = protocol.APTOS if self._abroad(split) else protocol.EYEPACS
        return grades[split.removesuffix("/shifted")]

    def grades(self, split: str) -> range:
        """Return the grades that the split keeps."""
        if self.shift == "country":
            return range(GRADES)
        if split.endswith("/shifted"):
            return range(self.onset + 1, GRADES)
        return range(self.onset + 1)

    def _abroad(self, split: str) -> bool:
        return self.shift == "country" and split.endswith("/shifted")


def eyes(clinic: Clinic, split: str, count: int) -> tuple[list[int], list[int]]:
    """Return number and grade of the first `count` eyes of a split.

    Eyes 2 i and 2 i + 1 are the right and the left eye of patient i.
    """
    numbers: list[int] = []
    grades: list[int] = []
    block = 0
    while len(numbers) < count:
        grade = _block(clinic, split, block).grade
        rows = np.flatnonzero(np.isin(grade, clinic.grades(split)))
        numbers += (2 * BLOCK * block + rows).tolist()
        grades += grade[rows].tolist()
        block += 1
    return numbers[:count], grades[:count]


def eye_readings(clinic: Clinic, split: str, numbers: Sequence[int]) -> Readings:
    """Return burden, quality and grade of these eyes."""
    rows = []
    for number in numbers:
        block, row = divmod(number, 2 * BLOCK)
        rows.append([column[row] for column in _block(clinic, split, block)])
    burden, quality, grade = np.array(rows, float).reshape(-1, 3).T
    return Readings(burden, quality, grade.astype(np.int64))


def target_probs(clinic: Clinic, split: str, eyes_read: Readings) -> Floats:
    """Compute P(target) (n, 2) of these eyes, given burden, quality and the split."""
    probs = grade_probs(eyes_read.burden, eyes_read.quality)
    grades = np.arange(GRADES)
    probs[:, ~np.isin(grades, clinic.grades(split))] = 0.0
    total = probs.sum(axis=1)
    healthy = probs[:, grades < clinic.onset].sum(axis=1)
    referred = probs[:, grades >= clinic.onset].sum(axis=1)
    return np.stack([healthy / total, referred / total], axis=1)


@cache
def _block(clinic: Clinic, split: str, number: int) -> Readings:
    """Draw readings of `BLOCK` patients of a split, right eye before left."""
    rng = np.random.default_rng([clinic.seed, SPLITS.index(split), number])
    return readings(rng, BLOCK, clinic.shares(split), clinic.quality(split))
