"""Scores that say how unlike the training items an item is, from features and logits.

Features (N, D) are the inputs of the last layer, logits (N, C) its outputs. All scores
are computed in float64 on the device of their input, and are larger for items that are
less like the training items. docs/definitions.md has the formulas.

Two classes may have one logit z, that of class 1. It stands for the logits -z/2 and
z/2: the probabilities are the same, and no score depends on which class has the 1.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from qualms.methods._select import nearest_distances

_RIDGE = 1e-6
"""Share of the mean variance that is added to each variance."""
_ROUNDING = torch.finfo(torch.float32).eps
"""Features and weights come in float32; less than this share of them is rounding."""
_WIDE = ((2048, 1000), (768, 512))
"""Features, and the dimensions of the principal space of that many (Wang et al.)."""


class Gaussians(NamedTuple):
    """K Gaussians of one covariance in D dimensions, in float64."""

    means: Tensor
    """(K, D)."""
    whitening: Tensor
    """(D, D); a centred feature times it has unit covariance."""


class FeatureGaussians(NamedTuple):
    """A Gaussian for each class with items, and one for all items."""

    classes: Gaussians
    background: Gaussians


class Residual(NamedTuple):
    """Directions of features outside the principal space of the training items."""

    origin: Tensor
    """(D,) feature whose logits are nearest to 0."""
    basis: Tensor
    """(D, R) orthonormal directions outside the principal space."""
    scale: Tensor
    """() factor that makes a length a virtual logit."""


def even_logits(outputs: Tensor) -> Tensor:
    """Return logits (N, C) of the outputs (N, K); one output z becomes -z/2 and z/2."""
    wide = outputs.double()
    return wide if wide.shape[1] > 1 else torch.cat([-wide / 2, wide / 2], 1)


def max_logit(logits: Tensor) -> Tensor:
    """Return minus the largest logit (N,) (Hendrycks et al., 2022)."""
    return -logits.double().amax(1)


def energy(logits: Tensor) -> Tensor:
    """Return the energy (N,) at temperature 1 (Liu et al., 2020)."""
    return -logits.double().logsumexp(1)


def gradnorm(features: Tensor, logits: Tensor) -> Tensor:
    """Return minus the length (N,) of a gradient (Huang et al., 2021).

    It is the L1 norm of the gradient of KL(uniform || probabilities) with respect to
    the weights of the last layer, which has a closed form.
    """
    probs = logits.double().softmax(1)
    of_outputs = (probs - 1 / probs.shape[1]).abs().sum(1)
    return -features.double().abs().sum(1) * of_outputs


def knn(features: Tensor, reference: Tensor, neighbours: int) -> Tensor:
    """Return the distance (N,) to the k-th nearest direction (Sun et al., 2022).

    Args:
        features: (N, D).
        reference: (R, D) features of training items.
        neighbours: k; where there are fewer training items, the farthest counts.
    """
    count = min(neighbours, len(reference))
    return nearest_distances(features, reference, count, angular=True)[:, -1]


def mahalanobis(features: Tensor, gaussians: Gaussians) -> Tensor:
    """Return the squared distance (N,) to the nearest mean (Lee et al., 2018)."""
    centre = gaussians.means[0]
    white = (features.double() - centre) @ gaussians.whitening
    means = (gaussians.means - centre) @ gaussians.whitening
    # From differences, as a product would lose the digits of small distances.
    exact = "donot_use_mm_for_euclid_dist"
    return torch.cdist(white, means, compute_mode=exact).square().amin(1)


def relative_mahalanobis(features: Tensor, fitted: FeatureGaussians) -> Tensor:
    """Return the squared distance to the nearest class beyond that to all items (N,).

    With one class both are the same, and the score is 0 (Ren et al., 2021).
    """
    nearest = mahalanobis(features, fitted.classes)
    return nearest - mahalanobis(features, fitted.background)


def vim(features: Tensor, logits: Tensor, residual: Residual) -> Tensor:
    """Return the virtual logit beyond the logits (N,) (Wang et al., 2022)."""
    return energy(logits) + residual.scale * residual_lengths(features, residual)


def residual_lengths(features: Tensor, residual: Residual) -> Tensor:
    """Return the lengths (N,) of features outside the principal space."""
    outside = (features.double() - residual.origin) @ residual.basis
    lengths: Tensor = torch.linalg.vector_norm(outside, dim=1)
    return lengths


def fit_gaussians(features: Tensor, target: Tensor) -> FeatureGaussians:
    """Fit Gaussians to features (N, D) with classes (N,).

    Classes without items have no Gaussian. A covariance of fewer items than make it
    invertible is shrunk towards equal variances, as far as is best for Gaussian
    features (Chen et al., 2010); any other gets a ridge of a millionth of the mean
    variance, which features need that do not vary.
    """
    values = features.double()
    every = torch.bincount(target)
    counts = every[every > 0]
    index = (torch.cumsum(every > 0, 0) - 1)[target]  # classes without items left out
    sums = values.new_zeros(len(counts), values.shape[1]).index_add_(0, index, values)
    means = sums / counts[:, None]
    shares = counts.double() / len(values)
    centre = (shares[:, None] * means).sum(0)
    gaps, between = values - means[index], means - centre
    within = gaps.T @ gaps / len(values)
    total = within + (shares[:, None] * between).T @ between
    size = values.square().mean()
    return FeatureGaussians(
        Gaussians(means, _whitening(within, len(values) - len(counts), size)),
        Gaussians(centre[None], _whitening(total, len(values) - 1, size)),
    )


def fit_residual(
    features: Tensor, weight: Tensor, bias: Tensor, principal: int | None
) -> Residual:
    """Fit the principal space to features (N, D), and the scale of a virtual logit.

    Args:
        features: training items.
        weight: (K, D) weights of the last layer.
        bias: (K,) its biases.
        principal: dimensions of the principal space; None for 1000 of at least 2048
            features, 512 of at least 768, else half of them, as the authors choose. It
            has at most half as many as there are items, as otherwise nothing would be
            left of these.
    """
    values, weight, bias = features.double(), weight.double(), bias.double()
    width = values.shape[1]
    # In float64, rows that are dependent up to rounding would count as independent.
    origin = -torch.linalg.pinv(weight, rtol=max(weight.shape) * _ROUNDING) @ bias
    size = min(_principal(width) if principal is None else principal, len(values) // 2)
    outward = values - origin
    vectors = torch.linalg.eigh(outward.T @ outward / len(values)).eigenvectors
    basis = vectors[:, : width - size].contiguous()
    residual = Residual(origin, basis, values.new_ones(()))
    length = residual_lengths(values, residual).mean()
    largest = -max_logit(even_logits(values @ weight.T + bias)).mean()
    # Of features that do not vary nothing is left but rounding.
    rounding = _ROUNDING * torch.linalg.vector_norm(values, dim=1).mean()
    scale = largest / length if length > rounding else torch.zeros_like(length)
    return residual._replace(scale=scale)


def fit_clip(features: Tensor, share: float) -> Tensor:
    """Return the value () that `share` of all activations do not exceed."""
    values = np.quantile(features.double().cpu().numpy(), share)
    return torch.tensor(values, dtype=torch.float64, device=features.device)


def _principal(width: int) -> int:
    sizes = (size for least, size in _WIDE if width >= least)
    return next(sizes, width // 2)


def _whitening(covariance: Tensor, freedom: int, size: Tensor) -> Tensor:
    """Return a matrix that whitens features of `covariance` (D, D).

    `freedom` is how many dimensions the items can span, and `size` the mean square of
    the features, whose rounding counts as variance.
    """
    width = len(covariance)
    if freedom < width:
        covariance = _shrunk(covariance, max(freedom, 1))
    ridge = _RIDGE * covariance.trace() / width + _ROUNDING**2 * size
    ridge = torch.where(ridge > 0, ridge, 1.0)
    lower = torch.linalg.cholesky(covariance + ridge * _identity(covariance))
    inverse: Tensor = torch.linalg.solve_triangular(
        lower, _identity(lower), upper=False
    )
    return inverse.T.contiguous()


def _shrunk(covariance: Tensor, items: int) -> Tensor:
    """Return the covariance shrunk by the OAS estimator (Chen et al., 2010)."""
    width = len(covariance)
    trace, square = covariance.trace(), covariance.square().sum()
    spread = (items + 1 - 2 / width) * (square - trace.square() / width)
    share = ((1 - 2 / width) * square + trace.square()) / spread
    # Equal variances, or none at all, are their own target.
    share = torch.where(spread > 0, share, 1.0).clamp(max=1.0)
    even = trace / width * _identity(covariance)
    return torch.lerp(covariance, even, share)


def _identity(like: Tensor) -> Tensor:
    return torch.eye(len(like), dtype=like.dtype, device=like.device)
