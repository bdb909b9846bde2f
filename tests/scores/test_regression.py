"""Regression scores against scipy, properscoring, scikit-learn and torchmetrics."""

import math
import warnings
from functools import partial

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn import metrics
from torchmetrics.functional.regression import continuous_ranked_probability_score

from qualms import scores
from qualms.inference import influence_of, interval_of
from qualms.scores.arguments import called_in_order
from qualms.scores.intervals import coverage
from qualms.scores.regression import (
    crps_ensemble,
    crps_gaussian,
    gaussian_interval,
    gaussian_nll,
    mae,
    pinball,
    pool_gaussian,
    regression_ece,
    rmse,
)

with warnings.catch_warnings():  # its docstrings hold invalid escapes
    warnings.simplefilter("ignore")
    import properscoring


@pytest.fixture
def gaussian():
    rng = np.random.default_rng(0)
    mean, var = rng.normal(size=300), rng.gamma(2.0, size=300)
    return mean, var, mean + rng.normal(size=300) * 1.3


def test_errors_are_those_of_scikit_learn(gaussian):
    mean, _, target = gaussian
    assert mae(mean, target) == pytest.approx(
        metrics.mean_absolute_error(target, mean), rel=1e-12
    )
    assert rmse(mean, target) == pytest.approx(
        metrics.root_mean_squared_error(target, mean), rel=1e-12
    )


def test_gaussian_nll_is_the_log_density_of_scipy(gaussian):
    mean, var, target = gaussian
    expected = -stats.norm.logpdf(target, mean, np.sqrt(var)).mean()
    assert gaussian_nll(mean=mean, var=var, target=target) == pytest.approx(
        expected, rel=1e-12
    )


def test_gaussian_interval_is_that_of_scipy(gaussian):
    mean, var, _ = gaussian
    lower, upper = stats.norm.interval(0.8, mean, np.sqrt(var))
    interval = gaussian_interval(mean=mean, var=var, alpha=0.2)
    np.testing.assert_allclose(interval.lower, lower, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(interval.upper, upper, rtol=1e-12, atol=1e-12)


def test_an_interval_without_variance_is_a_point():
    lower, upper = gaussian_interval(mean=[2.0], var=[0.0], alpha=0.1)
    assert lower == upper == 2.0


@pytest.mark.parametrize("level", [0.05, 0.5, 0.9])
def test_pinball_is_that_of_scikit_learn(gaussian, level):
    mean, _, target = gaussian
    expected = metrics.mean_pinball_loss(target, mean, alpha=level)
    assert pinball(prediction=mean, target=target, level=level) == pytest.approx(
        expected, rel=1e-12
    )


def test_crps_gaussian_is_that_of_properscoring(gaussian):
    mean, var, target = gaussian
    expected = properscoring.crps_gaussian(target, mean, np.sqrt(var)).mean()
    assert crps_gaussian(mean=mean, var=var, target=target) == pytest.approx(
        expected, rel=1e-12
    )


def test_crps_gaussian_without_variance_is_the_absolute_error():
    assert crps_gaussian(mean=[1.0, 1.0], var=[0.0, 0.0], target=[3.0, 1.0]) == 1.0
    assert crps_gaussian(mean=[1.0], var=[1e-30], target=[3.0]) == pytest.approx(
        2.0, abs=1e-12
    )


@pytest.mark.parametrize("count", [2, 3, 50])
def test_crps_ensemble_is_that_of_properscoring_and_torchmetrics(count):
    rng = np.random.default_rng(count)
    draws, target = rng.normal(size=(count, 200)), rng.normal(size=200)
    value = crps_ensemble(draws=draws, target=target)
    expected = properscoring.crps_ensemble(target, draws.T).mean()
    assert value == pytest.approx(expected, rel=1e-12)
    torched = continuous_ranked_probability_score(
        torch.tensor(draws.T), torch.tensor(target)
    )
    assert value == pytest.approx(float(torched), rel=1e-12)


def test_crps_of_one_draw_is_the_absolute_error():
    assert crps_ensemble(draws=[[1.0, 5.0]], target=[2.0, 3.0]) == 1.5


def test_crps_of_large_values_does_not_cancel():
    rng = np.random.default_rng(1)
    draws, target = rng.normal(size=(20, 50)), rng.normal(size=50)
    moved = crps_ensemble(draws=draws + 1e9, target=target + 1e9)
    assert moved == pytest.approx(crps_ensemble(draws=draws, target=target), rel=1e-6)


def test_crps_of_many_gaussian_draws_nears_the_closed_form():
    rng = np.random.default_rng(2)
    draws = rng.normal(1.0, 2.0, size=(20_000, 5))
    target = np.array([-3.0, 0.0, 1.0, 2.0, 6.0])
    closed = crps_gaussian(mean=np.full(5, 1.0), var=np.full(5, 4.0), target=target)
    assert crps_ensemble(draws=draws, target=target) == pytest.approx(closed, rel=0.02)


def test_pooled_moments_are_those_of_the_mixture():
    rng = np.random.default_rng(3)
    mean, var = rng.normal(size=(5, 7)), rng.gamma(2.0, size=(5, 7))
    pooled = pool_gaussian(mean=mean, var=var)
    second = np.mean(var + mean**2, axis=0)
    np.testing.assert_allclose(pooled.mean, mean.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(pooled.var, second - mean.mean(axis=0) ** 2, rtol=1e-9)


def test_draws_without_variance_pool_to_their_population_variance():
    mean = np.random.default_rng(4).normal(size=(5, 7))
    np.testing.assert_allclose(
        pool_gaussian(mean=mean).var, np.var(mean, axis=0, ddof=0), rtol=1e-12
    )
    assert pool_gaussian(mean=mean[:1]).var.tolist() == [0.0] * 7


def test_regression_ece_is_the_mean_gap_of_coverages(gaussian):
    mean, var, target = gaussian
    gaps = [
        abs(
            called_in_order(
                coverage, *gaussian_interval(mean=mean, var=var, alpha=alpha), target
            )
            - (1 - alpha)
        )
        for alpha in np.arange(1, 20) / 20
    ]
    assert regression_ece(mean=mean, var=var, target=target) == pytest.approx(
        np.mean(gaps), abs=1e-12
    )


def test_regression_ece_vanishes_with_the_right_distribution():
    rng = np.random.default_rng(5)
    mean, var = rng.normal(size=100_000), rng.gamma(2.0, size=100_000)
    target = mean + np.sqrt(var) * rng.normal(size=100_000)
    assert regression_ece(mean=mean, var=var, target=target) < 0.005
    assert regression_ece(mean=mean, var=4 * var, target=target) > 0.15


def test_an_item_without_variance_is_covered_by_its_own_mean_alone():
    value = regression_ece(
        mean=[1.0, 1.0], var=[0.0, 0.0], target=[1.0, 2.0], alphas=[0.5, 0.2]
    )
    assert value == pytest.approx((0.0 + 0.3) / 2)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, math.nan])
def test_alpha_outside_the_open_unit_interval_is_refused(alpha):
    with pytest.raises(ValueError, match="alpha must lie strictly between 0 and 1"):
        gaussian_interval(mean=[0.0], var=[1.0], alpha=alpha)
    with pytest.raises(ValueError, match="alpha must lie strictly"):
        regression_ece(mean=[0.0], var=[1.0], target=[0.0], alphas=[0.5, alpha])
    with pytest.raises(ValueError, match="level must lie strictly"):
        pinball(prediction=[0.0], target=[1.0], level=alpha)


def test_bad_variances_are_refused_by_row():
    with pytest.raises(ValueError, match=r"greater than 0, row 1 is 0.*logarithm"):
        gaussian_nll(mean=[0.0, 0.0], var=[1.0, 0.0], target=[0.0, 0.0])
    with pytest.raises(ValueError, match=r"not be negative, row 0 is -1"):
        crps_gaussian(mean=[0.0], var=[-1.0], target=[0.0])
    with pytest.raises(ValueError, match=r"not be negative, its least value is -1"):
        pool_gaussian(mean=[[0.0]], var=[[-1.0]])


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"mean must have 2 items, got 1"):
        mae([0.0], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"prediction must have 2 items"):
        pinball(prediction=[0.0], target=[1.0, 2.0], level=0.5)
    with pytest.raises(ValueError, match=r"draws must have shape \(M, 2\)"):
        crps_ensemble(draws=[[1.0, 2.0, 3.0]], target=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"var must have the shape of mean, \(1, 2\)"):
        pool_gaussian(mean=[[1.0, 2.0]], var=[[1.0]])
    with pytest.raises(ValueError, match="at least one alpha"):
        regression_ece(mean=[0.0], var=[1.0], target=[0.0], alphas=[])


def test_pit_is_the_normal_distribution_function():
    rng = np.random.default_rng(0)
    mean, var = rng.normal(size=50), rng.random(50) + 0.1
    target = rng.normal(size=50)
    wanted = stats.norm.cdf(target, mean, np.sqrt(var))
    assert scores.item_pit(mean=mean, var=var, target=target) == pytest.approx(wanted)
    assert scores.pit_mean(mean=mean, var=var, target=target) == pytest.approx(
        wanted.mean()
    )
    spread = 12 * np.mean((wanted - 0.5) ** 2)
    assert scores.pit_spread(mean=mean, var=var, target=target) == pytest.approx(spread)


def test_pit_of_no_variance_is_at_its_ends():
    found = scores.item_pit(
        mean=[1.0, 1.0, 1.0], var=[0.0, 0.0, 0.0], target=[0.0, 1.0, 2.0]
    )
    assert found.tolist() == [0.0, 0.5, 1.0]


def test_narrow_gaussians_have_a_large_pit_spread():
    rng = np.random.default_rng(0)
    zeros, target = np.zeros(4000), rng.normal(size=4000)
    assert scores.pit_spread(
        mean=zeros, var=zeros + 1.0, target=target
    ) == pytest.approx(1, abs=0.05)
    assert scores.pit_spread(mean=zeros, var=zeros + 0.25, target=target) > 1.5


@pytest.mark.parametrize(("level", "least"), [(0.05, 200), (0.5, 20), (0.9, 100)])
def test_the_loss_of_a_quantile_needs_items_beyond_it(level, least):
    target = np.random.default_rng(0).standard_normal(least)
    score = partial(pinball, level=level)
    few = interval_of(influence_of(score, np.zeros(least - 1), target[1:]))
    assert "beyond the quantile" in few.reason
    assert not interval_of(influence_of(score, np.zeros(least), target)).reason
