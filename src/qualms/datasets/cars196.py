"""CARS196: cars of 196 models, half of which are only tested on.

Krause et al. (2013), as URL (Kirchhof et al., 2023, arXiv:2307.03810) retrieves them:
one folder for each model, in alphabetical order, the last 98 for testing. The paper
takes half of the other classes for validation; the released code takes half of the
images of each.
"""

from pathlib import Path

from qualms.datasets._publisher_files import locate
from qualms.datasets._recipe import Card, Recipe
from qualms.datasets._retrieval.pictures import (
    CROP_SHARE,
    PublisherFolder,
    checked_fit,
    class_folders,
    pictures_in,
)
from qualms.datasets._retrieval.splits import ImageCounts, Validation, halved_recipe

CARD = Card(
    title="CARS196 (Stanford Cars)",
    licence="research only; no redistribution, see the publisher",
    citation=(
        "Krause, Stark, Deng, Fei-Fei. 3D object representations for fine-grained "
        "categorization. ICCV Workshop on 3D Representation and Recognition, 2013."
    ),
    url="https://github.com/Confusezius/Deep-Metric-Learning-Baselines",
    obtain=(
        "Download cars196.tar, with one folder for each model, from the page above, "
        "extract it, and pass the folder cars196 (images/AM General Hummer SUV "
        "2000/...jpg, ...) or the one that holds it."
    ),
)
PUBLISHED = ImageCounts(
    total=16_185, test=8_131, by_images={"train": 4_002, "val": 4_052}
)


def cars196(
    root: str | Path,
    *,
    validation: Validation = "classes",
    side: int = 224,
    crop_share: float = CROP_SHARE,
) -> Recipe:
    """Read images (side, side, 3), target the model.

    Splits: train, val, test, and its halves test/even and test/odd.

    Args:
        root: the publisher's files, see the card.
        validation: "classes" keeps classes 50 to 98 for validation, as the paper says;
            "images" keeps half of the images of classes 1 to 98, as its code does.
        side: height and width of pictures.
        crop_share: the part of the short side that the centre crop keeps; 0.875 is that
            of the released code.
    """
    fit = checked_fit(side, crop_share)
    folder = locate(Path(root), "cars196", holding=["images"]) / "images"
    names = class_folders(folder, like="AM General Hummer SUV 2000")
    return halved_recipe(
        PublisherFolder("cars196", CARD, folder),
        pictures_in(folder, names),
        fit,
        validation,
        PUBLISHED,
    )
