"""Maps of regions that overlap, each with a probability of its own.

A network with a sigmoid for each of K regions (whole tumour, its core, ...) predicts
for every pixel and every region whether it lies inside. Regions count as independent
given the image: entropies of a pixel add up over its regions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array, Floats
from qualms.scores._pixels import check_same_space, real_map
from qualms.scores._sums import mean_over_draws
from qualms.scores.arguments import as_array
from qualms.scores.decomposition import decompose, entropy
from qualms.scores.maps import Statistics, UncertaintyMaps

__all__ = [
    "region_maps",
    "region_statistics",
]


def region_statistics(probs: ArrayLike) -> Statistics:
    """Return the statistics of draws (M, K, *space) of the sigmoids of K regions.

    Means (K, *space) over draws; the mean entropy (*space) of the draws, summed over
    regions, in nats; and labels (M, K, *space), 1 where a sigmoid is above 0.5. float32
    stays float32, anything else is computed in float64.

    >>> region_statistics([[[0.9, 0.2], [0.6, 0.1]]]).draw_labels
    array([[[1, 0],
            [1, 0]]], dtype=uint8)
    """
    draws = as_array("probs", probs)
    if draws.ndim < 3:
        raise ValueError(
            f"probs must have shape (M, K, *space), got {draws.shape}; for one draw"
            " pass probs[None]"
        )
    parts = decompose(draws, class_axis=None)
    aleatoric: Floats = parts.aleatoric.sum(axis=0)
    return Statistics(mean_over_draws(draws), aleatoric, (draws > 0.5).astype(np.uint8))


def region_maps(mean_probs: ArrayLike, expected_entropy: ArrayLike) -> UncertaintyMaps:
    """Return uncertainty maps (*space) of regions, as `uncertainty_maps` of classes.

    The largest softmax response becomes the probability of the likeliest set of
    regions: the product over regions of the larger of p and 1 - p.

    Args:
        mean_probs: Mean over draws of the sigmoids (K, *space).
        expected_entropy: Mean entropy of the draws, summed over regions (*space).

    >>> maps = region_maps(np.array([[0.5], [1.0]]), np.array([0.6]))
    >>> maps.predictive.round(3), maps.max_softmax
    (array([0.693]), array([0.5]))
    """
    probs = np.asarray(mean_probs)
    exact = real_map("mean_probs", mean_probs)
    total = entropy(exact, class_axis=None).sum(axis=0)
    expected = real_map("expected_entropy", expected_entropy)
    names = ("mean_probs", "expected_entropy")
    check_same_space(names, total.shape, expected.shape)
    others = np.minimum(exact, 1.0 - exact)
    response = -np.expm1(np.log1p(-others).sum(axis=0))
    maps: list[Array] = [total, expected, total - expected, response]
    if probs.dtype == np.float32:
        return UncertaintyMaps(*(each.astype(np.float32) for each in maps))
    return UncertaintyMaps(*maps)
