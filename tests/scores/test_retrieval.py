"""Retrieval against scikit-learn, and against float64 brute force where items tie."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

from qualms.scores._neighbours import neighbours
from qualms.scores.arguments import called_in_order
from qualms.scores.retrieval import (
    crop_rate,
    mixed_r_auroc,
    mixed_target,
    nearest_neighbour,
    r_auroc,
    recall_at_1,
    retrieval_hits,
)

BLOCKS = (1, 2, 7, 64, 512)


def brute_cosine(embedding):
    wide = np.asarray(embedding, dtype=np.float64)
    length = np.linalg.norm(wide, axis=1, keepdims=True)
    unit = wide / np.where(length > 0, length, 1)
    cosine = unit @ unit.T
    np.fill_diagonal(cosine, -np.inf)
    return cosine


def brute_tied(embedding):
    cosine = brute_cosine(embedding)
    return cosine >= cosine.max(axis=1, keepdims=True) - 1e-12


def test_neighbours_are_those_of_scikit_learn():
    embedding = np.random.default_rng(0).normal(size=(500, 40)).astype(np.float32)
    search = NearestNeighbors(n_neighbors=1, metric="cosine").fit(embedding)
    expected = search.kneighbors(return_distance=False)[:, 0]
    np.testing.assert_array_equal(nearest_neighbour(embedding), expected)


@pytest.mark.parametrize("block", BLOCKS)
def test_block_sizes_change_no_neighbour_even_among_ties(block):
    embedding = np.random.default_rng(1).integers(-1, 2, size=(150, 4))
    expected = brute_tied(embedding).argmax(axis=1)
    np.testing.assert_array_equal(nearest_neighbour(embedding, block=block), expected)


@pytest.mark.parametrize("block", BLOCKS)
def test_hits_are_the_share_of_right_items_among_equally_near_ones(block):
    rng = np.random.default_rng(2)
    embedding = rng.integers(-1, 2, size=(150, 4)).astype(np.float32)
    target = rng.integers(0, 3, size=150)
    tied = brute_tied(embedding)
    same = target == target[:, None]
    expected = (tied & same).sum(axis=1) / tied.sum(axis=1)
    hits = retrieval_hits(embedding, target, block=block)
    np.testing.assert_allclose(hits, expected, rtol=1e-12)
    assert ((hits > 0) & (hits < 1)).any()


@pytest.mark.parametrize("gap", [1e-7, 1e-8, 1e-9, 1e-10])
def test_neighbours_closer_than_float32_can_tell_are_told_apart(gap):
    # Pairs of candidates whose angles to their query differ by `gap`, far from the
    # candidates of other queries; which of the two is nearer alternates.
    count = 40
    embedding = np.zeros((3 * count, 2 * count))
    nearer = np.empty(count, dtype=int)
    for query in range(count):
        first, second = count + 2 * query, count + 2 * query + 1
        angle = np.array([0.3, 0.3 + gap])[:: 1 if query % 2 else -1]
        plane = slice(2 * query, 2 * query + 2)
        embedding[query, plane] = [1, 0]
        embedding[first, plane] = [np.cos(angle[0]), np.sin(angle[0])]
        embedding[second, plane] = [np.cos(angle[1]), -np.sin(angle[1])]
        nearer[query] = first if query % 2 else second
    rng = np.random.default_rng(3)
    turn = np.linalg.qr(rng.normal(size=(2 * count, 2 * count)))[0]
    for block in (16, 512):
        neighbours = nearest_neighbour(embedding @ turn, block=block)[:count]
        np.testing.assert_array_equal(neighbours, nearer)


def test_few_items_of_a_plain_embedding_need_float64():
    embedding = np.random.default_rng(4).normal(size=(1000, 64)).astype(np.float32)
    close = sum(len(part.item) for part in neighbours(embedding, block=512).close)
    assert close < 20


def test_an_item_is_never_its_own_neighbour():
    embedding = np.repeat(np.random.default_rng(5).normal(size=(30, 8)), 3, axis=0)
    neighbours = nearest_neighbour(embedding)
    assert (neighbours != np.arange(90)).all()
    np.testing.assert_array_equal(neighbours // 3, np.arange(90) // 3)


def test_scaled_copies_are_equally_near():
    direction = np.array([[0.1, 0.7, -0.3]])
    embedding = np.concatenate([direction * size for size in (1, 3, 7, 1e-30, 1e200)])
    hits = retrieval_hits(embedding, [0, 0, 1, 1, 1])
    np.testing.assert_allclose(hits, [0.25, 0.25, 0.5, 0.5, 0.5])


def test_a_collapsed_embedding_recalls_by_chance():
    target = np.array([0] * 30 + [1] * 10)
    for embedding in (np.ones((40, 6)), np.zeros((40, 6))):
        expected = (30 * 29 + 10 * 9) / (40 * 39)
        assert recall_at_1(embedding, target) == pytest.approx(expected, rel=1e-12)


def test_a_zero_vector_is_at_similarity_zero_to_everything():
    embedding = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.1], [-1.0, -0.1]])
    assert nearest_neighbour(embedding).tolist() == [1, 0, 3, 2]
    hits = retrieval_hits(embedding, [0, 0, 1, 1])
    np.testing.assert_allclose(hits, [1 / 3, 1.0, 1.0, 1.0])


def test_the_only_member_of_a_class_is_a_miss_and_stays_in_the_mean():
    embedding = [[1.0, 0.0], [1.0, 0.1], [1.0, 0.3]]
    assert recall_at_1(embedding, [0, 0, 1]) == pytest.approx(2 / 3)


def test_r_auroc_is_the_auroc_of_wrong_retrievals_in_scikit_learn():
    rng = np.random.default_rng(6)
    target = rng.integers(0, 5, size=300)
    embedding = rng.normal(size=(5, 16))[target] + 1.2 * rng.normal(size=(300, 16))
    uncertainty = np.round(rng.normal(size=300), 1)
    neighbours = nearest_neighbour(embedding)
    expected = roc_auc_score(target[neighbours] != target, uncertainty)
    value = r_auroc(embedding=embedding, target=target, uncertainty=uncertainty)
    assert value == pytest.approx(expected, rel=1e-12)


def test_a_fractional_hit_weighs_on_both_sides_of_r_auroc():
    rng = np.random.default_rng(7)
    embedding = rng.integers(-1, 2, size=(80, 3))
    target = rng.integers(0, 3, size=80)
    uncertainty = np.round(rng.random(80), 1)
    hits = retrieval_hits(embedding, target)
    expected = roc_auc_score(
        np.repeat([True, False], 80),
        np.tile(uncertainty, 2),
        sample_weight=np.append(1 - hits, hits),
    )
    value = r_auroc(embedding=embedding, target=target, uncertainty=uncertainty)
    assert value == pytest.approx(expected, rel=1e-12)


def test_hits_at_hand_give_the_same_scores():
    rng = np.random.default_rng(8)
    embedding, target = rng.normal(size=(60, 4)), rng.integers(0, 3, size=60)
    uncertainty, upstream = rng.random(60), rng.random(60) < 0.5
    hits = retrieval_hits(embedding, target)
    assert recall_at_1(embedding, target, hits=hits) == recall_at_1(embedding, target)
    assert r_auroc(
        embedding=embedding, target=target, uncertainty=uncertainty, hits=hits
    ) == r_auroc(embedding=embedding, target=target, uncertainty=uncertainty)
    hits = retrieval_hits(embedding, mixed_target(target=target, upstream=upstream))
    arrays = embedding, target, uncertainty, upstream
    assert called_in_order(mixed_r_auroc, *arrays, hits=hits) == called_in_order(
        mixed_r_auroc, *arrays
    )


def test_r_auroc_is_undefined_when_every_retrieval_is_right_or_wrong():
    embedding = np.random.default_rng(9).normal(size=(20, 3))
    assert np.isnan(
        r_auroc(embedding=embedding, target=np.zeros(20), uncertainty=np.arange(20.0))
    )
    assert np.isnan(
        r_auroc(embedding=embedding, target=np.arange(20), uncertainty=np.arange(20.0))
    )


def test_upstream_and_downstream_items_share_no_class():
    rng = np.random.default_rng(10)
    target, upstream = rng.integers(0, 4, size=50), rng.random(50) < 0.5
    moved = mixed_target(target=target, upstream=upstream)
    same = (target[:, None] == target) & (upstream[:, None] == upstream)
    np.testing.assert_array_equal(moved[:, None] == moved, same)


def test_mixed_r_auroc_sees_a_neighbour_from_upstream_as_wrong():
    embedding = [[1.0, 0.0], [1.0, 0.01], [0.0, 1.0], [0.1, 1.0]]
    arrays = embedding, [0, 0, 1, 1], [0.8, 0.9, 0.1, 0.2]
    assert np.isnan(called_in_order(r_auroc, *arrays))
    assert called_in_order(mixed_r_auroc, *arrays, [True, False, False, False]) == 1.0


def test_targets_may_be_names():
    embedding = [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]]
    assert recall_at_1(embedding, ["wren", "wren", "tit"]) == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match=r"target must have shape \(3,\), got \(2,\)"):
        recall_at_1(embedding, ["wren", "tit"])


def test_an_equal_uncertainty_after_cropping_counts_against():
    assert crop_rate(
        uncertainty=[0.5, 0.5, 0.5], cropped=[0.5, 0.6, 0.4]
    ) == pytest.approx(1 / 3)


def test_malformed_input_is_refused_with_a_sentence():
    good = np.eye(3)
    with pytest.raises(ValueError, match="at least two items"):
        nearest_neighbour(good[:1])
    with pytest.raises(ValueError, match="at least two items and one feature"):
        nearest_neighbour(np.empty((3, 0)))
    with pytest.raises(ValueError, match="embedding must have two axes"):
        nearest_neighbour([1.0, 2.0])
    with pytest.raises(ValueError, match="embedding must have two axes"):
        recall_at_1(1.0, [0, 1])
    with pytest.raises(ValueError, match=r"target must have shape \(N,\), got \(\)"):
        recall_at_1(good, 1, hits=[0.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="embedding must be finite"):
        nearest_neighbour([[np.nan, 1.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="block must be at least 1, got 0"):
        nearest_neighbour(good, block=0)
    with pytest.raises(ValueError, match="target must have 3 items, got 2"):
        retrieval_hits(good, [0, 1])
    with pytest.raises(ValueError, match=r"hits must lie in \[0, 1\], got 0 to 2"):
        recall_at_1(good, [0, 1, 2], hits=[0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="upstream must be 0 or 1"):
        mixed_r_auroc(
            embedding=good,
            target=[0, 1, 2],
            uncertainty=[0.1, 0.2, 0.3],
            upstream=[0, 1, 2],
        )
