"""Uncertainty maps: from draws to sufficient statistics, and from those to maps.

Segmentation keeps three statistics per item instead of its draws: mean probabilities,
expected entropy and the label map of every draw. All maps follow from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.arrays import Array, Floats
from qualms.scores._pixels import IGNORED, Labels, check_same_space, real_map
from qualms.scores._sums import mean_over_draws, sums_of_others
from qualms.scores.decomposition import decompose, double_entropy

__all__ = [
    "UNCERTAINTY_TYPES",
    "Statistics",
    "UncertaintyMaps",
    "sufficient_statistics",
    "uncertainty_maps",
    "uncertainty_type",
]

DRAWS = ("models", "labels")
"""What draws may vary."""
_TOTAL = {"PE": "predictive", "MSR": "predictive"}

UNCERTAINTY_TYPES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "models": MappingProxyType({**_TOTAL, "EE": "aleatoric", "MI": "epistemic"}),
        "labels": MappingProxyType({**_TOTAL, "EE": "epistemic", "MI": "aleatoric"}),
        "": MappingProxyType(
            {**_TOTAL, "EE": "expected_entropy", "MI": "mutual_information"}
        ),
    }
)
"""Type of uncertainty of each measure by what the draws vary (Kahl et al., 2024,
section 4.3 and appendix D).

PE is the entropy of the mean prediction, EE the mean entropy of the draws, MI = PE - EE
and MSR one minus the maximum softmax response. Draws of "models" (an ensemble, dropout,
test-time augmentation) disagree where the model is unsure of itself, so MI is
epistemic. Draws of "labels" (a stochastic segmentation network, a probabilistic U-Net,
PHiSeg) *are* the ambiguity that one model sees, so MI is aleatoric. Where it is not
known (""), both are named after their formulas.
"""


class Statistics(NamedTuple):
    """The statistics that replace an item's draws."""

    mean_probs: Floats
    """(C, *space) mean over draws."""
    expected_entropy: Floats
    """(*space) mean entropy of the draws, in nats."""
    draw_labels: Labels
    """(M, *space) most probable class of every draw."""


class UncertaintyMaps(NamedTuple):
    """Four maps of one item (*space); larger is less certain."""

    predictive: Floats
    aleatoric: Floats
    epistemic: Floats
    max_softmax: Floats
    """One minus the largest mean probability."""


def sufficient_statistics(probs: ArrayLike) -> Statistics:
    """Return mean probabilities, expected entropy and labels of draws (M, C, *space).

    float32 stays float32, anything else is computed in float64. Of equally probable
    classes the first is the label.

    >>> sufficient_statistics([[[0.9], [0.1]], [[0.3], [0.7]]]).draw_labels
    array([[0],
           [1]], dtype=uint8)
    """
    draws = np.asarray(probs)
    if draws.ndim < 3 or draws.shape[1] > IGNORED:
        raise ValueError(
            f"probs must have shape (M, C, *space) with C at most {IGNORED}, "
            f"got {draws.shape}"
        )
    parts = decompose(draws, class_axis=1)
    mean = mean_over_draws(draws)
    labels = np.stack([_most_probable(draw) for draw in draws])
    return Statistics(mean, parts.aleatoric, labels)


def uncertainty_maps(
    mean_probs: ArrayLike, expected_entropy: ArrayLike, *, draws: str = "models"
) -> UncertaintyMaps:
    """Return predictive, aleatoric and epistemic maps, by what the draws vary.

    PE, EE and MI = PE - EE; draws of "labels" swap the last two (`UNCERTAINTY_TYPES`).
    MI is not clipped: rounding may leave it just below zero.

    Computed in float64, and cast to float32 at the end if `mean_probs` is float32. The
    probability of the most probable class is computed as one minus the others, so that
    pixels keep their order where float32 cannot represent their certainty.

    Args:
        mean_probs: Mean over draws (C, *space).
        expected_entropy: Mean entropy of the draws (*space).
        draws: "models" or "labels".

    >>> uncertainty_maps(np.array([[0.5], [0.5]]), np.array([0.6])).epistemic.round(3)
    array([0.093])
    """
    if draws not in DRAWS:
        raise ValueError(f"draws must be 'models' or 'labels', got {draws!r}")
    probs = np.asarray(mean_probs)
    single = probs.dtype == np.float32
    kind: np.dtype[np.floating[Any]] = np.dtype(np.float32 if single else np.float64)
    probs = probs.astype(kind, copy=False)
    total = double_entropy(probs, class_axis=0)
    expected = real_map("expected_entropy", expected_entropy)
    names = ("mean_probs", "expected_entropy")
    check_same_space(names, total.shape, expected.shape)
    response = _one_minus_largest(probs)
    maps = {"PE": total, "EE": expected, "MI": total - expected}
    by_role: dict[str, Floats] = {
        uncertainty_type(measure, draws): values.astype(kind, copy=False)
        for measure, values in maps.items()
    }
    return UncertaintyMaps(**by_role, max_softmax=response.astype(kind, copy=False))


def uncertainty_type(measure: str, draws: str | None) -> str:
    """Return whether `measure` is predictive, aleatoric or epistemic.

    `draws` says what the draws vary, "models" or "labels". If that is not known (None),
    EE and MI are named after their formulas.

    >>> uncertainty_type("MI", "labels"), uncertainty_type("MI", None)
    ('aleatoric', 'mutual_information')
    """
    if draws is not None and draws not in DRAWS:
        raise ValueError(f"draws must be 'models' or 'labels', got {draws!r}")
    types = UNCERTAINTY_TYPES[draws or ""]
    if measure not in types:
        raise LookupError(f"no measure {measure!r}. Known: {', '.join(types)}.")
    return types[measure]


def _one_minus_largest(probs: Array) -> Array:
    """Return one minus the largest of `probs` (C, *space): the sum of all others."""
    rows = np.require(probs.reshape(len(probs), -1), requirements=["C", "W"])
    others = np.empty(rows.shape[1])
    sums_of_others(rows, others)
    others /= rows.sum(axis=0)
    return others.reshape(probs.shape[1:])


def _most_probable(draw: NDArray[Any]) -> Labels:
    """Return the first most probable class, reading memory of maps in order."""
    top = draw.max(axis=0)
    labels = np.empty(draw.shape[1:], dtype=np.uint8)
    for k in reversed(range(len(draw))):
        np.copyto(labels, k, where=draw[k] == top)
    return labels
