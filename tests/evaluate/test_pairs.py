"""Differences of every two files and rows, from any reference."""

import math

import numpy as np
import pytest

import qualms
from qualms.evaluate import ScoreOptions, compare, compare_pairs

QUICK = ScoreOptions(resamples=40)
NOISES = {"calm": 0.5, "usual": 1.0, "wild": 2.0}


def binary(noise=1.0, n=150, flip=False):
    rng = np.random.default_rng(0)
    target = (rng.random(n) < 0.4).astype(int)
    shift = noise * np.random.default_rng(int(10 * noise)).standard_normal(n)
    prob = 1 / (1 + np.exp(-(-1 + 2 * target + shift)))
    return {"target": 1 - target if flip else target, "prob": prob}


def intervals(width, n=150):
    rng = np.random.default_rng(1)
    mean = rng.normal(size=n)
    target = mean + rng.normal(size=n)
    return {"target": target, "mean": mean, "var": np.full(n, width**2)}


def scored(**files):
    return [
        qualms.score(arrays, options=QUICK, name=name) for name, arrays in files.items()
    ]


@pytest.fixture(scope="module")
def three():
    return scored(**{name: binary(noise) for name, noise in NOISES.items()})


def pair(scores, name):
    (found,) = [
        each
        for each in scores
        if each.labels["score"] == name and "recalibration" not in each.labels
    ][:1]
    return found


def test_two_files_differ_by_what_compare_says(three):
    two = three[:2]
    pairs = {
        (each.labels["score"], tuple(each.labels.values())[1:]): each
        for each in compare_pairs(two)
    }
    contrasts = compare(two).contrasts
    checked = 0
    for contrast in contrasts:
        settings = tuple(contrast.settings.values())
        found = pairs[contrast.score, (contrast.subset, *settings)]
        other = next(each.name for each in two if each.name != contrast.best)
        expected = contrast.difference[other]
        got = found.difference(other, contrast.best)
        assert got[2:6] == pytest.approx(
            (expected.value, expected.low, expected.high, expected.p), nan_ok=True
        )
        checked += math.isfinite(expected.low)
    assert checked >= 10


def test_any_file_can_be_the_reference(three):
    accuracy = pair(compare_pairs(three), "accuracy")
    for row in NOISES:
        for reference in NOISES:
            found = accuracy.difference(row, reference)
            if row == reference:
                assert found is None
                continue
            assert found.value == pytest.approx(
                accuracy.values[row] - accuracy.values[reference]
            )
            turned = accuracy.difference(reference, row)
            assert (turned.low, turned.high) == (-found.high, -found.low)
            assert found.low <= found.value <= found.high
    assert accuracy.difference("calm", "nobody") is None


def test_where_there_is_an_aim_distances_from_it_differ():
    files = scored(narrow=intervals(0.3), right=intervals(1.0))
    coverage = [each for each in compare_pairs(files) if each.aim is not None]
    assert coverage
    for each in coverage:
        away = {name: abs(value - each.aim) for name, value in each.values.items()}
        assert each.difference("narrow", "right").value == pytest.approx(
            away["narrow"] - away["right"]
        )
        assert "distance from" in each.compared


def test_equal_files_do_not_differ():
    accuracy = pair(compare_pairs(scored(a=binary(), b=binary())), "accuracy")
    found = accuracy.difference("a", "b")
    assert (found.value, found.p) == (0.0, 1.0)
    assert found.low == -found.high <= 0


@pytest.mark.parametrize("n", [1, 3])
def test_few_items_tell_no_difference(n):
    files = scored(a=binary(0.5, n=n), b=binary(2.0, n=n))
    for each in compare_pairs(files):
        found = each.difference("a", "b")
        assert math.isnan(found.low)
        assert math.isnan(found.high)


def test_files_of_other_items_or_tasks_are_refused():
    with pytest.raises(ValueError, match="do not hold the same items"):
        compare_pairs(scored(a=binary(), b=binary(flip=True)))
    with pytest.raises(ValueError, match="only within one task"):
        compare_pairs(scored(a=binary(), b=intervals(1.0)))
    with pytest.raises(TypeError, match="takes a list"):
        compare_pairs(scored(a=binary())[0])
