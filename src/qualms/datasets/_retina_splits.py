"""The splits of RETINA, and how many photographs of each grade they have.

Band et al. (2021), "Benchmarking Bayesian Deep Learning on Diabetic Retinopathy
Detection Tasks". A photograph is referable, y = 1, from `onset` on. Under the country
shift a network is trained on EyePACS and also judged on APTOS, whose first 80 % of rows
are test and the rest val: in the order of the file, neither shuffled nor stratified.
Under the severity shift it never sees the grades above `onset` in training; those of
EyePACS' train are added to the shifted test.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._counts import Tally, differences, tally
from qualms.datasets._gradings import GRADES, Gradings, aptos_gradings, eyepacs_gradings
from qualms.datasets._recipe import DatasetError, Labels
from qualms.datasets._simulated import check_choice

Shift = Literal["country", "severity"]
Onset = Literal["moderate", "mild"]
SHIFTS = ("country", "severity")
ONSETS = {"mild": 1, "moderate": 2}
"""The lowest grade that is referred."""
EYEPACS = {
    "train": (25_810, 2_443, 5_292, 873, 708),
    "val": (8_130, 720, 1_579, 237, 240),
    "test": (31_403, 3_042, 6_282, 977, 966),
}
APTOS = {
    "val": (387, 61, 185, 35, 65),
    "test": (1_418, 309, 814, 158, 230),
}
REBALANCED = 10_000

Grades = dict[str, tuple[int, ...]]


def retina_splits(
    root: str | Path,
    *,
    shift: Shift = "country",
    onset: Onset = "moderate",
    check_counts: bool = True,
) -> dict[str, Labels]:
    """Items, targets and grades of every split, from the label files in `root` alone.

    `group` is the grade, `cluster` the patient (of APTOS, which does not tell them, the
    photograph), `shifted` whether the split is.

    Args:
        root: the folder with trainLabels.csv and retinopathy_solution.csv, and for the
            country shift train.csv of APTOS, or with folders eyepacs and aptos.
        shift: "country" (APTOS) or "severity" (the grades above `onset`).
        onset: referable from "moderate" (grade 2) or "mild" (grade 1) on.
        check_counts: whether numbers other than the paper's are an error.
    """
    check_choice("shift", shift, SHIFTS)
    check_choice("onset", onset, tuple(ONSETS))
    eyes = eyepacs_gradings(Path(root))
    if shift == "country":
        splits = _by_country(eyes, aptos_gradings(Path(root)))
    else:
        splits = _by_severity(eyes, onset)
    labels = {split: _labels(split, one, onset) for split, one in splits.items()}
    if check_counts:
        _check(labels, retina_grades(shift, onset))
    return labels


def aptos_splits(root: str | Path, *, onset: Onset = "moderate") -> dict[str, Labels]:
    """Val and test of APTOS alone; nothing is shifted, and counts are not checked."""
    check_choice("onset", onset, tuple(ONSETS))
    parts = _aptos_parts(aptos_gradings(Path(root)))
    return {split: _labels(split, one, onset) for split, one in parts.items()}


def retina_grades(shift: Shift, onset: Onset) -> Grades:
    """The paper's number of photographs of grades 0 to 4 in each split."""
    if shift == "country":
        return {
            "train": EYEPACS["train"],
            "val": EYEPACS["val"],
            "val/shifted": APTOS["val"],
            "test": EYEPACS["test"],
            "test/shifted": APTOS["test"],
        }
    seen = ONSETS[onset] + 1
    low = {s: c[:seen] + (0,) * (GRADES - seen) for s, c in EYEPACS.items()}
    high = {s: (0,) * seen + c[seen:] for s, c in EYEPACS.items()}
    both = zip(high["train"], high["test"], strict=True)
    return {
        "train": low["train"],
        "val": low["val"],
        "val/shifted": high["val"],
        "test": low["test"],
        "test/shifted": tuple(map(sum, both)),
    }


def totals(grades: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Photographs per split."""
    return {split: sum(counts) for split, counts in grades.items()}


def rebalanced_rows(grade: NDArray[Any], *, seed: int = 0) -> NDArray[np.intp]:
    """9,997 rows of items with grades (N,), which are then as common as in EyePACS.

    Of each grade int(10000 q) rows are drawn with replacement, q its share of EyePACS'
    test split; the paper calls this class-rebalanced APTOS (appendix D.5) and speaks of
    10,000. Rows are sorted by grade.

    The released code draws with NumPy's global generator, unseeded, grades in the order
    of their first appearance: its rows cannot be had again, their numbers are these.
    """
    rng = np.random.default_rng(seed)
    wanted = EYEPACS["test"]
    drawn = []
    for number, count in enumerate(wanted):
        rows = np.flatnonzero(np.asarray(grade) == number)
        if not len(rows):
            raise ValueError(f"every grade must occur, got no item of grade {number}")
        drawn.append(rng.choice(rows, REBALANCED * count // sum(wanted)))
    return np.concatenate(drawn)


def _by_country(eyes: Mapping[str, Gradings], aptos: Gradings) -> dict[str, Gradings]:
    abroad = _aptos_parts(aptos)
    return {
        "train": eyes["train"],
        "val": eyes["val"],
        "val/shifted": abroad["val"],
        "test": eyes["test"],
        "test/shifted": abroad["test"],
    }


def _aptos_parts(aptos: Gradings) -> dict[str, Gradings]:
    first = len(aptos.item) * 4 // 5
    return {"val": aptos.only(slice(first, None)), "test": aptos.only(slice(first))}


def _by_severity(eyes: Mapping[str, Gradings], onset: Onset) -> dict[str, Gradings]:
    last = ONSETS[onset]
    low = {split: one.only(one.grade <= last) for split, one in eyes.items()}
    high = {split: one.only(one.grade > last) for split, one in eyes.items()}
    return {
        "train": low["train"],
        "val": low["val"],
        "val/shifted": high["val"],
        "test": low["test"],
        "test/shifted": _joined(high["train"], high["test"]),
    }


def _joined(first: Gradings, second: Gradings) -> Gradings:
    return Gradings(
        np.concatenate([first.item, second.item]),
        np.concatenate([first.grade, second.grade]),
        np.concatenate([first.patient, second.patient]),
    )


def _labels(split: str, graded: Gradings, onset: Onset) -> Labels:
    return Labels(
        item=graded.item,
        target=(graded.grade >= ONSETS[onset]).astype(np.int64),
        extra={
            "group": graded.grade,
            "cluster": graded.patient,
            "shifted": np.full(len(graded.item), split.endswith("/shifted")),
        },
    )


def _check(labels: Mapping[str, Labels], grades: Grades) -> None:
    differing = differences(tally(labels), Tally(totals(grades), grades))
    if differing:
        raise DatasetError(
            "the label files must have the paper's numbers of photographs, got"
            f" {'; '.join(differing)}; take the files as Kaggle ships them, or accept"
            " this with check_counts=False"
        )
