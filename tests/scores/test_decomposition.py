"""Decomposition against SciPy, the golden maps, and what it must hold on paper."""

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from qualms.scores.decomposition import decompose, entropy
from scores.retina_golden import RTOL, inputs, retina

VALUES = json.loads((Path(__file__).parents[1] / "golden/values.json").read_text())
LAYOUTS = [
    ((7, 11, 4), 2),
    ((7, 4, 9, 5), 1),
    ((3, 6, 5, 8, 2), 2),
    ((1, 30, 3), 2),
    ((2, 3), 1),
    ((4, 2, 3000), 1),
]


def dirichlet(shape, axis, seed=0):
    rest = [n for i, n in enumerate(shape) if i != axis]
    probs = np.random.default_rng(seed).dirichlet([0.6] * shape[axis], rest)
    return np.moveaxis(probs, -1, axis)


def volume():
    """The recipe of the three-dimensional golden case, seed 100."""
    grid = np.arange(16) - 7.5
    distance = np.sqrt(
        grid[:, None, None] ** 2 + grid[None, :, None] ** 2 + grid[None, None, :] ** 2
    )
    noise = np.random.default_rng(100).normal(size=(5, 16, 16, 16))
    shift = (0.5 * (np.arange(5) - 2))[:, None, None, None]
    p = 1 / (1 + np.exp(-(4.5 + shift - distance + 0.5 * noise)))
    return np.stack([1 - p, p], axis=1)


@pytest.mark.parametrize(("shape", "axis"), LAYOUTS)
def test_the_parts_equal_scipy_entropies_for_every_layout(shape, axis):
    probs = dirichlet(shape, axis)
    total = scipy.stats.entropy(probs.mean(axis=0), axis=axis - 1)
    aleatoric = scipy.stats.entropy(probs, axis=axis).mean(axis=0)
    parts = decompose(probs, class_axis=axis)
    np.testing.assert_allclose(parts.total, total, atol=1e-14)
    np.testing.assert_allclose(parts.aleatoric, aleatoric, atol=1e-14)
    np.testing.assert_allclose(parts.epistemic, total - aleatoric, atol=1e-14)
    negative = decompose(probs, class_axis=axis - len(shape))
    np.testing.assert_array_equal(negative.total, parts.total)


@pytest.mark.parametrize(("shape", "axis"), LAYOUTS)
def test_entropy_equals_scipy_for_every_layout(shape, axis):
    probs = dirichlet(shape, axis)
    expected = scipy.stats.entropy(probs, axis=axis)
    np.testing.assert_allclose(entropy(probs, class_axis=axis), expected, atol=1e-14)


def test_retina_golden_means_and_first_items():
    samples, golden = (
        inputs("A_mc_samples")["samples"],
        retina()["cases"]["A_mc_samples"],
    )
    named = {
        "predictive_entropy": "total",
        "aleatoric_uncertainty": "aleatoric",
        "epistemic_uncertainty": "epistemic",
    }
    stacked = np.stack([1 - samples, samples], axis=-1)
    for parts in (decompose(samples, class_axis=None), decompose(stacked)):
        for key, name in named.items():
            values = getattr(parts, name)
            mean = golden["decomposition_means"][key]
            first = golden["decomposition_first3"][key]
            np.testing.assert_allclose(values.mean(), mean, rtol=RTOL)
            np.testing.assert_allclose(values[:3], first, rtol=RTOL, atol=1e-12)


@pytest.mark.parametrize(
    ("dtype", "atol"), [(np.float64, 2e-10), (np.float32, 2e-6)], ids=["64", "32"]
)
def test_values_golden_maps(dtype, atol):
    parts = decompose(volume().astype(dtype), class_axis=1)
    golden = VALUES["A_3d_binary"]["uncertainty_float64_recomputed"]
    for key, values in zip(("PE", "EE", "MI"), parts, strict=True):
        assert values.dtype == dtype
        expected = golden[key]
        assert values[8, 8, 8] == pytest.approx(expected["[8,8,8]"], abs=atol)
        assert values[3, 8, 8] == pytest.approx(expected["[3,8,8]"], abs=atol)
        assert values.min() == pytest.approx(expected["min"], abs=atol)
        assert values.max() == pytest.approx(expected["max"], abs=atol)
        assert values.mean(dtype=float) == pytest.approx(expected["mean"], abs=atol)


def test_a_certain_prediction_has_exactly_no_entropy():
    certain = np.eye(3)[[0, 2, 1]]
    for dtype in (np.float32, np.float64):
        assert (entropy(certain.astype(dtype)) == 0).all()
        assert not np.signbit(entropy(certain.astype(dtype))).any()
        assert (entropy(np.array([0.0, 1.0], dtype), class_axis=None) == 0).all()


def test_equal_draws_leave_no_epistemic_part_and_disagreement_leaves_nothing_else():
    one = decompose(dirichlet((1, 50, 4), 2))
    assert (one.epistemic == 0).all()
    opposed = decompose(np.eye(2)[:, None])
    np.testing.assert_allclose(opposed.epistemic, np.log(2))
    assert (opposed.aleatoric == 0).all()


def test_binary_draws_agree_with_two_classes():
    p = np.random.default_rng(1).beta(0.3, 0.3, (6, 40, 3))
    pair = decompose(np.stack([1 - p, p], axis=-1))
    alone = decompose(p, class_axis=None)
    for left, right in zip(pair, alone, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-14)


def test_binary_entropy_keeps_the_digits_of_tiny_probabilities():
    p = np.array([1e-20, 1e-12, 1 - 1e-12])
    expected = scipy.special.entr(p) - scipy.special.xlog1py(1 - p, -p)
    np.testing.assert_allclose(entropy(p, class_axis=None), expected, rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [2, 5])
def test_entropies_keep_the_digits_of_a_class_that_is_nearly_certain(dtype, classes):
    rng = np.random.default_rng(2)
    rest = 10 ** rng.uniform(-30, -2, (4, 200, classes - 1)).astype(dtype)
    # What float32 makes of the largest probability is 1, or 6e-8 away from it.
    probs = np.concatenate([(1 - rest.sum(2, keepdims=True)), rest], 2).astype(dtype)
    rest = rest.astype(float)

    def exact(rest):
        left = rest.sum(-1)
        return scipy.special.entr(rest).sum(-1) - scipy.special.xlog1py(1 - left, -left)

    total, aleatoric, _ = decompose(probs)
    rtol = 1e-6 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(total, exact(rest.mean(0)), rtol=rtol)
    np.testing.assert_allclose(aleatoric, exact(rest).mean(0), rtol=rtol)


@pytest.mark.parametrize("dtype", [np.float16, int, bool])
def test_other_numbers_are_computed_in_float64(dtype):
    assert entropy(np.eye(3).astype(dtype)).dtype == np.float64


def test_sums_slightly_off_are_renormalised():
    probs = dirichlet((4, 30, 5), 2)
    stretched = probs * np.linspace(0.9992, 1.0008, 4)[:, None, None]
    for left, right in zip(decompose(stretched), decompose(probs), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-12)


def test_memory_is_that_of_the_maps_and_a_block():
    probs = dirichlet((10, 6, 200, 200), 1).astype(np.float32)
    decompose(probs, class_axis=1)
    tracemalloc.start()
    parts = decompose(probs, class_axis=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak - sum(part.nbytes for part in parts) < probs.nbytes / 4


@pytest.mark.parametrize(
    ("probs", "axis", "message"),
    [
        (np.zeros((2, 0, 3)), -1, "at least one draw and one item"),
        (np.full(3, 1 / 3), -1, "draws on its first axis"),
        (np.full((2, 4, 2), 0.5), 3, "must name an axis"),
        (np.full((2, 4, 2), 0.5), -4, "must name an axis"),
        (np.full((2, 4, 2), 0.5), 0, "must not be the first axis"),
        (np.full((2, 4, 1), 1.0), -1, "at least two classes"),
        (np.full((2, 4, 2), 0.6), -1, r"position \(0, 0\) sums to 1.2"),
        (np.full((2, 4, 2), [1.5, -0.5]), -1, r"position \(0, 0, 0\) is 1.5"),
        (np.full((2, 4, 2), np.nan), -1, "must be finite"),
        (np.full((2, 4), np.inf), None, "must be finite"),
        (np.full((2, 4), 1.5), None, r"position \(0, 0\) is 1.5"),
        (np.full((2, 4), -0.5), None, "apply softmax or sigmoid"),
    ],
)
def test_what_is_no_probability_is_refused_with_a_sentence(probs, axis, message):
    with pytest.raises(ValueError, match=message):
        decompose(probs, class_axis=axis)


def test_text_is_refused():
    with pytest.raises(TypeError, match="must be numbers"):
        decompose(np.array([["a", "b"]]))
