"""Uncertainty maps: from draws to sufficient statistics, and from those to maps.

Segmentation keeps three statistics per item instead of its draws: mean probabilities,
expected entropy and the label map of every draw. All maps follow from them.
"""

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

_OF_DRAWS = MappingProxyType({"PE": "predictive", "EE": "aleatoric", "MI": "epistemic"})

UNCERTAINTY_TYPES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "softmax": MappingProxyType({"MSR": "predictive"}),
        "map": MappingProxyType({"MSR": "predictive"}),
        "mc_dropout": _OF_DRAWS,
        "ensemble": _OF_DRAWS,
        "tta": _OF_DRAWS,
        "ssn": MappingProxyType(
            {"PE": "predictive", "MI": "aleatoric", "EE": "epistemic"}
        ),
    }
)
"""Type of uncertainty of each measure by method (Kahl et al., 2024, section 4.3).

PE is the entropy of the mean prediction, EE the mean entropy of the draws, MI = PE - EE
and MSR one minus the maximum softmax response. The draws of a stochastic segmentation
network (SSN) *are* the ambiguity it sees, so their disagreement, MI, is aleatoric.
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
    mean_probs: ArrayLike, expected_entropy: ArrayLike, *, method: str | None = None
) -> UncertaintyMaps:
    """Return predictive, aleatoric and epistemic maps by the roles of `method`.

    PE, EE and MI = PE - EE, unless `UNCERTAINTY_TYPES` gives `method` other roles (SSN
    swaps aleatoric and epistemic; the plain softmax has MSR as predictive). MI is not
    clipped: rounding may leave it just below zero.

    Computed in float64, and cast to float32 at the end if `mean_probs` is float32. The
    probability of the most probable class is computed as one minus the others, so that
    pixels keep their order where float32 cannot represent their certainty.

    Args:
        mean_probs: Mean over draws (C, *space).
        expected_entropy: Mean entropy of the draws (*space).
        method: Name of the method of the draws.

    >>> uncertainty_maps(np.array([[0.5], [0.5]]), np.array([0.6])).epistemic.round(3)
    array([0.093])
    """
    probs = np.asarray(mean_probs)
    single = probs.dtype == np.float32
    kind: np.dtype[np.floating[Any]] = np.dtype(np.float32 if single else np.float64)
    probs = probs.astype(kind, copy=False)
    total = double_entropy(probs, class_axis=0)
    expected = real_map("expected_entropy", expected_entropy)
    names = ("mean_probs", "expected_entropy")
    check_same_space(names, total.shape, expected.shape)
    response = _one_minus_largest(probs)
    maps = {"PE": total, "EE": expected, "MI": total - expected, "MSR": response}
    roles = (_OF_DRAWS | _types(method)).items()
    by_role: dict[str, Floats] = {
        role: maps[measure].astype(kind, copy=False) for measure, role in roles
    }
    return UncertaintyMaps(**by_role, max_softmax=response.astype(kind, copy=False))


def uncertainty_type(measure: str, method: str) -> str:
    """Return whether `measure` is predictive, aleatoric or epistemic for `method`.

    Unknown methods are treated as methods with ordinary draws; "SSN" is "ssn".

    >>> uncertainty_type("MI", "ssn")
    'aleatoric'
    """
    types = _types(method)
    if measure not in types:
        raise LookupError(
            f"no measure {measure!r} for {method!r}. Known: {', '.join(types)}."
        )
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


def _types(method: str | None) -> Mapping[str, str]:
    return UNCERTAINTY_TYPES.get((method or "").lower(), _OF_DRAWS)
