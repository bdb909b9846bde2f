"""The line of calibration against scikit-learn, and the smooth curve by hand."""

import math

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score

from qualms import scores
from qualms.evaluate.drawings import CALIBRATION_GRID, calibration_band
from qualms.inference import influence_of, sampling_design


def made(n=300, *, slope=0.6, shift=0.3, seed=0):
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=n)
    return expit(logits), rng.random(n) < expit(slope * logits + shift)


@pytest.mark.parametrize("seed", range(3))
def test_the_slope_is_that_of_logistic_regression(seed):
    prob, positive = made(seed=seed)
    x = np.log(prob / (1 - prob))[:, None]
    model = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000).fit(x, positive)
    ours = scores.calibration_slope(prob=prob, positive=positive)
    assert ours == pytest.approx(model.coef_[0, 0], abs=1e-5)


def test_the_intercept_makes_the_mean_right():
    prob, positive = made()
    shift = scores.calibration_intercept(prob=prob, positive=positive)
    moved = expit(np.log(prob / (1 - prob)) + shift)
    assert moved.mean() == pytest.approx(positive.mean(), abs=1e-10)


@pytest.mark.parametrize(
    "score", [scores.calibration_slope, scores.calibration_intercept]
)
def test_influence_is_the_derivative_by_weight(score):
    prob, positive = made(60)
    influence = influence_of(score, prob, positive)
    copies, wanted = 200, []
    for item in range(60):
        one = np.arange(60) == item
        more, less = (
            score(
                prob=np.repeat(prob, copies + s * one),
                positive=np.repeat(positive, copies + s * one),
            )
            for s in (1, -1)
        )
        wanted.append((more - less) / 2 * copies)
    wanted = np.array(wanted) - np.mean(wanted)
    # That of the slope is larger by the leverage of each item.
    close = np.linalg.norm(influence.values - wanted) / np.linalg.norm(wanted)
    assert close < (0.2 if score is scores.calibration_slope else 1e-3)


@pytest.mark.parametrize(
    ("prob", "positive"),
    [
        ([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]),  # separated
        ([0.1, 0.2, 0.8, 0.9], [1, 1, 0, 0]),  # the wrong way round
        ([0.5] * 4, [0, 1, 0, 1]),  # all alike
        ([0.1, 0.9], [1, 1]),  # one kind
    ],
)
def test_a_slope_without_a_value_is_nan_and_says_why(prob, positive):
    assert math.isnan(scores.calibration_slope(prob=prob, positive=positive))
    assert influence_of(scores.calibration_slope, prob=prob, positive=positive).reason


def test_saturated_probabilities_are_clipped():
    prob = np.array([0.0, 1.0, 0.0, 1.0, 0.3, 0.6])
    assert math.isfinite(
        scores.calibration_slope(prob=prob, positive=[0, 1, 1, 1, 0, 0])
    )
    assert math.isfinite(
        scores.calibration_intercept(prob=prob, positive=[0, 1, 1, 1, 0, 0])
    )


def test_no_probability_is_refused():
    with pytest.raises(ValueError, match="prob must lie in"):
        scores.calibration_slope(prob=[1.5], positive=[1])


def test_the_curve_of_a_line_is_the_line():
    prob = np.linspace(0.05, 0.95, 181)
    # Each probability has twenty items, of which exactly this share is positive.
    positive = np.arange(20) < np.round(20 * prob)[:, None]
    curve = scores.calibration_curve(
        prob=np.repeat(prob, 20), positive=positive.ravel(), at=[0.1, 0.5, 0.9]
    )
    assert curve.share == pytest.approx([0.1, 0.5, 0.9], abs=0.01)
    assert curve.weight.sum(axis=1) == pytest.approx([1, 1, 1])


def test_the_band_is_wider_over_clusters_and_open_where_nothing_is():
    prob, positive = made(400)
    patient = np.repeat(np.arange(100), 4)
    prob, positive = np.repeat(prob[::4], 4), np.repeat(positive[::4], 4)
    prob = np.clip(prob, 0.3, 0.9)
    alone, clustered = (
        calibration_band(prob, positive, subset="all", design=design)
        for design in (
            sampling_design(400),
            sampling_design(400, cluster=patient),
        )
    )
    assert np.isnan(alone.y[CALIBRATION_GRID < 0.1]).all()
    inside = ~np.isnan(alone.y)
    assert (alone.low[inside] <= alone.y[inside]).all()
    assert (alone.y[inside] <= alone.high[inside]).all()
    wider = (clustered.high - clustered.low)[inside] / (alone.high - alone.low)[inside]
    assert np.median(wider) > 1.5


@pytest.mark.parametrize("seed", range(3))
def test_quadratic_kappa_equals_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    probs, target = rng.dirichlet([1] * 5, 200), rng.integers(5, size=200)
    probs[np.arange(100), target[:100]] += 1
    probs /= probs.sum(axis=1, keepdims=True)
    theirs = cohen_kappa_score(target, probs.argmax(axis=1), weights="quadratic")
    assert scores.quadratic_kappa(probs, target) == pytest.approx(theirs)


def test_kappa_of_one_grade_is_undefined():
    assert math.isnan(scores.quadratic_kappa([[0.9, 0.1]] * 3, [0, 0, 0]))
