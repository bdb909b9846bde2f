"""Intervals of calibration errors: they reach 0 for a calibrated model."""

import numpy as np
import pytest

from qualms import scores
from qualms.inference import influence_of, interval_of, sampling_design
from qualms.inference._gaps import covariance
from qualms.scores.influence import BinGaps

ERRORS = [scores.ece, scores.adaptive_ece, scores.classwise_ece, scores.smooth_ece]


def _calibrated(items, seed=0):
    rng = np.random.default_rng(seed)
    prob = rng.beta(1.5, 1.0, items)
    return prob, (rng.random(items) < prob).astype(int)


@pytest.mark.parametrize("score", ERRORS)
def test_the_value_is_that_of_the_score(score):
    prob, target = _calibrated(300)
    influence = influence_of(score, prob, target)
    assert influence.value == pytest.approx(score(prob, target), abs=1e-12)


@pytest.mark.parametrize("score", ERRORS)
def test_a_calibrated_model_may_have_no_error(score):
    lower = [
        interval_of(influence_of(score, *_calibrated(450, seed))).low
        for seed in range(20)
    ]
    assert np.count_nonzero(lower) <= 3


@pytest.mark.parametrize("score", ERRORS)
def test_a_large_error_is_told_from_none(score):
    prob, target = _calibrated(2000)
    sure = prob**3 / (prob**3 + (1 - prob) ** 3)
    interval = interval_of(influence_of(score, sure, target))
    assert 0.02 < interval.low < score(sure, target) < interval.high < 0.4
    assert interval.method


@pytest.mark.parametrize("score", ERRORS)
def test_item_order_does_not_matter(score):
    prob, target = _calibrated(450)
    order = np.random.default_rng(0).permutation(450)
    one = interval_of(influence_of(score, prob, target))
    other = interval_of(influence_of(score, prob[order], target[order]))
    assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=1e-6)


@pytest.mark.parametrize("score", ERRORS[:3])
def test_repeating_every_item_in_a_cluster_does_not_shorten_the_interval(score):
    prob, target = _calibrated(450)
    sure = np.sqrt(prob)
    one = interval_of(influence_of(score, sure, target))
    design = sampling_design(900, cluster=np.repeat(np.arange(450), 2))
    twice = influence_of(score, np.repeat(sure, 2), np.repeat(target, 2))
    other = interval_of(twice, design=design)
    assert other.high == pytest.approx(one.high, rel=0.05)
    assert other.low == pytest.approx(one.low, abs=0.2 * one.high)


def test_many_classes_have_no_interval_of_the_class_wise_error():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(21), 100)
    influence = influence_of(scores.classwise_ece, probs, rng.integers(21, size=100))
    assert "more than 20 classes" in interval_of(influence).reason


def test_the_class_wise_error_has_a_cautious_interval():
    held = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        probs = rng.dirichlet(np.ones(5), 300)
        true = probs.copy()
        true[:, 3:] = probs[:, :2:-1]  # two classes are exchanged
        target = (rng.random(300)[:, None] > true.cumsum(1)).sum(1).clip(0, 4)
        found = interval_of(influence_of(scores.classwise_ece, probs, target))
        held.append(found.low <= 0.0665 <= found.high)  # of many items
        assert found.low > 0.0
    assert np.mean(held) > 0.9


def test_clusters_and_samples_count_in_the_class_wise_error():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), 200)
    target = rng.integers(4, size=200)
    one = interval_of(influence_of(scores.classwise_ece, probs, target))
    pairs = np.repeat(np.arange(200), 2)
    twice = influence_of(scores.classwise_ece, probs[pairs], target[pairs])
    clustered = interval_of(twice, design=sampling_design(400, cluster=pairs))
    assert one.low * 0.9 < clustered.low <= one.low
    assert one.high <= clustered.high < one.high * 1.1
    sampled = sampling_design(400, sample=np.arange(400) < 200)
    narrower = interval_of(twice, design=sampled)
    assert narrower.high < one.high


def test_regression_error_of_a_right_model_may_be_zero():
    rng = np.random.default_rng(0)
    mean, var = rng.normal(size=500), np.full(500, 2.0)
    target = mean + np.sqrt(2.0) * rng.normal(size=500)
    influence = influence_of(scores.regression_ece, mean=mean, var=var, target=target)
    assert influence.value == pytest.approx(
        scores.regression_ece(mean=mean, var=var, target=target)
    )
    assert interval_of(influence).low < 0.01
    wrong = influence_of(scores.regression_ece, mean=mean, var=var * 9, target=target)
    assert interval_of(wrong).low > 0.1


def test_noise_of_the_gaps_is_that_of_replicates():
    prob, target = _calibrated(200)
    rng = np.random.default_rng(1)
    confidence = np.maximum(prob, 1 - prob)
    gap = (((prob > 0.5) == target) - confidence) / 200
    cell = np.minimum((confidence * 15).astype(int), 14)
    copies = rng.multinomial(200, np.full(200, 1 / 200), size=4000)
    drawn = np.stack([copies @ (gap * (cell == b)) for b in range(15)], axis=1)
    wanted = np.cov(drawn.T)
    total = np.bincount(cell, gap, minlength=15)
    gaps = BinGaps(cell, gap, total)
    for cluster in (None, np.repeat(np.arange(199), [2] + [1] * 198)):
        found = covariance(gaps, sampling_design(200, cluster=cluster))
        assert np.abs(found - wanted).max() < 0.1 * wanted.max()


@pytest.mark.parametrize(
    ("score", "least"), [(scores.adaptive_ece, 450), (scores.classwise_ece, 150)]
)
def test_nearly_empty_bins_give_no_interval(score, least):
    influence = influence_of(score, *_calibrated(least - 1))
    assert f"fewer than {least} items" in interval_of(influence).reason


def test_ties_across_edges_are_one_cell():
    prob, target = _calibrated(900)
    tied = prob.round(1).clip(0.01, 0.99)
    influence = influence_of(scores.adaptive_ece, tied, target)
    assert influence.value == pytest.approx(scores.adaptive_ece(tied, target))
    # Few distinct values have less noise than bins would have one by one.
    width = interval_of(influence).high - influence.value
    apart = influence_of(scores.adaptive_ece, prob, target)
    assert width < 1.2 * (interval_of(apart).high - apart.value)


def test_the_smooth_error_of_clusters_has_no_interval():
    influence = influence_of(scores.smooth_ece, *_calibrated(300))
    design = sampling_design(300, cluster=np.arange(300) // 2)
    assert "clusters" in interval_of(influence, design=design).reason
