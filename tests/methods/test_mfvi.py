import math

import pytest
import torch
from scipy import stats
from torch import nn
from torch.distributions import Normal, kl_divergence

from methods.tiny import made
from qualms.methods import Batch, Headed, Moment, Readout
from qualms.methods._flipout import Flipout, divergence
from qualms.methods._variational import VariationalOptions, with_random_kernels
from qualms.methods.mfvi import GAUSSIAN
from qualms.spec import Task

VALUES = Task(name="regression")
STEPS = 2000
OPTIONS = {
    "stddev_mean": 1e-3,
    "stddev_stddev": 0.1,
    "prior": "tied",
    "annealing": "none",
    "annealing_epochs": 200,
    "tempering": 1.0,
    "l2": 0.0,
    "draws": 5,
}


def random_layer(dtype=torch.float64):
    torch.manual_seed(0)
    layer = nn.Conv2d(3, 4, 3).to(dtype)
    return Flipout(layer, GAUSSIAN, torch.randn_like(layer.weight).detach() - 1)


@pytest.mark.parametrize("tied", [True, False])
def test_kl_is_that_of_gaussians(tied):
    layer = random_layer()
    posterior = Normal(layer.weight, layer.stddev)
    centre = layer.weight if tied else torch.zeros_like(layer.weight)
    exact = kl_divergence(posterior, Normal(centre, 0.4)).sum()
    actual = divergence(layer, stddev=0.4, tied=tied)
    torch.testing.assert_close(actual, exact)


def test_kl_of_a_tied_prior_is_the_published_one():
    layer, prior = random_layer(), math.sqrt(2 / 27)
    spread = layer.stddev
    published = (prior / spread).log() + spread.square() / (2 * prior**2) - 0.5
    actual = divergence(layer, stddev=prior, tied=True)
    torch.testing.assert_close(actual, published.sum())


def test_kl_agrees_with_monte_carlo():
    layer = random_layer()
    posterior, prior = Normal(layer.weight, layer.stddev), Normal(0.0, 0.4)
    draws = posterior.sample((4000,))
    logs = (posterior.log_prob(draws) - prior.log_prob(draws)).flatten(1).sum(1)
    error = logs.std() / len(logs) ** 0.5
    actual = divergence(layer, stddev=0.4, tied=False)
    assert (actual - logs.mean()).abs() < 4 * error
    assert error < 0.01 * actual


def test_weights_of_an_item_have_the_stated_moments():
    """From outputs of one-hot inputs, which read the weights off."""
    torch.manual_seed(0)
    layer = nn.Linear(2, 3, bias=False).double()
    random = Flipout(layer, GAUSSIAN, torch.randn_like(layer.weight).detach())
    x = torch.eye(2, dtype=torch.float64)
    with torch.no_grad():
        weights = torch.stack([random(x) for _ in range(8000)])
        centred = weights - layer.weight.T
        scaled = centred / random.stddev.T
    assert scaled.mean(0).abs().max() < 5 / 8000**0.5
    assert (scaled.var(0) - 1).abs().max() < 0.08
    # Items, and outputs of one item, are uncorrelated.
    moments = torch.corrcoef(scaled.flatten(1).T) - torch.eye(6)
    assert moments.abs().max() < 5 / 8000**0.5
    assert stats.kstest(scaled[:, 0, 0], "norm").pvalue > 0.01


def test_initial_deviations_are_those_asked_for():
    options = VariationalOptions(
        **OPTIONS | {"stddev_mean": 9.8e-4, "stddev_stddev": 0.42}
    )
    torch.manual_seed(0)
    whole = with_random_kernels(
        Headed(nn.Identity(), nn.Linear(90, 90), VALUES), GAUSSIAN, options
    )
    rho = whole.head.rho.detach().double().flatten()
    scaled = (rho - math.log(math.expm1(9.8e-4))) / 0.42
    assert scaled.abs().max() <= 2
    assert stats.kstest(scaled, stats.truncnorm(-2, 2).cdf).pvalue > 0.01
    assert whole.head.stddev.median().item() == pytest.approx(9.8e-4, rel=0.02)


def test_conjugate_regression_is_solved():
    """Squared error is noise of variance 1/2: the posterior of y = X w is Gaussian.

    Of its mean-field approximations the best has its mean, and as variances the inverse
    diagonal of its precision.
    """
    torch.manual_seed(0)
    prior, count = 0.7, 40
    mixing = torch.tensor([[1.0, 0.9, 0.0], [0.0, 0.5, -0.5], [0.0, 0.0, 0.6]])
    x = torch.randn(count, 3) @ mixing
    y = x @ torch.tensor([0.5, -1.0, 0.8]) + math.sqrt(0.5) * torch.randn(count)
    precision = 2 * x.T @ x + torch.eye(3) / prior**2
    mean = torch.linalg.solve(precision, 2 * x.T @ y)
    stddev = precision.diag().rsqrt()
    found = _trained_linear(x, y, prior)
    # A step sees one squared normal number for each weight, of variance 2.
    error = math.sqrt(2 / (STEPS / 2)) / 2
    assert ((found[0] - mean) / stddev).abs().max() < 0.1
    assert (found[1] / stddev - 1).abs().max() < 4 * error
    # Which tells them from least squares and from the marginals of the posterior.
    assert ((torch.linalg.lstsq(x, y).solution - mean) / stddev).abs().max() > 0.2
    assert (precision.inverse().diag().sqrt() / stddev - 1).max() > 8 * error


def _trained_linear(x, y, prior):
    """Means and deviations that descent settles on: their mean over its second half."""
    head = Readout(nn.Identity(), nn.Linear(3, 1, bias=False))
    options = VariationalOptions(**OPTIONS | {"stddev_mean": 0.3, "prior": prior})
    network = with_random_kernels(
        Headed(nn.Identity(), head, VALUES), GAUSSIAN, options
    )
    method = made("mfvi", {"prior": prior, "annealing": "none"})
    optimiser = torch.optim.Adam(method.groups(network), lr=0.02)
    moment = Moment(
        epoch=0, epochs=1, items=len(x), batch=len(x), progress=torch.ones(())
    )
    # Each item several times: more draws of the weights for one step.
    batch = Batch(x=x.repeat(8, 1), target=y.repeat(8))
    last, visited = network.head.last, []
    for _ in range(STEPS):
        optimiser.zero_grad()
        method.loss(network, batch, moment).backward()
        optimiser.step()
        visited.append(torch.stack([last.weight[0], last.stddev[0]]).detach())
    return torch.stack(visited[STEPS // 2 :]).mean(0)
