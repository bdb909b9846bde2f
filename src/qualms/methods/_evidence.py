"""Prior and noise by marginal likelihood (MacKay, 1992), in an eigenbasis.

Both models have one or two numbers to choose; the best lies on a fine logarithmic grid
that zooms in, which no local maximum leads astray.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

_POINTS = 200
_ZOOMS = 6
# Where to look, in factors around the largest eigenvalue: from no prior to all prior.
_LOWEST, _HIGHEST = 1e-15, 1e6


class LinearPosterior(NamedTuple):
    """Gaussian over the P weights of a linear model with Gaussian noise."""

    mean: Tensor
    """(P,)."""
    factor: Tensor
    """(P, P) whose product with its transpose is the covariance."""
    noise: Tensor
    """0-d, variance of the noise."""


def linear_posterior(
    gram: Tensor, moment: Tensor, square: Tensor, count: int
) -> LinearPosterior:
    """The exact posterior of y = X w + noise, w Gaussian around 0, from float64 sums.

    `gram` (P, P) is X'X, `moment` (P,) is X'y, `square` is y'y and `count` the number
    of items. Given the ratio of prior precision to noise precision all else has a
    closed form, the best noise too, so only that ratio is searched.
    """
    values, basis = torch.linalg.eigh(gram)
    values = values.clamp(min=0.0)
    turned = basis.T @ moment
    floor = square * 1e-14

    def residual(ratio: Tensor) -> Tensor:
        explained = (turned.square() / (values + ratio[:, None])).sum(1)
        left: Tensor = (square - explained).maximum(floor)
        return left

    def evidence(ratio: Tensor) -> Tensor:
        spread: Tensor = (ratio[:, None] / (values + ratio[:, None])).log().sum(1)
        return spread / 2 - count / 2 * residual(ratio).log()

    ratio = _most_probable(evidence, scale=values[-1])
    noise = residual(ratio[None])[0] / count
    mean = basis @ (turned / (values + ratio))
    return LinearPosterior(mean, basis * (noise / (values + ratio)).sqrt(), noise)


def prior_precision(values: Tensor, norm: Tensor) -> Tensor:
    """The precision of a Gaussian prior that makes the data most probable, 0-d.

    `values` (P,) are eigenvalues of the curvature at weights of squared length `norm`
    (Laplace's approximation).
    """
    values = values.clamp(min=0.0)

    def evidence(precision: Tensor) -> Tensor:
        spread = (precision[:, None] / (values + precision[:, None])).log().sum(1)
        return (spread - precision * norm) / 2

    return _most_probable(evidence, scale=values[-1])


def _most_probable(evidence: Callable[[Tensor], Tensor], scale: Tensor) -> Tensor:
    """0-d argument at which `evidence` of points (K,) is largest."""
    low = scale.clamp(min=1e-12).log() + math.log(_LOWEST)
    high = low + math.log(_HIGHEST / _LOWEST)
    steps = torch.linspace(0.0, 1.0, _POINTS, dtype=low.dtype, device=low.device)
    for _ in range(_ZOOMS):
        points = low + (high - low) * steps
        best = int(evidence(points.exp()).argmax())
        low, high = points[max(best - 1, 0)], points[min(best + 1, _POINTS - 1)]
    return points[best].exp()
