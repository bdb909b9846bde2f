"""Few items, or few errors: intervals that hold, and no claim where none does."""

import numpy as np
import pytest

from qualms import scores
from qualms.inference import (
    Design,
    confidence_set,
    influence_difference,
    influence_of,
    influence_replicates,
    interval_of,
    mean_influence,
    why_uncompared,
)

LOSSES = (scores.ece, scores.smooth_ece, scores.nll, scores.brier)


def sure(n, confidence, seed):
    """Calibrated predictions of one confidence."""
    rng = np.random.default_rng(seed)
    target = rng.random(n) < 0.5
    says_one = target == (rng.random(n) < confidence)
    return np.where(says_one, confidence, 1.0 - confidence), target.astype(int)


@pytest.mark.parametrize(("confidence", "n"), [(0.99, 100), (0.995, 200), (0.97, 30)])
def test_a_calibrated_model_that_is_seldom_wrong_may_have_no_error(confidence, n):
    drawn = (sure(n, confidence, seed) for seed in range(200))
    ends = [interval_of(influence_of(scores.ece, *items)) for items in drawn]
    assert np.mean([found.low == 0.0 for found in ends]) >= 0.92


@pytest.mark.parametrize("score", LOSSES)
def test_whether_there_is_an_interval_does_not_depend_on_luck(score):
    drawn = [sure(100, 0.98, seed) for seed in range(40)]
    assert not any(interval_of(influence_of(score, *i)).reason for i in drawn)


def test_excess_risk_has_an_interval_without_errors_too():
    certain = np.linspace(0.0, 1.0, 100)
    found = interval_of(
        influence_of(scores.eaurc, risk=np.zeros(100), uncertainty=certain)
    )
    assert found.low == 0.0
    assert found.high == pytest.approx(1 - 0.025**0.01)


def test_ten_right_items_leave_a_large_error_possible():
    found = interval_of(influence_of(scores.ece, np.full(10, 0.97), np.ones(10, int)))
    assert found.high > 0.3


def test_few_right_items_bound_the_error_as_few_wrong_ones_do():
    # Sure of .51 and nearly always wrong: the true error is near .5.
    probs, target = np.full(50, 0.51), np.zeros(50, int)
    found = interval_of(influence_of(scores.ece, probs, target))
    assert 0.4 < found.low < 0.51 <= found.high < 0.6


def test_clusters_without_an_error_count_once():
    probs, target = np.full(240, 0.97), np.ones(240, int)
    pairs = Design(items=240, cluster=np.arange(240) // 4)
    influence = influence_of(scores.ece, probs, target)
    assert interval_of(influence, design=pairs).high > interval_of(influence).high


def test_repeats_with_and_without_errors_have_an_interval():
    repeats = [influence_of(scores.nll, *sure(100, 0.97, seed)) for seed in (0, 1)]
    many = influence_of(scores.nll, np.full(100, 0.7), np.arange(100) % 3 == 0)
    assert not interval_of([many, *repeats]).reason


@pytest.mark.parametrize("n", [1, 3, 9])
def test_fewer_than_ten_items_claim_nothing(n):
    a, b = mean_influence(np.ones(n)), mean_influence(np.zeros(n))
    found = influence_difference(a, b)
    assert np.isnan([found.low, found.high, found.p]).all()
    items = "1 item" if n == 1 else f"{n} items"
    assert f"{items} are too few" in why_uncompared([[a], [b]], Design(items=n))


def test_too_few_clusters_claim_nothing():
    design = Design(items=40, cluster=np.arange(40) // 8)
    reason = why_uncompared([[mean_influence(np.ones(40))]], design)
    assert reason.startswith("5 clusters are too few")


def test_equal_decisions_may_still_differ():
    right = np.r_[np.ones(15), np.zeros(5)]
    a, b = (mean_influence(right, about=scores.about(scores.accuracy)) for _ in "ab")
    found = influence_difference(a, b)
    assert found.low < -0.1
    assert found.high > 0.1
    assert found.p == pytest.approx(1.0)


def test_equal_values_do_not_differ_by_rounding():
    lengths = np.full(300, 0.1 + 0.2)
    a, b = mean_influence(lengths), mean_influence(lengths * (1 + 4e-16))
    assert a.value != b.value
    found = influence_difference(a, b)
    assert (found.value, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)
    rows = {"a": a, "b": b}
    values = {name: row.value for name, row in rows.items()}
    group = confidence_set(values, influence_replicates(rows), better="lower")
    assert group.members == ("a", "b")


def test_a_class_where_no_decision_differs_adds_its_own_doubt():
    target = np.r_[np.zeros(195, int), np.ones(5, int)]
    first = np.where(target, 0.9, 0.1)
    second = first.copy()
    second[:20] = 0.9
    a, b = (
        influence_of(scores.balanced_accuracy, probs, target)
        for probs in (first, second)
    )
    found = influence_difference(a, b)
    # One of the five may well have differed: a step of a tenth.
    assert found.high - found.value > 0.19


def test_areas_of_five_positives_are_compared_and_of_four_are_not():
    rng = np.random.default_rng(0)
    value, kind = rng.random(100), np.arange(100)
    rows = [influence_of(scores.auroc, score=value, positive=kind < k) for k in (4, 5)]
    assert "only 4 items are of one class" in rows[0].uncompared
    assert not rows[1].uncompared


def test_errors_that_happen_to_be_0_or_1_are_no_share():
    found = influence_of(scores.mae, [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0])
    assert found.scale == "log"
    assert influence_of(scores.accuracy, [0.1, 0.9], [0, 0]).scale == "share"


def test_few_items_have_a_wider_interval_of_nested_levels():
    rng = np.random.default_rng(0)

    def ends(n):
        mean, noise = rng.standard_normal(n), rng.standard_normal(n)
        return interval_of(
            influence_of(
                scores.regression_ece, mean=mean, var=np.ones(n), target=mean + noise
            )
        )

    few = [ends(200) for _ in range(40)]
    assert np.mean([found.low < 0.01 for found in few]) >= 0.9
