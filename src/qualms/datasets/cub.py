"""CUB-200-2011: birds of 200 species, half of which are only tested on.

Wah et al. (2011), as URL (Kirchhof et al., 2023, arXiv:2307.03810) retrieves them:
classes in the order of their numbers, 101 to 200 for testing. The paper takes half of
the other classes for validation; the released code takes half of the images of each.
Bounding boxes are not used.
"""

from pathlib import Path

from qualms.datasets._publisher_files import contents, locate
from qualms.datasets._recipe import Card, DatasetError, Recipe
from qualms.datasets._retrieval.pictures import (
    CROP_SHARE,
    PublisherFolder,
    checked_fit,
    class_folders,
    pictures_in,
)
from qualms.datasets._retrieval.splits import ImageCounts, Validation, halved_recipe

CARD = Card(
    title="Caltech-UCSD Birds-200-2011",
    licence="images: research and education only, see the publisher",
    citation=(
        "Wah, Branson, Welinder, Perona, Belongie. The Caltech-UCSD Birds-200-2011 "
        "dataset. California Institute of Technology, CNS-TR-2011-001, 2011."
    ),
    url="https://www.vision.caltech.edu/datasets/cub_200_2011/",
    obtain=(
        "Download CUB_200_2011.tgz from the page of the dataset, extract it, and pass "
        "the folder CUB_200_2011 (images/001.Black_footed_Albatross/...jpg) or the one "
        "that holds it."
    ),
)
PUBLISHED = ImageCounts(
    total=11_788, test=5_924, by_images={"train": 2_922, "val": 2_942}
)


def cub(
    root: str | Path,
    *,
    validation: Validation = "classes",
    side: int = 224,
    crop_share: float = CROP_SHARE,
) -> Recipe:
    """Read images (side, side, 3), target the species.

    Splits: train, val, test, and its halves test/even and test/odd.

    Args:
        root: the publisher's files, see the card.
        validation: "classes" keeps classes 51 to 100 for validation, as the paper says;
            "images" keeps half of the images of classes 1 to 100, as its code does.
        side: height and width of pictures.
        crop_share: the part of the short side that the centre crop keeps; 0.875 is that
            of the released code.
    """
    fit = checked_fit(side, crop_share)
    folder = locate(Path(root), "CUB_200_2011", holding=["images"]) / "images"
    names = class_folders(folder, like="001.Black_footed_Albatross")
    classes = pictures_in(folder, sorted(names, key=lambda name: _number(folder, name)))
    return halved_recipe(
        PublisherFolder("cub", CARD, folder), classes, fit, validation, PUBLISHED
    )


def _number(folder: Path, name: str) -> int:
    number = name.partition(".")[0]
    if not number.isdecimal():
        raise DatasetError(
            f"expected folders like 001.Black_footed_Albatross, got {name!r};"
            f" {contents(folder)}"
        )
    return int(number)
