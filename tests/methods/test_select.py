import numpy as np
import pytest
import torch
from sklearn.mixture import GaussianMixture

from qualms.methods._select import (
    Mixture,
    SelectionScores,
    fit_mixture,
    log_density,
    neighbour_distances,
    pooling_rules,
)
from qualms.scores import mean_neighbour_distance

TOLERANCE = 1e-9


def features(n=300, d=6, seed=0):
    """Three clusters, correlated axes."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=(3, d)) * 4
    turn = rng.normal(size=(d, d))
    return centre[rng.integers(0, 3, n)] + rng.normal(size=(n, d)) @ turn


def as_ours(reference):
    parts = (
        np.log(reference.weights_),
        reference.means_,
        reference.precisions_cholesky_,
    )
    return Mixture(*map(torch.as_tensor, parts))


@pytest.mark.parametrize("components", [1, 2, 4, 8])
def test_log_density_is_that_of_scikit_learn(components):
    known, asked = features(), features(50, seed=1) * 3
    reference = GaussianMixture(components, random_state=0).fit(known)
    ours = log_density(torch.as_tensor(asked), as_ours(reference))
    expected = reference.score_samples(asked)
    np.testing.assert_allclose(ours, expected, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("components", [1, 2, 4])
def test_fit_is_that_of_scikit_learn(components):
    known, asked = features(), features(50, seed=1)
    reference = GaussianMixture(components, random_state=0).fit(known)
    ours = fit_mixture(torch.as_tensor(known), components)
    expected = reference.score_samples(asked)
    found = log_density(torch.as_tensor(asked), ours)
    np.testing.assert_allclose(ours.means, reference.means_, rtol=1e-7)
    np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_the_ridge_is_that_of_scikit_learn():
    known = features(n=30, d=40)
    reference = GaussianMixture(2, random_state=0, reg_covar=1e-2).fit(known)
    ours = fit_mixture(torch.as_tensor(known), 2, ridge=1e-2)
    found = log_density(torch.as_tensor(known), ours)
    np.testing.assert_allclose(found, reference.score_samples(known), rtol=1e-7)


def test_fewer_items_than_dimensions_have_a_density():
    few = torch.as_tensor(features(n=20, d=40))
    assert torch.isfinite(log_density(few, fit_mixture(few, 2))).all()


def test_mixtures_refuse_what_they_cannot_fit():
    with pytest.raises(ValueError, match="needs at least as many items, got 3"):
        fit_mixture(torch.randn(3, 2), 4)
    with pytest.raises(ValueError, match="features must be finite"):
        fit_mixture(torch.full((9, 2), torch.nan), 2)
    with pytest.raises(ValueError, match="a mixture component has collapsed"):
        fit_mixture(torch.outer(torch.arange(40.0), 1e9 * torch.arange(1.0, 9.0)), 2)


@pytest.mark.parametrize("metric", ["angular", "l2"])
@pytest.mark.parametrize("n", [1, 600])
def test_neighbours_are_those_of_the_score(metric, n):
    known, asked = features(500, d=16), features(n, d=16, seed=2)
    found = neighbour_distances(
        torch.as_tensor(asked),
        torch.as_tensor(known),
        [5, 20, 1],
        angular=metric == "angular",
    )
    for k, distances in zip([5, 20, 1], found, strict=True):
        expected = mean_neighbour_distance(
            query=asked, reference=known, k=k, metric=metric
        )
        np.testing.assert_allclose(distances, expected, rtol=1e-12)


def test_zero_features_are_as_far_from_all_as_in_the_score():
    known, asked = features(20, d=3), np.zeros((2, 3))
    known[:3] = 0
    found = neighbour_distances(
        torch.as_tensor(asked), torch.as_tensor(known), [4], angular=True
    )
    expected = mean_neighbour_distance(query=asked, reference=known, k=4)
    np.testing.assert_allclose(found[0], expected, rtol=1e-12)


def test_scores_are_larger_away_from_the_training_split():
    names = ("gmm2", "gmm4", "knn5", "knn10_l2")
    selectors = SelectionScores(names)
    known = torch.as_tensor(features()).float()
    selectors.fit(known[start : start + 50] for start in range(0, 300, 50))
    near = selectors(torch.as_tensor(features(40, seed=4)).float())
    far = selectors(-3 * known.mean(0) + 20 * torch.randn(40, 6))
    assert list(near) == [f"select/{name}" for name in names]
    for name, scores in near.items():
        assert scores.shape == (1, 40)
        assert far[name].mean() > scores.mean(), name


def test_no_scores_are_given_before_they_are_fitted():
    assert SelectionScores(("gmm2", "knn5"))(torch.zeros(3, 6)) == {}
    assert SelectionScores(())(torch.zeros(3, 6)) == {}


def test_pooling_rules_are_the_paper_s():
    assert pooling_rules(["gmm8", "knn20", "knn10_l2"]) == {
        "gmm8": "logmeanexp",
        "knn20": "mean",
        "knn10_l2": "mean",
    }


@pytest.mark.parametrize("name", ["gmm", "gmm0", "gmm4_l2", "knn-1", "variance"])
def test_unknown_scores_are_refused(name):
    with pytest.raises(ValueError, match=f"such as 'gmm4', got '{name}'"):
        pooling_rules([name])


def test_more_neighbours_than_items_are_refused():
    with pytest.raises(ValueError, match="'knn9' needs at least 9 training items"):
        SelectionScores(("knn9",)).fit([torch.randn(8, 3)])
