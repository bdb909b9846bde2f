"""Referral curves against scikit-learn at every threshold and all tie orders."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import auc, precision_recall_curve, recall_score, roc_auc_score

from qualms.scores.decomposition import decompose
from qualms.scores.proper import accuracy, balanced_accuracy, correct, item_nll, nll
from qualms.scores.referral import referral_curve

NAMES = ("accuracy", "nll", "auroc", "auprc", "balanced_accuracy")


def items(seed, n=150, digits=6, levels=None):
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 2, n)
    probs = np.round(1 / (1 + np.exp(-2 * target + 1 - rng.normal(size=n))), digits)
    uncertainty = rng.normal(size=n) - np.abs(probs - 0.5)
    if levels:
        uncertainty = np.floor(levels * rng.random(n))
    return probs, target, uncertainty


def reference(name, probs, target):
    """One score of one retained set, by scikit-learn; nan where undefined."""
    if name == "accuracy":
        return np.mean((probs > 0.5) == target)
    if name == "nll":
        return np.mean(-np.log(np.where(target == 1, probs, 1 - probs)))
    if name == "balanced_accuracy":
        present = np.unique(target)
        return np.mean(recall_score(target, probs > 0.5, labels=present, average=None))
    if name == "auroc":
        two = len(np.unique(target)) == 2
        return roc_auc_score(target, probs) if two else np.nan
    if not target.any():
        return np.nan
    precision, recall, _ = precision_recall_curve(target, probs)
    return auc(recall, precision)


def loop(name, probs, target, order):
    """(N,) the reference score of every retained set of one order."""
    return np.array(
        [
            reference(name, probs[order[:m]], target[order[:m]])
            for m in range(len(order), 0, -1)
        ]
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("digits", [6, 1])
@pytest.mark.parametrize("seed", range(3))
def test_curves_agree_with_scikit_learn_at_every_threshold(name, digits, seed):
    probs, target, uncertainty = items(seed, digits=digits)
    probs = np.clip(probs, 0.01, 0.99)
    curve = referral_curve(name, probs, target, uncertainty)
    expected = loop(name, probs, target, np.argsort(uncertainty))
    np.testing.assert_allclose(curve.value, expected, rtol=1e-10)
    np.testing.assert_allclose(curve.referred, np.arange(150) / 150)
    assert curve.defined == np.mean(~np.isnan(expected))
    assert curve.area == pytest.approx(np.nanmean(expected), rel=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_the_oracle_answers_referred_items_perfectly(name):
    probs, target, uncertainty = items(0)
    plain = referral_curve(name, probs, target, uncertainty).value
    oracle = referral_curve(name, probs, target, uncertainty, oracle=True)
    referred = np.arange(150)
    perfect = 0.0 if name == "nll" else 1.0
    expected = ((150 - referred) * plain + referred * perfect) / 150
    np.testing.assert_allclose(oracle.value, expected, rtol=1e-12)
    assert oracle.oracle


tied_items = st.lists(
    st.tuples(
        st.sampled_from([0.1, 0.4, 0.5, 0.8]), st.integers(0, 1), st.integers(0, 2)
    ),
    min_size=1,
    max_size=6,
).map(lambda rows: tuple(np.array(column) for column in zip(*rows, strict=True)))


@given(tied_items, st.sampled_from(["accuracy", "nll"]), st.booleans())
def test_accuracy_and_nll_are_expectations_over_tie_orders(rows, name, oracle):
    probs, target, uncertainty = rows
    n = len(probs)
    curves = [
        loop(name, probs, target, np.array(order))
        for order in permutations(range(n))
        if all(np.diff(uncertainty[list(order)]) >= 0)
    ]
    expected = np.mean(curves, axis=0)
    if oracle:
        referred = np.arange(n)
        expected = (expected * (n - referred) + referred * (name == "accuracy")) / n
    curve = referral_curve(name, probs, target, uncertainty, oracle)
    np.testing.assert_allclose(curve.value, expected, rtol=1e-12)


@given(tied_items, st.sampled_from(["auroc", "auprc", "balanced_accuracy"]))
def test_areas_are_exact_between_ties_and_linear_inside(rows, name):
    probs, target, uncertainty = rows
    value = referral_curve(name, probs, target, uncertainty).value[::-1]
    ends = [np.sum(uncertainty <= level) for level in np.unique(uncertainty)]
    order = np.argsort(uncertainty)
    exact = [reference(name, probs[order[:m]], target[order[:m]]) for m in ends]
    np.testing.assert_allclose(value[: ends[0]], exact[0], rtol=1e-12)
    for k in range(1, len(ends)):
        inside = np.linspace(exact[k - 1], exact[k], ends[k] - ends[k - 1] + 1)[1:]
        inside[-1] = exact[k]
        np.testing.assert_allclose(value[ends[k - 1] : ends[k]], inside, rtol=1e-12)


def test_auroc_inside_the_most_certain_ties_is_the_expectation():
    probs, target, _ = items(3, n=8, digits=1)
    value = referral_curve("auroc", probs, target, np.zeros(8)).value[::-1]
    for kept in range(2, 9):
        subsets = [list(rows) for rows in combinations(range(8), kept)]
        areas = [reference("auroc", probs[rows], target[rows]) for rows in subsets]
        assert value[kept - 1] == pytest.approx(np.nanmean(areas), rel=1e-12)


def test_saturated_probabilities_cost_what_the_plain_scores_say():
    probs, target = np.array([0.0, 1.0, 1.0, 0.0, 0.5]), np.array([0, 1, 0, 1, 1])
    uncertainty = np.arange(5)
    costs = item_nll(probs, target)
    hits = correct(probs, target)
    retained = np.arange(1, 6)
    for name, values in (("nll", costs), ("accuracy", hits)):
        curve = referral_curve(name, probs, target, uncertainty).value[::-1]
        np.testing.assert_allclose(curve, np.cumsum(values) / retained, rtol=1e-13)


def test_curves_of_many_classes_start_at_the_plain_scores():
    rng = np.random.default_rng(4)
    draws = rng.dirichlet(np.ones(5), size=(3, 80))
    target = rng.integers(0, 5, 80)
    order = np.argsort(decompose(draws).total)[:30]
    for name, plain in (
        ("accuracy", accuracy),
        ("nll", nll),
        ("balanced_accuracy", balanced_accuracy),
    ):
        curve = referral_curve(name, draws, target)
        assert curve.at(0.0) == pytest.approx(plain(draws, target), rel=1e-12)
        kept = plain(draws[:, order], target[order])
        assert curve.value[50] == pytest.approx(kept, rel=1e-12)


@pytest.mark.parametrize("name", ["auroc", "auprc"])
def test_one_class_prefixes_are_nan_and_left_out_of_the_area(name):
    probs, target = [0.1, 0.2, 0.9, 0.3], [0, 0, 1, 1]
    curve = referral_curve(name, probs, target, [1, 2, 3, 4])
    np.testing.assert_array_equal(np.isnan(curve.value), [False, False, True, True])
    assert curve.defined == 0.5
    assert curve.area == 1.0


def test_a_single_class_has_no_auroc_curve_at_all():
    curve = referral_curve("auroc", [0.1, 0.9], [1, 1])
    assert np.isnan(curve.area)
    assert curve.defined == 0.0
    np.testing.assert_array_equal(
        referral_curve("auprc", [0.1, 0.9], [1, 1]).value, [1.0, 1.0]
    )


def test_at_retains_what_rounding_to_even_leaves():
    probs, target, uncertainty = items(5, n=10)
    curve = referral_curve("accuracy", probs, target, uncertainty)
    assert curve.at(0.25) == curve.value[2]
    assert curve.at(0.35) == curve.value[4]
    assert curve.at(0.9) == curve.value[9]


@pytest.mark.parametrize("tau", [-0.1, 1.0, np.nan])
def test_tau_outside_its_range_is_refused(tau):
    curve = referral_curve("accuracy", [0.1, 0.9], [0, 1])
    with pytest.raises(ValueError, match="tau must be at least 0 and less than 1"):
        curve.at(tau)


def test_a_tau_that_refers_everything_is_refused():
    curve = referral_curve("accuracy", [0.1, 0.9], [0, 1])
    with pytest.raises(ValueError, match=r"must leave at least one of the 2 items"):
        curve.at(0.9)


def test_an_unknown_curve_is_answered_with_the_closest():
    with pytest.raises(LookupError, match=r"no 'acuracy'.*Did you mean 'accuracy'"):
        referral_curve("acuracy", [0.1], [0])


@pytest.mark.parametrize("name", ["auroc", "auprc"])
def test_areas_of_three_classes_are_refused(name):
    with pytest.raises(ValueError, match=f"two classes for the {name} curve, got 3"):
        referral_curve(name, [[0.2, 0.3, 0.5]], [0])


def test_a_large_curve_keeps_its_digits():
    probs, target, uncertainty = items(6, n=20_000, digits=12)
    order = np.argsort(uncertainty)
    for name in ("accuracy", "nll", "auroc", "balanced_accuracy"):
        curve = referral_curve(name, probs, target, uncertainty)
        for kept in (20_000, 12_345, 777):
            rows = order[:kept]
            expected = reference(name, probs[rows], target[rows])
            assert curve.value[20_000 - kept] == pytest.approx(expected, rel=1e-11)
