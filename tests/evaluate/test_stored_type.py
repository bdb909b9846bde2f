"""Ties do not depend on the kind of file, nor intervals on the order of the items."""

import numpy as np
import pytest

import qualms
from qualms.inference import Design, influence_of, interval_of
from qualms.predictions import read, write
from qualms.scores import ece, mean_probabilities, predicted_class


def tenths(rng, draws, items, classes):
    """Draws of probabilities with one decimal, which have a sum of one."""
    cuts = np.sort(rng.integers(0, 11, (draws, items, classes - 1)), axis=-1)
    ends = np.concatenate(
        [np.zeros((draws, items, 1)), cuts, np.full((draws, items, 1), 10)], axis=-1
    )
    return np.diff(ends, axis=-1) / 10


@pytest.mark.parametrize("draws", [3, 5, 7])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_accuracy_is_that_of_the_file_in_float64(tmp_path, draws, classes):
    rng = np.random.default_rng(draws)
    probs = tenths(rng, draws, 600, classes)
    arrays = {"target": rng.integers(0, classes, 600), "probs": probs}
    files = [write(tmp_path / f"p{end}", arrays) for end in (".npz", ".safetensors")]
    predicted = [predicted_class(read(file).arrays["probs"]) for file in files]
    # Whole numbers of tenths are exact: the lowest of the tied classes.
    exact = np.rint(10 * probs).sum(axis=0).argmax(axis=-1)
    for found in predicted:
        assert found.tolist() == exact.tolist()
    accuracies = {qualms.score(file).row("accuracy").value for file in files}
    assert len(accuracies) == 1


@pytest.mark.parametrize("ending", [".safetensors", ".parquet"])
def test_scores_of_decimals_are_those_of_the_file_in_float64(tmp_path, ending):
    """Their means lay beside the edges of bins, and were not tied."""
    rng = np.random.default_rng(0)
    draws = 1 if ending == ".parquet" else 3
    probs = tenths(rng, draws, 300, 3)
    arrays = {"target": rng.integers(0, 3, 300), "probs": probs}
    exact = qualms.score(write(tmp_path / "p.npz", arrays))
    single = arrays | {"probs": (probs if draws > 1 else probs[0]).astype(np.float32)}
    stored = qualms.score(write(tmp_path / f"p{ending}", single))
    for row, other in zip(exact.rows, stored.rows, strict=True):
        assert other.value == pytest.approx(row.value, nan_ok=True), row.score


def test_numbers_that_are_no_decimals_stay_as_they_are_stored():
    probs = np.random.default_rng(0).dirichlet(np.ones(3), 2000).astype(np.float32)
    halves = np.tile(np.array([[0.5, 0.25, 0.25]], np.float32), (9, 1))
    for array in (probs, halves):
        found = qualms.predictions.build({"probs": array}).arrays["probs"]
        assert found.dtype == np.float32
        assert np.array_equal(found[0], array)
    mixed = probs.copy()
    mixed[:1999] = np.float32([0.1, 0.2, 0.7])
    assert qualms.predictions.build({"probs": mixed}).arrays["probs"].dtype == "f4"
    tenth = qualms.predictions.build({"probs": mixed[:1999]}).arrays["probs"]
    assert tenth[0, 0].tolist() == [0.1, 0.2, 0.7]


def test_the_probability_of_one_class_in_float32_is_tied_too():
    prob = np.tile([[0.4], [0.6]], (1, 50))
    for kind in (np.float32, np.float64):
        built = qualms.predictions.build(
            {"prob": prob.astype(kind), "target": np.zeros(50, int)}
        )
        assert not predicted_class(built.arrays["probs"]).any()


def test_classes_that_differ_by_more_than_rounding_are_not_tied():
    step = np.float32(0.5) * np.finfo(np.float32).eps
    probs = np.array([[[0.5 - 2 * step, 0.5 + 2 * step]]] * 2, np.float32)
    assert predicted_class(probs).tolist() == [1]
    assert predicted_class(probs.astype(np.float64)).tolist() == [1]
    apart = np.array([[[0.2, 0.7, 0.1]], [[0.3, 0.4, 0.3]]], np.float32)
    alone = np.array([[[0.2, 0.7, 0.1]], [[0.3, 0.4, 0.3]]])
    assert np.allclose(mean_probabilities(apart), mean_probabilities(alone), atol=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_the_interval_of_the_ece_does_not_depend_on_the_order_of_items(seed):
    """Bins that are right on average had gaps of 1e-17, and any sign or none."""
    rng = np.random.default_rng(seed)
    levels = [(0.9, 0.6), (0.9, 0.8, 0.7), (0.6, 0.8, 0.7)][seed]
    target = [np.arange(70) < round(70 * level) for level in levels]
    target[0][:3] = False
    prob, target = np.repeat(levels, 70), np.concatenate(target).astype(int)
    ends = set()
    for _ in range(20):
        order = rng.permutation(len(prob))
        influence = influence_of(ece, prob[order], target[order])
        interval = interval_of(influence, design=Design(items=len(prob)))
        ends.add((round(interval.low, 9), round(interval.high, 9)))
    assert len(ends) == 1
