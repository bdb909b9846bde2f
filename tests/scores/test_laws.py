"""Every score against every law it claims."""

import inspect

import numpy as np
import pytest

from qualms import scores
from qualms.scores import about
from scores.laws import LAWS, Case, all_cases

CASES = all_cases()
N = 60


def cases_of(law):
    chosen = [case for case in CASES if law in case.laws]
    return pytest.mark.parametrize("case", chosen, ids=lambda case: case.label)


def repeated(times):
    """Call a test with that many seeds: to start a test takes longer than to run it."""

    def with_seeds(test):
        def with_all(case):
            for seed in range(times):
                test(case, seed)

        return with_all

    return with_seeds


def call(case: Case, arrays, **more) -> float:
    return case.value(case.score(**arrays, **{**case.options, **more}))


def axis_of(case: Case, name: str):
    return case.axis.get(name, 0)


def take(case: Case, arrays, index):
    return {
        name: array
        if axis_of(case, name) is None
        else np.take(array, index, axis=axis_of(case, name))
        for name, array in arrays.items()
    }


def same(a: float, b: float, rtol: float) -> bool:
    return bool(np.isclose(a, b, rtol=rtol, atol=1e-12, equal_nan=True))


def tied(case: Case, arrays):
    array = arrays[case.rank]
    low, high = array.min(), array.max()
    return arrays | {case.rank: np.round((array - low) / (high - low) * 4)}


@cases_of("permutation")
@repeated(5)
def test_item_order_does_not_matter(case, seed):
    rng = np.random.default_rng(seed)
    arrays = case.make(rng, N)
    shuffled = take(case, arrays, rng.permutation(N))
    assert same(call(case, arrays), call(case, shuffled), case.rtol)


@cases_of("ties")
@repeated(10)
def test_order_inside_ties_does_not_matter(case, seed):
    rng = np.random.default_rng(seed)
    arrays = tied(case, case.make(rng, N))
    shuffled = take(case, arrays, rng.permutation(N))
    assert same(call(case, arrays), call(case, shuffled), case.rtol)


@cases_of("monotone")
@pytest.mark.parametrize("transform", [lambda u: 3 * u - 7, np.arctan, np.cbrt])
def test_only_the_ranks_matter(case, transform):
    arrays = case.make(np.random.default_rng(1), N)
    moved = arrays | {case.rank: transform(arrays[case.rank].astype(float))}
    assert same(call(case, arrays), call(case, moved), case.rtol)


@cases_of("bounds")
@repeated(20)
def test_values_stay_within_the_stated_bounds(case, seed):
    value = call(case, case.make(np.random.default_rng(seed), 3 + 2 * seed))
    record = about(case.score)
    assert np.isnan(value) or record.low - 1e-12 <= value <= record.high + 1e-12


@cases_of("empty")
def test_no_items_is_refused_with_a_sentence(case):
    arrays = take(case, case.make(np.random.default_rng(0), N), np.arange(0))
    with pytest.raises(ValueError, match=r"(?i)at least|empty|no item"):
        call(case, arrays)


@cases_of("dtype")
def test_float32_input_gives_the_value_of_the_same_numbers_in_float64(case):
    arrays = case.make(np.random.default_rng(2), N)
    single = {
        k: v.astype(np.float32) if v.dtype.kind == "f" else v for k, v in arrays.items()
    }
    double = {
        k: v.astype(np.float64) if v.dtype == np.float32 else v
        for k, v in single.items()
    }
    assert same(call(case, single), call(case, double), max(case.rtol, 1e-6))


@cases_of("layout")
def test_memory_layout_changes_no_bit(case):
    arrays = case.make(np.random.default_rng(3), N)
    odd = {}
    for name, array in arrays.items():
        wide = np.zeros(
            (*array.shape[:-1], array.shape[-1] * 2), array.dtype, order="F"
        )
        wide[..., ::2] = array
        odd[name] = wide[..., ::2]
        odd[name].setflags(write=False)
    assert same(call(case, arrays), call(case, odd), 1e-13)


@cases_of("repeat")
def test_every_item_twice_gives_the_same_value(case):
    arrays = case.make(np.random.default_rng(4), N)
    twice = take(case, arrays, np.tile(np.arange(N), 2))
    assert same(call(case, arrays), call(case, twice), case.rtol)


@cases_of("nan")
def test_a_nan_is_refused_by_name(case):
    arrays = case.make(np.random.default_rng(5), N)
    for name, array in arrays.items():
        if array.dtype.kind != "f":
            continue
        bad = array.copy()
        bad.flat[7] = np.nan
        with pytest.raises(ValueError, match=r"finite|nan"):
            call(case, arrays | {name: bad})


@cases_of("one_class")
def test_a_single_class_gives_the_stated_value(case):
    value = call(case, case.one_class(np.random.default_rng(6), N))
    if case.one_class_value is None:
        assert np.isfinite(value)
    else:
        assert same(value, case.one_class_value, case.rtol)


@cases_of("batching")
def test_block_sizes_change_nothing(case):
    arrays = case.make(np.random.default_rng(7), N)
    whole = call(case, arrays)
    assert case.blocks
    for block in case.blocks:
        assert same(whole, call(case, arrays, **block), case.rtol)


@cases_of("members")
@repeated(20)
def test_the_order_of_members_does_not_matter(case, seed):
    rng = np.random.default_rng(seed)
    arrays = case.make(rng, N)
    moved = dict(arrays)
    for name, axis in case.members.items():
        order = rng.permutation(arrays[name].shape[axis])
        moved[name] = np.take(arrays[name], order, axis=axis)
    assert case.members
    assert same(call(case, arrays), call(case, moved), 1e-13)


@cases_of("renaming")
@repeated(20)
def test_the_names_of_classes_do_not_matter(case, seed):
    rng = np.random.default_rng(seed)
    arrays = case.make(rng, N)
    sizes = [arrays[k].shape[axis] for k, axis in case.classes.items() if axis]
    order = rng.permutation(sizes[0] if sizes else case.options["classes"])
    moved = dict(arrays)
    for name, axis in case.classes.items():
        moved[name] = (
            np.argsort(order)[arrays[name]].astype(arrays[name].dtype)
            if axis is None
            else np.take(arrays[name], order, axis=axis)
        )
    assert same(call(case, arrays), call(case, moved), 1e-13)


@cases_of("rounding")
@repeated(20)
def test_a_rank_is_tied_in_whatever_order_its_members_were_averaged(case, seed):
    rng = np.random.default_rng(seed)
    arrays = case.make(rng, N)
    members = rng.integers(0, 4, (5, N)) / 10
    values = {
        call(case, arrays | {case.rank: sum(members[rng.permutation(5)]) / 5})
        for _ in range(5)
    }
    exact = arrays | {case.rank: np.rint(10 * members).sum(axis=0)}
    assert all(same(value, call(case, exact), 1e-12) for value in values)


def test_every_score_of_members_or_classes_has_their_laws():
    wanted = {
        "members": {"probs", "draws", "raters"},
        "renaming": {"probs", "votes", "prediction", "raters"},
        "rounding": {"score", "uncertainty"},
    }
    # These rank nothing, the prediction of `pinball` is no class, and grades have an
    # order.
    exempt = {"ncc", "crop_rate", "pinball", "quadratic_kappa"}
    for law, arguments in wanted.items():
        lawful = {case.score.__name__ for case in CASES if law in case.laws}
        for name in scores.__all__:
            score = getattr(scores, name)
            if not hasattr(score, "__score__") or name in exempt:
                continue
            if arguments & set(inspect.signature(score).parameters):
                assert name in lawful, (law, name)


def test_every_score_is_in_the_law_table():
    public = {
        name
        for name in scores.__all__
        if inspect.isfunction(getattr(scores, name))
        and hasattr(getattr(scores, name), "__score__")
    }
    assert public - {case.score.__name__ for case in CASES} == set()


def test_the_table_names_only_known_laws():
    for case in CASES:
        assert case.laws <= LAWS
        assert case.laws
