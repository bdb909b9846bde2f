"""Ties are ties: what is equal in exact arithmetic is equal to every score."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from qualms import scores
from qualms.scores.as_published import retina
from qualms.scores.ties import TIE, is_less, levels, ranked_items


def members(seed=0, n=400):
    """Five members in tenths, and targets that the mean says something about."""
    rng = np.random.default_rng(seed)
    prob = rng.integers(0, 11, (5, n)) / 10
    target = (rng.random(n) < 0.25 + 0.5 * prob.mean(axis=0)).astype(int)
    return np.stack([1 - prob, prob], axis=-1), target


def exact_mean(probs):
    """P(y=1) in fifties: whole numbers, which rank exactly."""
    return np.rint(probs[..., 1] * 10).sum(axis=0)


ORDERS = list(permutations(range(5)))[::17]


def test_auroc_of_a_mean_is_exact_in_any_order_of_members():
    probs, target = members()
    exact = scores.auroc(score=exact_mean(probs), positive=target == 1)
    for order in ORDERS:
        ours = scores.mean_probabilities(probs[list(order)])[:, 1]
        theirs = sum(probs[list(order)])[:, 1] / 5
        assert scores.auroc(score=ours, positive=target == 1) == pytest.approx(
            exact, abs=1e-13
        )
        assert scores.auroc(score=theirs, positive=target == 1) == pytest.approx(
            exact, abs=1e-13
        )


@pytest.mark.parametrize(
    "score", [scores.ece, scores.adaptive_ece, scores.classwise_ece, scores.nll]
)
def test_calibration_does_not_depend_on_the_order_of_members(score):
    probs, target = members()
    values = [score(probs[list(order)], target) for order in ORDERS]
    values += [score(sum(probs[list(order)]) / 5, target) for order in ORDERS]
    np.testing.assert_allclose(values, values[0], rtol=0, atol=1e-13)


def test_the_mean_over_members_is_the_same_to_the_last_bit():
    rng = np.random.default_rng(1)
    probs = rng.dirichlet([0.3] * 7, (9, 300))
    mean = scores.mean_probabilities(probs)
    for _ in range(20):
        order, names = rng.permutation(9), rng.permutation(7)
        moved = scores.mean_probabilities(probs[order][..., names])
        assert (moved == mean[:, names]).all()
        assert (scores.mean_over_draws(probs[order]) == mean).mean() > 0.9


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_decomposition_is_the_same_to_the_last_bit(kind):
    rng = np.random.default_rng(2)
    probs = rng.dirichlet([0.3] * 7, (9, 300)).astype(kind)
    parts = np.array(scores.decompose(probs))
    for _ in range(20):
        order, names = rng.permutation(9), rng.permutation(7)
        assert (np.array(scores.decompose(probs[order][..., names])) == parts).all()


def test_the_mean_is_the_one_of_exact_arithmetic():
    draws = np.random.default_rng(3).random((11, 50)) ** 5
    exact = [float(sum(Fraction(v) for v in column) / 11) for column in draws.T]
    np.testing.assert_allclose(scores.mean_over_draws(draws), exact, rtol=2.3e-16)


def test_a_mean_without_draws_is_refused():
    with pytest.raises(ValueError, match="at least one draw"):
        scores.mean_over_draws(np.empty((0, 3)))


def test_draws_that_agree_have_no_epistemic_uncertainty():
    single = np.random.default_rng(4).dirichlet([0.4] * 5, 200)
    for count in (2, 3, 7):
        parts = scores.decompose(np.stack([single] * count))
        assert (parts.epistemic == 0.0).all()


def test_votes_with_equal_entropies_tie():
    votes = [[6, 2, 1, 1], [4, 3, 3, 0], [5, 3, 1, 1], [10, 0, 0, 0]]
    value = scores.human_alignment(uncertainty=[1.0, 2.0, 3.0, 4.0], votes=votes).value
    expected = stats.spearmanr([1, 2, 3, 4], [2, 2, 1, 0]).statistic
    assert scores.vote_entropy(votes)[2] > 0
    ranks = stats.rankdata(np.round(scores.vote_entropy(votes), 9))
    expected = stats.spearmanr([1, 2, 3, 4], ranks).statistic
    assert value == pytest.approx(expected, abs=1e-12)


def test_a_single_draw_is_not_reordered_by_its_sum():
    tenths = np.array([[1, 2, 7], [7, 1, 2], [2, 7, 1], [1, 7, 2], [7, 2, 1]]) / 10
    mean = scores.mean_probabilities(tenths[None])
    assert (mean == tenths).all()
    assert len(ranked_items(mean.max(axis=1)).start) == 2


def test_an_item_at_the_edge_of_a_bin_falls_above_it():
    below = np.nextafter(0.8, 0)
    at, under = (
        scores.reliability([p, 0.6], [1, 1], bins=5).count for p in (0.8, below)
    )
    assert at.tolist() == under.tolist()


@given(st.lists(st.floats(0.01, 100.0), min_size=1, max_size=30), st.integers(0, 99))
def test_neighbours_within_rounding_are_never_apart(values, seed):
    rng = np.random.default_rng(seed)
    exact = np.round(values, 2)
    noisy = exact * (1 + rng.integers(-400, 401, len(exact)) * 1e-15)
    assert levels(ranked_items(noisy)).tolist() == levels(ranked_items(exact)).tolist()


def test_ties_are_relative_to_the_values_themselves():
    apart = np.array([0.0, 1e-300, 1e-200, 1e-30, 1e-20, 1.0, 1.0 + 1e-9, 1e30])
    assert len(ranked_items(np.concatenate([-apart, apart])).start) == 2 * 8
    assert ranked_items(np.array([-np.inf, 0.0, np.inf, np.inf])).start.tolist() == (
        [0, 1, 2, 4]
    )


def test_without_tolerance_only_equal_bits_tie():
    values = np.array([0.3, 0.1 + 0.2, 0.3])
    assert ranked_items(values, tie=0.0).start.tolist() == [0, 2, 3]
    assert ranked_items(values).start.tolist() == [0, 3]
    assert not is_less(values[:1], values[1:2]).any()
    assert is_less(values[:1], values[1:2], tie=0.0).all()
    assert TIE == 1e-12


def test_the_released_code_tells_the_last_bit_apart():
    prob, positive = [0.3, 0.1 + 0.2, 0.9], [True, False, True]
    assert scores.auprc(score=prob, positive=positive) > retina.auprc(
        score=prob, positive=positive
    )


@pytest.mark.parametrize("name", ["accuracy", "auroc", "auprc", "balanced_accuracy"])
def test_a_referral_curve_ties_in_any_order_of_members(name):
    probs, target = members(5, 60)
    exact = np.abs(exact_mean(probs) - 25)
    curve = scores.referral_curve(name, probs, target, -exact)
    for order in ORDERS:
        prob = sum(probs[list(order)])[:, 1] / 5
        confidence = np.maximum(prob, 1 - prob)
        moved = scores.referral_curve(name, probs, target, -confidence)
        np.testing.assert_allclose(moved.value, curve.value, atol=1e-12)


def test_a_crop_that_changes_rounding_alone_is_no_less_certain():
    assert scores.crop_rate(uncertainty=[0.3, 0.5], cropped=[0.1 + 0.2, 0.6]) == 0.5
