"""Which eyes the splits of the simulated RETINA consist of, and how they were graded.

Every split has patients of its own, each with two eyes. Under the country shift the
shifted splits come from abroad; under the severity shift from home, and a split keeps
the eyes whose grade, as read, belongs to it.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets import _fundus_camera as cameras
from qualms.datasets import _retina_protocol as retina
from qualms.datasets._graders import Readings, grade_probs, readings
from qualms.datasets._retina_protocol import GRADES, SPLITS, Shift

Floats = NDArray[np.float64]

BLOCK = 2_000
"""Patients whose readings are drawn at once."""


class Clinic(NamedTuple):
    """What decides which eyes a split has."""

    shift: Shift
    onset: int
    """The first grade that is referred."""
    seed: int

    def profile(self, split: str) -> cameras.Profile:
        """People and cameras of the split."""
        return cameras.APTOS if self._abroad(split) else cameras.EYEPACS

    def shares(self, split: str) -> tuple[int, ...]:
        """Published numbers of the grades where the split's patients live."""
        there = retina.APTOS if self._abroad(split) else retina.EYEPACS
        return there[split.removesuffix("/shifted")]

    def grades(self, split: str) -> range:
        """Grades that the split keeps."""
        if self.shift == "country":
            return range(GRADES)
        if split.endswith("/shifted"):
            return range(self.onset + 1, GRADES)
        return range(self.onset + 1)

    def _abroad(self, split: str) -> bool:
        return self.shift == "country" and split.endswith("/shifted")


def eyes(clinic: Clinic, split: str, count: int) -> tuple[list[int], list[int]]:
    """Number and grade of the first `count` eyes of a split.

    Eyes 2 i and 2 i + 1 are the right and the left one of patient i.
    """
    numbers: list[int] = []
    grades: list[int] = []
    block = 0
    while len(numbers) < count:
        grade = _block(clinic, split, block).grade
        kept = np.flatnonzero(np.isin(grade, clinic.grades(split)))
        numbers += (2 * BLOCK * block + kept).tolist()
        grades += grade[kept].tolist()
        block += 1
    return numbers[:count], grades[:count]


def graded(clinic: Clinic, split: str, numbers: Sequence[int]) -> Readings:
    """What is behind the photographs of these eyes, and what was read in them."""
    rows = []
    for number in numbers:
        block, row = divmod(number, 2 * BLOCK)
        rows.append([column[row] for column in _block(clinic, split, block)])
    burden, quality, grade = np.array(rows, float).reshape(-1, 3).T
    return Readings(burden, quality, grade.astype(np.int64))


def target_probs(clinic: Clinic, split: str, eyes_read: Readings) -> Floats:
    """(n, 2) P(target) of these eyes, given that the split keeps their grade."""
    probs = grade_probs(eyes_read.burden, eyes_read.quality)
    grades = np.arange(GRADES)
    probs[:, ~np.isin(grades, clinic.grades(split))] = 0.0
    kept = probs.sum(axis=1)
    healthy = probs[:, grades < clinic.onset].sum(axis=1)
    referred = probs[:, grades >= clinic.onset].sum(axis=1)
    return np.stack([healthy / kept, referred / kept], axis=1)


@cache
def _block(clinic: Clinic, split: str, number: int) -> Readings:
    """Readings of the eyes of `BLOCK` patients of a split."""
    rng = np.random.default_rng([clinic.seed, SPLITS.index(split), number])
    return readings(rng, BLOCK, clinic.shares(split))
