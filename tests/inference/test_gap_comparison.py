"""Comparing errors that sum gaps: noise is no difference, and clear gaps are."""

import numpy as np
import pytest

from qualms import scores
from qualms.inference import compare_gaps, influence_of, sampling_design

ERRORS = [scores.ece, scores.adaptive_ece, scores.classwise_ece, scores.smooth_ece]


def _sure(rng, items, *, by=1.0):
    """Probabilities that are `by` times as sure as they should be, and targets."""
    logit = 1.5 * rng.normal(size=items)
    target = (rng.random(items) < 1 / (1 + np.exp(-logit))).astype(int)
    return 1 / (1 + np.exp(-by * logit)), target


def _compared(score, rows, target, cluster=None):
    table = {name: influence_of(score, row, target) for name, row in rows.items()}
    return compare_gaps(table, design=sampling_design(len(target), cluster=cluster))


@pytest.mark.parametrize("score", ERRORS)
def test_a_clear_difference_is_found(score):
    right, target = _sure(np.random.default_rng(0), 2000)
    sure = right**3 / (right**3 + (1 - right) ** 3)
    found = _compared(score, {"sure": sure, "right": right}, target)
    assert found.group.members == ("right",)
    assert found.group.eliminated == ("sure",)
    value = score(sure, target) - score(right, target)
    difference = found.differences["sure"]
    assert difference.value == pytest.approx(value)
    assert 0.0 < difference.low < value < difference.high
    assert difference.p < 0.05
    assert found.differences["right"].value == 0.0


@pytest.mark.parametrize("score", ERRORS)
def test_a_row_does_not_differ_from_itself(score):
    prob, target = _sure(np.random.default_rng(1), 500, by=2.0)
    found = _compared(score, {"one": prob, "same": prob}, target)
    assert found.group.members == ("one", "same")
    assert found.differences["same"].p == 1.0


@pytest.mark.parametrize("score", ERRORS[:2])
def test_noise_alone_is_no_difference(score):
    # Both are calibrated; one spreads its items over many bins, which are noisier.
    excluded = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        spread, target = _sure(rng, 600)
        flat = np.full(600, 0.5)
        found = _compared(score, {"spread": spread, "flat": flat}, target)
        excluded += len(found.group.members) < 2
    assert excluded <= 5  # 2 are expected at 5 %; 6 have a chance of 1 %


@pytest.mark.parametrize("score", ERRORS)
def test_item_order_changes_no_member(score):
    right, target = _sure(np.random.default_rng(3), 600)
    rows = {"right": right, "sure": np.clip(2 * right - 0.5, 0.01, 0.99)}
    order = np.random.default_rng(4).permutation(600)
    moved = {name: row[order] for name, row in rows.items()}
    one, other = _compared(score, rows, target), _compared(score, moved, target[order])
    assert one.group.members == other.group.members
    assert one.differences["sure"].low == pytest.approx(
        other.differences["sure"].low, abs=1e-6
    )


def test_items_repeated_in_clusters_make_no_claim_surer():
    right, target = _sure(np.random.default_rng(5), 600)
    rows = {"right": right, "sure": np.clip(1.6 * right - 0.3, 0.01, 0.99)}
    once = _compared(scores.ece, rows, target)
    twice = {name: row.repeat(2) for name, row in rows.items()}
    cluster = np.arange(600).repeat(2)
    both = _compared(scores.ece, twice, target.repeat(2), cluster)
    one, other = (found.differences["sure"] for found in (once, both))
    assert other.low == pytest.approx(one.low, abs=2e-3)
    assert other.high == pytest.approx(one.high, abs=2e-3)


def test_repeats_of_a_row_count_as_one_and_add_their_spread():
    rng = np.random.default_rng(6)
    right, target = _sure(rng, 800)
    seeds = [np.clip(right + step, 0.01, 0.99) for step in (-0.12, 0.12)]
    design = sampling_design(800)
    table = {
        "right": [influence_of(scores.ece, right, target)] * 2,
        "seeds": [influence_of(scores.ece, prob, target) for prob in seeds],
    }
    mean = np.mean([row.value for row in table["seeds"]])
    comparison = compare_gaps(table, design=design)
    assert comparison.differences["seeds"].value == pytest.approx(
        mean - table["right"][0].value
    )


def test_errors_of_regression_are_compared():
    rng = np.random.default_rng(7)
    mean = rng.normal(size=900)
    target = mean + rng.normal(size=900)
    table = {
        name: influence_of(
            scores.regression_ece, mean=mean, var=np.full(900, var), target=target
        )
        for name, var in (("right", 1.0), ("wide", 9.0))
    }
    comparison = compare_gaps(table, design=sampling_design(900))
    assert comparison.group.members == ("right",)
