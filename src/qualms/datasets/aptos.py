"""APTOS 2019 fundus photographs: does an eye have to be seen by an expert?

The shifted splits of RETINA's country shift (Band et al., 2021, "Benchmarking Bayesian
Deep Learning on Diabetic Retinopathy Detection Tasks") by themselves, for networks that
were trained elsewhere: the first 80 % of the rows of `train.csv` are test, the rest
val. Photographs are enhanced as those of `eyepacs`, and kept once for both.
"""

from pathlib import Path

from qualms.datasets._albums import aptos_album, checked_blur
from qualms.datasets._recipe import Card, Recipe, Shown
from qualms.datasets._retina_protocol import APTOS, Onset, totals
from qualms.datasets._retina_splits import aptos_splits
from qualms.datasets._simulated import whole
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
    """Referable or not, images (size, size, 3); groups are grades.

    Args:
        root: the publisher's files, see the card.
        onset: referable from "moderate" (grade 2) or "mild" (grade 1) on.
        blur: the local mean that is subtracted is a Gaussian of 300 / blur pixels,
            blur one of 3, 5, 10, 20 and 30.
        size: height and width that photographs are decoded to.
    """
    root, blur = Path(root), checked_blur(blur)
    size = whole("size", size, least=1)
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
