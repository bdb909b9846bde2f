"""Quantiles of many maps in bounded memory, against NumPy on all of them."""

import tracemalloc
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qualms.scores import leading_counts, nearby_counts
from qualms.scores.aggregation import pooled_quantile

SHARES = (0.0, 0.03, 0.5, 0.9, 0.999, 1.0)


def quantile(maps, share):
    leading = reduce(add, map(leading_counts, maps))
    around = leading.around(share)
    nearby = reduce(add, (nearby_counts(one, around) for one in maps))
    return leading.quantile(share, nearby)


singles = st.floats(-(2.0**99), 2.0**99, width=32)


@given(
    st.lists(st.lists(singles, min_size=1, max_size=9), min_size=1, max_size=5),
    st.floats(0.0, 1.0),
)
def test_quantiles_are_those_of_all_values_together(maps, share):
    exact = pooled_quantile([np.float32(m) for m in maps], share)
    assert quantile(maps, share) == exact


@pytest.mark.parametrize("share", SHARES)
def test_many_values_of_both_signs_and_many_equal_ones(share):
    rng = np.random.default_rng(0)
    maps = [rng.gamma(0.3, size=(40, 50)).astype(np.float32) for _ in range(20)]
    maps += [-rng.gamma(0.3, size=(40, 50)).astype(np.float32) for _ in range(5)]
    maps += [np.zeros((90, 90)), np.full((10, 10), -0.0)]
    assert quantile(maps, share) == pooled_quantile(maps, share)


def test_the_order_of_the_maps_does_not_matter():
    rng = np.random.default_rng(1)
    maps = [rng.random(n).astype(np.float32) for n in (500, 3, 900, 200, 77)]
    assert [quantile(maps, s) for s in SHARES] == [
        quantile(maps[::-1], s) for s in SHARES
    ]


def test_memory_does_not_grow_with_the_maps():
    rng = np.random.default_rng(2)
    one = rng.random((100, 1000)).astype(np.float32)
    tracemalloc.start()
    quantile([one] * 30, 0.5)  # one map however often it comes
    single = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    leading = leading_counts(one)
    for k in range(30):
        leading += leading_counts(one + np.float32(k))
    around = leading.around(0.5)
    nearby = nearby_counts(one, around)
    for k in range(30):
        nearby += nearby_counts(one + np.float32(k), around)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < single + 4 * one.nbytes  # of 31 maps
    assert len(leading.key) <= 1 << 16
    assert len(nearby.key) <= 2 << 16


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match=r"share must lie in \[0, 1\], got 2"):
        leading_counts([1.0]).around(2.0)
    with pytest.raises(ValueError, match="values must be finite"):
        leading_counts([np.nan])
    with pytest.raises(ValueError, match="values must have at least one pixel"):
        leading_counts([])
