"""Statistics and maps of regions that overlap."""

import numpy as np
import pytest
from scipy.special import entr

from qualms.scores import (
    region_maps,
    region_statistics,
    sufficient_statistics,
    uncertainty_maps,
)

RNG = np.random.default_rng(0)
DRAWS = RNG.random((5, 3, 4, 6))


def entropy(p):
    return (entr(p) + entr(1 - p)).sum(axis=-3)


def test_statistics_are_means_over_draws_and_sums_over_regions():
    mean, expected, labels = region_statistics(DRAWS)
    np.testing.assert_allclose(mean, DRAWS.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(expected, entropy(DRAWS).mean(axis=0), rtol=1e-9)
    np.testing.assert_array_equal(labels, DRAWS > 0.5)
    assert labels.dtype == np.uint8
    single = region_statistics(DRAWS.astype(np.float32))
    assert single.mean_probs.dtype == single.expected_entropy.dtype == np.float32


def test_maps_follow_from_the_statistics():
    mean, expected, _ = region_statistics(DRAWS)
    maps = region_maps(mean, expected)
    np.testing.assert_allclose(maps.predictive, entropy(mean), rtol=1e-9)
    np.testing.assert_allclose(maps.aleatoric, expected)
    np.testing.assert_allclose(maps.epistemic, entropy(mean) - expected, atol=1e-9)
    assert (maps.epistemic > 0).all()
    likeliest = np.maximum(mean, 1 - mean).prod(axis=0)
    np.testing.assert_allclose(maps.max_softmax, 1 - likeliest, rtol=1e-9)
    single = region_maps(mean.astype(np.float32), expected.astype(np.float32))
    assert {part.dtype for part in single} == {np.dtype(np.float32)}


def test_one_region_is_two_classes():
    one = DRAWS[:, :1]
    of_region = region_statistics(one)
    of_classes = sufficient_statistics(np.concatenate([1 - one, one], axis=1))
    np.testing.assert_allclose(of_region.mean_probs[0], of_classes.mean_probs[1])
    np.testing.assert_allclose(of_region.expected_entropy, of_classes.expected_entropy)
    np.testing.assert_array_equal(of_region.draw_labels[:, 0], of_classes.draw_labels)
    maps = region_maps(*of_region[:2]), uncertainty_maps(*of_classes[:2])
    for ours, theirs in zip(*maps, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("sure", [0.0, 1.0])
def test_certain_regions_have_no_uncertainty(sure):
    mean, expected, _ = region_statistics(np.full((1, 2, 3), sure))
    maps = region_maps(mean, expected)
    for part in maps:
        np.testing.assert_allclose(part, 0, atol=1e-12)


@pytest.mark.parametrize(
    ("probs", "sentence"),
    [
        (np.full((2, 4), 0.5), r"must have shape \(M, K, \*space\), got \(2, 4\)"),
        (np.full((2, 3, 4), 1.5), "must lie in"),
        (np.full((2, 3, 4), np.nan), "finite"),
    ],
)
def test_what_are_no_sigmoids_is_refused(probs, sentence):
    with pytest.raises(ValueError, match=sentence):
        region_statistics(probs)


def test_maps_of_other_pixels_are_refused():
    with pytest.raises(ValueError, match="must cover the same pixels"):
        region_maps(np.full((2, 3, 3), 0.5), np.zeros((3, 4)))
