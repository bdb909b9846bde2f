"""Mean-field variational inference (Blundell et al., 2015, arXiv:1505.05424).

By flipout, as trained by Band et al. (2021). Every weight of every convolution and
linear layer has its own Gaussian; biases and normalisation are not random. A batch is
trained with one draw of the noise, and flipout decorrelates its items. For predictions
each draw is one such pass: every item has a fair draw of the weights, the draws of two
items share the sizes of the noise but are uncorrelated, and the draws of one item are
independent. A network with other layers that have kernels is refused, as those would
stay fixed. The KL term is divided by the number of items, and for label maps by the
number of labelled pixels, as the likelihood is a mean over them.

In the runs of Band et al. the weight of the KL term rose linearly to 0.45, as they
stopped after 90 of 200 epochs; their text describes a cyclical schedule. There the
means of the last layer also start by He's rule; here all means start as the network's
own weights, which for a `resnet50` classifier are N(0, 0.01^2) in the last layer. The
squared error of a regression stands for Gaussian noise of variance 1/2.
"""

import math

import torch

from qualms.methods._flipout import Noise
from qualms.methods._method import Method
from qualms.methods._variational import (
    Annealing,
    Prior,
    VariationalOptions,
    variational,
)


def mfvi(  # noqa: PLR0913 - what the paper tunes, and the schedule
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
    """Give every weight a Gaussian; predict by `draws` passes.

    The run's weight decay acts on the means only if the prior is "tied", as that prior
    does not pull them to 0.

    Args:
        stddev_mean: median of the initial standard deviations.
        stddev_stddev: standard deviation, between weights, of their inverse softplus
            at the start: a normal distribution cut at two standard deviations.
        prior: "tied" for a Gaussian around the posterior's own mean, with He's variance
            2 / fan_in; "centred" for the same around 0; a number for the standard
            deviation of one around 0.
        annealing: schedule of the weight of the KL term: "linear", "cyclical", "none".
        annealing_epochs: length of the linear rise.
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
    return variational(GAUSSIAN, options)


def _entropy(shape: torch.Size) -> float:
    return shape.numel() / 2 * math.log(2 * math.pi * math.e)


GAUSSIAN = Noise(
    shared=torch.randn_like,
    per_item=lambda signs: signs,
    variance=lambda _: 1.0,
    entropy=_entropy,
)
