"""Reorders the items of predictions."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._record import LazyMaps, Maps, Predictions, are_on_disk


def in_order_of(
    predictions: Predictions, items: NDArray[np.str_], *, of: str
) -> Predictions:
    """Return predictions with their items in the order of `items`, and a note.

    They are returned unchanged if their items have no names, other names, or this
    order already.

    Args:
        predictions: The predictions.
        items: (N,) names of items.
        of: Owner of this order, for the note.
    """
    mine = predictions.get("item")
    if mine is None or len(mine) != len(items) or np.array_equal(mine, items):
        return predictions
    by_name, wanted = np.argsort(mine, kind="stable"), np.argsort(items, kind="stable")
    if not np.array_equal(mine[by_name], items[wanted]):
        return predictions
    rows = np.empty(len(items), np.int64)
    rows[wanted] = by_name
    arrays = {}
    for name, array in predictions.arrays.items():
        axis = predictions.item_axis(name)
        arrays[name] = array if axis is None else np.take(array, rows, axis=axis)
    maps = predictions.maps
    return replace(
        predictions,
        arrays=arrays,
        maps=None if maps is None else _maps_in_order(maps, rows.tolist()),
        notes=(
            *predictions.notes,
            f"{predictions.source} has the items of {of} in another order: they are "
            "compared by their names",
        ),
    )


def _maps_in_order(maps: Sequence[Maps], rows: Sequence[int]) -> LazyMaps:
    load = partial(_map_at, maps, rows)
    return LazyMaps(load, range(len(rows)), on_disk=are_on_disk(maps))


def _map_at(maps: Sequence[Maps], rows: Sequence[int], row: int) -> Maps:
    return maps[rows[row]]
