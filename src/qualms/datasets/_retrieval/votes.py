"""Images that several people have classified (Schmarje et al., 2022, DCIC).

The file annotations.json is a list of annotators. Each has a list of annotations with
an image and a class; null means that the annotator chose none. Images and classes are
numbered in the order of their sorted names. The target is the class with most votes,
the first one of several. Fold 1 is `val`, fold 2 is `test`, and the others are `train`.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._publisher_files import locate, reading
from qualms.datasets._recipe import Card, DatasetError, Labels, Recipe
from qualms.datasets._retrieval.pictures import (
    Fit,
    PublisherFolder,
    picture_album,
    shown_in,
)
from qualms.spec import Task

FILE = "annotations.json"
FOLDS = {"1": "val", "2": "test", "3": "train", "4": "train", "5": "train"}
UNVOTED = "no annotator chose a class for it"


class Votes(NamedTuple):
    """Votes of people for the class of each image."""

    item: NDArray[np.str_]
    """(N,) paths, sorted; images without votes too."""
    classes: tuple[str, ...]
    counts: NDArray[np.int64]
    """(N, K) votes for each class."""


class VotedSet(NamedTuple):
    """A dataset of DCIC."""

    name: str
    folder: str
    """Name of its folder in the publisher's archive."""
    images: int
    """The published number of images."""
    card: Card


def votes_card(title: str, *, folder: str, licence: str, citation: str = "") -> Card:
    """Make the card of a dataset of DCIC; `citation` is of its images."""
    return Card(
        title=f"{title} (DCIC)",
        licence=licence,
        citation=(
            f"{citation} Schmarje et al.: Is one annotation enough? A data-centric "
            "image classification benchmark for noisy and ambiguous label estimation. "
            "NeurIPS Datasets and Benchmarks, 2022."
        ).strip(),
        url="https://doi.org/10.5281/zenodo.7152309",
        obtain=(
            f"Download {folder} of DCIC from Zenodo (record 7152309), extract it, and "
            f"pass the folder that holds {folder}/ ({folder}/{FILE}, "
            f"{folder}/fold1/... to {folder}/fold5/...)."
        ),
    )


def votes_recipe(voted_set: VotedSet, root: Path, fit: Fit) -> Recipe:
    """Make the recipe of a dataset from the publisher's files."""
    folder = locate(root, voted_set.folder, holding=[FILE])
    votes = read_votes(folder / FILE)
    voted = votes.counts.sum(axis=1) > 0
    splits = np.array([FOLDS[_fold(item)] for item in votes.item.tolist()])
    labels = {
        split: _labels(votes, np.flatnonzero(voted & (splits == split)))
        for split in ("train", "val", "test")
    }
    source = PublisherFolder(voted_set.name, voted_set.card, folder)
    album = picture_album(source, votes.item.tolist(), fit, total=voted_set.images)
    return Recipe(
        name=voted_set.name,
        options=fit._asdict(),
        card=voted_set.card,
        task=Task(name="embedding", classes=len(votes.classes)),
        shown=shown_in(album, labels),
        side=fit.side,
        left_out=dict.fromkeys(votes.item[~voted].tolist(), UNVOTED),
    )


def read_votes(path: Path) -> Votes:
    """Read the votes in a file annotations.json."""
    with reading(path):
        annotators = json.loads(path.read_text(encoding="utf-8"))
    votes: Counter[tuple[str, str | None]] = Counter()
    for entry in _annotations(path, annotators):
        votes[_item(path, entry["image_path"]), entry["class_label"]] += 1
    items = sorted({item for item, _ in votes})
    classes = sorted({label for _, label in votes if label is not None})
    if not classes:
        raise DatasetError(f"expected votes in {path}, got none")
    rows = {item: row for row, item in enumerate(items)}
    columns = {label: column for column, label in enumerate(classes)}
    counts = np.zeros((len(items), len(classes)), np.int64)
    for (item, label), count in votes.items():
        if label is not None:
            counts[rows[item], columns[label]] = count
    return Votes(np.array(items, np.str_), tuple(classes), counts)


def _annotations(path: Path, annotators: Any) -> Iterator[Mapping[str, Any]]:
    try:
        for annotator in annotators:
            for entry in annotator["annotations"]:
                _check_entry(entry["image_path"], entry["class_label"])
                yield entry
    except (TypeError, KeyError) as error:
        raise DatasetError(
            f"{path} must be a list of annotators, each with a list 'annotations' of"
            f" entries with an image_path and a class_label, got {error!r}"
        ) from error


def _check_entry(image: Any, label: Any) -> None:
    if not isinstance(image, str) or not isinstance(label, str | None):
        raise TypeError(f"image_path {image!r} and class_label {label!r}")


def _item(path: Path, image: str) -> str:
    """Return the path of an image from the folder of its fold on."""
    match = re.search(r"(?:^|/)(fold[1-5]/.+)", image)
    if match is None:
        raise DatasetError(
            f"images must lie in folders fold1 to fold5, got {image!r} in {path}"
        )
    return match.group(1)


def _fold(item: str) -> str:
    return item.removeprefix("fold")[0]


def _labels(votes: Votes, rows: NDArray[np.intp]) -> Labels:
    counts = votes.counts[rows]
    return Labels(
        item=votes.item[rows], target=counts.argmax(axis=1), extra={"votes": counts}
    )
