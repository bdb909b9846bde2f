"""Intervals of the calibration intercept and slope with few errors."""

import math

import numpy as np
import pytest
from scipy.special import expit

import qualms
from qualms import scores
from qualms.inference import influence_of, interval_of, sampling_design

INTERCEPT = scores.calibration_intercept


def overconfident(n, rng):
    """Logits of which 1.5 % lie on the wrong side, at twice their size."""
    positive = rng.random(n) < 0.5
    logits = 8.7 * (positive - 0.5) + 2.0 * rng.standard_normal(n)
    return expit(4.3 * logits), positive


def stated(n, rng):
    """Items that all say .999, of which .985 are right."""
    guess = rng.random(n) < 0.5
    right = rng.random(n) < 0.985
    return np.where(guess, 0.999, 0.001), np.where(right, guess, ~guess)


@pytest.mark.parametrize(("draw", "truth"), [(overconfident, -0.013), (stated, 0.0)])
@pytest.mark.parametrize("n", [12, 30, 100, 300])
def test_the_intercept_of_a_model_that_is_seldom_wrong_is_covered(draw, truth, n):
    rng = np.random.default_rng(n)
    found = [interval_of(influence_of(INTERCEPT, *draw(n, rng))) for _ in range(100)]
    given = [interval for interval in found if not interval.reason]
    missed = [i for i in given if not i.low - 0.02 <= truth <= i.high + 0.02]
    assert len(given) > (0 if n == 12 else 90)
    assert len(missed) <= 0.1 * len(given)
    said = {interval.reason for interval in found if interval.reason}
    assert all("too few" in reason or "both kinds" in reason for reason in said)


def test_many_items_have_the_interval_of_their_influence():
    rng = np.random.default_rng(0)
    logits = rng.standard_normal(20_000)
    influence = influence_of(
        INTERCEPT, expit(logits), rng.random(20_000) < expit(logits)
    )
    interval = interval_of(influence)
    error = math.sqrt(float(np.square(influence.values).sum()))
    assert interval.low == pytest.approx(
        influence.value - 1.96 * error, abs=0.01 * error
    )
    assert interval.high == pytest.approx(
        influence.value + 1.96 * error, abs=0.01 * error
    )


def test_pairs_of_equal_items_have_the_interval_of_half_as_many():
    rng = np.random.default_rng(1)
    prob, positive = rng.uniform(0.05, 0.95, 200), rng.random(200) < 0.4
    twice = influence_of(INTERCEPT, np.repeat(prob, 2), np.repeat(positive, 2))
    pairs = sampling_design(400, cluster=np.repeat(np.arange(200), 2))
    alone = interval_of(influence_of(INTERCEPT, prob, positive))
    joined = interval_of(twice, design=pairs)
    # The spread over clusters is taken to be less certain than that over items.
    width, wider = alone.high - alone.low, joined.high - joined.low
    assert width < wider < 1.05 * width
    assert alone.low - joined.low == pytest.approx(joined.high - alone.high, abs=0.01)


def test_few_errors_are_not_compared_and_give_the_slope_no_interval():
    prob = np.array([0.9] * 20 + [0.1] * 20)
    positive = (np.arange(40) < 19) | (np.arange(40) == 30)
    intercept = influence_of(INTERCEPT, prob, positive)
    slope = influence_of(scores.calibration_slope, prob=prob, positive=positive)
    assert "only 2 of 40 items are wrong" in intercept.uncompared
    assert "fewer than 5" in interval_of(slope).reason
    assert slope.value == scores.calibration_slope(prob=prob, positive=positive)


def test_a_threshold_that_separates_the_classes_is_said():
    prob = np.array([0.1, 0.2, 0.3, 0.9, 0.8, 0.7] * 5)
    results = qualms.score({"prob": prob, "target": (prob > 0.5).astype(int)})
    why = next(row.why for row in results.rows if row.score == "calibration_slope")
    assert why.startswith("a threshold separates positive from negative items")
