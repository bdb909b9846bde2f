"""Evidential networks, whose outputs are a distribution over predictions.

Classes (Sensoy et al., 2018, arXiv:1806.01768): outputs are the evidence for each
class, and evidence + 1 are the parameters of a Dirichlet distribution over
probabilities. The loss is the expected squared error (equation 5) and the divergence of
the misleading evidence from none, whose weight grows to 1. Label maps have a Dirichlet
distribution for each pixel.

Two defaults differ from the paper's, which suit 60,000 digits and fail with few items.
Evidence there is a ReLU: a class whose output is negative for all items then has no
gradient and is never learned. And the divergence counts fully after ten epochs, which
is early where epochs are short. On the 1,300 digits of scikit-learn, 40 epochs of Adam
end at an accuracy of 0.68 or 0.95, depending on the seed, and with our defaults at 0.96
to 0.98. `evidence="relu", annealing=10` is the paper's. Train it with Adam; with SGD
all evidence may vanish before anything is learned.

Values (Amini et al., 2020, arXiv:1910.02600): four outputs are the parameters of a
normal-inverse-gamma distribution over mean and variance. The loss is the likelihood of
the Student distribution that follows, and the error times the evidence.

One pass predicts all of it.
"""

import math
from functools import partial
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from qualms.methods._batch import Batch, Moment
from qualms.methods._headed import (
    HIDDEN,
    Headed,
    Readout,
    features_of,
    headed,
    regression_readout,
)
from qualms.methods._method import Method
from qualms.methods._plain import classes_of, plain_head, weighted_mean
from qualms.shelf import traits
from qualms.spec import Task

Evidence = Literal["relu", "softplus", "exp"]
_LARGEST = 10.0
"""Largest exponent, as in the code of Sensoy et al."""
_LEAST = 1e-6
"""Keeps parameters positive where softplus is zero in float32."""


def evidential(
    *,
    evidence: Evidence = "exp",
    annealing: int | None = None,
    penalty: float = 0.01,
    draws: int = 20,
) -> Method:
    """Predict classes with `uncertainty/vacuity`, label maps, or a mean and variance.

    Args:
        evidence: function from outputs to the evidence for classes. "relu" is the
            paper's; an item to which it gives no evidence at all has no gradient.
        annealing: epochs until the divergence of misleading evidence counts fully; None
            for all epochs. The paper has 10, of 60,000 items each.
        penalty: for values: weight of the error times the evidence.
        draws: draws of label maps; probabilities and values are exact without draws.
    """
    if evidence not in get_args(Evidence):
        raise ValueError(
            f"evidence must be 'relu', 'softplus' or 'exp', got {evidence!r}"
        )
    if draws < 1 or penalty < 0 or (annealing is not None and annealing < 1):
        raise ValueError(
            "annealing and draws must be at least 1 and penalty at least 0, got "
            f"{annealing}, {draws} and {penalty}"
        )
    return Method(
        build=_build,
        loss=partial(_loss, evidence, annealing, penalty),
        predict=partial(_predict, evidence, draws),
        needs=("probabilities", "values"),
        header={"draws": "models"},
    )


def _build(backbone: nn.Module, task: Task) -> Headed:
    if "values" not in traits(task.name):
        return plain_head(backbone, task, classes_of(task, "evidential"))
    head = regression_readout(features_of(backbone))
    return Headed(backbone, Readout(head.trunk, nn.Linear(HIDDEN, 4)), task)


def _loss(
    evidence: Evidence,
    annealing: int | None,
    penalty: float,
    network: nn.Module,
    batch: Batch,
    moment: Moment,
) -> Tensor:
    network = headed(network)
    outputs = network(batch.x)
    if "values" in traits(network.task.name):
        return weighted_mean(value_losses(outputs, batch.target, penalty), batch)
    # The share of all steps rather than the epoch, so that a captured step follows it.
    epochs = moment.epochs if annealing is None else annealing
    share = (moment.progress * moment.epochs / epochs).clamp(max=1)
    counted, target = _counted_labels(batch.target.long(), network.task)
    losses = dirichlet_losses(_concentration(evidence, outputs), target, share)
    number = counted.to(losses.dtype).sum().clamp(min=1)
    return weighted_mean(losses * counted, batch) * counted.numel() / number


def _counted_labels(target: Tensor, task: Task) -> tuple[Tensor, Tensor]:
    """Return which labels count, and the labels with class 0 where they do not."""
    counted = torch.ones_like(target, dtype=torch.bool)
    if task.ignore is not None:
        counted = target != task.ignore
    return counted, target.where(counted, 0)


def _concentration(evidence: Evidence, outputs: Tensor) -> Tensor:
    """Return the parameters (B, C, *space) of Dirichlet distributions, at least 1."""
    if evidence == "relu":
        return outputs.relu() + 1
    if evidence == "softplus":
        return functional.softplus(outputs) + 1
    return outputs.clamp(-_LARGEST, _LARGEST).exp() + 1


def dirichlet_losses(
    concentration: Tensor, target: Tensor, share: Tensor | float
) -> Tensor:
    """Return the losses (B, *space) of Dirichlet parameters (B, C, *space).

    `share` is the weight of the divergence.
    """
    classes = concentration.shape[1]
    true = functional.one_hot(target, classes).movedim(-1, 1)
    total = concentration.sum(1, keepdim=True)
    mean = concentration / total
    error = (true - mean).square() + mean * (1 - mean) / (total + 1)
    misleading = torch.where(true == 1, 1.0, concentration)
    return error.sum(1) + share * dirichlet_divergence(misleading)


def dirichlet_divergence(concentration: Tensor) -> Tensor:
    """Return the KL (B, *space) of Dirichlet distributions from the flat one."""
    total = concentration.sum(1)
    normaliser = torch.lgamma(total) - torch.lgamma(concentration).sum(1)
    apart = torch.digamma(concentration) - torch.digamma(total)[:, None]
    shape = ((concentration - 1) * apart).sum(1)
    return normaliser - math.lgamma(concentration.shape[1]) + shape


class NormalInverseGamma(NamedTuple):
    """Parameters (B,) of normal-inverse-gamma distributions, named as in the paper."""

    gamma: Tensor
    nu: Tensor
    alpha: Tensor
    beta: Tensor


def _normal_inverse_gamma(outputs: Tensor) -> NormalInverseGamma:
    gamma, nu, alpha, beta = outputs.unbind(1)
    nu, alpha, beta = (functional.softplus(v) + _LEAST for v in (nu, alpha, beta))
    return NormalInverseGamma(gamma, nu, alpha + 1, beta)


def value_losses(outputs: Tensor, target: Tensor, penalty: float) -> Tensor:
    """Return the losses (B,) of outputs (B, 4): equations 8 and 9 of Amini et al."""
    gamma, nu, alpha, beta = _normal_inverse_gamma(outputs)
    error, omega = target.float() - gamma, 2 * beta * (1 + nu)
    likelihood = (
        0.5 * (math.pi / nu).log()
        - alpha * omega.log()
        + (alpha + 0.5) * (error.square() * nu + omega).log()
        + torch.lgamma(alpha)
        - torch.lgamma(alpha + 0.5)
    )
    return likelihood + penalty * error.abs() * (2 * nu + alpha)


def _predict(
    evidence: Evidence, draws: int, network: nn.Module, x: Tensor, task: Task
) -> dict[str, Tensor]:
    outputs = headed(network)(x)
    if "values" in traits(task.name):
        gamma, nu, alpha, beta = _normal_inverse_gamma(outputs)
        var = beta * (1 + 1 / nu) / (alpha - 1)
        return {"mean": gamma[None], "var": var[None]}
    concentration = _concentration(evidence, outputs)
    total = concentration.sum(1)
    mean = concentration / total[:, None]
    if "pixels" in traits(task.name):
        return {
            "mean_probs": mean,
            "expected_entropy": dirichlet_entropy(concentration),
            "draw_labels": _label_draws(draws, concentration),
        }
    expected = dirichlet_entropy(concentration.double())
    entropy = torch.special.entr(mean.double()).sum(1)
    return {
        "probs": mean[None],
        "uncertainty/vacuity": concentration.shape[1] / total,
        "uncertainty/expected_entropy": expected,
        "uncertainty/mutual_information": entropy - expected,
    }


def dirichlet_entropy(concentration: Tensor) -> Tensor:
    """Return the mean entropy (B, *space) of Dirichlet draws, in nats."""
    total = concentration.sum(1)
    terms = concentration * torch.digamma(concentration + 1)
    return torch.digamma(total + 1) - terms.sum(1) / total


def _label_draws(draws: int, concentration: Tensor) -> Tensor:
    """Draw the most probable classes (M, B, *space), each pixel independently."""
    # Probabilities are gamma variates divided by their sum.
    gamma = torch.distributions.Gamma(concentration, 1.0)
    labels = [gamma.sample().argmax(1).to(torch.uint8) for _ in range(draws)]
    return torch.stack(labels)
