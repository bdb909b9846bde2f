"""Interval scores against definitions written out item by item."""

import math
from functools import partial

import numpy as np
import pytest

from qualms import scores
from qualms.inference import influence_of, interval_of
from qualms.scores.intervals import (
    coverage,
    interval_length,
    interval_score,
    inverted_fraction,
)
from qualms.scores.regression import pinball

LOWER = np.array([0.0, 1.0, -2.0, 5.0])
UPPER = np.array([1.0, 3.0, 2.0, 4.0])
TARGET = np.array([1.0, 0.5, 2.5, 4.5])


def test_both_ends_count_as_covered():
    assert (
        coverage(lower=[1.0], upper=[2.0], target=[1.0])
        == coverage(lower=[1.0], upper=[2.0], target=[2.0])
        == 1.0
    )
    assert coverage(lower=[1.0], upper=[2.0], target=[np.nextafter(2.0, 3.0)]) == 0.0


def test_an_inverted_interval_covers_nothing_and_has_negative_length():
    assert coverage(lower=LOWER, upper=UPPER, target=TARGET) == 0.25
    assert interval_length(lower=LOWER[3:], upper=UPPER[3:]) == -1.0
    assert inverted_fraction(lower=LOWER, upper=UPPER) == 0.25


def test_interval_score_is_the_sum_of_two_pinball_losses():
    # Gneiting & Raftery (2007): 2 / alpha times the losses of the two end quantiles.
    rng = np.random.default_rng(0)
    lower, upper, target = rng.normal(size=(3, 200))
    alpha = 0.2
    losses = pinball(prediction=lower, target=target, level=alpha / 2) + pinball(
        prediction=upper, target=target, level=1 - alpha / 2
    )
    value = interval_score(lower=lower, upper=upper, target=target, alpha=alpha)
    assert value == pytest.approx(2 / alpha * losses, rel=1e-12)


def test_the_right_quantiles_have_the_least_interval_score():
    rng = np.random.default_rng(1)
    target = rng.normal(size=20_000)
    halves = np.linspace(1.0, 2.5, 16)
    zero = np.zeros_like(target)
    scores = [
        interval_score(lower=zero - h, upper=zero + h, target=target, alpha=0.1)
        for h in halves
    ]
    assert halves[int(np.argmin(scores))] == pytest.approx(1.645, abs=0.06)


def test_unbounded_intervals_cover_everything_at_infinite_length():
    lower, upper = np.array([0.0, -np.inf]), np.array([1.0, np.inf])
    assert coverage(lower=lower, upper=upper, target=[0.5, 1e300]) == 1.0
    assert interval_length(lower=lower, upper=upper) == math.inf
    assert (
        interval_score(lower=lower, upper=upper, target=[0.5, 7.0], alpha=0.1)
        == math.inf
    )
    assert inverted_fraction(lower=lower, upper=upper) == 0.0


@pytest.mark.parametrize(
    ("lower", "upper"), [([np.inf], [0.0]), ([0.0], [-np.inf]), ([np.nan], [0.0])]
)
def test_ends_that_are_nowhere_are_refused(lower, upper):
    with pytest.raises(ValueError, match="must be finite, row 0 is"):
        coverage(lower=lower, upper=upper, target=[0.0])


def test_ends_of_different_length_are_refused():
    with pytest.raises(ValueError, match="upper must have 4 items, got 1"):
        interval_length(lower=LOWER, upper=UPPER[:1])
    with pytest.raises(ValueError, match="lower must have 2 items, got 4"):
        coverage(lower=LOWER, upper=UPPER, target=TARGET[:2])


def test_few_items_give_the_interval_score_no_interval():
    rng = np.random.default_rng(0)
    lower, target = np.full(150, -1.6), rng.standard_normal(150)
    score = partial(scores.interval_score, alpha=0.1)
    held = interval_of(influence_of(score, lower, -lower, target))
    few = interval_of(influence_of(score, lower[:99], -lower[:99], target[:99]))
    assert held.low < held.high
    assert "fewer than 100 items" in few.reason
    finer = partial(scores.interval_score, alpha=0.05)
    reason = interval_of(influence_of(finer, lower, -lower, target)).reason
    assert "fewer than 200 items" in reason
