"""Certain and uncertain queries of embeddings, with their nearest neighbours."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.arrays import Index
from qualms.evaluate.neighbours import gallery_classes, query_items
from qualms.evaluate.subsets import known_items
from qualms.predictions import Predictions
from qualms.report.site.item_pictures import ItemRows
from qualms.report.site.telling_items import (
    item_marks,
    item_name,
    item_uncertainty,
    shown_number,
)
from qualms.wording import plural

SHOWN = 12
"""Queries of each kind."""
NEIGHBOURS = 5
SEARCHED = 500
"""Most certain queries, among which mistakes are sought."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Items:
    """Queries, or the items among which their neighbours are sought."""

    predictions: Predictions
    row: Index
    target: Index
    """Their classes; a class has one number in both files."""

    @property
    def embedding(self) -> NDArray[Any]:
        return self.predictions.arrays["embedding"][self.row]

    def class_name(self, place: int) -> str:
        number = int(self.predictions.arrays["target"][self.row[place]])
        return self.predictions.header.class_name(number)


def query_gallery(
    predictions: Predictions,
    pictures: Callable[[Sequence[ItemRows]], list[str]],
    *,
    gallery: Predictions | None = None,
) -> dict[str, Any]:
    """Return queries with their neighbours for a page.

    Args:
        predictions: Embeddings with a target.
        pictures: Returns the address of a picture of each item, or "".
        gallery: Embeddings with a target among which neighbours are sought, if not
            among the queries.

    Raises:
        ValueError: If too few items have a known target, or the gallery does not fit.
    """
    predictions.require_target()
    name, every = item_uncertainty(predictions)
    queries, candidates = _searched(predictions, gallery)
    uncertainty = every[queries.row]
    order = np.argsort(uncertainty, kind="stable")
    certain, uncertain = order[:SEARCHED], order[::-1][:SHOWN]
    asked = np.unique(np.concatenate([certain, uncertain]))
    nearest = scores.nearest_items(
        queries.embedding,
        asked,
        gallery=None if gallery is None else candidates.embedding,
        k=NEIGHBOURS,
    )
    tiles = _Tiles(
        queries=queries,
        candidates=candidates,
        place={int(query): number for number, query in enumerate(asked)},
        nearest=nearest,
        right=candidates.target[nearest.item] == queries.target[asked, None],
        uncertainty=lambda query: (name, shown_number(uncertainty[query])),
    )
    mistakes = [query for query in certain if not tiles.is_right(int(query))]
    groups = {
        "Most certain queries": certain[:SHOWN],
        "Most uncertain queries": uncertain,
        "Most certain mistakes": np.array(mistakes[:SHOWN], np.int64),
    }
    pictured = tiles.pictured(np.unique(np.concatenate(list(groups.values()))))
    numbers = {each: number for number, each in enumerate(pictured)}
    sought = None if gallery is None else len(candidates.row)
    return {
        "about": _about(name, len(queries.row), len(certain), gallery=sought),
        "pictures": pictures(_rows(pictured)),
        "groups": [
            {
                "title": title,
                "tiles": [tiles.query(int(item), numbers) for item in items],
                "empty": "The nearest neighbour of each of them has their class.",
            }
            for title, items in groups.items()
        ],
    }


PictureNumbers = Mapping[tuple[_Items, int], int]
"""Number of the picture of each item that is shown."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Tiles:
    """Queries and their neighbours, as the page shows them."""

    queries: _Items
    candidates: _Items
    place: Mapping[int, int]
    """Row of `nearest` and `right` for each query that was asked."""
    nearest: scores.Nearest
    right: NDArray[np.bool_]
    """True where a neighbour is of the class of the query."""
    uncertainty: Callable[[int], tuple[str, str]]
    """Returns the name and the value of the uncertainty of a query."""

    def is_right(self, query: int) -> bool:
        return bool(self.right[self.place[query], 0])

    def pictured(self, shown: Index) -> list[tuple[_Items, int]]:
        """Return the queries to show and their neighbours, each once."""
        places = [self.place[int(query)] for query in shown]
        near = np.unique(self.nearest.item[places])
        return _pictured((self.queries, shown), (self.candidates, near))

    def query(self, item: int, numbers: PictureNumbers) -> dict[str, Any]:
        """Return the tile of a query with those of its neighbours."""
        marks = item_marks(self.queries.predictions, int(self.queries.row[item]))
        more = [self.uncertainty(item), *marks]
        row = self.place[item]
        neighbours = zip(
            self.nearest.item[row],
            self.right[row],
            self.nearest.cosine[row],
            strict=True,
        )
        return {
            **_tile(
                self.queries, item, numbers, is_right=self.is_right(item), more=more
            ),
            "neighbours": [
                _tile(
                    self.candidates,
                    int(other),
                    numbers,
                    is_right=bool(is_right),
                    more=[("cosine", shown_number(cosine))],
                )
                for other, is_right, cosine in neighbours
            ],
        }


def _tile(
    items: _Items,
    item: int,
    numbers: PictureNumbers,
    *,
    is_right: bool,
    more: list[tuple[str, str]],
) -> dict[str, Any]:
    return {
        "name": item_name(items.predictions, int(items.row[item])),
        "right": is_right,
        "picture": numbers[items, item],
        "lines": [("class", items.class_name(item)), *more],
    }


def _searched(
    predictions: Predictions, gallery: Predictions | None
) -> tuple[_Items, _Items]:
    """Return the queries, and the items among which their neighbours are sought."""
    rows = query_items(predictions, gallery)
    if gallery is None:
        target = predictions.arrays["target"]
        queries = _Items(predictions=predictions, row=rows, target=target[rows])
        return queries, queries
    gallery.require_target()
    target, classes = gallery_classes(predictions, gallery)
    others = known_items(gallery)
    return (
        _Items(predictions=predictions, row=rows, target=target[rows]),
        _Items(predictions=gallery, row=others, target=classes[others]),
    )


def _pictured(*shown: tuple[_Items, Index]) -> list[tuple[_Items, int]]:
    """Return the items that need a picture, each once, and those of a file together."""
    return list(dict.fromkeys((items, int(item)) for items, at in shown for item in at))


def _rows(pictured: Sequence[tuple[_Items, int]]) -> list[ItemRows]:
    """Return the rows of items by file."""
    return [
        ItemRows(items.predictions, [int(items.row[item]) for _, item in part])
        for items, part in groupby(pictured, key=itemgetter(0))
    ]


def _about(name: str, items: int, searched: int, *, gallery: int | None) -> str:
    among = "among the other items"
    if gallery is not None:
        among = f"in the gallery of {gallery:,} {plural(gallery, 'item')}"
    sought = f" Mistakes are sought among the {searched:,} most certain ones."
    return (
        f"A query is right if its nearest neighbour by cosine, {among}, has its class."
        f" {items:,} queries are ordered by {name}."
        f"{sought if searched < items else ''}"
    )
