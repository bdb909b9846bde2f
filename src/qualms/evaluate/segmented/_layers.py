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
from qualms.predictions import Maps
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


def label_layers(kind: MapKind, maps: Maps) -> tuple[Layer, ...]:
    """Return the layers of an item: one of its classes, or one for each region."""
    predicted = segmented_labels(kind, maps)
    if not kind.header.regions:
        classes = len(maps.mean_probs)
        probs = maps.mean_probs
        return (Layer("", classes, probs, predicted, maps.draw_labels, maps.raters),)
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
    marked: Flags = np.any([layer.predicted != 0 for layer in layers], axis=0)
    return marked.astype(np.uint8)


def all_labels(layers: tuple[Layer, ...]) -> Labels:
    """Return label maps of the draws and of their mean, (M + 1, *space).

    For regions the maps are 1 where a pixel lies in any region.
    """
    if len(layers) == 1:
        layer = layers[0]
        return np.concatenate([layer.draws, layer.predicted[None]])
    draws = np.any([layer.draws != 0 for layer in layers], axis=0)
    return np.concatenate([draws.astype(np.uint8), foreground(layers)[None]])
