"""Stanford Online Products: 22,634 products, about five images of each.

Oh Song et al. (2016), as URL (Kirchhof et al., 2023, arXiv:2307.03810) retrieves them.
The publisher states which products are for testing. Of the others, half of the products
of every kind (super-class) are for validation; paper and released code agree on that.
Products are numbered from 0 on in `train` and in `val`, and by the publisher's number
in `test`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from qualms.datasets._publisher_files import contents, locate
from qualms.datasets._recipe import Card, DatasetError, Recipe
from qualms.datasets._retrieval.pictures import (
    CROP_SHARE,
    PublisherFolder,
    checked_fit,
    picture_album,
    shown_in,
)
from qualms.datasets._retrieval.splits import Classes, labels_of, tested_splits
from qualms.spec import Task

CARD = Card(
    title="Stanford Online Products",
    licence="research only, see the publisher",
    citation=(
        "Oh Song, Xiang, Jegelka, Savarese. Deep metric learning via lifted structured "
        "feature embedding. CVPR 2016."
    ),
    url="https://cvgl.stanford.edu/projects/lifted_struct/",
    obtain=(
        "Download Stanford_Online_Products.zip from the page of the dataset, extract "
        "it, and pass the folder Stanford_Online_Products (Ebay_train.txt, "
        "Ebay_test.txt, bicycle_final/...JPG, ...) or the one that holds it. The "
        "layout of online_products.tar, with Info_Files/ and images/, works too."
    ),
)
COUNTS = {"train": 29_136, "val": 30_415, "test": 60_502}
HEADER = ["image_id", "class_id", "super_class_id", "path"]


class _Row(NamedTuple):
    """A line of Ebay_train.txt or Ebay_test.txt."""

    product: int
    kind: int
    path: str


def sop(root: str | Path, *, side: int = 224, crop_share: float = CROP_SHARE) -> Recipe:
    """Read images (side, side, 3), target the product.

    Splits: train, val, test, and its halves test/even and test/odd.

    Args:
        root: the publisher's files, see the card.
        side: height and width of pictures.
        crop_share: the part of the short side that the centre crop keeps; 0.875 is that
            of the released code.
    """
    fit = checked_fit(side, crop_share)
    info, folder = _places(Path(root))
    rows = [_rows(info / name) for name in ("Ebay_train.txt", "Ebay_test.txt")]
    train, val = _halves(rows[0])
    unseen = _by_product(rows[1])
    items = [row.path for part in rows for row in part]
    album = picture_album(PublisherFolder("sop", CARD, folder), items, fit)
    splits = {"train": labels_of(train), "val": labels_of(val)}
    return Recipe(
        name="sop",
        options=fit._asdict(),
        card=CARD,
        task=Task(name="embedding", classes=max(unseen) + 1),
        counts=COUNTS,
        shown=shown_in(album, splits | tested_splits(unseen)),
        side=fit.side,
    )


def _places(root: Path) -> tuple[Path, Path]:
    """Find the folder of the two lists, and the one where their paths begin."""
    if (root / "online_products").is_dir():
        root = root / "online_products"
    if (root / "Info_Files").is_dir():
        return root / "Info_Files", root / "images"
    holding = ["Ebay_train.txt", "Ebay_test.txt"]
    folder = locate(root, "Stanford_Online_Products", holding=holding)
    return folder, folder


def _rows(path: Path) -> list[_Row]:
    if not path.is_file():
        raise DatasetError(f"expected a list at {path}; {contents(path.parent)}")
    header, *lines = path.read_text(encoding="utf-8").splitlines() or [""]
    if header.split() != HEADER or not lines:
        raise DatasetError(
            f"{path} must begin with the line {' '.join(HEADER)!r}, and have others,"
            f" got {header!r} and {len(lines)} more lines"
        )
    return [_row(path, n, line) for n, line in enumerate(lines, 2) if line.strip()]


def _row(path: Path, number: int, line: str) -> _Row:
    words = line.split()
    if len(words) != len(HEADER) or not all(word.isdecimal() for word in words[:3]):
        raise DatasetError(
            f"line {number} of {path} must have three whole numbers and a path, got"
            f" {line!r}"
        )
    return _Row(int(words[1]), int(words[2]), words[3])


def _by_product(rows: Sequence[_Row]) -> Classes:
    """List images of each product in the order of the list, by the product's number."""
    paths: dict[int, list[str]] = {}
    for row in rows:
        paths.setdefault(row.product - 1, []).append(row.path)
    return paths


def _halves(rows: Sequence[_Row]) -> tuple[Classes, Classes]:
    """Split the products of every kind in halves, both numbered from 0 on."""
    images = _by_product(rows)
    kinds: dict[int, set[int]] = {}
    for row in rows:
        kinds.setdefault(row.kind, set()).add(row.product - 1)
    first: list[int] = []
    others: list[int] = []
    for products in kinds.values():
        half = len(products) // 2
        first += sorted(products)[:half]
        others += sorted(products)[half:]
    return (
        {number: images[product] for number, product in enumerate(first)},
        {number: images[product] for number, product in enumerate(others)},
    )
