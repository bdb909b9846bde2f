"""The k nearest items, and galleries, against scikit-learn and brute force."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from qualms import scores
from qualms.scores.gallery import (
    average_precisions,
    hits_within,
    map_at_r,
    recall_at_k,
    right_ranks,
)


def items(seed, n=120, classes=6):
    rng = np.random.default_rng(seed)
    target = rng.integers(0, classes, n)
    centre = np.random.default_rng(9).normal(size=(classes, 8))
    return centre[target] + 1.5 * rng.normal(size=(n, 8)), target


@pytest.mark.parametrize("k", [1, 2, 5, 10])
def test_recall_is_that_of_scikit_learn(k):
    embedding, target = items(0)
    search = NearestNeighbors(n_neighbors=k, metric="cosine").fit(embedding)
    near = search.kneighbors(return_distance=False)
    wanted = (target[near] == target[:, None]).any(axis=1).mean()
    assert recall_at_k(embedding, target, k=k) == pytest.approx(wanted)


@pytest.mark.parametrize("k", [1, 3])
def test_a_gallery_is_searched_in_place_of_the_items(k):
    embedding, target = items(0)
    gallery, known = items(1, n=200)
    search = NearestNeighbors(n_neighbors=k, metric="cosine").fit(gallery)
    near = search.kneighbors(embedding, return_distance=False)
    wanted = (known[near] == target[:, None]).any(axis=1)
    ranks = right_ranks(embedding, target, gallery=gallery, gallery_target=known)
    np.testing.assert_array_equal(hits_within(ranks, k), wanted)


def test_the_nearest_alone_is_recall_at_1_even_among_ties():
    rng = np.random.default_rng(2)
    embedding = rng.integers(-1, 2, size=(150, 3)).astype(float)
    target = rng.integers(0, 3, size=150)
    hits = hits_within(right_ranks(embedding, target), 1)
    np.testing.assert_allclose(hits, scores.retrieval_hits(embedding, target))
    assert ((hits > 0) & (hits < 1)).any()


def test_ties_are_the_mean_over_random_orders():
    """Two right and three wrong items are equally near: 1 - C(3, 2) / C(5, 2)."""
    gallery = np.array([[1.0, 0.0]] * 5 + [[0.0, 1.0]])
    known = np.array([0, 0, 1, 2, 3, 0])
    ranks = right_ranks([[2.0, 0.0]], [0], gallery=gallery, gallery_target=known)
    assert hits_within(ranks, 2) == pytest.approx(1 - 3 / 10)
    assert hits_within(ranks, 4) == pytest.approx(1.0)


def test_a_class_that_is_nowhere_is_a_miss():
    ranks = right_ranks([[1.0, 0.0]], [7], gallery=[[1.0, 0.0]], gallery_target=[1])
    assert hits_within(ranks, 5).tolist() == [0.0]


def test_words_may_name_classes():
    embedding, target = items(3)
    words = np.array([f"class {i}" for i in target])
    assert recall_at_k(embedding, words) == recall_at_k(embedding, target)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"gallery": [[1.0, 0.0]]}, "both its embedding and its target"),
        ({"gallery": [[1.0]], "gallery_target": [1]}, "must have 2 dimensions"),
        ({"gallery": [[1.0, 0.0]], "gallery_target": ["a"]}, "both be numbers"),
        ({"gallery": [[1.0, 0.0]], "gallery_target": [1, 2]}, "one entry for each"),
    ],
)
def test_a_gallery_that_does_not_fit_is_refused(options, said):
    with pytest.raises(ValueError, match=said):
        right_ranks([[1.0, 0.0], [0.0, 1.0]], [0, 1], **options)


def test_k_is_a_whole_number():
    with pytest.raises(ValueError, match="whole number from 1"):
        recall_at_k([[1.0], [2.0]], [0, 0], k=0)


@pytest.mark.parametrize("block", [1, 7, 100])
def test_nearest_items_are_those_of_a_full_sort(block):
    rng = np.random.default_rng(4)
    embedding = rng.normal(size=(40, 3))
    embedding[7] = 2 * embedding[3]
    rows = np.array([3, 0, 39])
    nearest = scores.nearest_items(embedding, rows, k=4, block=block)
    unit = embedding / np.linalg.norm(embedding, axis=1, keepdims=True)
    near = unit[rows] @ unit.T
    near[np.arange(3), rows] = -np.inf
    expected = np.argsort(-near, axis=1)[:, :4]
    np.testing.assert_array_equal(nearest.item, expected)
    np.testing.assert_allclose(
        nearest.cosine, np.take_along_axis(near, expected, axis=1), atol=1e-12
    )
    assert nearest.item[0, 0] == 7


def test_nearest_items_are_all_others_where_few_are_left():
    nearest = scores.nearest_items([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]], [0], k=9)
    assert nearest.item.tolist() == [[1, 2]]


@pytest.mark.parametrize("block", [1, 7, 100])
def test_nearest_items_in_a_gallery_are_those_of_a_full_sort(block):
    rng = np.random.default_rng(6)
    embedding, gallery = rng.normal(size=(9, 3)), rng.normal(size=(31, 3))
    gallery[8] = 2 * embedding[8]  # it is not left out as the item itself
    gallery[20] = 4 * gallery[8]
    rows = np.array([8, 0, 3])
    nearest = scores.nearest_items(embedding, rows, gallery=gallery, k=4, block=block)
    near = cosines(embedding[rows], gallery)
    expected = np.argsort(-near, axis=1)[:, :4]
    np.testing.assert_array_equal(nearest.item[1:], expected[1:])
    np.testing.assert_allclose(
        nearest.cosine, np.take_along_axis(near, expected, axis=1), atol=1e-12
    )
    assert set(nearest.item[0, :2].tolist()) == {8, 20}


def test_nearest_items_are_all_of_a_gallery_with_few():
    rows, gallery = [1, 0], [[3.0, 0.0]]
    nearest = scores.nearest_items([[1.0, 0.0], [0.0, 1.0]], rows, gallery=gallery)
    assert nearest.item.tolist() == [[0], [0]]
    np.testing.assert_allclose(nearest.cosine, [[0.0], [1.0]])
    with pytest.raises(ValueError, match="must have 2 dimensions"):
        scores.nearest_items([[1.0, 0.0]], [0], gallery=[[1.0]])


def precision_at_r(near, query, known):
    """MAP@R of one query as Musgrave et al. (2020) write it, place by place."""
    sought = int((known == query).sum())
    order = np.argsort(-near, kind="stable")[:sought]
    right = known[order] == query
    terms = [right[: i + 1].mean() for i in range(sought) if right[i]]
    return sum(terms) / sought if sought else 0.0


def cosines(first, second):
    first, second = (x / np.linalg.norm(x, axis=1)[:, None] for x in (first, second))
    return first @ second.T


def test_map_at_r_is_that_of_the_paper_in_a_gallery_and_without():
    embedding, target = items(0)
    gallery, known = items(1, n=90)
    target[:2] = 77  # a class that the gallery does not have
    near = cosines(embedding, gallery)
    wanted = [precision_at_r(near[i], target[i], known) for i in range(len(target))]
    found = average_precisions(
        embedding, target, gallery=gallery, gallery_target=known, block=13
    )
    np.testing.assert_allclose(found, wanted)
    assert found[:2].tolist() == [0.0, 0.0]
    near = cosines(embedding, embedding)
    wanted = [
        precision_at_r(np.delete(near[i], i), target[i], np.delete(target, i))
        for i in range(len(target))
    ]
    assert map_at_r(embedding, target) == pytest.approx(np.mean(wanted))


def test_map_at_r_of_equally_near_items_is_the_mean_over_their_orders():
    rng = np.random.default_rng(3)
    gallery = rng.integers(-1, 2, size=(60, 2)).astype(float)
    gallery = gallery[np.abs(gallery).sum(axis=1) > 0]
    known = rng.integers(0, 3, len(gallery))
    query = [[2.0, 0.0], [-1.0, 3.0]]
    found = average_precisions(query, [1, 2], gallery=gallery, gallery_target=known)
    means = []
    for row, wanted in zip(np.array(query), (1, 2), strict=True):
        near = cosines(row[None], gallery)[0].round(9)
        orders = (rng.permutation(len(gallery)) for _ in range(4000))
        means.append(
            np.mean([precision_at_r(near[o], wanted, known[o]) for o in orders])
        )
    np.testing.assert_allclose(found, means, atol=0.01)
