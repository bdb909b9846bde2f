"""Logistic regression against scikit-learn."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from qualms.evaluate.recalibration import logistic_log_odds


@pytest.mark.parametrize("gap", [0.0, 1.0, 30.0])
def test_log_odds_are_those_of_scikit_learn(gap):
    rng = np.random.default_rng(int(gap))
    positive = np.arange(700) >= 500
    features = rng.normal(size=(700, 6)) + gap * positive[:, None]
    theirs = LogisticRegression(max_iter=10_000, tol=1e-10).fit(features, positive)
    expected = theirs.decision_function(features)
    ours = logistic_log_odds(features, positive)
    assert ours == pytest.approx(expected, rel=1e-5, abs=1e-5)
