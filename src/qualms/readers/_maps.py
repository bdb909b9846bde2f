"""Maps of a segmented item, made from draws that are in memory one at a time."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.predictions import Maps
from qualms.scores import region_statistics, sufficient_statistics

_SLAB = 2**22
"""Number of probabilities whose statistics are computed at once."""


def maps_of(
    draws: Iterable[NDArray[Any]], raters: NDArray[np.uint8], *, regions: bool
) -> Maps:
    """Compute the maps of draws (C, *space), or of sigmoids of regions (K, *space).

    Sums of float32 are exact in float64, so that the order of the draws changes no bit.
    """
    probs: Any = np.float64(0.0)
    entropy: Any = np.float64(0.0)
    labels = []
    for draw in draws:
        one = _one_draw(draw, regions=regions)
        probs = probs + one.mean_probs.astype(np.float64)
        entropy = entropy + one.expected_entropy.astype(np.float64)
        labels.append(one.draw_labels)
    count = len(labels)
    return Maps(
        mean_probs=(probs / count).astype(np.float32),
        expected_entropy=(entropy / count).astype(np.float32),
        draw_labels=np.concatenate(labels),
        raters=raters,
    )


def _one_draw(draw: NDArray[Any], *, regions: bool) -> Maps:
    """Compute the maps of one draw, one slab of its first spatial axis at a time."""
    statistics = region_statistics if regions else sufficient_statistics
    rows = max(1, _SLAB // max(draw[:, 0].size, 1))
    parts = [
        statistics(draw[np.newaxis, :, start : start + rows])
        for start in range(0, draw.shape[1], rows)
    ]
    # The first spatial axis follows the axes of draws, and of classes or regions.
    side = 2 if regions else 1
    return Maps(
        mean_probs=np.concatenate([part.mean_probs for part in parts], axis=1),
        expected_entropy=np.concatenate([part.expected_entropy for part in parts]),
        draw_labels=np.concatenate([part.draw_labels for part in parts], axis=side),
    )
