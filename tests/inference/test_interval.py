"""Intervals: closed forms, laws, clusters, samples and seeds."""

from functools import partial

import numpy as np
import pytest

from qualms import scores
from qualms.inference import (
    influence_of,
    interval_of,
    joined_clusters,
    mean_influence,
    sampling_design,
)
from qualms.scores.arguments import called_in_order

RNG = np.random.default_rng(3)
PROB = RNG.random(300)
TARGET = (RNG.random(300) < PROB).astype(int)
RISK = ((PROB > 0.5) != TARGET).astype(float)
CASES = [
    (scores.accuracy, (PROB, TARGET)),
    (scores.balanced_accuracy, (PROB, TARGET)),
    (scores.mcc, (PROB, TARGET)),
    (scores.nll, (PROB, TARGET)),
    (scores.brier, (PROB, TARGET)),
    (scores.auroc, (PROB, TARGET == 1)),
    (scores.auprc, (PROB, TARGET == 1)),
    (scores.fpr_at_tpr, (PROB, TARGET == 1)),
    (scores.aurc, (RISK, PROB.round(1))),
    (scores.eaurc, (RISK, PROB)),
    (scores.augrc, (RISK, PROB)),
    (scores.risk_at_coverage, (RISK, PROB)),
]


def _ends(found):
    return found.low, found.high


def test_accuracy_has_wilsons_interval():
    interval = interval_of(influence_of(scores.accuracy, PROB, TARGET))
    p, n, z = 1 - RISK.mean(), 300, 1.959963984540054
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    assert _ends(interval) == pytest.approx((centre - half, centre + half), rel=1e-6)


@pytest.mark.parametrize(("score", "arrays"), CASES)
def test_interval_holds_the_value_within_the_range(score, arrays):
    interval = interval_of(influence_of(score, *arrays))
    about = scores.about(score)
    assert (
        about.low
        <= interval.low
        <= called_in_order(score, *arrays)
        <= interval.high
        <= about.high
    )
    assert interval.method
    assert not interval.reason


@pytest.mark.parametrize(("score", "arrays"), CASES)
def test_item_order_does_not_matter(score, arrays):
    order = np.random.default_rng(0).permutation(300)
    one = interval_of(influence_of(score, *arrays))
    other = interval_of(influence_of(score, *(array[order] for array in arrays)))
    assert _ends(one) == pytest.approx(_ends(other), rel=1e-9)


@pytest.mark.parametrize(("score", "arrays"), CASES)
def test_clusters_of_one_item_are_no_clusters(score, arrays):
    influence = influence_of(score, *arrays)
    alone = sampling_design(300, cluster=np.arange(300))
    assert alone.cluster is None
    assert _ends(interval_of(influence, design=alone)) == _ends(interval_of(influence))


@pytest.mark.parametrize(("score", "arrays"), CASES)
def test_repeating_every_item_in_a_cluster_does_not_shorten_the_interval(score, arrays):
    one = interval_of(influence_of(score, *arrays))
    twice = [np.repeat(array, 2) for array in arrays]
    design = sampling_design(600, cluster=np.repeat(np.arange(300), 2))
    other = interval_of(influence_of(score, *twice), design=design)
    width, wider = one.high - one.low, other.high - other.low
    # The spread over clusters is taken to be less certain than that over items.
    assert wider == pytest.approx(width, rel=0.08)


def test_an_item_listed_twice_is_one_unit():
    index = np.append(np.arange(100), np.arange(100))
    design = sampling_design(100).of(index)
    assert design.units() == 100


def test_samples_of_fixed_size_leave_out_what_lies_between_them():
    values = np.append(np.zeros(50) + 0.2, np.ones(50) * 0.8)
    values += np.tile([-0.1, 0.1], 50)
    sample = np.repeat([0, 1], 50)
    found = mean_influence(values)
    fixed = interval_of(found, design=sampling_design(100, sample=sample))
    free = interval_of(found)
    assert fixed.high - fixed.low < 0.5 * (free.high - free.low)


def test_seeds_widen_the_interval_of_their_mean():
    rng = np.random.default_rng(5)
    repeats = [
        influence_of(scores.nll, np.clip(PROB + step, 0.02, 0.98), TARGET)
        for step in rng.normal(0, 0.1, 5)
    ]
    assert len({found.value for found in repeats}) == 5
    same = interval_of([repeats[0]] * 5)
    one = interval_of(repeats[0])
    assert _ends(same) == pytest.approx(_ends(one))
    several = interval_of(repeats)
    assert several.high - several.low > one.high - one.low
    assert "5 seeds" in several.method


def test_a_repeat_of_zeros_and_ones_makes_no_share_of_the_others():
    sizes = np.append(np.ones(31), 0.0), np.append(np.full(30, 2.0), [1.0, 0.0])
    sizes = *sizes, np.append(np.full(20, 2.0), np.ones(12))
    repeats = [mean_influence(each, bound=2.0) for each in sizes]
    interval = interval_of(repeats)
    middle = np.mean([each.value for each in repeats])
    assert 0.0 <= interval.low < middle < interval.high <= 2.0
    assert _ends(interval_of(repeats[::-1])) == pytest.approx(_ends(interval))


def test_no_error_seen_still_leaves_some_possible():
    interval = interval_of(
        influence_of(scores.aurc, risk=np.zeros(100), uncertainty=np.arange(100.0))
    )
    assert interval.low == 0.0
    assert interval.high == pytest.approx(1 - 0.025 ** (1 / 100))
    positive = np.arange(100) > 79
    interval = interval_of(
        influence_of(scores.auroc, score=np.arange(100.0), positive=positive)
    )
    assert interval.low == pytest.approx(0.025 ** (1 / 20))
    assert interval.high == 1.0


@pytest.mark.parametrize(
    "score", [scores.balanced_accuracy, scores.mcc, scores.accuracy]
)
def test_perfect_classes_have_an_interval_below_one(score):
    target = np.arange(60) % 3 == 0
    interval = interval_of(influence_of(score, target.astype(float), target))
    assert 0.7 < interval.low < 1.0
    assert interval.high == 1.0


def test_equal_items_have_no_interval():
    interval = interval_of(mean_influence([2.0, 2.0, 2.0]))
    assert np.isnan(interval.low)
    assert "alike" in interval.reason


def test_a_design_of_other_items_is_refused():
    with pytest.raises(ValueError, match="design is of 4 items"):
        interval_of(mean_influence([1.0, 2.0]), design=sampling_design(4))


def test_level_must_be_a_share():
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        interval_of(mean_influence([1.0, 2.0]), level=95)


def test_options_are_honoured():
    score = partial(scores.risk_at_coverage, coverage=0.5)
    influence = influence_of(score, RISK, PROB)
    assert influence.value == called_in_order(score, RISK, PROB)


def test_few_errors_are_bounded_and_not_compared():
    prob, target = np.linspace(0.6, 0.99, 100), np.ones(100, int)
    target[:3] = 0
    influence = influence_of(scores.nll, prob, target)
    found = interval_of(influence)
    # As if the share of errors were .085, and all of them the surest items.
    assert found.low < influence.value < 0.4 < found.high < 0.7
    assert "few" in found.method
    assert "only 3 of 100 items are wrong" in influence.uncompared


def test_squared_errors_have_no_interval_but_can_be_compared():
    influence = influence_of(scores.rmse, PROB, RISK)
    assert "heavy tails" in interval_of(influence).reason
    assert influence.values is not None


def test_units_and_clusters_are_joined():
    assert joined_clusters([0, 0, 1, 1, 2]).tolist() == [0, 0, 1, 1, 2]
    joined = joined_clusters([0, 0, 1, 1, 2], ["a", "b", "c", "d", "d"])
    assert joined.tolist() == [0, 0, 1, 1, 1]
