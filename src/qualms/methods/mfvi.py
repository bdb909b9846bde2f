"""Mean-field variational inference (Blundell et al., 2015, arXiv:1505.05424).

By flipout, as trained by Band et al. (2021). Every weight of every convolution and
linear layer is a Gaussian of its own; biases and normalisation have no distribution. A
batch is trained with one draw of the noise, and flipout decorrelates its items. To
predict, each draw is one such pass: every item has a fair draw of the weights, those of
two items share the sizes of the noise but are uncorrelated, and the draws of one item
are independent. A network with other layers that have kernels, whose weights would stay
fixed, is refused. The KL term is divided by the number of items, and for label maps by
that of labelled pixels, as the likelihood is a mean over them.

Their runs rose linearly to a KL weight of 0.45, for they stopped after 90 of 200
epochs; the paper writes of a cyclical schedule. They reset the means of the last layer
too by He's rule, where here the means begin as the network's own weights. The squared
error of a regression stands for Gaussian noise of variance 1/2.
"""

import math

import torch

from qualms.methods._annealing import Annealing
from qualms.methods._flipout import Noise
from qualms.methods._method import Method
from qualms.methods._variational import Options, Prior, variational


def mfvi(  # noqa: PLR0913 - the numbers that the paper tunes, and the schedule's
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
    """Gaussian weights, and `draws` passes to predict.

    The run's weight decay acts on the means only while the prior is "tied", which says
    nothing about them.

    Args:
        stddev_mean: initial standard deviation in the middle.
        stddev_stddev: how its inverse softplus varies from weight to weight at first,
            by a normal distribution cut at two standard deviations.
        prior: "tied" for a Gaussian around the posterior's own mean, with He's variance
            2 / fan_in; "centred" for the same around 0; a number for the standard
            deviation of one around 0.
        annealing: how the weight of the KL term goes: "linear", "cyclical", "none".
        annealing_epochs: in which the linear one rises to its end.
        tempering: weight of the KL term when nothing is annealed any more.
        l2: what the sum of squares of biases and of the parameters of normalisation is
            multiplied by in the loss.
        draws: passes for each item.
    """
    options = Options(
        stddev_mean=stddev_mean,
        stddev_stddev=stddev_stddev,
        prior=prior,
        annealing=annealing,
        annealing_epochs=annealing_epochs,
        tempering=tempering,
        l2=l2,
        draws=draws,
    )
    return variational(GAUSSIAN, options)


def _entropy(count: int) -> float:
    return count / 2 * math.log(2 * math.pi * math.e)


GAUSSIAN = Noise(
    shared=torch.randn_like,
    own=lambda signs: signs,
    variance=lambda _: 1.0,
    entropy=_entropy,
)
