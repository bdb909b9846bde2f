"""The exact interval of a share, alone and in clusters."""

import numpy as np
import pytest
from scipy import stats
from scipy.stats import binom

from qualms import scores
from qualms.inference import (
    exact_interval,
    interval_of,
    mean_influence,
    sampling_design,
    wilson_ends,
)


@pytest.mark.parametrize(("right", "n"), [(0, 9), (7, 9), (9, 9), (480, 500)])
def test_shares_of_independent_items_have_the_exact_interval(right, n):
    found = exact_interval(np.arange(n) < right, level=0.9)
    exact = stats.binomtest(right, n).proportion_ci(0.9, "exact")
    assert found == pytest.approx((exact.low, exact.high))


def test_clusters_agree_with_the_bootstrap():
    rng = np.random.default_rng(0)
    cluster = np.arange(1500) // 3
    hit = rng.standard_normal(1500)[cluster] + rng.standard_normal(1500) > 0.4
    low, high = exact_interval(hit, design=sampling_design(1500, cluster=cluster))
    known = scores.bootstrap_interval(
        np.mean, hit, cluster=cluster, replicates=600, seed=1
    )
    width = known.high - known.low
    assert (low, high) == pytest.approx((known.low, known.high), abs=0.1 * width)


def test_no_error_at_all_still_leaves_room_for_one():
    right = np.ones(60, bool)
    pairs = sampling_design(60, cluster=np.arange(60) // 2)
    assert exact_interval(right)[0] == pytest.approx(0.025 ** (1 / 60))
    assert exact_interval(right, design=pairs)[0] == pytest.approx(0.025 ** (1 / 30))
    lone = sampling_design(60, cluster=np.zeros(60, int))
    assert exact_interval(right, design=lone) == (0.0, 1.0)


def test_no_item_has_no_share():
    with pytest.raises(ValueError, match="hit must have shape"):
        exact_interval([])


def test_wilsons_ends_are_those_of_scipy():
    hits, n = np.array([0, 3, 10]), np.array([10, 10, 10])
    low, high = wilson_ends(hits / n, n.astype(float), stats.norm.ppf(0.975))
    for place, count in enumerate(hits):
        known = stats.binomtest(count, 10).proportion_ci(0.95, "wilson")
        assert (low[place], high[place]) == pytest.approx((known.low, known.high))


@pytest.mark.parametrize(
    ("share", "n"), [(0.99, 12), (0.99, 30), (0.995, 30), (0.995, 100), (0.999, 100)]
)
def test_shares_near_one_are_covered(share, n):
    hits = np.arange(n + 1)
    ends = [
        interval_of(mean_influence(np.arange(n) < count)) for count in hits.tolist()
    ]
    held = np.array([interval.low <= share <= interval.high for interval in ends])
    assert binom.pmf(hits, n, share)[held].sum() > 0.93
