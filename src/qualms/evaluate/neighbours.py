"""Nearest neighbours of embeddings, in their file or in a gallery.

Items of known classes are the queries. Without a gallery, neighbours are searched among
the queries; upstream items, whose classes the network knows, are left out.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.arrays import Index
from qualms.evaluate.subsets import known_items
from qualms.predictions import Predictions
from qualms.scores.retrieval import Retrieved, retrieved
from qualms.shelf import traits


def query_items(predictions: Predictions, gallery: Predictions | None) -> Index:
    """Return the rows of the items whose neighbours are searched.

    Raises:
        ValueError: If there are too few.
    """
    upstream = predictions.get("upstream")
    rows = known_items(predictions)
    if upstream is not None:
        rows = rows[~upstream[rows]]
    if rows.size < (2 if gallery is None else 1):
        raise ValueError(
            f"{predictions.source}: there must be at least two items of a known class "
            "that are not upstream, for one to be the other's neighbour, got "
            f"{rows.size}; add items"
        )
    return rows


def retrieved_items(
    predictions: Predictions, rows: Index, gallery: Predictions | None
) -> Retrieved:
    """Return whether the nearest neighbour of each item at `rows` is of its class."""
    if gallery is None:
        arrays = predictions.arrays
        return retrieved(arrays["embedding"][rows], arrays["target"][rows])
    # Neighbours in a gallery are no queries, so no two queries form a pair.
    search = neighbour_search(predictions, rows, gallery)
    hits = scores.hits_within(scores.right_ranks(**search._asdict()), 1)
    return Retrieved(hits, np.arange(len(hits)))


class NeighbourSearch(NamedTuple):
    """Queries and their gallery, as arguments of scores."""

    embedding: NDArray[np.float32]
    target: NDArray[np.int64]
    gallery: NDArray[np.float32] | None = None
    gallery_target: NDArray[np.int64] | None = None


def neighbour_search(
    predictions: Predictions, rows: Index, gallery: Predictions | None
) -> NeighbourSearch:
    """Return the queries at `rows` and their gallery."""
    embedding, target = predictions.arrays["embedding"], predictions.arrays["target"]
    if gallery is None:
        return NeighbourSearch(embedding[rows], target[rows])
    others = known_items(gallery)
    target, classes = gallery_classes(predictions, gallery)
    candidates = gallery.arrays["embedding"][others]
    return NeighbourSearch(embedding[rows], target[rows], candidates, classes[others])


def gallery_classes(
    predictions: Predictions, gallery: Predictions
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the classes of items and gallery with common numbers.

    If both files name their classes, classes with equal names get equal numbers.

    Raises:
        ValueError: If the gallery holds no embeddings, an item is in it, or one file
            names its classes and the other one numbers them.
    """
    if "vectors" not in traits(gallery.task):
        raise ValueError(
            f"a gallery must hold embeddings, {gallery.source} holds {gallery.task};"
            " leave it out, or choose another file"
        )
    _refuse_shared(predictions, gallery)
    target, others = predictions.arrays["target"], gallery.arrays["target"]
    named = [bool(each.header.classes) for each in (predictions, gallery)]
    if not any(named):
        return target, others
    if not all(named):
        first, second = (predictions, gallery) if named[0] else (gallery, predictions)
        raise ValueError(
            f"{first.source} names its classes and {second.source} numbers them, so"
            " that nobody knows which are the same; name them in both (targets as text,"
            " or the header's 'classes'), or number them in both"
        )
    if predictions.header.classes == gallery.header.classes:
        return target, others
    names = {name: number for number, name in enumerate(predictions.header.classes)}
    for name in gallery.header.classes:
        names.setdefault(name, len(names))
    return target, np.array([_number(gallery, each, names) for each in others.tolist()])


def _number(gallery: Predictions, target: int, names: dict[str, int]) -> int:
    """Return the common number of a class of the gallery."""
    if target < 0:
        return target
    return names.setdefault(gallery.header.class_name(target), len(names))


def _refuse_shared(predictions: Predictions, gallery: Predictions) -> None:
    """Raise if an item is in the gallery: it would be its own neighbour."""
    shared: Sequence[str] = ()
    queries, candidates = predictions.get("item"), gallery.get("item")
    if queries is not None and candidates is not None:
        shared = np.intersect1d(queries, candidates).tolist()
    same = np.array_equal(predictions.arrays["embedding"], gallery.arrays["embedding"])
    if shared or same:
        examples = f"{len(shared)} of them, such as {shared[0]!r}" if shared else "all"
        raise ValueError(
            "a gallery must hold other items than those whose neighbours are sought, "
            f"and {gallery.source} holds {examples}: each would be its own neighbour; "
            "leave them out, or score the file without a gallery"
        )
