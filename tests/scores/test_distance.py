"""Neighbour distances against scikit-learn."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from qualms.scores.distance import mean_neighbour_distance


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("block", [1, 7, 1024])
@pytest.mark.parametrize("k", [1, 5, 90])
def test_distances_are_those_of_scikit_learn(k, block):
    rng = np.random.default_rng(0)
    query, reference = rng.normal(size=(40, 6)), rng.normal(size=(90, 6))
    search = NearestNeighbors(n_neighbors=k, algorithm="brute")
    expected = search.fit(reference).kneighbors(query)[0].mean(axis=1)
    value = mean_neighbour_distance(
        query=query, reference=reference, k=k, metric="l2", block=block
    )
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    # The chord between two directions has length sqrt(2 - 2 cos).
    expected = search.fit(unit(reference)).kneighbors(unit(query))[0].mean(axis=1)
    value = mean_neighbour_distance(query=query, reference=reference, k=k, block=block)
    np.testing.assert_allclose(value, expected, rtol=1e-12)


def test_a_query_among_the_references_is_at_distance_zero():
    reference = np.random.default_rng(1).normal(size=(50, 6))
    for metric in ("angular", "l2"):
        value = mean_neighbour_distance(
            query=reference, reference=reference, k=1, metric=metric
        )
        np.testing.assert_array_equal(value, np.zeros(50))


def test_near_directions_keep_their_distance():
    query = np.array([[1.0, 1e-9]])
    value = mean_neighbour_distance(
        query=query, reference=[[1.0, 0.0], [0.0, 1.0]], k=1
    )
    np.testing.assert_allclose(value, 1e-9, rtol=1e-6)


def test_a_common_offset_does_not_blur_euclidean_distances():
    rng = np.random.default_rng(2)
    query, reference = rng.normal(size=(20, 4)), rng.normal(size=(60, 4))
    near = mean_neighbour_distance(query=query, reference=reference, k=3, metric="l2")
    far = mean_neighbour_distance(
        query=query + 1e6, reference=reference + 1e6, k=3, metric="l2"
    )
    np.testing.assert_allclose(far, near, rtol=1e-8)


def test_a_zero_vector_is_orthogonal_to_everything():
    zero, one = np.zeros((1, 2)), np.ones((1, 2))
    for query, reference in [(zero, one), (one, zero), (zero, zero)]:
        value = mean_neighbour_distance(query=query, reference=reference, k=1)
        np.testing.assert_allclose(value, np.sqrt(2), rtol=1e-12)


def test_malformed_input_is_refused_with_a_sentence():
    some = np.ones((3, 2))
    with pytest.raises(ValueError, match=r"same number of features.* got 2 and 1"):
        mean_neighbour_distance(query=some, reference=some[:, :1], k=1)
    with pytest.raises(ValueError, match=r"k must lie in 1..3, .* got 10"):
        mean_neighbour_distance(query=some, reference=some)
    with pytest.raises(ValueError, match="metric must be 'angular' or 'l2', got 'cos'"):
        mean_neighbour_distance(query=some, reference=some, k=1, metric="cos")
    with pytest.raises(ValueError, match="block must be at least 1, got 0"):
        mean_neighbour_distance(query=some, reference=some, k=1, block=0)
