"""Ranking scores against scikit-learn, torchmetrics, golden cases and brute force."""

import itertools

import numpy as np
import pytest
import sklearn.metrics
import torch
from torchmetrics.functional.classification import binary_auroc

from qualms.scores.ranking import (
    auprc,
    auroc,
    average_precision,
    fpr_at_tpr,
    precision_recall_curve,
    roc_curve,
    weighted_auroc,
)
from scores.retina_golden import CASES, RTOL, inputs, scalars

# Decimals of the scores: none tied, some tied, nearly all tied.
DECIMALS = [12, 1, 0]


def items(decimals, n=300, seed=0):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.3
    return np.round(rng.normal(size=n) + 1.2 * positive, decimals), positive


@pytest.mark.parametrize("case", CASES)
def test_retina_golden_auroc_and_auprc(case):
    p, y = inputs(case)["p"], inputs(case)["y"]
    np.testing.assert_allclose(
        auroc(score=p, positive=y), scalars(case)["auroc"], rtol=RTOL
    )
    np.testing.assert_allclose(
        auprc(score=p, positive=y), scalars(case)["auprc"], rtol=RTOL
    )


@pytest.mark.parametrize("decimals", DECIMALS)
@pytest.mark.parametrize("seed", range(5))
def test_areas_equal_scikit_learn(decimals, seed):
    values, positive = items(decimals, seed=seed)
    precision, recall, _ = sklearn.metrics.precision_recall_curve(positive, values)
    expected = {
        auroc: sklearn.metrics.roc_auc_score(positive, values),
        auprc: sklearn.metrics.auc(recall, precision),
        average_precision: sklearn.metrics.average_precision_score(positive, values),
    }
    for score, value in expected.items():
        assert score(score=values, positive=positive) == pytest.approx(value, rel=1e-12)


def test_auroc_equals_torchmetrics_on_probabilities():
    values, positive = items(12)
    p = 1 / (1 + np.exp(-values))
    theirs = binary_auroc(torch.tensor(p), torch.tensor(positive).int())
    assert auroc(score=p, positive=positive) == pytest.approx(float(theirs), abs=1e-6)


def test_auroc_of_distances_far_from_the_unit_interval_does_not_saturate():
    values, positive = items(12)
    plain = auroc(score=values, positive=positive)
    assert auroc(score=1000 * values - 3000, positive=positive) == plain
    assert auroc(score=30 + values, positive=positive) == plain


@pytest.mark.parametrize("decimals", DECIMALS)
def test_auroc_equals_the_count_of_ordered_pairs(decimals):
    values, positive = items(decimals, n=60)
    pairs = itertools.product(values[positive], values[~positive])
    wins = [1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs]
    assert auroc(score=values, positive=positive) == pytest.approx(
        np.mean(wins), rel=1e-12
    )


@pytest.mark.parametrize("decimals", DECIMALS)
def test_weights_count_as_repetitions(decimals):
    values, _ = items(decimals, n=50)
    rng = np.random.default_rng(9)
    up, down = rng.integers(0, 4, (2, 50))
    repeated = np.concatenate([np.repeat(values, up), np.repeat(values, down)])
    positive = np.arange(len(repeated)) < up.sum()
    expected = auroc(score=repeated, positive=positive)
    assert weighted_auroc(
        score=values, positive_weight=up, negative_weight=down
    ) == pytest.approx(expected, rel=1e-12)
    assert weighted_auroc(
        score=values, positive_weight=up / 7, negative_weight=down * 3.0
    ) == pytest.approx(expected)


@pytest.mark.parametrize("tpr", [0.05, 0.5, 0.9, 0.95, 1.0])
@pytest.mark.parametrize("decimals", DECIMALS)
def test_fpr_at_tpr_is_the_least_over_all_thresholds(decimals, tpr):
    values, positive = items(decimals)
    reaching = [
        np.mean(values[~positive] >= t)
        for t in values
        if np.mean(values[positive] >= t) >= tpr
    ]
    assert fpr_at_tpr(score=values, positive=positive, tpr=tpr) == min(reaching)


def test_a_rate_that_is_met_exactly_counts_as_met():
    # 0.07 * 100 is a hair above 7 in floating point; 7 of 100 still reach 0.07.
    values = np.arange(200.0)
    positive = values >= 100
    assert (
        fpr_at_tpr(score=np.where(positive, values, 193.5), positive=positive, tpr=0.07)
        == 1.0
    )
    assert (
        fpr_at_tpr(score=np.where(positive, values, 192.5), positive=positive, tpr=0.07)
        == 0.0
    )


@pytest.mark.parametrize("decimals", DECIMALS)
def test_the_roc_curve_equals_scikit_learn_with_every_threshold_kept(decimals):
    values, positive = items(decimals)
    expected = sklearn.metrics.roc_curve(positive, values, drop_intermediate=False)
    for ours, theirs in zip(
        roc_curve(score=values, positive=positive), expected, strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("decimals", DECIMALS)
def test_the_precision_recall_curve_equals_scikit_learn_read_backwards(decimals):
    values, positive = items(decimals)
    precision, recall, threshold = sklearn.metrics.precision_recall_curve(
        positive, values
    )
    ours = precision_recall_curve(score=values, positive=positive)
    np.testing.assert_allclose(ours.precision, precision[::-1], rtol=1e-12)
    np.testing.assert_allclose(ours.recall, recall[::-1], rtol=1e-12)
    np.testing.assert_allclose(ours.threshold[1:], threshold[::-1], rtol=1e-12)


def test_curves_of_one_class_are_nan_where_undefined():
    only = roc_curve(score=[0.1, 0.2], positive=[True, True])
    assert np.isnan(only.fpr).all()
    assert only.tpr.tolist() == [0.0, 0.5, 1.0]
    assert np.isnan(
        precision_recall_curve(score=[0.1, 0.2], positive=[False, False]).recall
    ).all()


@pytest.mark.parametrize("tpr", [0.0, 1.5, np.nan])
def test_a_rate_outside_the_unit_interval_is_refused(tpr):
    with pytest.raises(ValueError, match="tpr must lie in"):
        fpr_at_tpr(score=[0.1, 0.2], positive=[False, True], tpr=tpr)


def test_negative_weights_are_refused():
    with pytest.raises(ValueError, match="negative_weight must not be negative, row 1"):
        weighted_auroc(
            score=[0.1, 0.2], positive_weight=[1, 1], negative_weight=[1, -1]
        )


def test_flags_that_are_no_flags_are_refused():
    with pytest.raises(ValueError, match="positive must be 0 or 1"):
        auroc(score=[0.1, 0.2], positive=[0, 2])
    with pytest.raises(ValueError, match="positive must have 2 items, got 3"):
        auroc(score=[0.1, 0.2], positive=[0, 1, 1])
