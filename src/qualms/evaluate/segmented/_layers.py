"""Layers of the label maps of an item.

Classes exclude each other, so they form one layer. Regions may overlap; each of them is
a layer of two classes, outside and inside.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.arrays import Flags
from qualms.evaluate.segmented._stream import MapKind, segmented_labels
from qualms.predictions import Maps, background_of
from qualms.scores.raters import Agreement

Labels = NDArray[np.uint8]


class Layer(NamedTuple):
    """The labels of a prediction, of its draws and of the raters in one layer."""

    region: str
    """Name of the region; '' for classes."""
    classes: int
    probs: NDArray[np.floating[Any]]
    """(C, *space) probabilities."""
    predicted: Labels
    """(*space) predicted labels."""
    draws: Labels
    """(M, *space) labels by draw."""
    raters: Labels
    """(R, *space) labels by rater."""
    background: int | None = 0
    """The class that is background; None where all are foreground."""

    @property
    def averaged(self) -> bool:
        """True if the overlap of an item is the mean over its foreground classes."""
        return self.classes > 2 or self.background is None


def label_layers(kind: MapKind, maps: Maps) -> tuple[Layer, ...]:
    """Return the layers of an item: one of its classes, or one for each region."""
    predicted = segmented_labels(kind, maps)
    if not kind.header.regions:
        classes = len(maps.mean_probs)
        layer = Layer(
            "", classes, maps.mean_probs, predicted, maps.draw_labels, maps.raters
        )
        known = background_of(kind.header, classes)
        return (layer._replace(background=known.number),)
    return tuple(
        Layer(
            region,
            2,
            np.stack([1 - maps.mean_probs[k], maps.mean_probs[k]]),
            predicted[k],
            np.ascontiguousarray(maps.draw_labels[:, k]),
            np.ascontiguousarray(maps.raters[:, k]),
        )
        for k, region in enumerate(kind.header.regions)
    )


def layer_agreement(layer: Layer, ignore: int | None) -> Agreement:
    """Return `scores.rater_agreement` of a layer; without raters nothing counts."""
    if not len(layer.raters):
        none = np.zeros(layer.predicted.shape, np.uint8)
        return Agreement(none, none)
    return scores.rater_agreement(layer.predicted, layer.raters, ignore=ignore)


def summed_agreement(of_each: Sequence[Agreement]) -> Agreement:
    """Return per pixel the number of right labels in all layers, and of all labels."""
    if len(of_each) == 1:
        return of_each[0]
    correct, total = zip(*of_each, strict=True)
    return Agreement(
        np.add.reduce(correct, dtype=np.int64), np.add.reduce(total, dtype=np.int64)
    )


def foreground(layers: tuple[Layer, ...]) -> Labels:
    """Return a map (*space) with 1 where a pixel belongs to any class or region."""
    inside = [marks(layer.predicted, layer.background) for layer in layers]
    marked: Flags = np.any(inside, axis=0)
    return marked.astype(np.uint8)


def all_foreground(layers: tuple[Layer, ...]) -> Labels:
    """Return where draws and their mean mark any class or region, (M + 1, *space)."""
    inside = [marks(layer.draws, layer.background) for layer in layers]
    draws: Flags = np.any(inside, axis=0)
    return np.concatenate([draws.astype(np.uint8), foreground(layers)[None]])


def marks(labels: Labels, background: int | None) -> Flags:
    """Return a mask of the labels that are not background."""
    if background is None:
        return np.ones(labels.shape, np.bool_)
    marked: Flags = labels != background
    return marked
