"""Proper scores against scikit-learn, the golden cases and hand-made items."""

import numpy as np
import pytest
import sklearn.metrics

from qualms.inference import influence_of, interval_of
from qualms.scores.proper import (
    accuracy,
    balanced_accuracy,
    brier,
    correct,
    expected_brier,
    expected_nll,
    item_nll,
    mcc,
    nll,
)
from scores.retina_golden import CASES, RTOL, inputs, scalars


def items(classes, n=300, seed=0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet([0.5] * classes, n), rng.integers(0, classes, n)


@pytest.mark.parametrize("case", CASES)
def test_retina_golden_accuracy_and_nll(case):
    p, y = inputs(case)["p"], inputs(case)["y"]
    golden = scalars(case)
    np.testing.assert_allclose(accuracy(p, y), golden["accuracy"], rtol=RTOL)
    np.testing.assert_allclose(nll(p, y), golden["nll"], rtol=RTOL)


@pytest.mark.parametrize("classes", [2, 5])
def test_scores_equal_scikit_learn(classes):
    probs, target = items(classes)
    predicted, labels = probs.argmax(axis=1), np.arange(classes)
    expected = {
        accuracy: sklearn.metrics.accuracy_score(target, predicted),
        nll: sklearn.metrics.log_loss(target, probs, labels=labels),
        balanced_accuracy: sklearn.metrics.balanced_accuracy_score(target, predicted),
        mcc: sklearn.metrics.matthews_corrcoef(target, predicted),
        brier: sklearn.metrics.brier_score_loss(
            target, probs, labels=labels, scale_by_half=False
        ),
    }
    for score, value in expected.items():
        assert score(probs, target) == pytest.approx(value, rel=1e-12), score.__name__


def test_the_three_forms_of_binary_probabilities_agree():
    rng = np.random.default_rng(3)
    draws, target = rng.beta(0.6, 0.6, (4, 100)), rng.integers(0, 2, 100)
    p = draws.mean(axis=0)
    for score in (accuracy, nll, brier, balanced_accuracy, mcc):
        value = score(p, target)
        pair = score(np.stack([1 - p, p], axis=1), target)
        drawn = score(np.stack([1 - draws, draws], axis=2), target)
        assert pair == pytest.approx(value, rel=1e-12), score.__name__
        assert drawn == pytest.approx(value, rel=1e-12), score.__name__


def test_a_tie_goes_to_the_lowest_class():
    assert correct([0.5, 0.5 + 1e-9], [0, 1]).tolist() == [True, True]
    # Up to rounding: a mean over members may miss 0.5 by its last bit.
    assert correct([np.nextafter(0.5, 1)], [0]).tolist() == [True]
    assert correct([[0.2, 0.4, 0.4]], [1]).all()


def test_certain_and_wrong_costs_34_nats_not_infinity():
    # As -log of P(y=1) clipped to [1e-15, 1 - 1e-15], or of its complement.
    clipped = np.clip([0.0, 1.0], 1e-15, 1 - 1e-15)
    expected = -np.log([clipped[0], 1 - clipped[1]])
    np.testing.assert_allclose(item_nll([0.0, 1.0], [1, 0]), expected, rtol=1e-12)
    pair = item_nll([[1.0, 0.0], [0.0, 1.0]], [1, 0])
    np.testing.assert_allclose(pair, expected, rtol=1e-12)
    three = item_nll([[1.0, 0.0, 0.0]] * 2, [1, 2])
    np.testing.assert_allclose(three, -np.log(1e-15), rtol=1e-12)
    assert item_nll([0.0, 1.0], [0, 1]).tolist() == [0.0, 0.0]


def test_brier_is_twice_the_binary_convention_and_at_most_two():
    p, target = np.array([0.3, 0.9, 1.0]), np.array([0, 1, 0])
    assert brier(p, target) == pytest.approx(2 * np.mean((p - target) ** 2))
    assert brier([0.0, 1.0], [1, 0]) == 2.0


def test_absent_classes_do_not_count_in_balanced_accuracy():
    probs = np.eye(4)[[0, 0, 1, 3]]
    assert balanced_accuracy(probs, [0, 0, 1, 1]) == 0.75


def test_mcc_is_undefined_when_only_one_class_is_predicted():
    assert np.isnan(mcc([0.9, 0.8, 0.7], [0, 1, 1]))
    assert np.isnan(mcc([0.1, 0.8, 0.7], [1, 1, 1]))
    assert mcc([0.1, 0.9], [0, 1]) == 1.0
    assert mcc([0.9, 0.1], [0, 1]) == -1.0


@pytest.mark.parametrize("score", [accuracy, nll, brier, balanced_accuracy, mcc])
def test_targets_that_do_not_fit_are_refused(score):
    with pytest.raises(ValueError, match=r"target must lie in 0\.\.1"):
        score([0.2, 0.8], [0, 2])
    with pytest.raises(ValueError, match="target must have 2 items, got 3"):
        score([0.2, 0.8], [0, 1, 1])


def test_expected_scores_are_those_of_drawn_classes():
    probs, _ = items(3, n=20_000)
    true = np.random.default_rng(1).dirichlet([0.7] * 3, 20_000)
    draw = np.random.default_rng(2).random(20_000)[:, None]
    drawn = (draw > true.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    assert expected_nll(probs=probs, target_probs=true) == pytest.approx(
        nll(probs, drawn), rel=0.03
    )
    assert expected_brier(probs=probs, target_probs=true) == pytest.approx(
        brier(probs, drawn), rel=0.03
    )
    # Classes that are certain are targets, and few errors among them are few.
    certain = np.eye(3)[drawn[:50]]
    for score, whole in ((nll, expected_nll), (brier, expected_brier)):
        one = interval_of(influence_of(score, certain * 0.97 + 0.01, drawn[:50]))
        other = interval_of(influence_of(whole, certain * 0.97 + 0.01, certain))
        assert (one.low, one.high) == pytest.approx((other.low, other.high))
    with pytest.raises(ValueError, match="must have the shape of the probabilities"):
        expected_nll(probs=probs, target_probs=true[:5])
    with pytest.raises(ValueError, match="the distribution of each item"):
        expected_nll(probs=probs, target_probs=true[None])
