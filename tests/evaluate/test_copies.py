"""Notes on probabilities that rounding made certain, and on items in a file twice."""

import numpy as np
import pytest

import qualms
from qualms.evaluate import ScoreOptions

BARE = ScoreOptions(resamples=0)


def classified(n, seed=0, classes=3):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet([0.5] * classes, n)
    target = (rng.random(n)[:, None] > probs.cumsum(axis=1)).sum(axis=1)
    return {"probs": probs, "target": target.clip(0, classes - 1)}


def valued(n, seed=0):
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=n)
    return {"mean": mean, "var": np.ones(n), "target": mean + rng.normal(size=n)}


def embedded(n, seed=0):
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 5, n)
    return {"embedding": rng.normal(size=(n, 4)) + target[:, None], "target": target}


def taken(arrays, rows):
    return {name: array[rows] for name, array in arrays.items()}


def notes(arrays, val=None):
    return " ".join(qualms.score(arrays, val=val, options=BARE).notes)


def test_probabilities_that_float16_made_certain_are_said():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 6, 2000)
    target = (rng.random(2000) < 1 / (1 + np.exp(-logits / 3))).astype(int)
    exact = {"prob": 1 / (1 + np.exp(-logits)), "target": target}
    assert "exactly 1" not in notes(exact)
    rounded = {**exact, "prob": exact["prob"].round(3)}
    said = notes(rounded)
    clipped = np.where(target == 1, rounded["prob"] == 0, rounded["prob"] == 1)
    assert f"{clipped.sum()} items give their true class exactly 0" in said
    assert "of the NLL" in said
    # Float32 has a largest probability of 1 where the others are not 0.
    sure = np.stack([np.full(100, 1e-9), np.ones(100)], axis=1).astype(np.float32)
    assert "exactly 1" not in notes({"probs": sure, "target": np.ones(100, int)})


@pytest.mark.parametrize("make", [classified, valued, embedded])
def test_rows_that_are_there_twice_are_said(make):
    arrays = make(90)
    assert "repeat another" not in notes(arrays)
    twice = taken(arrays, np.r_[0:90, 20:60])
    assert "40 of 130 rows repeat another one" in notes(twice)
    named = twice | {"item": np.arange(130).astype(str)}
    assert "repeat another" not in notes(named)


def test_models_with_few_probabilities_have_no_copies():
    rng = np.random.default_rng(0)
    prob = rng.integers(1, 10, 300) / 10
    coarse = {"prob": prob, "target": (rng.random(300) < prob).astype(int)}
    assert "repeat another" not in notes(coarse)
    target = np.arange(60) % 2
    right = {"prob": np.where(target, 0.9, 0.1), "target": target}
    assert "repeat another" not in notes(right)
    assert "that are scored" not in notes(coarse, taken(coarse, np.arange(300)[:0:-1]))
    for n in (1, 3, 10):
        assert "repeat another" not in notes(taken(coarse, slice(n)))


@pytest.mark.parametrize("make", [classified, valued])
@pytest.mark.parametrize("named", [False, True])
def test_validation_items_that_are_scored_are_said_in_any_order(make, named):
    arrays = make(120)
    if named:
        arrays["item"] = np.array([f"case {row}" for row in range(120)])
    other = make(80, seed=1)
    if named:  # the same numbers of rows, but other items
        other["item"] = np.array([f"case {row}" for row in range(80)])
    assert "that are scored" not in notes(arrays, other)
    turned = taken(arrays, np.random.default_rng(2).permutation(120))
    assert "120 of the items that are scored" in notes(arrays, turned)
    part = taken(arrays, np.arange(10, 70))
    assert "60 of the items that are scored" in notes(arrays, part)


def test_validation_items_are_found_among_rounded_probabilities():
    rng = np.random.default_rng(0)
    prob = rng.random(1000).round(2).clip(0.01, 0.99)
    arrays = {"prob": prob, "target": (rng.random(1000) < prob).astype(int)}
    assert "400 of the items" in notes(arrays, taken(arrays, np.arange(900, 500, -1)))
    other = {**arrays, "target": (rng.random(1000) < prob).astype(int)}
    assert "that are scored" not in notes(arrays, taken(other, slice(500, None, -1)))
