"""Certain and uncertain queries of embeddings, with their nearest neighbours."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from qualms import scores
from qualms.evaluate.subsets import known_items
from qualms.predictions import Predictions
from qualms.report.site.telling_items import (
    item_marks,
    item_name,
    item_uncertainty,
    shown_number,
)

SHOWN = 12
"""Queries of each kind."""
NEIGHBOURS = 5
SEARCHED = 500
"""Most certain queries, among which mistakes are sought."""


def query_gallery(
    predictions: Predictions, pictures: Callable[[Sequence[int]], list[str]]
) -> dict[str, Any]:
    """Return queries with their neighbours for a page.

    Args:
        predictions: Embeddings with a target.
        pictures: Returns the address of a picture of each of these rows, or "".

    Raises:
        ValueError: If fewer than two items have a known target.
    """
    predictions.require_target()
    name, every = item_uncertainty(predictions)
    index = known_items(predictions)
    if len(index) < 2:
        raise ValueError("fewer than two items have a known target")
    target = predictions.arrays["target"][index]
    uncertainty = every[index]
    order = np.argsort(uncertainty, kind="stable")
    certain, uncertain = order[:SEARCHED], order[::-1][:SHOWN]
    queries = np.unique(np.concatenate([certain, uncertain]))
    nearest = scores.nearest_items(
        predictions.arrays["embedding"][index], queries, k=NEIGHBOURS
    )
    place = {int(query): number for number, query in enumerate(queries)}
    right = {
        query: bool(target[nearest.item[number, 0]] == target[query])
        for query, number in place.items()
    }
    mistakes = [query for query in certain if not right[int(query)]]
    groups = {
        "Most certain queries": certain[:SHOWN],
        "Most uncertain queries": uncertain,
        "Most certain mistakes": np.array(mistakes[:SHOWN], np.int64),
    }
    shown = np.unique(np.concatenate(list(groups.values())))
    rows = np.unique(
        np.concatenate([shown, nearest.item[[place[int(q)] for q in shown]].ravel()])
    )
    number_of = {int(row): number for number, row in enumerate(rows)}

    name_of_class = predictions.header.class_name

    def tile(
        item: int, *, is_right: bool, more: list[tuple[str, str]]
    ) -> dict[str, Any]:
        row = int(index[item])
        return {
            "name": item_name(predictions, row),
            "right": is_right,
            "picture": number_of[item],
            "lines": [("class", name_of_class(int(target[item]))), *more],
        }

    def query(item: int) -> dict[str, Any]:
        number = place[item]
        facts = [
            (name, shown_number(uncertainty[item])),
            *item_marks(predictions, int(index[item])),
        ]
        return {
            **tile(item, is_right=right[item], more=facts),
            "neighbours": [
                tile(
                    int(other),
                    is_right=bool(target[other] == target[item]),
                    more=[("cosine", shown_number(cosine))],
                )
                for other, cosine in zip(
                    nearest.item[number], nearest.cosine[number], strict=True
                )
            ],
        }

    return {
        "about": _about(name, len(index), len(certain)),
        "pictures": pictures(index[rows].tolist()),
        "groups": [
            {
                "title": title,
                "tiles": [query(int(item)) for item in items],
                "empty": "The nearest neighbour of each of them has their class.",
            }
            for title, items in groups.items()
        ],
    }


def _about(name: str, items: int, searched: int) -> str:
    among = f" Mistakes are sought among the {searched:,} most certain ones."
    return (
        f"A query is right if its nearest neighbour by cosine, among the other items,"
        f" has its class. {items:,} queries are ordered by {name}."
        f"{among if searched < items else ''}"
    )
