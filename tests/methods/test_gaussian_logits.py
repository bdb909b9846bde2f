"""The probabilities of Gaussian logits."""

import math

import pytest
import torch

from qualms.methods._gaussian_logits import (
    draw_probs,
    even_noise,
    probit_means,
    with_mean,
)


def gaussian(items, size, scale=2.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    outputs = torch.randn(items, size, generator=generator).double() * scale
    factor = torch.randn(items, size, size + 2, generator=generator).double() * scale
    return outputs, factor @ factor.mT / size


def test_two_classes_have_mackays_formula():
    outputs, covariance = gaussian(5, 2)
    apart = outputs[:, 1] - outputs[:, 0]
    variance = covariance[:, 0, 0] + covariance[:, 1, 1] - 2 * covariance[:, 0, 1]
    exact = torch.sigmoid(apart / (1 + math.pi / 8 * variance).sqrt())
    torch.testing.assert_close(probit_means(outputs, covariance)[:, 1], exact)


def test_one_output_is_the_logit_of_the_second_class():
    outputs, covariance = gaussian(5, 1)
    exact = torch.sigmoid(
        outputs[:, 0] / (1 + math.pi / 8 * covariance[:, 0, 0]).sqrt()
    )
    torch.testing.assert_close(probit_means(outputs, covariance)[:, 1], exact)


@pytest.mark.parametrize("size", [2, 3, 10])
def test_a_number_that_all_logits_share_changes_nothing(size):
    outputs, covariance = gaussian(4, size)
    moved = probit_means(outputs + 3.0, covariance + 50.0)
    torch.testing.assert_close(moved, probit_means(outputs, covariance))


@pytest.mark.parametrize("size", [1, 2, 5])
def test_means_are_near_those_of_many_draws(size):
    outputs, covariance = gaussian(6, size, scale=1.5)
    torch.manual_seed(0)
    lower = torch.linalg.cholesky(covariance)
    noise = torch.randn(40_000, 6, size).double()
    drawn = outputs + torch.einsum("mbj,bkj->mbk", noise, lower)
    if size == 1:
        drawn = torch.cat([torch.zeros_like(drawn), drawn], 2)
    exact = drawn.softmax(2).mean(0)
    means = probit_means(outputs, covariance)
    assert (means - exact).abs().max() < (0.03 if size < 3 else 0.13)
    assert (means - exact).abs().mean() < 0.05


@pytest.mark.parametrize(("draws", "size"), [(1, 3), (20, 1), (20, 10), (7, 2)])
def test_draws_are_distributions_with_the_mean_in_closed_form(draws, size):
    outputs, covariance = gaussian(30, size, scale=4.0)
    torch.manual_seed(1)
    noise = even_noise(draws, size, torch.device("cpu"))
    probs = draw_probs(outputs, covariance, noise)
    assert probs.min() >= 0
    ones = torch.ones(draws, 30).double()
    torch.testing.assert_close(probs.sum(2), ones)
    torch.testing.assert_close(probs.mean(0), probit_means(outputs, covariance))


def test_draws_with_the_right_mean_stay_as_they_are():
    probs = torch.randn(8, 5, 4).double().softmax(2)
    torch.testing.assert_close(with_mean(probs, probs.mean(0)), probs)


@pytest.mark.parametrize(("draws", "size"), [(20, 4), (200, 10)])
def test_noise_is_even(draws, size):
    noise = even_noise(draws, size, torch.device("cpu"))
    assert noise.mean(0).abs().max() < 1e-12
    identity = torch.eye(size).double()
    torch.testing.assert_close(noise.T @ noise / draws, identity)


def test_the_most_probable_class_stays_that_of_the_mean_logits():
    """Shrinking each logit by its own variance would choose others."""
    outputs, covariance = gaussian(200, 10, scale=1.5)
    chosen = probit_means(outputs, covariance).argmax(1)
    assert (chosen == outputs.argmax(1)).double().mean() > 0.95
