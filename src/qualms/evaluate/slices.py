"""Data for figures of segmented items: maps of one item, and the sizes of all."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.arrays import Array, Index
from qualms.evaluate.entry import MapSlice, Scatter
from qualms.predictions import Maps, Predictions

Map = NDArray[np.floating[Any]]


def disputed_slices(
    predictions: Predictions,
    disagreement: Array,
    subsets: Mapping[str, Index],
    measures: Callable[[Maps], Mapping[str, Map]],
) -> Iterator[MapSlice]:
    """Yield the item of each subset whose raters disagree most; the first of tied ones.

    The choice depends only on the raters, so all methods show the same item.

    Args:
        predictions: The segmented items.
        disagreement: Sum of `rater_variance` over the pixels of each item.
        subsets: Items of each subset.
        measures: Function from the maps of an item to its uncertainty maps by measure.
    """
    if predictions.maps is None:
        return
    names = predictions.get("item")
    for subset, index in subsets.items():
        if len(index):
            chosen = int(index[np.argmax(disagreement[index])])
            maps = predictions.maps[chosen]
            yield _slice(
                maps,
                measures(maps),
                subset=subset,
                item=str(chosen) if names is None else str(names[chosen]),
                ignore=predictions.header.ignore,
            )


def size_scatters(
    predicted: Array, reference: Array, summed: Mapping[str, Array], *, subset: str
) -> Iterator[Scatter]:
    """Yield each item's summed uncertainty and its reference size by predicted size.

    Args:
        predicted: Foreground pixels of each item, mean over draws.
        reference: Foreground pixels of each item, mean over raters.
        summed: Sums of each item's uncertainty map, by measure.
        subset: The name of the subset of the items.
    """
    yield Scatter(
        name="size",
        label="pixels segmented by raters",
        subset=subset,
        x_label="pixels segmented",
        x=predicted,
        y=reference,
    )
    for measure, values in summed.items():
        yield Scatter(
            name="summed",
            label=f"summed {measure}",
            subset=subset,
            x_label="pixels segmented",
            x=predicted,
            y=values,
            settings={"measure": measure},
        )


def _slice(
    maps: Maps,
    uncertainty: Mapping[str, Map],
    *,
    subset: str,
    item: str,
    ignore: int | None,
) -> MapSlice:
    spread = scores.rater_variance(maps.raters, ignore=ignore)
    at = None if spread.ndim == 2 else _slice_index(spread, maps.raters)
    index: Any = Ellipsis if at is None else at
    return MapSlice(
        name="most_disputed",
        subset=subset,
        item=item,
        at=at,
        raters=np.stack([rater[index] for rater in maps.raters]).astype(np.uint8),
        predicted=maps.mean_probs.argmax(axis=0)[index].astype(np.uint8),
        disagreement=spread[index].astype(np.float32),
        uncertainty={
            name: values[index].astype(np.float32)
            for name, values in uncertainty.items()
        },
    )


def _slice_index(spread: Array, raters: NDArray[Any]) -> int:
    """Return the index of the slice with most disagreement, else most foreground."""
    within = tuple(range(1, spread.ndim))
    sums = np.nansum(spread, axis=within)
    if not sums.any():
        sums = (raters > 0).sum(axis=(0, *(axis + 1 for axis in within)))
    return int(np.argmax(sums))
