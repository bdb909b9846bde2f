"""The prior and the noise that make the data most probable (MacKay, 1992).

The search works in an eigenbasis, on a logarithmic grid that is refined around the best
point, so that it does not end in a local maximum.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

_TOGETHER = 2**16
"""Eigenvalues that the search evaluates at once, for all its points."""
_POINTS = 200
_ZOOMS = 6
# Range of the search, as factors of the largest eigenvalue: from no prior to a prior
# that outweighs the data.
_LOWEST, _HIGHEST = 1e-15, 1e6


class LinearPosterior(NamedTuple):
    """Gaussian over the P weights of a linear model with Gaussian noise."""

    mean: Tensor
    """(P,)."""
    factor: Tensor
    """(P, P) matrix whose product with its transpose is the covariance."""
    noise: Tensor
    """0-d variance of the noise."""


def linear_posterior(
    gram: Tensor, moment: Tensor, square: Tensor, count: int
) -> LinearPosterior:
    """Return the exact posterior of y = X w + noise, for a Gaussian prior around 0.

    `gram` (P, P) is X'X, `moment` (P,) is X'y, `square` is y'y, all in float64, and
    `count` the number of items. Only the ratio of the prior's precision to that of the
    noise is searched: given the ratio, the rest has a closed form, noise included.
    """
    values, basis = torch.linalg.eigh(gram)
    values = values.clamp(min=0.0)
    rotated = basis.T @ moment
    floor = square * 1e-14

    def residual(ratio: Tensor) -> Tensor:
        explained = (rotated.square() / (values + ratio[:, None])).sum(1)
        rest: Tensor = (square - explained).maximum(floor)
        return rest

    def evidence(ratio: Tensor) -> Tensor:
        spread: Tensor = (ratio[:, None] / (values + ratio[:, None])).log().sum(1)
        return spread / 2 - count / 2 * residual(ratio).log()

    ratio = _most_probable(evidence, scale=values[-1])
    noise = residual(ratio[None])[0] / count
    mean = basis @ (rotated / (values + ratio))
    return LinearPosterior(mean, basis * (noise / (values + ratio)).sqrt(), noise)


def prior_precision(values: Tensor, norm: Tensor) -> Tensor:
    """Return the precision of a Gaussian prior that makes the data most probable.

    `values` (P,) are eigenvalues of the curvature at weights of squared length `norm`
    (Laplace's approximation).
    """
    values = values.clamp(min=0.0)

    def evidence(precision: Tensor) -> Tensor:
        point = precision[:, None]
        parts = torch.split(values, _TOGETHER)
        sums = [(point / (part + point)).log().sum(1) for part in parts]
        return (torch.stack(sums).sum(0) - precision * norm) / 2

    return _most_probable(evidence, scale=values[-1])


def _most_probable(evidence: Callable[[Tensor], Tensor], scale: Tensor) -> Tensor:
    """Return the argument, 0-d, at which `evidence` of points (K,) is largest."""
    low = scale.clamp(min=1e-12).log() + math.log(_LOWEST)
    high = low + math.log(_HIGHEST / _LOWEST)
    steps = torch.linspace(0.0, 1.0, _POINTS, dtype=low.dtype, device=low.device)
    for _ in range(_ZOOMS):
        points = low + (high - low) * steps
        best = int(evidence(points.exp()).argmax())
        low, high = points[max(best - 1, 0)], points[min(best + 1, _POINTS - 1)]
    return points[best].exp()
