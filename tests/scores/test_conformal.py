"""Conformal offsets and selection thresholds, by brute force and simulation."""

import math
from fractions import Fraction

import numpy as np
import pytest

from qualms.scores.arguments import called_in_order
from qualms.scores.conformal import (
    accept,
    conformal_offset,
    mondrian_offset,
    prediction_rate,
    selection_threshold,
    weighted_conformal_offset,
)
from qualms.scores.intervals import coverage


def ranks(count):
    """Items whose distance from their interval is 1..count."""
    return np.zeros(count), np.zeros(count), np.arange(1.0, count + 1)


@pytest.mark.parametrize("alpha", ["0.01", "0.05", "0.1", "0.15", "0.2", "0.3", "0.7"])
def test_the_rank_is_exact_for_every_count(alpha):
    share = 1 - Fraction(alpha)
    for count in [*range(1, 120), 999, 1999, 9999]:
        rank = math.ceil(share * (count + 1))
        value = called_in_order(conformal_offset, *ranks(count), alpha=float(alpha))
        assert value == (rank if rank <= count else math.inf)


@pytest.mark.parametrize("rate", ["0.05", "0.1", "0.3", "0.55", "0.7", "0.95", "0.99"])
def test_the_threshold_accepts_just_enough_items_for_every_count(rate):
    for count in [*range(1, 120), 999, 2000, 10_000]:
        threshold = selection_threshold(np.arange(1.0, count + 1), rate=float(rate))
        assert threshold == math.ceil(Fraction(rate) * count)


def test_tied_values_are_accepted_together():
    select = np.array([1.0, 2.0, 2.0, 2.0, 3.0])
    threshold = selection_threshold(select, rate=0.4)
    assert threshold == 2.0
    assert accept(select, threshold).tolist() == [True, True, True, True, False]
    assert prediction_rate(select, threshold) == 0.8


def test_the_offset_may_shrink_intervals():
    lower, upper = np.full(9, -10.0), np.full(9, 10.0)
    target = np.arange(-4.0, 5.0)
    offset = conformal_offset(lower=lower, upper=upper, target=target, alpha=0.2)
    assert offset == -6.0
    assert coverage(lower=lower - offset, upper=upper + offset, target=target) == 1.0


def test_coverage_of_new_items_is_at_least_nominal_on_average():
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(400):
        target = rng.normal(size=19 + 50)
        zero = np.zeros_like(target)
        offset = conformal_offset(
            lower=zero[:19], upper=zero[:19], target=target[:19], alpha=0.1
        )
        covered.append(np.mean(np.abs(target[19:]) <= offset))
    # (N + 1)(1 - alpha) is whole here, so the coverage is 0.9 exactly in expectation.
    assert np.mean(covered) == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize("count", [3, 9, 19, 100])
@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
def test_equal_weights_give_the_plain_offset(count, alpha):
    rng = np.random.default_rng(count)
    lower, upper, target = np.sort(rng.normal(size=(3, count)), axis=0)
    for size in (1.0, 0.3):
        weight = np.full(count, size)
        offset = weighted_conformal_offset(
            lower=lower,
            upper=upper,
            target=target,
            weight=weight,
            test_weight=[size, size],
            alpha=alpha,
        )
        expected = conformal_offset(
            lower=lower, upper=upper, target=target, alpha=alpha
        )
        assert offset.tolist() == [expected, expected]


def brute_weighted_offset(excess, weight, own, alpha):
    total = weight.sum() + own
    for value in np.sort(excess):
        if weight[excess <= value].sum() / total >= 1 - alpha:
            return value
    return math.inf


def test_weighted_offsets_are_those_of_brute_force():
    rng = np.random.default_rng(1)
    for _ in range(20):
        target = np.round(rng.normal(size=40), 1)
        weight = rng.exponential(size=40) * (rng.random(40) < 0.8)
        own = rng.exponential(size=30) * 5
        zero = np.zeros(40)
        offset = weighted_conformal_offset(
            lower=zero,
            upper=zero,
            target=target,
            weight=weight,
            test_weight=own,
            alpha=0.25,
        )
        expected = [
            brute_weighted_offset(np.abs(target), weight, each, 0.25) for each in own
        ]
        np.testing.assert_array_equal(offset, expected)
        assert np.isinf(offset).any()


def test_weights_repair_coverage_under_covariate_shift():
    rng = np.random.default_rng(2)
    plain, weighted = [], []
    for _ in range(60):
        x = np.append(rng.random(400), rng.beta(4, 1, size=200))
        target = x * rng.normal(size=600)
        zero, ratio = np.zeros(400), 4 * x**3
        args = (zero, zero, target[:400])
        wide = called_in_order(
            weighted_conformal_offset, *args, ratio[:400], ratio[400:], alpha=0.1
        )
        weighted.append(np.mean(np.abs(target[400:]) <= wide))
        narrow = called_in_order(conformal_offset, *args, alpha=0.1)
        plain.append(np.mean(np.abs(target[400:]) <= narrow))
    assert np.mean(plain) < 0.85
    assert np.mean(weighted) == pytest.approx(0.9, abs=0.015)


def test_bad_weights_are_refused():
    items = ranks(2)
    with pytest.raises(ValueError, match="weight must not be negative, row 1 is -1"):
        called_in_order(
            weighted_conformal_offset, *items, [1.0, -1.0], [1.0], alpha=0.1
        )
    with pytest.raises(ValueError, match="positive for at least one item"):
        called_in_order(weighted_conformal_offset, *items, [0.0, 0.0], [1.0], alpha=0.1)
    with pytest.raises(ValueError, match="test_weight must have at least one item"):
        called_in_order(weighted_conformal_offset, *items, [1.0, 1.0], [], alpha=0.1)


def test_levels_outside_the_open_unit_interval_are_refused():
    with pytest.raises(ValueError, match="rate must lie strictly between 0 and 1"):
        selection_threshold([1.0], rate=1.0)
    with pytest.raises(ValueError, match="alpha must lie strictly between 0 and 1"):
        called_in_order(conformal_offset, *ranks(3), alpha=0.0)


def test_a_nan_threshold_is_refused():
    with pytest.raises(ValueError, match="threshold must be a number, got nan"):
        accept([1.0], math.nan)
    assert accept([1.0], math.inf).all()


def test_mondrian_offsets_are_those_of_each_group_alone():
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b"], 80)
    target = rng.normal(size=80) * np.where(group == "a", 1.0, 5.0)
    zeros = np.zeros(80)
    found = mondrian_offset(
        lower=zeros,
        upper=zeros,
        target=target,
        group=group,
        test_group=["b", "a", "new"],
        alpha=0.1,
    )
    for place, name in enumerate("ba"):
        own = group == name
        alone = conformal_offset(
            lower=zeros[own], upper=zeros[own], target=target[own], alpha=0.1
        )
        assert found[place] == alone
    assert found[2] == math.inf


def test_mondrian_intervals_cover_every_group():
    rng = np.random.default_rng(0)
    inside = {"a": [], "b": []}
    for _ in range(200):
        group = np.repeat(["a", "b"], [60, 60])
        wide = np.where(group == "a", 1.0, 5.0)
        target, new = rng.normal(size=(2, 120)) * wide
        zeros = np.zeros(120)
        offset = mondrian_offset(
            lower=zeros,
            upper=zeros,
            target=target,
            group=group,
            test_group=group,
            alpha=0.2,
        )
        for name, found in inside.items():
            found.append((np.abs(new) <= offset)[group == name].mean())
    assert all(0.79 < np.mean(found) < 0.825 for found in inside.values())


def test_groups_must_fit_the_items():
    with pytest.raises(ValueError, match="group must have shape"):
        mondrian_offset(
            lower=[0.0],
            upper=[0.0],
            target=[1.0],
            group=["a", "b"],
            test_group=["a"],
            alpha=0.1,
        )
    with pytest.raises(ValueError, match="test_group must have shape"):
        mondrian_offset(
            lower=[0.0],
            upper=[0.0],
            target=[1.0],
            group=["a"],
            test_group=[["a"]],
            alpha=0.1,
        )
