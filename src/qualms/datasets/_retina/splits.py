"""The splits of RETINA, from the label files alone.

Band et al. (2021), "Benchmarking Bayesian Deep Learning on Diabetic Retinopathy
Detection Tasks". A photograph is referable, y = 1, if its grade is at least `onset`.
Under the country shift a network is trained on EyePACS and also judged on APTOS. The
first 80 % of the rows of APTOS are test and the rest val, in the order of the file,
neither shuffled nor stratified. Under the severity shift the network never sees grades
above `onset` in training; those of EyePACS' train are added to the shifted test split.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._counts import Tally, differences, tally
from qualms.datasets._options import check_choice, whole_number
from qualms.datasets._recipe import DatasetError, Labels
from qualms.datasets._retina.gradings import Gradings, aptos_gradings, eyepacs_gradings
from qualms.datasets._retina.protocol import (
    EYEPACS,
    ONSETS,
    SHIFTS,
    Grades,
    Onset,
    Shift,
    retina_grades,
    totals,
)

REBALANCED = 10_000


def retina_splits(
    root: str | Path,
    *,
    shift: Shift = "country",
    onset: Onset = "moderate",
    check_counts: bool = True,
) -> dict[str, Labels]:
    """Read items, targets and grades of every split from the label files in `root`.

    `group` is the grade and `cluster` the patient; APTOS does not name patients, so
    there each photograph is its own cluster. `shifted` marks the shifted splits.

    Args:
        root: the folder with trainLabels.csv and retinopathy_solution.csv, and for the
            country shift train.csv of APTOS, or with folders eyepacs and aptos.
        shift: "country" (APTOS) or "severity" (the grades above `onset`).
        onset: the lowest referable grade: "moderate" (grade 2) or "mild" (grade 1).
        check_counts: raise if the numbers of photographs differ from the paper's.
    """
    check_choice("shift", shift, SHIFTS)
    check_choice("onset", onset, tuple(ONSETS))
    eyes = eyepacs_gradings(Path(root))
    if shift == "country":
        splits = _by_country(eyes, aptos_gradings(Path(root)))
    else:
        splits = _by_severity(eyes, onset)
    labels = {
        split: _labels(split, gradings, onset) for split, gradings in splits.items()
    }
    if check_counts:
        _check(labels, retina_grades(shift, onset))
    return labels


def aptos_splits(root: str | Path, *, onset: Onset = "moderate") -> dict[str, Labels]:
    """Read val and test of APTOS alone; counts are not checked."""
    check_choice("onset", onset, tuple(ONSETS))
    parts = _aptos_parts(aptos_gradings(Path(root)))
    return {split: _labels(split, gradings, onset) for split, gradings in parts.items()}


def rebalanced_rows(
    grade: NDArray[Any],
    *,
    shares: Mapping[int, float] | None = None,
    size: int = REBALANCED,
    seed: int = 0,
) -> NDArray[np.intp]:
    """Draw rows of items with grades (N,) so that the grades have given shares.

    Of a grade with share q, int(size q) rows are drawn with replacement. The paper
    calls this class-rebalanced APTOS (appendix D.5). It speaks of 10,000 rows; rounding
    down leaves 9,997. Rows are sorted by grade.

    The released code draws with NumPy's unseeded global generator, so its rows cannot
    be recovered. The number of rows of each grade is the same here.

    Args:
        grade: the grades of the items to draw from.
        shares: the weight of each grade; by default those of EyePACS' test split.
        size: how many rows to draw, before rounding down for each grade.
        seed: seeds the draw.

    >>> grade = np.array([1, 0, 1, 1])
    >>> grade[rebalanced_rows(grade, shares={0: 3, 1: 1}, size=4)]
    array([0, 0, 0, 1])
    """
    weights = dict(enumerate(EYEPACS["test"])) if shares is None else shares
    _check_shares(weights, size)
    rng = np.random.default_rng(whole_number("seed", seed, least=0))
    total = sum(weights.values())
    chosen = []
    for number in sorted(weights):
        rows = np.flatnonzero(np.asarray(grade) == number)
        if not len(rows) and weights[number]:
            raise ValueError(f"every grade must occur, got no item of grade {number}")
        chosen.append(rng.choice(rows, int(size * weights[number] / total)))
    return np.concatenate(chosen)


def _check_shares(shares: Mapping[int, float], size: int) -> None:
    weights = list(shares.values())
    if not all(0 <= weight < np.inf for weight in weights) or not sum(weights):
        raise ValueError(
            f"shares must be finite weights of at least 0, not all 0, got {shares}"
        )
    whole_number("size", size, least=1)


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
    low = {
        split: gradings.only(gradings.grade <= last) for split, gradings in eyes.items()
    }
    high = {
        split: gradings.only(gradings.grade > last) for split, gradings in eyes.items()
    }
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
            " these numbers with check_counts=False"
        )
