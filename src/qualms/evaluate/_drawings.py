"""Lines and bars that a page draws: referral curves, reliability, histograms."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.evaluate._results import Bars, Curve

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Flags = NDArray[np.bool_]

BINS = 40


class Drawings(NamedTuple):
    """Everything to draw about one file."""

    curves: tuple[Curve, ...]
    bars: tuple[Bars, ...]


def referral_curves(
    probs: Array, target: Index, uncertainty: Array, *, subset: str, variant: str
) -> Iterator[Curve]:
    """Accuracy and NLL after referral, and AUROC where there are two classes."""
    names = ("accuracy", "nll", "auroc") if probs.shape[1] == 2 else ("accuracy", "nll")
    for name in names:
        curve = scores.referral_curve(name, probs, target, uncertainty)
        yield Curve(
            name=f"referral_{name}",
            label=f"{scores.about(getattr(scores, name)).label} of the kept items",
            subset=subset,
            variant=variant,
            x_label="share referred",
            x=curve.referred,
            y=curve.value,
        )


def reliability_curve(probs: Array, target: Index, *, variant: str) -> Curve:
    """Accuracy against confidence in 15 bins, with Wilson 95 % intervals."""
    bins = scores.reliability(probs, target)
    filled = bins.count > 0
    confidence, accuracy = bins.confidence[filled], bins.accuracy[filled]
    low, high = _wilson(accuracy, bins.count[filled].astype(float))
    return Curve(
        name="reliability",
        label="accuracy",
        subset="all",
        variant=variant,
        x_label="confidence",
        x=confidence,
        y=accuracy,
        low=low,
        high=high,
    )


def histogram(
    values: Array, parts: Mapping[str, Flags], *, name: str, subset: str = "all"
) -> Bars:
    """Counts of `values` in 40 equal bins, for each part of the items."""
    edges = _edges(values)
    counts = {
        part: np.histogram(values[chosen], bins=edges)[0].astype(float)
        for part, chosen in parts.items()
    }
    return Bars(
        name=f"uncertainty/{name}",
        label=name,
        subset=subset,
        edges=edges,
        parts=counts,
    )


def _edges(values: Array) -> Array:
    low, high = float(values.min()), float(values.max())
    # Values that differ by rounding alone leave no room for 40 bins between them.
    if high - low <= max(1e-9 * max(abs(low), abs(high)), 1e-300):
        pad = max(0.5, 1e-6 * abs(low))
        low, high = low - pad, high + pad
    return np.linspace(low, high, BINS + 1)


def _wilson(share: Array, count: Array, z: float = 1.96) -> tuple[Array, Array]:
    # Wilson's interval stays inside [0, 1] and behaves for small bins.
    spread = z * np.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    centre = share + z**2 / (2 * count)
    scale = 1 + z**2 / count
    return (centre - spread) / scale, (centre + spread) / scale
