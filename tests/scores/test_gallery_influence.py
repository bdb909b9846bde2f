"""The influence of items on MAP@R, as queries and as the neighbours of others."""

import numpy as np
import pytest

import qualms
from qualms import scores
from qualms.evaluate import ScoreOptions
from qualms.inference import influence_of, interval_of
from qualms.scores.gallery import precision_influence


def drawn(n, classes, rng):
    centre = np.random.default_rng(7).standard_normal((classes, 8))
    target = rng.integers(classes, size=n)
    noise = 0.8 * np.exp(0.4 * rng.standard_normal(n))
    return centre[target] + noise[:, None] * rng.standard_normal((n, 8)), target


@pytest.mark.parametrize("some", [False, True])
def test_the_influence_is_what_changes_without_each_item(some):
    rng = np.random.default_rng(3)
    embedding, target = drawn(40, 5, rng)
    counted = rng.random(40) < (0.6 if some else 2.0)
    every = scores.average_precisions(embedding, target)
    roles = []
    for item in range(40):
        left = np.arange(40) != item
        without = scores.average_precisions(embedding[left], target[left])
        roles.append(without[counted[left]].sum() - every[left & counted].sum())
    roles = np.array(roles)
    own = every[counted] - every[counted].mean()
    own -= roles[counted] - roles[counted].mean()
    influence = precision_influence(embedding, target, counted=counted)
    assert influence.value == pytest.approx(every[counted].mean())
    assert influence.values == pytest.approx(own / counted.sum(), abs=1e-14)
    assert (influence.inflation > 1.0) == some


def test_the_order_of_equally_near_items_does_not_matter():
    embedding, target = drawn(30, 3, np.random.default_rng(0))
    embedding[10:20] = embedding[:10]
    there = influence_of(scores.map_at_r, embedding, target)
    back = influence_of(scores.map_at_r, embedding[::-1], target[::-1])
    assert back.values[::-1] == pytest.approx(there.values, abs=1e-14)


@pytest.mark.parametrize(("n", "classes", "truth"), [(60, 10, 0.45), (200, 10, 0.418)])
def test_the_mean_of_samples_of_a_size_is_covered(n, classes, truth):
    rng = np.random.default_rng(n)
    found = [
        interval_of(influence_of(scores.map_at_r, *drawn(n, classes, rng)))
        for _ in range(60)
    ]
    assert sum(i.low <= truth <= i.high for i in found) >= 54


def test_pairs_of_nearest_items_do_not_count_twice():
    embedding, target = drawn(120, 6, np.random.default_rng(5))
    items = {"embedding": embedding, "target": target, "uncertainty/u": embedding[:, 0]}
    results = qualms.score(items, options=ScoreOptions(resamples=0, map_at_r=True))
    (row,) = (row for row in results.rows if row.score == "map_at_r")
    alone = interval_of(influence_of(scores.map_at_r, embedding, target))
    assert row.high - row.low == pytest.approx(alone.high - alone.low, rel=0.1)
