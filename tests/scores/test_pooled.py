"""Quantiles of many maps in bounded memory, against NumPy on all of them."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qualms.scores import PooledValues, pooled_quantile


def pooled(maps, **options):
    values = PooledValues(**options)
    for uncertainty_map in maps:
        values.add(uncertainty_map)
    return values


singles = st.floats(-(2.0**99), 2.0**99, width=32)


@given(
    st.lists(st.lists(singles, min_size=1, max_size=9), min_size=1, max_size=5),
    st.floats(0.0, 1.0),
)
def test_quantiles_are_exact_while_values_are_few(maps, share):
    ours = pooled(map(np.float32, maps)).quantile(share)
    exact = pooled_quantile([np.float32(m) for m in maps], share)
    assert ours == pytest.approx(exact, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("share", [0.0, 0.03, 0.5, 0.9, 0.999, 1.0])
def test_beyond_the_limit_a_quantile_is_as_accurate_as_stated(share):
    rng = np.random.default_rng(0)
    maps = [rng.gamma(0.3, size=(40, 50)).astype(np.float32) for _ in range(20)]
    maps += [-rng.gamma(0.3, size=(40, 50)).astype(np.float32) for _ in range(5)]
    values = pooled(maps, limit=3000)
    exact = float(np.quantile(np.concatenate(maps).astype(np.float64), share))
    assert 0.0 < values.accuracy < 0.02
    assert values.quantile(share) == pytest.approx(exact, rel=values.accuracy)
    assert pooled(maps, limit=20_000).accuracy < values.accuracy


def test_the_order_of_the_maps_does_not_matter():
    rng = np.random.default_rng(1)
    maps = [rng.random(n).astype(np.float32) for n in (500, 3, 900, 200, 77)]
    there, back = pooled(maps, limit=400), pooled(maps[::-1], limit=400)
    shares = np.linspace(0, 1, 41)
    assert [there.quantile(s) for s in shares] == [back.quantile(s) for s in shares]
    assert there.accuracy == back.accuracy > 0.0


def test_memory_does_not_grow_with_the_maps():
    rng = np.random.default_rng(2)
    one = rng.random((100, 1000)).astype(np.float32)
    values = PooledValues(limit=10_000)
    values.add(one)
    tracemalloc.start()
    for k in range(30):
        values.add(one + np.float32(k))
    values.quantile(0.5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * one.nbytes  # of 31 maps


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="at least one item, got none"):
        PooledValues().quantile(0.5)
    with pytest.raises(ValueError, match=r"share must lie in \[0, 1\], got 2"):
        pooled([[1.0]]).quantile(2.0)
    with pytest.raises(ValueError, match="limit must be at least 2, got 1"):
        PooledValues(limit=1)
    with pytest.raises(ValueError, match="values must be finite"):
        PooledValues().add([np.nan])


def test_threads_may_add_maps_at_once():
    rng = np.random.default_rng(3)
    maps = [rng.random(3000).astype(np.float32) for _ in range(40)]
    alone, together = pooled(maps, limit=5000), PooledValues(limit=5000)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(together.add, maps))
    shares = np.linspace(0, 1, 41)
    assert [together.quantile(s) for s in shares] == [alone.quantile(s) for s in shares]
