"""The splits of VALUES for LIDC-IDRI: by one rated feature, disjoint by patient.

Kahl et al. (2024, "ValUES: A Framework for Systematic Validation of Uncertainty
Estimation in Semantic Segmentation"), appendix B.2. A feature is made binary: some of
its ratings are in-domain, the others shifted. Of four raters the majority decides, and
nodules with a tie are left out.

Numbers are drawn as in the released code (Python's `random`, then a shuffle of NumPy's
legacy generator for the folds), so seed 123 gives the paper's splits nodule by nodule.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._folds import FOLDS, fold_rows
from qualms.datasets._lidc.nodules import Nodule
from qualms.datasets._options import check_choice, whole_number
from qualms.datasets._recipe import (
    DatasetError,
    Labels,
    LoadedItems,
    Recipe,
    Shown,
    Unit,
)

Feature = Literal[
    "texture", "malignancy", "calcification", "sphericity", "lobulation", "spiculation"
]
Design = Literal["pool", "screening"]
DESIGNS = ("pool", "screening")
IN_DOMAIN: Mapping[str, tuple[int, ...]] = {
    "texture": (3, 4, 5),
    "malignancy": (1, 2, 3),
    "calcification": (6,),
    "sphericity": (3, 4, 5),
    "lobulation": (1, 2),
    "spiculation": (1, 2),
}
SHIFTS = {
    "texture": "non-solid instead of solid and part-solid nodules",
    "malignancy": "malignant instead of benign and unclear nodules",
    "calcification": "nodules with instead of without calcification",
    "sphericity": "linear instead of round nodules",
    "lobulation": "nodules with instead of without lobulation",
    "spiculation": "nodules with instead of without spiculation",
}
SEED = 123
"""Seed of the released code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LidcSplits:
    """Options that decide the splits."""

    feature: str
    design: str
    fold: int
    seed: int

    def __post_init__(self) -> None:
        whole_number("seed", self.seed, least=0)
        check_choice("feature", self.feature, tuple(IN_DOMAIN))
        check_choice("design", self.design, DESIGNS)
        if not 0 <= whole_number("fold", self.fold) < FOLDS:
            raise ValueError(f"fold must lie in 0..{FOLDS - 1}, got {self.fold}")

    def as_dict(self) -> dict[str, str | int]:
        """Return the options of a recipe."""
        return {
            "feature": self.feature,
            "design": self.design,
            "fold": int(self.fold),
            "seed": int(self.seed),
        }

    def shifts(self) -> dict[str, str]:
        """Return the splits that have shifted items, and the name of the shift."""
        splits = ("pool", "test") if self.design == "pool" else ("test",)
        return dict.fromkeys(splits, SHIFTS[self.feature])


class VotedNodule(NamedTuple):
    """A nodule on whose feature a majority of raters agrees."""

    nodule: Nodule
    shifted: bool
    rating: int
    """The lower median of the four ratings, which lies on the side of the majority."""


def voted_nodules(nodules: Sequence[Nodule], feature: str) -> list[VotedNodule]:
    """List the nodules on which a majority of raters agrees."""
    items = []
    for nodule in nodules:
        ratings = sorted(reading.rating(feature) for reading in nodule.readings)
        inside = sum(rating in IN_DOMAIN[feature] for rating in ratings)
        if 2 * inside != len(ratings):
            shifted = 2 * inside < len(ratings)
            rating = ratings[(len(ratings) - 1) // 2]
            items.append(VotedNodule(nodule, shifted, rating))
    return items


def lidc_splits(
    nodules: Sequence[Nodule], options: LidcSplits
) -> dict[str, list[VotedNodule]]:
    """List the nodules of every split.

    With the design "pool", random patients with shifted nodules go to the pool until it
    has half of the shifted nodules; the others go to test. Test is filled with patients
    that have in-domain nodules only to a fifth of the in-domain nodules outside the
    pool, then the pool until it has two in-domain nodules for each shifted one. With
    "screening" there is no pool. One fifth of the nodules that are left, not of their
    patients, is val, the rest train.
    """
    items = voted_nodules(nodules, options.feature)
    draws = _PatientDraws(items, random.Random(options.seed))
    shares: dict[str, set[str]] = {}
    if options.design == "pool":
        half = sum(item.shifted for item in items) // 2
        shares["pool"] = draws.shifted(half)
    shares["test"] = draws.mixed
    inside = sum(draws.inside[patient] for patient in draws.plain | draws.mixed)
    shares["test"] |= draws.in_domain(inside - int(0.8 * inside), shares["test"])
    if options.design == "pool":
        twice = 2 * sum(draws.outside[patient] for patient in shares["pool"])
        shares["pool"] |= draws.in_domain(twice, shares["pool"])
    remaining = [item for item in items if item.nodule.scan.patient in draws.plain]
    val = fold_rows(len(remaining), seed=options.seed, fold=options.fold)
    return {
        "train": [item for row, item in enumerate(remaining) if row not in val],
        "val": [item for row, item in enumerate(remaining) if row in val],
        **{
            split: [item for item in items if item.nodule.scan.patient in patients]
            for split, patients in shares.items()
        },
    }


class _PatientDraws:
    """Patients to draw, one after the other, until they have enough nodules."""

    def __init__(self, items: Sequence[VotedNodule], rng: random.Random) -> None:
        self.inside: Counter[str] = Counter()
        self.outside: Counter[str] = Counter()
        for item in items:
            counter = self.outside if item.shifted else self.inside
            counter[item.nodule.scan.patient] += 1
        self.mixed = set(self.outside)
        """Patients with shifted nodules that are not drawn yet."""
        self.plain = set(self.inside) - self.mixed
        """Patients without shifted nodules that are not drawn yet."""
        self._rng = rng

    def shifted(self, needed: int) -> set[str]:
        """Draw patients with `needed` shifted nodules or a few more."""
        return self._draw(self.mixed, self.outside, needed)

    def in_domain(self, needed: int, already: set[str]) -> set[str]:
        """Draw patients that bring the in-domain nodules of `already` to `needed`."""
        missing = needed - sum(self.inside[patient] for patient in already)
        return self._draw(self.plain, self.inside, missing)

    def _draw(
        self, remaining: set[str], counter: Counter[str], needed: int
    ) -> set[str]:
        patients: set[str] = set()
        total = 0
        while total < needed:
            if not remaining:
                raise DatasetError(
                    f"the splits need {needed} more nodules, got {total} from all"
                    " patients that are left; take the whole annotation database"
                )
            patient = self._rng.choice(sorted(remaining))
            remaining.remove(patient)
            patients.add(patient)
            total += counter[patient]
        return patients


def crop_units(nodules: Sequence[Nodule]) -> tuple[Unit, ...]:
    """Make one unit for the crop of each nodule."""
    return tuple(
        Unit(key=nodule.name, split="crops", args=(nodule,)) for nodule in nodules
    )


def crop_items(
    unit: Unit, image: NDArray[np.float32], raters: NDArray[np.uint8]
) -> LoadedItems:
    """Return the one item of a unit.

    Args:
        unit: one of `crop_units`.
        image: HU (side, side, side).
        raters: masks (4, side, side, side).
    """
    return LoadedItems(
        image=image[None, ..., None], target=raters[None], item=(unit.key,)
    )


def shown_nodules(
    crops: Recipe, splits: Mapping[str, Sequence[VotedNodule]]
) -> dict[str, Shown]:
    """Return the splits that have nodules, as rows of the album `crops`."""
    return {
        split: Shown(album=crops, labels=_labels(items))
        for split, items in splits.items()
        if items
    }


def _labels(items: Sequence[VotedNodule]) -> Labels:
    return Labels(
        item=np.array([item.nodule.name for item in items]),
        target=None,
        extra={
            "shifted": np.array([item.shifted for item in items]),
            "group": np.array([item.rating for item in items], np.int64),
            "cluster": np.array([item.nodule.scan.patient for item in items]),
        },
    )
