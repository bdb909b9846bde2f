"""Scores at a threshold against hand computation and scikit-learn."""

import math
from functools import partial

import numpy as np
import pytest
import sklearn.metrics

from qualms import scores
from qualms.inference import influence_of, interval_of, sampling_design
from qualms.scores.arguments import called_in_order

# 10 positives of whom 8 are called, 20 negatives of whom 5 are called.
CALLED = np.repeat([True, False, True, False], [8, 2, 5, 15])
POSITIVE = np.repeat([True, False], [10, 20])
BY_HAND = {
    scores.called_share: 13 / 30,
    scores.sensitivity: 8 / 10,
    scores.specificity: 15 / 20,
    scores.ppv: 8 / 13,
    scores.npv: 15 / 17,
    scores.lr_positive: 0.8 / 0.25,
    scores.lr_negative: 0.2 / 0.75,
}
PAIRED = [score for score in BY_HAND if score is not scores.called_share]


@pytest.mark.parametrize("score", PAIRED)
def test_a_table_of_four_counts_by_hand(score):
    assert score(called=CALLED, positive=POSITIVE) == pytest.approx(
        BY_HAND[score], rel=1e-14
    )


def test_predictive_values_at_another_prevalence_are_those_of_bayes():
    by_hand = 0.8 * 0.05 / (0.8 * 0.05 + 0.25 * 0.95)
    assert scores.ppv(
        called=CALLED, positive=POSITIVE, prevalence=0.05
    ) == pytest.approx(by_hand)
    by_hand = 0.75 * 0.95 / (0.75 * 0.95 + 0.2 * 0.05)
    assert scores.npv(
        called=CALLED, positive=POSITIVE, prevalence=0.05
    ) == pytest.approx(by_hand)
    # At the prevalence of the items themselves nothing changes.
    for score in (scores.ppv, scores.npv):
        own = score(called=CALLED, positive=POSITIVE, prevalence=1 / 3)
        assert own == pytest.approx(score(called=CALLED, positive=POSITIVE))


@pytest.mark.parametrize("seed", range(5))
def test_rates_equal_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    truth = rng.random(80) < 0.4
    score = np.round(rng.normal(size=80) + truth, 1)
    called = scores.called_positive(score, 0.5)
    recall = partial(sklearn.metrics.recall_score, truth, called)
    precision = partial(sklearn.metrics.precision_score, truth, called)
    ratios = sklearn.metrics.class_likelihood_ratios(truth, called)
    ours = [
        each(called=called, positive=truth)
        for each in (
            *(scores.sensitivity, scores.specificity, scores.ppv, scores.npv),
            *(scores.lr_positive, scores.lr_negative),
        )
    ]
    theirs = [recall(), recall(pos_label=0), precision(), precision(pos_label=0)]
    np.testing.assert_allclose(ours, [*theirs, *ratios], rtol=1e-12)


@pytest.mark.parametrize("wanted", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("seed", range(3))
def test_sensitivity_at_specificity_is_the_best_point_of_the_roc_curve(seed, wanted):
    rng = np.random.default_rng(seed)
    truth = rng.random(200) < 0.4
    score = np.round(rng.normal(size=200) + truth, 1)
    fpr, tpr, _ = sklearn.metrics.roc_curve(truth, score, drop_intermediate=False)
    best = tpr[1.0 - fpr >= wanted - 1e-12].max()
    ours = scores.sensitivity_at_specificity(
        score=score, positive=truth, specificity=wanted
    )
    assert ours == pytest.approx(best)


SCORE = np.array([0.1, 0.2, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8])
TRUTH = np.array([0, 0, 1, 0, 1, 0, 1, 1], bool)


def test_thresholds_by_hand():
    units = {"score": SCORE, "positive": TRUTH}
    at_sensitivity = partial(scores.threshold_at_sensitivity, **units)
    assert [at_sensitivity(sensitivity=s) for s in (0.5, 0.75, 0.76)] == [0.7, 0.5, 0.2]
    at_specificity = partial(scores.threshold_at_specificity, **units)
    found = [at_specificity(specificity=s) for s in (0.25, 0.5, 0.75, 0.76)]
    assert found == [0.2, 0.4, 0.5, 0.7]
    assert scores.youden_threshold(score=SCORE, positive=TRUTH) == 0.7
    # A miss costs ten alarms: all positives are found. A tenth: no alarm.
    assert scores.cost_threshold(score=SCORE, positive=TRUTH, cost=10) == 0.2
    assert scores.cost_threshold(score=SCORE, positive=TRUTH, cost=0.1) == 0.7
    assert (
        scores.cost_threshold(score=[0.5, 0.5], positive=[1, 0], cost=0.5) == math.inf
    )


def test_no_threshold_reaches_a_specificity_where_a_negative_is_highest():
    found = scores.threshold_at_specificity(
        score=[0.2, 0.9], positive=[1, 0], specificity=0.5
    )
    assert found == math.inf
    assert not scores.called_positive([0.2, 0.9], found).any()


def test_what_is_equal_but_for_rounding_is_at_the_threshold():
    assert scores.called_positive([0.3], 0.1 + 0.2).all()


def test_a_promised_threshold_is_an_exact_tolerance_limit():
    # Of 22 positives the lowest is below 10 % of the population with 90.2 %.
    positive = np.ones(22, bool)
    values = np.arange(22) / 22
    promised = partial(scores.threshold_at_sensitivity, score=values, positive=positive)
    assert promised(sensitivity=0.9, confidence=0.9) == 0.0
    assert 1 - 0.9**22 > 0.9 > 1 - 0.9**21
    too_few = scores.threshold_at_sensitivity(
        score=values[:21], positive=positive[:21], sensitivity=0.9, confidence=0.9
    )
    assert too_few == -math.inf
    assert scores.called_positive(values, too_few).all()
    mirrored = scores.threshold_at_specificity(
        score=values, positive=~positive, specificity=0.9, confidence=0.9
    )
    assert mirrored == math.inf  # above the highest negative there is no score


@pytest.mark.parametrize("kind", ["sensitivity", "specificity"])
def test_a_promise_is_kept_as_often_as_it_says(kind):
    rng, confidence, wanted, kept = np.random.default_rng(0), 0.9, 0.8, []
    for _ in range(400):
        truth = np.arange(120) < 60
        score = rng.random(120)
        find = getattr(scores, f"threshold_at_{kind}")
        threshold = called_in_order(find, score, truth, wanted, confidence=confidence)
        # Uniform scores: the rates of the population are known.
        rate = 1 - threshold if kind == "sensitivity" else min(threshold, 1.0)
        kept.append(rate >= wanted)
    assert np.mean(kept) > confidence - 3 * math.sqrt(0.09 / 400)
    assert np.mean(kept) < 0.99


def _derivative(score, called, positive, copies=300):
    """Return the derivative of the score by how often each item counts."""
    change = []
    for item in range(len(called)):
        one = np.arange(len(called)) == item
        more, less = (
            called_in_order(
                score, *(np.repeat(a, copies + step * one) for a in (called, positive))
            )
            for step in (1, -1)
        )
        change.append((more - less) / 2 * copies)
    return np.array(change) - np.mean(change)


@pytest.mark.parametrize(
    "score",
    [
        *PAIRED,
        partial(scores.ppv, prevalence=0.05),
        partial(scores.npv, prevalence=0.05),
    ],
)
def test_influence_is_the_derivative_by_weight(score):
    influence = influence_of(score, CALLED, POSITIVE)
    assert influence.value == pytest.approx(score(called=CALLED, positive=POSITIVE))
    wanted = _derivative(score, CALLED, POSITIVE)
    assert np.abs(influence.values - wanted).max() < 1e-4 * np.abs(wanted).max()


def test_the_interval_of_a_ratio_contains_it_and_turns_into_that_of_ppv():
    ratio = interval_of(
        influence_of(scores.lr_positive, called=CALLED, positive=POSITIVE)
    )
    assert ratio.low < 3.2 < ratio.high
    at = partial(scores.ppv, prevalence=0.05)
    chance = interval_of(influence_of(at, CALLED, POSITIVE))
    for end, turned in ((ratio.low, chance.low), (ratio.high, chance.high)):
        assert turned == pytest.approx(end * 0.05 / (end * 0.05 + 0.95))


@pytest.mark.parametrize(
    ("called", "low", "high"),
    [
        (np.repeat([True, False], [10, 20]), 0.05, 1.0),  # perfect
        (np.zeros(30, bool), math.nan, math.nan),  # nobody is called
        (~np.repeat([True, False], [10, 20]), 0.0, 0.2),  # all wrong
    ],
)
def test_chances_have_intervals_at_the_ends_of_their_range(called, low, high):
    score = partial(scores.ppv, prevalence=0.1)
    value = score(called=called, positive=POSITIVE)
    interval = interval_of(influence_of(score, called, POSITIVE))
    if math.isnan(low):
        assert math.isnan(value)
        assert interval.reason
    else:
        assert low <= interval.low <= value <= interval.high <= high
        assert interval.low < interval.high


def test_clusters_widen_the_interval_of_a_ratio():
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(60), 4)
    truth = (rng.random(60) < 0.5)[patient]
    called = (rng.random(60) < 0.3 + 0.4 * truth[::4])[patient]
    influence = influence_of(scores.lr_positive, called=called, positive=truth)
    alone = interval_of(influence)
    clustered = interval_of(influence, design=sampling_design(240, cluster=patient))
    assert np.log(clustered.high / clustered.low) > 1.5 * np.log(alone.high / alone.low)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: scores.called_positive([0.1], math.nan), "must be a number"),
        (
            lambda: scores.threshold_at_sensitivity(
                score=[0.1], positive=[0], sensitivity=0.9
            ),
            "needs positive items",
        ),
        (
            lambda: scores.threshold_at_specificity(
                score=[0.1], positive=[1], specificity=0.9
            ),
            "needs negative items",
        ),
        (
            lambda: scores.youden_threshold(score=[0.1], positive=[1]),
            "items of both kinds",
        ),
        (
            lambda: scores.cost_threshold(score=[0.1], positive=[1], cost=0),
            "cost must be a finite",
        ),
        (
            lambda: scores.ppv(called=CALLED, positive=POSITIVE, prevalence=1.0),
            "prevalence must lie strictly between 0 and 1",
        ),
        (
            lambda: scores.threshold_at_sensitivity(
                score=[0.1], positive=[1], sensitivity=90
            ),
            "sensitivity must lie strictly",
        ),
    ],
)
def test_what_cannot_be_answered_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
