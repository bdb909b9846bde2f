"""The rows that may be best against a slow transcription of the rule, and laws."""

import itertools
import math

import numpy as np
import pytest

from qualms import scores
from qualms.inference import (
    confidence_set,
    influence_difference,
    influence_of,
    influence_replicates,
    mean_influence,
    sampling_design,
    seed_spread,
)


def _directly(loss, replicates, alpha):
    """Step by step: the worst row, by its difference from the best, leaves first."""
    left = sorted(loss, key=loss.get)
    best, rejected = left[0], []
    error = {
        pair: (replicates[pair[0]] - replicates[pair[1]]).std(ddof=1)
        for pair in itertools.combinations(left, 2)
    }
    while len(left) > 1:
        t = {row: (loss[row] - loss[best]) / error[best, row] for row in left[1:]}
        worst = max(t, key=t.get)
        gaps = {
            (i, j): replicates[i] - replicates[j]
            for i, j in itertools.combinations(left, 2)
        }
        drawn = [abs(gap - gap.mean()) / error[pair] for pair, gap in gaps.items()]
        largest = np.max(drawn, axis=0)
        p = (1 + (largest >= t[worst]).sum()) / (1 + len(largest))
        if p > alpha:
            break
        left.remove(worst)
        rejected.append(worst)
    return set(left), tuple(rejected)


@pytest.mark.parametrize("seed", range(12))
def test_the_set_is_that_of_a_slow_transcription(seed):
    rng = np.random.default_rng(seed)
    rows = "abcdefg"
    mixed = rng.normal(size=(7, 7)) / 3 + np.eye(7)
    noise = rng.normal(size=(400, 7)) @ mixed
    loss = dict(zip(rows, rng.normal(0, 2, 7), strict=True))
    replicates = {row: loss[row] + noise[:, i] for i, row in enumerate(rows)}
    tied_rows = confidence_set(loss, replicates, better="lower")
    assert (set(tied_rows.members), tied_rows.eliminated) == _directly(
        loss, replicates, 0.05
    )
    assert tied_rows.best == min(loss, key=loss.get)
    assert tied_rows.best in tied_rows.members


def test_higher_is_better_the_other_way_round():
    rng = np.random.default_rng(0)
    noise = dict(zip("ab", rng.normal(size=(2, 300)), strict=True))
    values = {"a": 10.0, "b": 0.0}
    assert confidence_set(values, noise, better="higher").members == ("a",)
    assert confidence_set(values, noise, better="lower").members == ("b",)


def test_p_values_never_fall_along_the_elimination():
    rng = np.random.default_rng(1)
    rows = [str(i) for i in range(8)]
    noise = dict(zip(rows, rng.normal(size=(8, 500)), strict=True))
    values = dict(zip(rows, rng.normal(0, 3, 8), strict=True))
    tied_rows = confidence_set(values, noise, better="lower")
    p = [tied_rows.p[row] for row in tied_rows.eliminated]
    assert p == sorted(p)
    assert tied_rows.p[tied_rows.best] == 1.0
    assert all(tied_rows.p[row] > 0.05 for row in tied_rows.members)


def test_undefined_rows_take_no_part():
    noise = dict(
        zip("abc", np.random.default_rng(2).normal(size=(3, 200)), strict=True)
    )
    tied_rows = confidence_set(
        {"a": 1.0, "b": math.nan, "c": 1.0}, noise, better="lower"
    )
    assert tied_rows.members == ("a", "c")
    assert math.isnan(tied_rows.p["b"])


def test_a_single_row_is_the_best():
    tied_rows = confidence_set({"a": 1.0}, {"a": [1.0]}, better="lower")
    assert tied_rows.members == ("a",)
    assert not tied_rows.reason


def test_too_few_replicates_claim_nothing():
    noise = dict(zip("ab", np.random.default_rng(2).normal(size=(2, 50)), strict=True))
    tied_rows = confidence_set({"a": 1.0, "b": 99.0}, noise, better="lower")
    assert tied_rows.members == ("a", "b")
    assert "too few" in tied_rows.reason


def test_equal_rows_stay_together():
    noise = np.random.default_rng(2).normal(size=200)
    tied_rows = confidence_set(
        {"a": 1.0, "b": 1.0}, {"a": noise, "b": noise}, better="lower"
    )
    assert tied_rows.members == ("a", "b")


def test_replicates_must_be_paired():
    with pytest.raises(ValueError, match="must be paired"):
        confidence_set(
            {"a": 1.0, "b": 2.0},
            {"a": np.zeros(200), "b": np.zeros(300)},
            better="lower",
        )
    with pytest.raises(ValueError, match="have none"):
        confidence_set({"a": 1.0, "b": 2.0}, {"a": np.zeros(200)}, better="lower")
    with pytest.raises(ValueError, match="better must be"):
        confidence_set({"a": 1.0}, {}, better="neither")


def test_replicates_of_influences_have_their_covariance():
    rng = np.random.default_rng(3)
    common = rng.normal(size=500)
    rows = {name: mean_influence(10 + common + rng.normal(size=500)) for name in "abc"}
    drawn = influence_replicates(rows, replicates=20_000)
    found = np.cov([drawn[name] for name in "abc"])
    wanted = np.cov([rows[name].values * 500 for name in "abc"]) / 500
    np.testing.assert_allclose(found, wanted, rtol=0.06)


def test_seeds_lie_apart_from_the_replicates_of_their_items():
    base = np.random.default_rng(4).normal(5, 1, size=400)
    steady = [mean_influence(base)] * 3
    shaky = [mean_influence(base + step) for step in (-1.0, 0.0, 1.0)]
    rows = {"steady": steady, "shaky": shaky}
    drawn = influence_replicates(rows)
    assert drawn["shaky"].std() == pytest.approx(drawn["steady"].std())
    values = {"steady": 5.0, "shaky": 6.0}
    seeds = {"shaky": seed_spread([-1.0, 0.0, 1.0])}
    alone = confidence_set(values, drawn, better="lower")
    group = confidence_set(values, drawn, better="lower", seeds=seeds)
    assert alone.members == ("steady",)
    assert group.members == ("steady", "shaky")


def test_the_difference_of_means_is_a_paired_t_test():
    rng = np.random.default_rng(5)
    one, other = rng.normal(3, 1, size=(2, 4000))
    found = influence_difference(mean_influence(one), mean_influence(other))
    gap = one - other
    assert found.value == pytest.approx(gap.mean())
    half = 1.96 * gap.std(ddof=1) / math.sqrt(4000)
    assert found.high - found.value == pytest.approx(half, rel=2e-3)


def test_clusters_widen_a_difference():
    rng = np.random.default_rng(6)
    prob = np.repeat(rng.random((2, 100)), 2, axis=1)
    target = np.repeat(rng.integers(2, size=100), 2)
    a, b = (influence_of(scores.nll, row, target) for row in prob)
    design = sampling_design(200, cluster=np.repeat(np.arange(100), 2))
    alone = influence_difference(a, b)
    together = influence_difference(a, b, design=design)
    assert together.high - together.low > 1.3 * (alone.high - alone.low)


def test_a_row_does_not_differ_from_itself():
    row = mean_influence([1.0, 2.0, 4.0])
    found = influence_difference(row, row)
    assert (found.low, found.high, found.p) == (0.0, 0.0, 1.0)
