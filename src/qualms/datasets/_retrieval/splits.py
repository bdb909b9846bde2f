"""Splits by class: half of the classes are only tested on.

The paper says that half of the other classes are for validation. The released code does
so for Stanford Online Products alone; for CUB and CARS it takes half of the images of
every such class instead.

Few-shot studies train on images at even positions of each test class (`test/even`, the
code's `trainontest`) and test on the others (`test/odd`, `testontest`). Both number
classes from 0 on.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from qualms.datasets._options import check_choice
from qualms.datasets._recipe import Labels, Recipe
from qualms.datasets._retrieval.pictures import (
    Fit,
    PublisherFolder,
    picture_album,
    shown_in,
)
from qualms.spec import Task

Validation = Literal["classes", "images"]
Classes = Mapping[int, Sequence[str]]
"""Items of each class, by its target."""


class ImageCounts(NamedTuple):
    """The publisher's and the paper's numbers of images."""

    total: int
    test: int
    by_images: Mapping[str, int]
    """Of train and val, where every class is divided."""


def halved_recipe(
    source: PublisherFolder,
    classes: Sequence[Sequence[str]],
    fit: Fit,
    validation: Validation,
    published: ImageCounts,
) -> Recipe:
    """Make a dataset of `classes`, the second half of which are for testing."""
    check_choice("validation", validation, ("classes", "images"))
    numbered = dict(enumerate(classes))
    half = len(classes) // 2
    first_half = {k: items for k, items in numbered.items() if k < half}
    unseen = {k: items for k, items in numbered.items() if k >= half}
    divide = _by_class if validation == "classes" else _by_image
    train, val = divide(first_half)
    splits = {"train": labels_of(train), "val": labels_of(val), **tested_splits(unseen)}
    every = [item for items in classes for item in items]
    divided = published.by_images if validation == "images" else {}
    return Recipe(
        name=source.name,
        options={"validation": validation, **fit._asdict()},
        card=source.card,
        task=Task(name="embedding", classes=len(classes)),
        counts={**divided, "test": published.test},
        shown=shown_in(
            picture_album(source, every, fit, total=published.total), splits
        ),
        side=fit.side,
    )


def labels_of(classes: Classes) -> Labels:
    """Return items and targets, class by class."""
    return Labels(
        item=np.array([i for items in classes.values() for i in items], np.str_),
        target=np.repeat([*classes], [len(i) for i in classes.values()]).astype("i8"),
    )


def tested_splits(classes: Classes) -> dict[str, Labels]:
    """Return `test`, and its images at even and odd positions of each class."""
    first = min(classes)
    even = {k - first: items[0::2] for k, items in classes.items()}
    odd = {k - first: items[1::2] for k, items in classes.items()}
    return {
        "test": labels_of(classes),
        "test/even": labels_of(even),
        "test/odd": labels_of(odd),
    }


def _by_class(classes: Classes) -> tuple[Classes, Classes]:
    """Split the classes into the first half and the others."""
    half = len(classes) // 2
    first = {k: items for k, items in classes.items() if k < half}
    return first, {k: items for k, items in classes.items() if k >= half}


def _by_image(classes: Classes) -> tuple[Classes, Classes]:
    """Split the images of each class into an evenly spread half and the others."""
    chosen = {k: _spread(len(items)) for k, items in classes.items()}
    first = {k: [items[i] for i in chosen[k]] for k, items in classes.items()}
    others = {
        k: [item for i, item in enumerate(items) if i not in chosen[k]]
        for k, items in classes.items()
    }
    return first, others


def _spread(count: int) -> list[int]:
    """Return the released code's positions of training images among `count` images."""
    positions = np.round(np.linspace(0, count - 1, count // 2))  # halves go to even
    return [int(position) for position in np.unique(positions)]
