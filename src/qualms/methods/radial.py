"""Radial variational inference (Farquhar et al., 2020, arXiv:1907.00865).

As `mfvi`, but the noise of a layer has a uniform direction and a length |r| with r
standard normal, however many weights D the layer has; Gaussian noise has a length of
about sqrt(D), far from the mean. So a weight's noise has variance 1 / D.

Flipout fits: signs turn the noise, which changes neither the length nor that all
directions are alike. Items of a batch share the direction up to signs; the length each
has of its own, at no cost, for it only scales the signs of the outputs. One length for
all would leave their gradients with a common factor that a batch does not average out.

The KL term is exact: by symmetry the cross-entropy with a Gaussian has a closed form,
and the entropy is the sum of the logarithms of what multiplies the noise plus the
entropy of the noise, of which

    log(surface of the unit sphere) + (D - 1) E[log |r|] + entropy of |r|

is the value. It is least for standard deviations of sqrt(D) times the prior's, where
the noise is as far from the mean as the prior's weights are. The code released by Band
et al. (2021) differs: it draws r signed (the same distribution, as directions come in
opposite pairs) and once for all items, takes the length over output channels alone, so
that there is one direction for each of the others, estimates the cross-entropy from ten
draws, and has the logarithm of the sum for the sum of the logarithms.
"""

import math

import torch
from torch import Tensor

from qualms.methods._flipout import Noise
from qualms.methods._method import Method
from qualms.methods._variational import (
    Annealing,
    Prior,
    VariationalOptions,
    variational,
)

_EULER = 0.57721566490153286
# Of |r| with r standard normal.
_MEAN_LOG = -(_EULER + math.log(2)) / 2
_LENGTH_ENTROPY = (1 + math.log(math.pi / 2)) / 2


def radial(  # noqa: PLR0913 - the numbers that the paper tunes, and the schedule's
    *,
    stddev_mean: float = 1e-3,
    stddev_stddev: float = 0.1,
    prior: Prior = "tied",
    annealing: Annealing = "linear",
    annealing_epochs: int = 200,
    tempering: float = 1.0,
    l2: float = 0.0,
    draws: int = 5,
) -> Method:
    """Weights with radial noise, and `draws` passes to predict.

    Options are those of `mfvi`, for what multiplies the noise.

    Args:
        stddev_mean: median of the initial standard deviations.
        stddev_stddev: standard deviation, between weights, of their inverse softplus
            at the start.
        prior: a Gaussian, "tied" to the posterior's mean or "centred" at 0, with He's
            variance; or the standard deviation of one centred at 0.
        annealing: schedule of the weight of the KL term: "linear", "cyclical", "none".
        annealing_epochs: epochs in which the linear schedule rises to its end.
        tempering: weight of the KL term at the end of the schedule.
        l2: factor of the sum of squares of biases and of the parameters of
            normalisation in the loss.
        draws: passes for each item.
    """
    options = VariationalOptions(
        stddev_mean=stddev_mean,
        stddev_stddev=stddev_stddev,
        prior=prior,
        annealing=annealing,
        annealing_epochs=annealing_epochs,
        tempering=tempering,
        l2=l2,
        draws=draws,
    )
    return variational(RADIAL, options)


def _direction(like: Tensor) -> Tensor:
    normal = torch.randn_like(like)
    length: Tensor = torch.linalg.vector_norm(normal)
    return normal / length


def _with_length(signs: Tensor) -> Tensor:
    shape = (len(signs), *(1,) * (signs.ndim - 1))
    return signs * torch.randn(shape, dtype=signs.dtype, device=signs.device).abs()


def _entropy(count: int) -> float:
    half = count / 2
    surface = math.log(2) + half * math.log(math.pi) - math.lgamma(half)
    return surface + (count - 1) * _MEAN_LOG + _LENGTH_ENTROPY


RADIAL = Noise(
    shared=_direction,
    own=_with_length,
    variance=lambda count: 1 / count,
    entropy=_entropy,
)
