"""ImageNet-1k: what URL trains on, and its validation images as the upstream test set.

Russakovsky et al. (2015), as used by Kirchhof et al. (2023, arXiv:2307.03810). Classes
are the sorted WordNet ids of the folders of training images. Validation images are the
split `test`, because they choose nothing.

Training images keep as much as a square has room for: their short side is shrunk to
`side` pixels. The paper draws random crops from whole photographs of full resolution;
here they are drawn from these squares.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from qualms.datasets._publisher_files import contents, file_names, locate
from qualms.datasets._recipe import Card, DatasetError, Recipe, Shown
from qualms.datasets._retrieval.pictures import (
    CROP_SHARE,
    IS_PICTURE,
    PublisherFolder,
    checked_fit,
    class_folders,
    picture_album,
    pictures_in,
)
from qualms.datasets._retrieval.splits import labels_of
from qualms.spec import Task

CARD = Card(
    title="ImageNet-1k (ILSVRC 2012)",
    licence="non-commercial research only; no redistribution, see the publisher",
    citation=(
        "Russakovsky et al. ImageNet large scale visual recognition challenge. "
        "International Journal of Computer Vision 115, 2015."
    ),
    url="https://www.image-net.org/",
    obtain=(
        "Register at www.image-net.org, download the training and validation images of "
        "ILSVRC 2012 and extract them to train/<WordNet id>/...JPEG and val/<WordNet "
        "id>/...JPEG. The validation images may also lie in val/ itself, if one of "
        "LOC_val_solution.csv, val.txt (file name and WordNet id or number of the "
        "class) and imagenet_2012_validation_synset_labels.txt (a WordNet id for each "
        "image) lies beside or in val/. Pass the folder that holds train/ and val/, or "
        "that of Kaggle (ILSVRC/Data/CLS-LOC/...)."
    ),
)
COUNTS = {"train": 1_281_167, "test": 50_000}
KAGGLE = "ILSVRC/Data/CLS-LOC"
MAPPINGS = (
    *("LOC_val_solution.csv", "val.txt"),
    "imagenet_2012_validation_synset_labels.txt",
)


def imagenet(
    root: str | Path, *, side: int = 224, crop_share: float = CROP_SHARE
) -> Recipe:
    """Read images (side, side, 3) of 1,000 kinds of things. Splits train and test.

    Args:
        root: the publisher's files, see the card.
        side: height and width of pictures.
        crop_share: the part of the short side that the centre crop of test images
            keeps; 0.875 is that of the released code.
    """
    fit = checked_fit(side, crop_share)
    root = Path(root)
    folder = locate(root, KAGGLE, holding=["train", "val"])
    names = class_folders(folder / "train", like="n01440764")
    train = dict(enumerate(pictures_in(folder / "train", names)))
    test = dict(enumerate(_validation(folder / "val", names, (root, folder))))
    shown = {}
    for split, part, classes, how in (
        ("train", "train", train, fit._replace(crop_share=1.0)),
        ("test", "val", test, fit),
    ):
        source = PublisherFolder(f"imagenet_{part}", CARD, folder / part)
        labels = labels_of(classes)
        shown[split] = Shown(
            album=picture_album(source, labels.item.tolist(), how), labels=labels
        )
    return Recipe(
        name="imagenet",
        options=fit._asdict(),
        card=CARD,
        task=Task(name="embedding", classes=len(names)),
        counts=COUNTS,
        shown=shown,
        side=fit.side,
    )


def _validation(
    folder: Path, names: Sequence[str], beside: Sequence[Path]
) -> list[list[str]]:
    """List validation images of each class, which lie in folders or in a list."""
    if any(entry.is_dir() for entry in folder.iterdir()):
        return pictures_in(folder, names)
    files = file_names(folder, IS_PICTURE, like="ILSVRC2012_val_00000001.JPEG")
    lists = (parent / name for name in MAPPINGS for parent in (*beside, folder))
    listing = next((path for path in lists if path.is_file()), None)
    if listing is None:
        raise DatasetError(
            f"expected a folder for each class in {folder}, or one of the lists"
            f" {', '.join(MAPPINGS)} beside it; {contents(folder)}"
        )
    classes_by_name = _mapping(listing, files, names)
    missing = [file for file in files if Path(file).stem not in classes_by_name]
    if missing:
        raise DatasetError(f"expected a class for {missing[0]} in {listing}, got none")
    classes: list[list[str]] = [[] for _ in names]
    for file in files:
        classes[classes_by_name[Path(file).stem]].append(file)
    return classes


def _mapping(path: Path, files: Sequence[str], names: Sequence[str]) -> dict[str, int]:
    """Read the class of each validation image, by its name without the ending."""
    lines = path.read_text(encoding="utf-8").replace(",", " ").splitlines()
    rows = [line.split() for line in lines if line.strip()]
    if rows and rows[0][0] == "ImageId":
        rows = rows[1:]
    if all(len(row) == 1 for row in rows):  # one line for each image, in order
        if len(rows) != len(files):
            raise DatasetError(
                f"{path} must have a line for each of {len(files)} images, got"
                f" {len(rows)}"
            )
        rows = [[file, *row] for file, row in zip(files, rows, strict=True)]
    numbers = {name: number for number, name in enumerate(names)}
    return {Path(row[0]).stem: _class(path, row[1], numbers) for row in rows}


def _class(path: Path, text: str, numbers: Mapping[str, int]) -> int:
    if text.isdecimal() and int(text) < len(numbers):
        return int(text)
    if text not in numbers:
        raise DatasetError(
            f"classes must be those of the training images, got {text!r} in {path}"
        )
    return numbers[text]
