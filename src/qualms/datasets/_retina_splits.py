"""The splits of RETINA from label files, and the rows of its rebalanced one.

Band et al. (2021), "Benchmarking Bayesian Deep Learning on Diabetic Retinopathy
Detection Tasks". A photograph is referable, y = 1, from `onset` on. Under the country
shift a network is trained on EyePACS and also judged on APTOS, whose first 80 % of rows
are test and the rest val: in the order of the file, neither shuffled nor stratified.
Under the severity shift it never sees the grades above `onset` in training; those of
EyePACS' train are added to the shifted test.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._counts import Tally, differences, tally
from qualms.datasets._gradings import Gradings, aptos_gradings, eyepacs_gradings
from qualms.datasets._recipe import DatasetError, Labels
from qualms.datasets._retina_protocol import (
    EYEPACS,
    ONSETS,
    SHIFTS,
    Grades,
    Onset,
    Shift,
    retina_grades,
    totals,
)
from qualms.datasets._simulated import check_choice, whole

REBALANCED = 10_000


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


def rebalanced_rows(
    grade: NDArray[Any],
    *,
    shares: Mapping[int, float] | None = None,
    size: int = REBALANCED,
    seed: int = 0,
) -> NDArray[np.intp]:
    """Rows of items with grades (N,), drawn so that the grades have other shares.

    Of a grade with a share q of the whole, int(size q) rows are drawn with replacement.
    The paper calls this class-rebalanced APTOS (appendix D.5) and speaks of 10,000
    rows, of which 9,997 are left. Rows are sorted by grade.

    The released code draws with NumPy's global generator, unseeded, grades in the order
    of their first appearance: its rows cannot be had again, their numbers are these.

    Args:
        grade: of the items to draw from.
        shares: weight of each grade; those of EyePACS' test split unless given.
        size: how many rows to draw, but for what is cut off of each grade.
        seed: seeds the draw.

    >>> grade = np.array([1, 0, 1, 1])
    >>> grade[rebalanced_rows(grade, shares={0: 3, 1: 1}, size=4)]
    array([0, 0, 0, 1])
    """
    wanted = dict(enumerate(EYEPACS["test"])) if shares is None else shares
    _check_shares(wanted, size)
    rng = np.random.default_rng(whole("seed", seed, least=0))
    total = sum(wanted.values())
    drawn = []
    for number in sorted(wanted):
        rows = np.flatnonzero(np.asarray(grade) == number)
        if not len(rows) and wanted[number]:
            raise ValueError(f"every grade must occur, got no item of grade {number}")
        drawn.append(rng.choice(rows, int(size * wanted[number] / total)))
    return np.concatenate(drawn)


def _check_shares(shares: Mapping[int, float], size: int) -> None:
    weights = list(shares.values())
    if not all(0 <= weight < np.inf for weight in weights) or not sum(weights):
        raise ValueError(
            f"shares must be finite weights of at least 0, not all 0, got {shares}"
        )
    whole("size", size, least=1)


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
