"""The protocol of RETINA (Band et al., 2021): its options, and its numbers of grades.

Clinical grades run from 0 (no retinopathy) to 4 (proliferative retinopathy). The real
datasets must have these numbers of photographs; the simulated one has the same shares.
"""

from collections.abc import Mapping
from typing import Literal

Shift = Literal["country", "severity"]
Onset = Literal["moderate", "mild"]
Grades = dict[str, tuple[int, ...]]
"""The number of photographs of each grade, by split."""

SHIFTS: tuple[Shift, ...] = ("country", "severity")
ONSETS: dict[Onset, int] = {"mild": 1, "moderate": 2}
"""The lowest grade that is referred."""
BLURS = (3, 5, 10, 20, 30)
"""The subtracted local mean has a standard deviation of the eye's radius / blur."""
GRADES = 5
SPLITS = ("train", "val", "val/shifted", "test", "test/shifted")

EYEPACS: Grades = {
    "train": (25_810, 2_443, 5_292, 873, 708),
    "val": (8_130, 720, 1_579, 237, 240),
    "test": (31_403, 3_042, 6_282, 977, 966),
}
APTOS: Grades = {
    "val": (387, 61, 185, 35, 65),
    "test": (1_418, 309, 814, 158, 230),
}


def retina_grades(shift: Shift, onset: Onset) -> Grades:
    """Return the paper's number of photographs of grades 0 to 4 in each split."""
    if shift == "country":
        return {
            "train": EYEPACS["train"],
            "val": EYEPACS["val"],
            "val/shifted": APTOS["val"],
            "test": EYEPACS["test"],
            "test/shifted": APTOS["test"],
        }
    grades = ONSETS[onset] + 1
    low = {s: c[:grades] + (0,) * (GRADES - grades) for s, c in EYEPACS.items()}
    high = {s: (0,) * grades + c[grades:] for s, c in EYEPACS.items()}
    both = zip(high["train"], high["test"], strict=True)
    return {
        "train": low["train"],
        "val": low["val"],
        "val/shifted": high["val"],
        "test": low["test"],
        "test/shifted": tuple(map(sum, both)),
    }


def totals(grades: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Count the photographs per split."""
    return {split: sum(counts) for split, counts in grades.items()}


def largest() -> dict[str, int]:
    """Return the largest number of photographs per split over all shifts and onsets."""
    variants = [totals(retina_grades(s, o)) for s in SHIFTS for o in ONSETS]
    return {split: max(counts[split] for counts in variants) for split in SPLITS}
