"""Paired differences."""

import numpy as np
import pytest

from qualms.scores import Resampling, auroc_plan, mean_plan
from qualms.scores.resampling import bootstrap, paired_difference


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


def test_wrong_samples_are_refused():
    with pytest.raises(ValueError, match="same length, got 2 and 1; bootstrap both"):
        paired_difference([1.0, 2.0], [1.0], 1.0, 1.0)
    with pytest.raises(ValueError, match="b_samples must have shape"):
        paired_difference([1.0], [], 1.0, 1.0)
