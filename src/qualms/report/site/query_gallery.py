"""Certain and uncertain queries of embeddings, with their nearest neighbours."""

from collections.abc import Callable, Sequence
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
    place = {int(query): number for number, query in enumerate(asked)}
    right = candidates.target[nearest.item] == queries.target[asked, None]
    mistakes = [query for query in certain if not right[place[int(query)], 0]]
    groups = {
        "Most certain queries": certain[:SHOWN],
        "Most uncertain queries": uncertain,
        "Most certain mistakes": np.array(mistakes[:SHOWN], np.int64),
    }
    shown = np.unique(np.concatenate(list(groups.values())))
    near = np.unique(nearest.item[[place[int(query)] for query in shown]])
    pictured = _pictured((queries, shown), (candidates, near))
    number_of = {each: number for number, each in enumerate(pictured)}

    def tile(
        items: _Items, item: int, *, is_right: bool, more: list[tuple[str, str]]
    ) -> dict[str, Any]:
        return {
            "name": item_name(items.predictions, int(items.row[item])),
            "right": is_right,
            "picture": number_of[items, item],
            "lines": [("class", items.class_name(item)), *more],
        }

    def query(item: int) -> dict[str, Any]:
        number = place[item]
        facts = [
            (name, shown_number(uncertainty[item])),
            *item_marks(predictions, int(queries.row[item])),
        ]
        neighbours = zip(
            nearest.item[number], right[number], nearest.cosine[number], strict=True
        )
        return {
            **tile(queries, item, is_right=bool(right[number, 0]), more=facts),
            "neighbours": [
                tile(
                    candidates,
                    int(other),
                    is_right=bool(is_right),
                    more=[("cosine", shown_number(cosine))],
                )
                for other, is_right, cosine in neighbours
            ],
        }

    sought = None if gallery is None else len(candidates.row)
    return {
        "about": _about(name, len(queries.row), len(certain), gallery=sought),
        "pictures": pictures(_rows(pictured)),
        "groups": [
            {
                "title": title,
                "tiles": [query(int(item)) for item in items],
                "empty": "The nearest neighbour of each of them has their class.",
            }
            for title, items in groups.items()
        ],
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
