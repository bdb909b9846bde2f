"""Probabilities of items whose logits are Gaussian, with a mean in closed form.

For two classes whose logits differ by m, with variance s^2, MacKay (1992) approximates
the mean probability by sigmoid(m / sqrt(1 + pi s^2 / 8)). The probability of one class
of several is 1 / sum_k exp(-m_k), where m_k is its lead over class k; as in Lu, Ie and
Sha (2020, arXiv:2006.07584), each lead shrinks by the same factor, and the sum is then
normalised. To shrink each logit by its own variance instead costs accuracy: the class
that is most probable changes.

One output is the logit of class 1 of two classes, as everywhere.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

from qualms.methods._plain import class_logits

_JITTER = 1e-6
"""Share of their mean that is added to variances before they are factorised."""


def probit_means(outputs: Tensor, covariance: Tensor) -> Tensor:
    """Return mean probabilities (B, C) of outputs (B, K) with covariance (B, K, K)."""
    logits = class_logits(outputs)
    if covariance.shape[1] < logits.shape[1]:  # the logit of class 0 is 0
        covariance = functional.pad(covariance, (1, 0, 1, 0))
    own = covariance.diagonal(dim1=1, dim2=2)
    variance = own[:, :, None] + own[:, None] - 2 * covariance
    lead = logits[:, :, None] - logits[:, None]
    shrunk = lead / (1 + math.pi / 8 * variance.clamp(min=0.0)).sqrt()
    return (-(-shrunk).logsumexp(2)).softmax(1)


def draw_probs(outputs: Tensor, covariance: Tensor, noise: Tensor) -> Tensor:
    """Return probabilities (M, B, C) of draws; their mean is that of `probit_means`.

    Args:
        outputs: (B, K) mean outputs.
        covariance: (B, K, K) of the outputs.
        noise: (M, K), as `even_noise` draws it.
    """
    size = outputs.shape[1]
    identity = torch.eye(size, dtype=covariance.dtype, device=covariance.device)
    level = covariance.diagonal(dim1=1, dim2=2).mean(1).clamp(min=1e-30)
    jitter = _JITTER * level[:, None, None] * identity
    lower = torch.linalg.cholesky(covariance + jitter)
    drawn = outputs + torch.einsum("bkj,mj->mbk", lower, noise.to(lower))
    probs = class_logits(drawn.flatten(0, 1)).softmax(1)
    probs = probs.view(len(noise), len(outputs), -1)
    return with_mean(probs, probit_means(outputs, covariance))


def with_mean(probs: Tensor, mean: Tensor) -> Tensor:
    """Return draws `probs` (M, B, C), changed as little as possible to have `mean`.

    Where the mean of a class is too high, every draw keeps the same share of its
    probability and spreads the rest over the other classes, so each draw stays a
    distribution.
    """
    tiny = torch.finfo(probs.dtype).tiny
    present = probs.mean(0)
    kept_share = (mean / present.clamp(min=tiny)).clamp(max=1.0)
    missing = (mean - present).clamp(min=0.0)
    share = missing / missing.sum(1, keepdim=True).clamp(min=tiny)
    freed = (probs * (1 - kept_share)).sum(2, keepdim=True)
    return probs * kept_share + freed * share


def even_noise(draws: int, size: int, device: torch.device) -> Tensor:
    """Draw noise (draws, size) in mirrored pairs, of mean 0 and nearly unit covariance.

    All items share it: results then do not depend on batches, and items with the same
    Gaussian have the same draws.
    """
    half = torch.randn(-(-draws // 2), size, dtype=torch.float64, device=device)
    if len(half) > size:  # the covariance can be exact
        lower = torch.linalg.cholesky(half.T @ half / len(half))
        half = torch.linalg.solve_triangular(lower, half.T, upper=False).T
    else:
        half = half / half.square().mean().sqrt()
    return torch.cat([half, -half])[:draws]
