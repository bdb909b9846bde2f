"""Paired differences, Holm's correction and tie groups."""

import numpy as np
import pytest

from qualms.scores import Resampling, auroc_plan, mean_plan
from qualms.scores.resampling import (
    bootstrap,
    holm,
    paired_difference,
    replicates_needed,
    tie_group,
)


def samples_of(values_by_name, replicates=400, seed=0):
    plans = {name: mean_plan(values) for name, values in values_by_name.items()}
    items = len(next(iter(values_by_name.values())))
    return bootstrap(plans, Resampling(items, seed=seed), replicates=replicates)


def means(values_by_name):
    return {name: float(np.mean(values)) for name, values in values_by_name.items()}


def test_a_file_does_not_differ_from_itself():
    rng = np.random.default_rng(0)
    score, positive = rng.normal(size=200), rng.random(200) < 0.3
    one, two = (
        bootstrap(
            {"auroc": auroc_plan(score, positive)}, Resampling(200), replicates=50
        )
        for _ in range(2)
    )
    found = paired_difference(one["auroc"], two["auroc"], 0.5, 0.5)
    assert (found.value, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)
    group = tie_group(
        {"a": 0.5, "b": 0.5},
        {"a": one["auroc"], "b": two["auroc"]},
        better="higher",
    )
    assert group.members == ("a", "b")
    assert group.p == {"a": 1.0, "b": 1.0}


def test_the_difference_is_of_the_values_and_its_interval_of_the_samples():
    found = paired_difference([3.0, 4.0, 5.0], [1.0, 1.0, 1.0], 4.5, 1.0, level=0.5)
    assert (found.value, found.low, found.high) == (3.5, 2.5, 3.5)


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([1, 1, 1, 1], 2 / 5),
        ([-1, -1, -1, -1], 2 / 5),
        ([1, 1, 1, -1, 1, 1, 1, 1, 1], 4 / 10),
        ([1, 1, 0, 1, 1, 1, 1, 1, 1], 4 / 10),
        ([1, -1, 1, -1], 1.0),
        ([1, np.nan, 1, np.nan], 2 / 3),
    ],
)
def test_p_counts_the_replicates_across_zero_and_the_observed_one(differences, p):
    found = paired_difference(differences, np.zeros(len(differences)), 1.0, 0.0)
    assert found.p == pytest.approx(p)


def test_a_difference_undefined_everywhere_is_nan():
    found = paired_difference([np.nan], [1.0], np.nan, 1.0)
    assert np.isnan([found.value, found.low, found.high, found.p]).all()


def test_pairing_sees_what_unpaired_intervals_do_not():
    rng = np.random.default_rng(1)
    shared = rng.normal(size=200)
    table = {"a": shared + 0.05 + 0.1 * rng.normal(size=200), "b": shared}
    samples = samples_of(table)
    spread = np.quantile(samples["a"], [0.025, 0.975])
    assert spread[0] < np.mean(table["b"]) < spread[1]
    found = paired_difference(samples["a"], samples["b"], *means(table).values())
    assert found.low > 0.0
    assert found.p < 0.05


def test_equal_methods_are_told_apart_as_rarely_as_stated():
    rng = np.random.default_rng(2)
    told_apart = 0
    for seed in range(200):
        shared = rng.normal(size=60)
        table = {name: shared + rng.normal(size=60) for name in "ab"}
        samples = samples_of(table, replicates=120, seed=seed)
        p = paired_difference(samples["a"], samples["b"], *means(table).values()).p
        told_apart += p <= 0.05
    # 5 % plus the percentile bootstrap's known excess at n = 60 (about 1.5 %), with
    # three standard errors of 200 trials (4.6 %).
    assert 0.005 <= told_apart / 200 <= 0.11


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.5, 0.6], [1.0, 1.0]),
        ([0.02], [0.02]),
        ([], []),
        ([0.03, np.nan, 0.01], [0.03, np.nan, 0.02]),
    ],
)
def test_holm_steps_down_from_the_smallest(p_values, adjusted):
    np.testing.assert_allclose(holm(p_values), adjusted, rtol=1e-12)


def test_holm_refuses_what_is_not_a_probability():
    with pytest.raises(ValueError, match=r"p_values must lie in \[0, 1\]"):
        holm([0.2, 1.2])


@pytest.mark.parametrize(("better", "best"), [("higher", "top"), ("lower", "bottom")])
def test_the_group_holds_the_best_and_its_equals(better, best):
    rng = np.random.default_rng(3)
    shared = rng.normal(size=300)
    table = {
        "bottom": shared,
        "nearly bottom": shared + 1e-3 * rng.normal(size=300),
        "nearly top": shared + 1.0 + 1e-3 * rng.normal(size=300),
        "top": shared + 1.0,
    }
    values = means(table)
    values[best] += 0.01 if better == "higher" else -0.01
    group = tie_group(values, samples_of(table), better=better)
    assert group.best == best
    assert set(group.members) == {best, f"nearly {best}"}
    assert all((p > 0.05) == (name in group.members) for name, p in group.p.items())


def test_more_comparisons_need_more_evidence():
    # 198 of 200 replicates below the best: p is 2 * 3 / 201 times the comparisons.
    best, close = np.zeros(200), np.r_[np.full(198, -1.0), 1.0, 1.0]
    pair = tie_group(
        {"best": 1.0, "a": 0.0}, {"best": best, "a": close}, better="higher"
    )
    assert pair.members == ("best",)
    assert pair.p["a"] == pytest.approx(6 / 201)
    three = tie_group(
        {"best": 1.0, "a": 0.0, "b": 0.0},
        {"best": best, "a": close, "b": close},
        better="higher",
    )
    assert three.members == ("best", "a", "b")
    assert three.p["a"] == pytest.approx(12 / 201)


def test_an_undefined_score_is_no_member_and_no_comparison():
    samples = {"a": [0.9, 0.8], "b": [0.9, 0.8], "c": [np.nan, np.nan]}
    group = tie_group({"a": 0.9, "b": 0.9, "c": np.nan}, samples, better="higher")
    assert group.members == ("a", "b")
    assert np.isnan(group.p["c"])


@pytest.mark.parametrize(("rivals", "level"), [(1, 0.95), (7, 0.95), (3, 0.9)])
def test_replicates_needed_is_the_least_that_can_tell_apart(rivals, level):
    def members(replicates):
        samples = {f"rival {i}": np.zeros(replicates) for i in range(rivals)}
        values = dict.fromkeys(samples, 0.0) | {"best": 1.0}
        samples["best"] = np.ones(replicates)
        return tie_group(values, samples, better="higher", level=level).members

    enough = replicates_needed(rivals, level=level)
    assert members(enough) == ("best",)
    assert len(members(enough - 1)) == rivals + 1


def test_wrong_tables_are_refused():
    one, two = {"a": [1.0, 2.0]}, {"a": [1.0, 2.0], "b": [1.0]}
    with pytest.raises(ValueError, match="same length, got 2 and 1; bootstrap both"):
        paired_difference(two["a"], two["b"], 1.0, 1.0)
    with pytest.raises(ValueError, match=r"same names, \['b'\] do not"):
        tie_group({"a": 1.0}, two, better="higher")
    with pytest.raises(ValueError, match="'higher' or 'lower', got 'neither'"):
        tie_group({"a": 1.0}, one, better="neither")
    with pytest.raises(ValueError, match="at least one value must be defined"):
        tie_group({"a": np.nan}, one, better="lower")
    with pytest.raises(ValueError, match="b_samples must have shape"):
        paired_difference([1.0], [], 1.0, 1.0)
    with pytest.raises(ValueError, match="comparisons must be at least 1, got 0"):
        replicates_needed(0)
