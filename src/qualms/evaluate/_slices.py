"""What figures show of segmented items: maps of a disputed one, and sizes of all."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.evaluate.entry import Array, Index, MapSlice, Scatter
from qualms.predictions import Maps, Predictions

Map = NDArray[np.floating[Any]]


def disputed_slices(
    predictions: Predictions,
    disagreement: Array,
    subsets: Mapping[str, Index],
    measures: Callable[[Maps], Mapping[str, Map]],
) -> Iterator[MapSlice]:
    """Of each subset the item whose raters disagree most, the first of equals.

    It depends on the raters alone, so all methods show the same item.

    Args:
        predictions: The segmented items.
        disagreement: Sum of `rater_variance` over the pixels of each item.
        subsets: Items of each subset.
        measures: From the maps of an item to its uncertainty maps by measure.
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
    """Each item's summed uncertainty, and its reference size, by its predicted size.

    Args:
        predicted: Foreground pixels of each item, mean over draws.
        reference: Foreground pixels of each item, mean over raters.
        summed: By measure, the sum of each item's uncertainty map.
        subset: Which items these are.
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
            name=f"summed/{measure}",
            label=f"summed {measure}",
            subset=subset,
            x_label="pixels segmented",
            x=predicted,
            y=values,
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
    at = None if spread.ndim == 2 else _place(spread, maps.raters)
    here: Any = Ellipsis if at is None else at
    return MapSlice(
        name="most_disputed",
        subset=subset,
        item=item,
        at=at,
        raters=np.stack([rater[here] for rater in maps.raters]).astype(np.uint8),
        predicted=maps.mean_probs.argmax(axis=0)[here].astype(np.uint8),
        disagreement=spread[here].astype(np.float32),
        uncertainty={
            name: values[here].astype(np.float32)
            for name, values in uncertainty.items()
        },
    )


def _place(spread: Array, raters: NDArray[Any]) -> int:
    """The slice with most disagreement; where raters agree, with most foreground."""
    around = tuple(range(1, spread.ndim))
    disputed = np.nansum(spread, axis=around)
    if not disputed.any():
        disputed = (raters > 0).sum(axis=(0, *(axis + 1 for axis in around)))
    return int(np.argmax(disputed))
