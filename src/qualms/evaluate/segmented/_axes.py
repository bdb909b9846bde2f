"""Check that raters and predictions have their axes in the same order."""

from collections.abc import Iterable, Sequence

import numpy as np

from qualms.arrays import Array, Index
from qualms.evaluate.segmented._layers import Labels, Layer, label_layers
from qualms.evaluate.segmented._stream import MapKind
from qualms.predictions import Maps

MOST_DICE = 0.8
"""Highest Dice of files that are checked."""
MOST_ITEMS = 5
"""Number of items that are checked."""
LEAST_GAIN = 0.2
"""Least gain in Dice of reversed axes for a note."""


def reversed_note(
    kind: MapKind, maps: Sequence[Maps], labelled: Index, dice: Array
) -> tuple[str, ...]:
    """Return a note if raters fit much better with their axes reversed, else nothing.

    The shape of volumes with equal sides does not show that raters are stored as
    x, y, z and predictions as z, y, x.

    Args:
        kind: The options for reading the maps.
        maps: The items.
        labelled: Numbers of the items in which a rater labels a pixel.
        dice: The Dice of these items; nothing is checked if it is high.
    """
    if not np.nanmean(dice) < MOST_DICE:
        return ()
    places = np.unique(np.linspace(0, len(labelled) - 1, MOST_ITEMS).astype(int))
    layers = [
        layer
        for row in labelled[places].tolist()
        for layer in label_layers(kind, maps[row])
    ]
    alike = [layer for layer in layers if layer.predicted.shape == _mirrored(layer)]
    if len(alike) < len(layers) or not alike or alike[0].predicted.ndim < 2:
        return ()
    ignore = kind.header.ignore
    stored = _dice((layer.predicted, layer.raters, ignore) for layer in alike)
    turned = _dice((layer.predicted.T, layer.raters, ignore) for layer in alike)
    if not turned > stored + LEAST_GAIN:
        return ()
    return (
        "raters fit the predictions better with their axes in reverse order (Dice "
        f"{turned:.2f}, as stored {stored:.2f}): are they stored as x, y, z and the "
        "predictions as z, y, x? np.transpose reverses the axes of a map",
    )


def _mirrored(layer: Layer) -> tuple[int, ...]:
    return layer.predicted.shape[::-1]


def _dice(pairs: Iterable[tuple[Labels, Labels, int | None]]) -> float:
    """Return the Dice of all marked pixels together; 0 if none is marked."""
    both = marked = 0
    for predicted, raters, ignore in pairs:
        counts = np.ones(raters.shape, np.bool_) if ignore is None else raters != ignore
        inside = counts & (raters > 0)
        both += 2 * int((inside & (raters == predicted)).sum())
        marked += int(inside.sum()) + int((counts & (predicted > 0)).sum())
    return both / marked if marked else 0.0
