"""Recalibration against SciPy's minimiser and scikit-learn's isotonic regression."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, softmax
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from qualms import scores
from qualms.scores.proper import nll
from qualms.scores.ranking import auroc
from qualms.scores.recalibration import Temperature, fit_isotonic, fit_temperature


def items(classes, n=400, sharpness=1.0, seed=0):
    """Logits, and targets drawn from their softmax; predictions use `sharpness`."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, classes))
    chance = softmax(logits, axis=1).cumsum(axis=1)
    target = (chance > rng.random(n)[:, None]).argmax(axis=1)
    return softmax(sharpness * logits, axis=1), target


@pytest.mark.parametrize("sharpness", [0.02, 0.3, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_the_temperature_minimises_the_nll(classes, sharpness):
    probs, target = items(classes, sharpness=sharpness)
    logs = np.log(np.maximum(probs, 1e-15))
    best = minimize_scalar(
        lambda x: nll(softmax(logs / np.exp(x), axis=1), target),
        bounds=np.log([0.01, 100.0]),
        method="bounded",
        options={"xatol": 1e-10},
    )
    fitted = fit_temperature(probs, target)
    assert fitted.value == pytest.approx(np.exp(best.x), rel=1e-5)
    assert nll(fitted.apply(probs), target) <= best.fun + 1e-12


def test_the_temperature_undoes_a_known_one():
    probs, target = items(4, n=20000)
    plain = fit_temperature(probs, target).value
    assert plain == pytest.approx(1.0, abs=0.05)
    sharpened = probs**2.5 / (probs**2.5).sum(axis=1, keepdims=True)
    assert fit_temperature(sharpened, target).value == pytest.approx(2.5 * plain)


def test_a_temperature_of_one_changes_nothing_and_none_changes_the_ranking():
    probs, _ = items(3)
    np.testing.assert_allclose(Temperature(value=1.0).apply(probs), probs, rtol=1e-12)
    warm = Temperature(value=3.0).apply(probs)
    np.testing.assert_allclose(warm.sum(axis=1), 1.0)
    np.testing.assert_array_equal(warm.argmax(axis=1), probs.argmax(axis=1))


def test_temperatures_stay_in_their_range_when_the_items_pull_to_infinity():
    p = np.full(5, 0.9)
    assert fit_temperature(p, np.zeros(5)).value == pytest.approx(100.0)
    right = fit_temperature(p, np.ones(5))
    assert 0.01 <= right.value < 0.1
    assert nll(right.apply(p), np.ones(5)) < 1e-12
    assert fit_temperature(np.full(5, 0.5), [0, 1, 1, 0, 1]).value == 1.0
    assert np.isfinite(fit_temperature([1.0, 1.0, 0.0], [1, 0, 0]).value)


def test_draws_are_averaged_before_the_fit():
    probs, target = items(3)
    other, _ = items(3, seed=1)
    draws, mean = np.stack([probs, other]), (probs + other) / 2
    fitted = fit_temperature(draws, target)
    assert fitted.value == pytest.approx(fit_temperature(mean, target).value)
    np.testing.assert_allclose(fitted.apply(draws), fitted.apply(mean))


def test_draws_are_averaged_before_the_isotonic_map():
    probs, target = items(3)
    draws = np.stack([probs, probs[::-1]])
    fitted = fit_isotonic(draws, target)
    mean = fitted.apply(draws.mean(axis=0))
    np.testing.assert_allclose(fitted.apply(draws), mean, atol=1e-12)


@pytest.mark.parametrize("decimals", [12, 1])
def test_the_binary_map_equals_scikit_learn(decimals):
    probs, target = items(2, sharpness=2.0)
    p = np.round(probs[:, 1], decimals)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(p, target)
    new = np.linspace(0, 1, 501)
    ours = fit_isotonic(p, target).apply(new)
    np.testing.assert_allclose(ours[:, 1], theirs.predict(new), atol=1e-7)
    np.testing.assert_allclose(ours.sum(axis=1), 1.0)


def test_the_multi_class_map_is_one_against_the_rest_renormalised():
    probs, target = items(4, sharpness=2.0)
    expected = np.stack(
        [
            IsotonicRegression(out_of_bounds="clip")
            .fit(probs[:, k], target == k)
            .predict(probs[:, k])
            for k in range(4)
        ],
        axis=1,
    )
    expected /= expected.sum(axis=1, keepdims=True)
    ours = fit_isotonic(probs, target).apply(probs)
    np.testing.assert_allclose(ours, expected, atol=1e-7)


def test_the_isotonic_map_repairs_the_nll_and_keeps_the_order():
    probs, target = items(2, n=4000, sharpness=4.0)
    val, test = slice(0, 2000), slice(2000, None)
    fitted = fit_isotonic(probs[val], target[val])
    better = fitted.apply(probs[val])
    assert nll(better, target[val]) < nll(probs[val], target[val])
    order = np.argsort(probs[test, 1])
    assert (np.diff(fitted.apply(probs[test])[order, 1]) >= 0).all()
    assert (
        auroc(score=better[:, 1], positive=target[val])
        >= auroc(score=probs[val, 1], positive=target[val]) - 0.01
    )


def test_a_row_that_every_map_sends_to_zero_becomes_uniform():
    fitted = fit_isotonic(np.eye(3)[[0, 1, 2]], [0, 1, 2])
    nothing = dataclasses.replace(
        fitted, maps=tuple(knots._replace(y=0 * knots.y) for knots in fitted.maps)
    )
    np.testing.assert_allclose(nothing.apply([[0.2, 0.3, 0.5]]), 1 / 3)


def test_other_classes_than_those_of_the_fit_are_refused():
    probs, target = items(3)
    with pytest.raises(ValueError, match="the 3 classes of the fit, got 2"):
        fit_isotonic(probs, target).apply([0.5])
    binary, labels = items(2)
    with pytest.raises(ValueError, match="the 2 classes of the fit, got 3"):
        fit_isotonic(binary, labels).apply(probs)


def test_records_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Temperature(value=1.0).value = 2.0


def _overconfident(n, seed=0):
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=n)
    return expit(1.8 * logits + 0.5), (rng.random(n) < expit(logits)).astype(int)


def test_vector_scaling_of_two_classes_is_logistic_regression():
    prob, target = _overconfident(800)
    mapped = scores.fit_vector(prob, target).apply(prob)[:, 1]
    logs = np.log(np.stack([1 - prob, prob], axis=1))
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=5000).fit(logs, target)
    # Each class has a weight of its own: the two logarithms are two features.
    assert mapped == pytest.approx(model.predict_proba(logs)[:, 1], abs=2e-3)


def test_dirichlet_maps_are_at_their_penalised_optimum():
    rng = np.random.default_rng(0)
    probs, target = rng.dirichlet([1] * 3, 500), rng.integers(3, size=500)
    fit = scores.fit_dirichlet(probs, target)
    sharpness = 1 / scores.fit_temperature(probs, target).value

    def penalised(weight, bias):
        mapped = type(fit)(weight=weight, bias=bias).apply(probs)
        away = np.sum((weight - sharpness * np.eye(3)) ** 2) + np.sum(bias**2)
        return scores.nll(mapped, target) + 1e-3 * away

    best = penalised(fit.weight, fit.bias)
    for _ in range(30):
        moved = fit.weight + 0.05 * rng.normal(size=(3, 3))
        assert penalised(moved, fit.bias + 0.05 * rng.normal(size=3)) > best


def test_histogram_binning_by_hand():
    fit = scores.fit_histogram(
        [0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [0, 0, 1, 1, 1, 0], bins=2
    )
    # (1 + 1) / (3 + 2) below .7, and (2 + 1) / (3 + 2) from there on.
    assert fit.apply([0.0, 0.69, 0.7])[:, 1] == pytest.approx([0.4, 0.4, 0.6])


@pytest.mark.parametrize("ties", [False, True])
def test_venn_abers_equals_isotonic_regression_with_the_item_added(ties):
    rng = np.random.default_rng(1)
    prob = rng.random(40).round(1) if ties else rng.random(40)
    target = (rng.random(40) < prob).astype(int)
    new = np.concatenate([rng.random(15), prob[:5], [0.0, 1.0]])
    ours = scores.fit_venn_abers(prob, target).apply(new)[:, 1]
    for value, found in zip(new, ours, strict=True):
        p = [
            IsotonicRegression()
            .fit(np.append(prob, value), np.append(target, added))
            .predict([value])[0]
            for added in (0, 1)
        ]
        assert found == pytest.approx(p[1] / (1 - p[0] + p[1]), abs=1e-12)


@pytest.mark.parametrize(
    "fit",
    [
        scores.fit_vector,
        scores.fit_dirichlet,
        scores.fit_histogram,
        scores.fit_venn_abers,
    ],
)
class TestEveryMap:
    def test_it_lowers_the_nll_of_new_items(self, fit):
        mapped = fit(*_overconfident(2000)).apply(_overconfident(4000, 1)[0])
        prob, target = _overconfident(4000, 1)
        assert scores.nll(mapped, target) < scores.nll(prob, target) - 0.03

    @pytest.mark.parametrize("classes", [2, 3, 9])
    @pytest.mark.parametrize("n", [1, 3, 10, 200])
    def test_it_gives_probabilities_of_any_number_of_items(self, fit, classes, n):
        rng = np.random.default_rng(n)
        probs = rng.dirichlet([0.3] * classes, n)
        mapped = fit(probs, rng.integers(classes, size=n)).apply(probs)
        assert mapped.shape == (n, classes)
        assert mapped.min() >= 0.0
        assert mapped.sum(axis=1) == pytest.approx(np.ones(n))

    @pytest.mark.parametrize("right", [True, False])
    def test_saturated_items_that_are_all_right_or_wrong_are_no_failure(
        self, fit, right
    ):
        prob = np.array([0.0, 1.0] * 10, np.float32)
        target = (prob if right else 1 - prob).astype(int)
        assert np.isfinite(fit(prob, target).apply(prob)).all()

    def test_other_classes_are_refused(self, fit):
        fitted = fit([0.1, 0.9], [0, 1])
        with pytest.raises(ValueError, match="must have the 2 classes of the fit"):
            fitted.apply([[0.2, 0.3, 0.5]])
