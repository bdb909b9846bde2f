"""APTOS 2019 fundus photographs: does an eye have to be seen by an expert?

The shifted splits of RETINA's country shift (Band et al., 2021, "Benchmarking Bayesian
Deep Learning on Diabetic Retinopathy Detection Tasks") alone, for networks that were
trained elsewhere. The first 80 % of the rows of `train.csv` are test, the rest val.
Photographs are enhanced like those of `eyepacs`, and kept once for both datasets.
"""

from pathlib import Path

from qualms.datasets._options import whole_number
from qualms.datasets._recipe import Card, Recipe, Shown
from qualms.datasets._retina.photographs import aptos_album, checked_blur
from qualms.datasets._retina.protocol import APTOS, Onset, totals
from qualms.datasets._retina.splits import aptos_splits
from qualms.spec import Task

CARD = Card(
    title="APTOS 2019 Blindness Detection",
    licence="rules of the Kaggle competition; no redistribution, see the publisher",
    citation=(
        "Asia Pacific Tele-Ophthalmology Society and Kaggle: APTOS 2019 Blindness "
        "Detection, 2019. Splits of Band et al.: Benchmarking Bayesian Deep Learning "
        "on Diabetic Retinopathy Detection Tasks. NeurIPS Datasets and Benchmarks, "
        "2021."
    ),
    url="https://www.kaggle.com/c/aptos2019-blindness-detection",
    obtain=(
        "Accept the rules of the Kaggle competition aptos2019-blindness-detection, "
        "download and extract, and pass the folder, or its parent where it is called "
        "aptos or aptos2019-blindness-detection: train.csv (id_code, diagnosis) and "
        "train_images/<id_code>.png."
    ),
)


def aptos(
    root: str | Path, *, onset: Onset = "moderate", blur: int = 30, size: int = 512
) -> Recipe:
    """Read images (size, size, 3), target referable or not; groups are grades.

    Args:
        root: the publisher's files, see the card.
        onset: the lowest referable grade: "moderate" (grade 2) or "mild" (grade 1).
        blur: the subtracted local mean is a Gaussian with a standard deviation of
            300 / blur pixels; one of 3, 5, 10, 20 and 30.
        size: height and width that photographs are decoded to.
    """
    root, blur = Path(root), checked_blur(blur)
    size = whole_number("size", size, least=1)
    splits = aptos_splits(root, onset=onset)
    album = aptos_album(root, CARD, blur=blur)
    return Recipe(
        name="aptos",
        options={"onset": onset, "blur": blur, "size": size},
        card=CARD,
        task=Task(name="classification", classes=2),
        counts=totals(APTOS),
        grades=APTOS,
        shown={s: Shown(album=album, labels=splits[s]) for s in splits},
        side=size,
    )
