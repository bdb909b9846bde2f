"""EyePACS fundus photographs: does an eye have to be seen by an expert?

RETINA (Band et al., 2021, "Benchmarking Bayesian Deep Learning on Diabetic Retinopathy
Detection Tasks") with both its shifts. Photographs are enhanced as in the winning entry
of the Kaggle competition of 2015 and kept as JPEG of quality 72. `docs/eyepacs.md`
describes the files, the splits and the numbers of photographs of every grade.

The paper's code evaluates whole batches only and drops the rest of a split (it uses
42,624 of 42,670 photographs at a batch of 64); here every photograph counts.
"""

from pathlib import Path

from qualms.datasets._options import whole_number
from qualms.datasets._recipe import Card, Recipe, Shown
from qualms.datasets._retina.photographs import aptos_album, checked_blur, eyepacs_album
from qualms.datasets._retina.protocol import Onset, Shift, retina_grades, totals
from qualms.datasets._retina.splits import retina_splits
from qualms.spec import Task

CARD = Card(
    title="EyePACS (Kaggle Diabetic Retinopathy Detection) and APTOS 2019",
    licence="rules of both Kaggle competitions; no redistribution, see the publisher",
    citation=(
        "Band et al.: Benchmarking Bayesian Deep Learning on Diabetic Retinopathy "
        "Detection Tasks. NeurIPS Datasets and Benchmarks, 2021. EyePACS and Kaggle: "
        "Diabetic Retinopathy Detection, 2015. APTOS and Kaggle: APTOS 2019 Blindness "
        "Detection, 2019."
    ),
    url="https://www.kaggle.com/c/diabetic-retinopathy-detection",
    obtain=(
        "Accept the rules of the Kaggle competitions diabetic-retinopathy-detection "
        "and aptos2019-blindness-detection, download and extract, and pass the folder "
        "that holds eyepacs/ (trainLabels.csv, retinopathy_solution.csv, "
        "train/<patient>_<left|right>.jpeg, test/...jpeg) and, for the country shift, "
        "aptos/ (train.csv, train_images/<id_code>.png). "
        "`qualms docs eyepacs` says more."
    ),
)
ABROAD = "APTOS, India, instead of EyePACS, United States"


def eyepacs(
    root: str | Path,
    *,
    shift: Shift = "country",
    onset: Onset = "moderate",
    blur: int = 30,
    size: int = 512,
) -> Recipe:
    """Read images (size, size, 3), target referable or not; groups are grades.

    Args:
        root: the publisher's files, see the card.
        shift: "country" has APTOS as val/shifted and test/shifted. "severity" has the
            grades above `onset` there, and leaves them out of train, val and test.
        onset: the lowest referable grade: "moderate" (grade 2) or "mild" (grade 1).
        blur: the subtracted local mean is a Gaussian with a standard deviation of
            300 / blur pixels; one of 3, 5, 10, 20 and 30.
        size: height and width that photographs are decoded to. Photographs are kept
            once for all shifts, onsets and sizes.
    """
    root, blur = Path(root), checked_blur(blur)
    size = whole_number("size", size, least=1)
    splits = retina_splits(root, shift=shift, onset=onset, check_counts=False)
    home = eyepacs_album(root, CARD, blur=blur)
    albums = dict.fromkeys(splits, home)
    if shift == "country":
        away = aptos_album(root, CARD, blur=blur)
        albums |= {"val/shifted": away, "test/shifted": away}
    grades = retina_grades(shift, onset)
    why = ABROAD if shift == "country" else f"more than {onset} retinopathy"
    return Recipe(
        name="eyepacs",
        options={"shift": shift, "onset": onset, "blur": blur, "size": size},
        card=CARD,
        task=Task(name="classification", classes=2),
        counts=totals(grades),
        grades=grades,
        shifts=dict.fromkeys(("val/shifted", "test/shifted"), why),
        shown={s: Shown(album=albums[s], labels=splits[s]) for s in splits},
        side=size,
    )
