import math

import pytest
import torch
from scipy import stats
from torch import nn
from torch.distributions import HalfNormal, Normal, kl_divergence

from methods.tiny import TASKS, made
from qualms.methods._flipout import Flipout, divergence
from qualms.methods.radial import NOISES
from qualms.networks.resnet50 import Bottlenecks

RADIAL, RELEASED = NOISES["layer"], NOISES["output_channels"]


def random_layer(inputs=3, outputs=2, noise=RADIAL):
    torch.manual_seed(0)
    layer = nn.Linear(inputs, outputs, bias=False).double()
    return Flipout(layer, noise, torch.randn_like(layer.weight).detach())


def noise_of_items(shape, count, noise=RADIAL):
    """(count, *shape) noise of single items, with signs as flipout has them."""
    like = torch.zeros(shape, dtype=torch.float64)
    incoming, outgoing = (
        torch.randint(0, 2, (count, *size), dtype=torch.float64) * 2 - 1
        for size in ((1, shape[1]), (shape[0], 1))
    )
    shared = torch.stack([noise.shared(like) for _ in range(count)])
    return shared * incoming * noise.per_item(outgoing)


def test_lengths_are_those_of_one_normal_number():
    torch.manual_seed(0)
    lengths = noise_of_items((4, 5), 3000).flatten(1).norm(dim=1)
    assert stats.kstest(lengths, "halfnorm").pvalue > 0.01


def test_lengths_are_never_negative():
    torch.manual_seed(0)
    signs = torch.randint(0, 2, (200, 3, 1, 1)) * 2.0 - 1
    turned = RADIAL.per_item(signs)
    lengths = turned / signs
    assert lengths.gt(0).all()
    torch.testing.assert_close(lengths, lengths[:, :1].expand_as(lengths))


def test_the_length_is_that_of_the_whole_tensor():
    torch.manual_seed(0)
    direction = RADIAL.shared(torch.zeros(7, 3, 3, 3))
    assert direction.norm().item() == pytest.approx(1)


def test_directions_are_uniform():
    """On a sphere in three dimensions each coordinate is uniform (Archimedes)."""
    torch.manual_seed(0)
    noise = noise_of_items((1, 3), 3000)[:, 0]
    for axis in range(3):
        along = noise[:, axis] / noise.norm(dim=1)
        assert stats.kstest(along, stats.uniform(-1, 2).cdf).pvalue > 0.01
    correlation = torch.corrcoef(noise.T) - torch.eye(3)
    assert correlation.abs().max() < 0.1


def test_the_variance_of_a_weight_is_as_stated():
    torch.manual_seed(0)
    noise = noise_of_items((2, 3), 20_000).flatten(1)
    assert noise.var(0) == pytest.approx(
        [RADIAL.variance(torch.Size((2, 3)))] * 6, rel=0.05
    )


def test_outputs_of_a_layer_vary_as_stated():
    random = random_layer()
    torch.manual_seed(1)
    x = torch.randn(2, 3, dtype=torch.float64)
    with torch.no_grad():
        outputs = torch.stack([random(x) for _ in range(10_000)])
    variance = x.square() @ random.stddev.square().T / 6
    assert outputs.mean(0) == pytest.approx(
        (x @ random.weight.T).detach().numpy(), abs=0.05
    )
    assert outputs.var(0) == pytest.approx(variance.detach().numpy(), rel=0.08)


def test_every_item_has_a_length_of_its_own():
    torch.manual_seed(0)
    layer = nn.Conv3d(2, 2, 3)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    random = Flipout(layer, RADIAL, torch.zeros_like(layer.weight))
    x = torch.zeros(1500, 2, 3, 3, 3)
    x[:, 0, 1, 1, 1] = 1
    sizes = random(x).detach().flatten(1).norm(dim=1)
    # One direction, so sizes are lengths up to one factor.
    scaled = sizes / sizes.square().mean().sqrt()
    assert stats.kstest(scaled, "halfnorm").pvalue > 0.01


def test_the_noise_of_a_single_weight_is_gaussian():
    normal = Normal(0.0, 1.0)
    assert RADIAL.variance(torch.Size((1, 1))) == 1
    assert RADIAL.entropy(torch.Size((1, 1))) == pytest.approx(
        normal.entropy().item(), rel=1e-6
    )
    random = random_layer(1, 1)
    exact = kl_divergence(Normal(random.weight, random.stddev), Normal(0.0, 0.4))
    actual = divergence(random, stddev=0.4, tied=False)
    assert actual.item() == pytest.approx(exact.item())


@pytest.mark.parametrize("count", [2, 3, 10, 1000])
def test_the_entropy_agrees_with_monte_carlo(count):
    torch.manual_seed(0)
    noise = noise_of_items((1, count), 4000).flatten(1)
    logs = _log_density(noise)
    error = logs.std().item() / 4000**0.5
    assert abs(RADIAL.entropy(torch.Size((1, count))) + logs.mean().item()) < 4 * error
    assert error < 0.02 * count


@pytest.mark.parametrize("tied", [True, False])
def test_kl_agrees_with_monte_carlo(tied):
    random = random_layer()
    mean, scale = random.weight.detach(), random.stddev.detach()
    torch.manual_seed(1)
    noise = noise_of_items((2, 3), 40_000)
    weights = mean + scale * noise
    posterior = _log_density(noise.flatten(1)) - scale.log().sum()
    prior = Normal(mean if tied else torch.zeros_like(mean), 0.8)
    logs = posterior - prior.log_prob(weights).flatten(1).sum(1)
    error = logs.std().item() / len(logs) ** 0.5
    actual = divergence(random, stddev=0.8, tied=tied).item()
    assert abs(actual - logs.mean().item()) < 4 * error
    assert error < 0.01 * actual


def test_kl_is_least_where_noise_reaches_as_far_as_the_prior():
    count, prior = 6, 0.3
    best = math.log(math.expm1(math.sqrt(count) * prior))
    random = random_layer()
    nn.init.constant_(random.rho, best)
    actual = divergence(random, stddev=prior, tied=True)
    (gradient,) = torch.autograd.grad(actual, random.rho)
    assert gradient.abs().max() < 1e-9
    assert actual > 0


def test_the_released_length_is_over_the_outputs_of_each_input():
    torch.manual_seed(0)
    directions = RELEASED.shared(torch.zeros(7, 3, 2, 2))
    torch.testing.assert_close(directions.norm(dim=0), torch.ones(3, 2, 2))
    noise = noise_of_items((5, 4), 20_000, RELEASED)
    # One length for all inputs of an item, that of one normal number.
    lengths = noise.norm(dim=1)
    torch.testing.assert_close(lengths, lengths[:, :1].expand_as(lengths))
    assert stats.kstest(lengths[:3000, 0], "halfnorm").pvalue > 0.01
    stated = RELEASED.variance(torch.Size((5, 4)))
    assert noise.flatten(1).var(0) == pytest.approx([stated] * 20, rel=0.1)


@pytest.mark.parametrize(
    ("norm", "expected"), [("output_channels", 4.4e-4), ("layer", 1.6e-5)]
)
def test_published_deviations_are_meant_for_the_released_length(norm, expected):
    """The spread of the features of RETINA's network, relative to their size."""
    torch.manual_seed(0)
    options = {"norm": norm, "stddev_mean": 1.45e-4, "stddev_stddev": 0}
    plain = Bottlenecks(channels=3, width=64, blocks=(1, 1, 1, 1), zero_last=False)
    network = made("radial", options).build(plain, TASKS["classification"]).eval()
    with torch.no_grad():
        x = torch.rand(1, 3, 64, 64).expand(16, -1, -1, -1)
        features = network.backbone(x).double()
    found = features.std(0).norm() / features.mean(0).norm()
    assert found.item() == pytest.approx(expected, rel=0.3)


@pytest.mark.parametrize("norm", ["layer", "output_channels"])
def test_a_tied_kl_falls_as_deviations_grow_to_the_prior_s(norm):
    random = random_layer(noise=NOISES[norm])
    variance = random.noise.variance(random.rho.shape)
    nn.init.constant_(random.rho, math.log(math.expm1(0.3 / variance**0.5)))
    actual = divergence(random, stddev=0.3, tied=True)
    (gradient,) = torch.autograd.grad(actual, random.rho)
    assert gradient.abs().max() < 1e-9


def test_an_unknown_length_is_refused():
    with pytest.raises(ValueError, match="'layer' or 'output_channels', got 'last'"):
        made("radial", {"norm": "last"})


def _log_density(noise):
    """Of noise (N, D): the length's, over the sphere of that radius."""
    length, count = noise.norm(dim=1), noise.shape[1]
    surface = math.log(2) + count / 2 * math.log(math.pi) - math.lgamma(count / 2)
    return HalfNormal(1.0).log_prob(length) - surface - (count - 1) * length.log()
