"""Radial variational inference (Farquhar et al., 2020, arXiv:1907.00865).

As `mfvi`, but the noise of a layer has a uniform direction and a length |r| with r
standard normal, however many weights D the layer has. So a weight's noise has variance
1 / D. Gaussian noise has a length of about sqrt(D), far from the mean.

Flipout applies: signs change neither the length nor the distribution of the direction.
The items of a batch share the direction up to signs. Each item has its own length, at
no cost, as the length only scales the signs of the outputs. With one length for all,
their gradients would have a common factor that a batch does not average out.

The KL term is exact. By symmetry the cross-entropy with a Gaussian has a closed form.
The entropy is the sum of the logarithms of the standard deviations plus the entropy of
the noise, which is

    log(surface of the unit sphere) + (D - 1) E[log |r|] + entropy of |r|.

The KL term is least for standard deviations of sqrt(D) times the prior's, where the
noise is as far from the mean as the weights of the prior are.

The code released by Band et al. (2021) differs. It normalises over the output channels
alone, so that each of the other indices has its own direction, and a weight's noise has
variance 1 / outputs. The published standard deviations are meant for this noise: with
the length over a whole layer they would give almost none. `norm="output_channels"` has
it. This noise has no density, as its directions share one length; the KL term then uses
the entropy of directions with separate lengths, whose gradients are still those of the
sum of the logarithms. The other differences are not followed: there r is signed (which
is the same distribution, as directions come in opposite pairs) and drawn once for all
items, the cross-entropy is estimated from ten draws, and the logarithm of the sum
replaces the sum of the logarithms.
"""

import math
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional

from qualms.methods._flipout import Noise
from qualms.methods._method import Method
from qualms.methods._variational import (
    Annealing,
    Prior,
    VariationalOptions,
    variational,
)

RadialNorm = Literal["layer", "output_channels"]
_EULER = 0.57721566490153286
# Of the length |r| with r standard normal.
_MEAN_LOG = -(_EULER + math.log(2)) / 2
_LENGTH_ENTROPY = (1 + math.log(math.pi / 2)) / 2


def radial(  # noqa: PLR0913 - what the paper tunes, and the schedule
    *,
    stddev_mean: float = 1e-3,
    stddev_stddev: float = 0.1,
    norm: RadialNorm = "layer",
    prior: Prior = "tied",
    annealing: Annealing = "linear",
    annealing_epochs: int = 200,
    tempering: float = 1.0,
    l2: float = 0.0,
    draws: int = 5,
) -> Method:
    """Give the weights radial noise; predict by `draws` passes.

    Options are those of `mfvi`; standard deviations multiply the noise.

    Args:
        stddev_mean: median of the initial standard deviations.
        stddev_stddev: standard deviation, between weights, of their inverse softplus
            at the start.
        norm: weights over which the noise has the length |r|: "layer" for all weights
            of a layer, "output_channels" for those of all outputs from each input, as
            in the released code of RETINA.
        prior: a Gaussian, "tied" to the posterior's mean or "centred" at 0, with He's
            variance; or the standard deviation of one centred at 0.
        annealing: schedule of the weight of the KL term: "linear", "cyclical", "none".
        annealing_epochs: length of the linear rise.
        tempering: weight of the KL term at the end of the schedule.
        l2: factor of the sum of squares of biases and of the parameters of
            normalisation in the loss.
        draws: passes for each item.
    """
    if norm not in get_args(RadialNorm):
        raise ValueError(f"norm must be 'layer' or 'output_channels', got {norm!r}")
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
    return variational(NOISES[norm], options)


def _direction(like: Tensor) -> Tensor:
    """Draw one direction over all entries."""
    normal = torch.randn_like(like)
    length: Tensor = torch.linalg.vector_norm(normal)
    return normal / length


def _directions(like: Tensor) -> Tensor:
    """Draw a direction over the outputs, on axis 0, for each of the other indices."""
    return functional.normalize(torch.randn_like(like), dim=0)


def _with_length(signs: Tensor) -> Tensor:
    """Multiply the signs of each item by a length."""
    shape = (len(signs), *(1,) * (signs.ndim - 1))
    return signs * torch.randn(shape, dtype=signs.dtype, device=signs.device).abs()


def _entropy(count: int) -> float:
    """Return the entropy of a direction in `count` dimensions times a length."""
    half = count / 2
    surface = math.log(2) + half * math.log(math.pi) - math.lgamma(half)
    return surface + (count - 1) * _MEAN_LOG + _LENGTH_ENTROPY


NOISES = {
    "layer": Noise(
        shared=_direction,
        per_item=_with_length,
        variance=lambda shape: 1 / shape.numel(),
        entropy=lambda shape: _entropy(shape.numel()),
    ),
    "output_channels": Noise(
        shared=_directions,
        per_item=_with_length,
        variance=lambda shape: 1 / shape[0],
        entropy=lambda shape: shape[1:].numel() * _entropy(shape[0]),
    ),
}
