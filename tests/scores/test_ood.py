"""Shift detection and SCOD against scikit-learn and their definitions."""

import numpy as np
import pytest
from sklearn.metrics import auc, precision_recall_curve, roc_auc_score

from qualms.scores.ood import (
    ood_auprc,
    ood_auroc,
    ood_found,
    ood_fpr95,
    scod_aurc,
    scod_auroc,
)
from qualms.scores.selective import aurc


def items(seed, n=400):
    rng = np.random.default_rng(seed)
    shifted = rng.random(n) < 0.3
    correct = rng.random(n) < 0.8
    uncertainty = np.round(rng.normal(size=n) + shifted + ~correct, 1)
    return correct, shifted, uncertainty


@pytest.mark.parametrize("seed", range(3))
def test_areas_agree_with_scikit_learn(seed):
    correct, shifted, uncertainty = items(seed)
    area = roc_auc_score(shifted, uncertainty)
    assert ood_auroc(uncertainty=uncertainty, shifted=shifted) == pytest.approx(
        area, rel=1e-12
    )
    precision, recall, _ = precision_recall_curve(shifted, uncertainty)
    area = auc(recall, precision)
    assert ood_auprc(uncertainty=uncertainty, shifted=shifted) == pytest.approx(
        area, rel=1e-12
    )
    area = roc_auc_score(shifted | ~correct, uncertainty)
    value = scod_auroc(correct=correct, shifted=shifted, uncertainty=uncertainty)
    assert value == pytest.approx(area, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_fpr95_is_read_at_the_largest_threshold_that_catches_95_percent(seed):
    _, shifted, uncertainty = items(seed)
    threshold = max(
        level
        for level in np.unique(uncertainty)
        if np.mean(uncertainty[shifted] >= level) >= 0.95
    )
    flagged = np.mean(uncertainty[~shifted] >= threshold)
    assert ood_fpr95(uncertainty=uncertainty, shifted=shifted) == flagged


@pytest.mark.parametrize("cost", [0.0, 0.5, 3.0])
def test_scod_aurc_charges_the_cost_for_every_kept_shifted_item(cost):
    correct, shifted, uncertainty = items(7)
    risk = [cost if s else float(not c) for c, s in zip(correct, shifted, strict=True)]
    value = scod_aurc(
        correct=correct, shifted=shifted, uncertainty=uncertainty, cost=cost
    )
    assert value == pytest.approx(aurc(risk=risk, uncertainty=uncertainty), rel=1e-12)


def test_answers_on_shifted_items_do_not_matter():
    correct, shifted, uncertainty = items(8)
    other = np.where(shifted, ~correct, correct)
    for score in (scod_auroc, scod_aurc):
        value = score(correct=correct, shifted=shifted, uncertainty=uncertainty)
        assert value == score(correct=other, shifted=shifted, uncertainty=uncertainty)


def test_without_shifted_items_scod_is_failure_detection():
    correct, _, uncertainty = items(9)
    none = np.zeros(len(correct), dtype=bool)
    assert scod_auroc(
        correct=correct, shifted=none, uncertainty=uncertainty
    ) == pytest.approx(roc_auc_score(~correct, uncertainty), rel=1e-12)
    assert scod_aurc(correct=correct, shifted=none, uncertainty=uncertainty) == aurc(
        risk=~correct, uncertainty=uncertainty
    )


@pytest.mark.parametrize("cost", [-1.0, np.nan, np.inf])
def test_a_bad_cost_is_refused(cost):
    with pytest.raises(ValueError, match="cost must be a number of 0 or more"):
        scod_aurc(correct=[1], shifted=[False], uncertainty=[0.1], cost=cost)


def test_arguments_of_different_length_are_refused_by_name():
    with pytest.raises(ValueError, match="correct must have 2 items, got 1"):
        scod_auroc(correct=[1], shifted=[False, True], uncertainty=[0.1, 0.2])


@pytest.mark.parametrize(("seed", "share"), [(0, 0.5), (1, 0.29), (2, 0.9)])
def test_the_share_found_is_the_mean_over_orders_of_tied_items(seed, share):
    _, shifted, uncertainty = items(seed, n=101)
    rng = np.random.default_rng(seed)
    each = []
    for _ in range(4000):
        order = np.lexsort((rng.random(101), -uncertainty))
        each.append(shifted[order[: int(share * 101)]].sum() / shifted.sum())
    found = ood_found(uncertainty=uncertainty, shifted=shifted, share=share)
    assert found == pytest.approx(np.mean(each), abs=4 * np.std(each) / 60 + 1e-9)


def test_the_share_found_counts_whole_items():
    uncertainty, shifted = np.arange(5.0), np.array([1, 0, 1, 0, 1], bool)
    assert ood_found(uncertainty=uncertainty, shifted=shifted) == pytest.approx(1 / 3)
    assert ood_found(uncertainty=-uncertainty, shifted=shifted) == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="share must lie between 0 and 1"):
        ood_found(uncertainty=uncertainty, shifted=shifted, share=1.0)
