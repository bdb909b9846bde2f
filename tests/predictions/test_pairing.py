"""The same items are the same items, however they were stored."""

import numpy as np
import pytest

from predictions import made
from qualms.predictions import build, pairing, pool, read, same_items, write

TARGET = np.random.default_rng(0).normal(0, 100, 50)


def regression(**changes):
    arrays = {
        "target": TARGET,
        "mean": TARGET + 1,
        "item": [f"eye {k}" for k in range(50)],
        "cluster": np.arange(50) // 2,
        "shifted": np.arange(50) > 30,
    }
    held = {name: a for name, a in (arrays | changes).items() if a is not None}
    return build(held)


def same(first, other):
    forth = same_items(pairing(first), pairing(other))
    assert forth == same_items(pairing(other), pairing(first))
    return forth


SAME = {
    "itself": {},
    "wider text": {"item": np.array([f"eye {k}" for k in range(50)], "U400")},
    "bytes": {"item": np.array([f"eye {k}".encode() for k in range(50)])},
    "numbers as text": {"cluster": [str(k // 2) for k in range(50)]},
    "float32 targets": {"target": TARGET.astype(np.float32)},
    "eight digits": {"target": [float(f"{t:.8g}") for t in TARGET]},
    "flags as numbers": {"shifted": (np.arange(50) > 30).astype(float)},
    "no names": {"item": None},
    "no targets": {"target": None},
}
OTHER = {
    "another item": {"item": [f"eye {k}" for k in range(1, 51)]},
    "another order": {"item": [f"eye {k}" for k in range(50)][::-1]},
    "other targets": {"target": TARGET + 0.01},
    "other clusters": {"cluster": np.arange(50)},
    "no clusters": {"cluster": None},
    "other shifted": {"shifted": np.arange(50) > 29},
    "unknown items": {"known": np.arange(50) > 3},
}


@pytest.mark.parametrize("case", SAME)
def test_files_of_the_same_items_are_paired(case):
    assert same(regression(), regression(**SAME[case]))


@pytest.mark.parametrize("case", OTHER)
def test_files_of_other_items_are_not(case):
    assert not same(regression(), regression(**OTHER[case]))


def test_the_number_of_items_must_agree():
    few = {"target": [0, 1], "prob": [0.1, 0.2]}
    assert not same(build(few), build({"target": [0], "prob": [0.1]}))


def test_a_file_in_every_format_holds_the_same_items(tmp_path):
    arrays = made.regression(1) | {"item": np.arange(made.N)}
    found = [
        read(write(tmp_path / f"p{ending}", arrays))
        for ending in (".safetensors", ".npz", ".csv", ".parquet")
    ]
    for other in found:
        assert same(found[0], other)
    assert pool(found).draws == 4


def test_the_order_of_the_runs_changes_no_bit_of_a_pool():
    rng = np.random.default_rng(0)
    runs = [
        build(
            {"target": TARGET, "mean": TARGET, "select/a": rng.normal(size=50)},
            header={"select": {"a": rule}},
        )
        for rule in ("mean",) * 5
    ]
    forth, back = pool(runs), pool(runs[::-1])
    np.testing.assert_array_equal(
        forth.arrays["select/a"], back.arrays["select/a"], strict=True
    )
    folders = [
        build(made.segmentation(seed=k, draws=k + 1), header={"ignore": 255})
        for k in range(4)
    ]
    forth, back = pool(folders), pool(folders[::-1])
    for mine, theirs in zip(forth.maps, back.maps, strict=True):
        np.testing.assert_array_equal(mine.mean_probs, theirs.mean_probs)
        np.testing.assert_array_equal(mine.expected_entropy, theirs.expected_entropy)


def test_probabilities_that_were_tied_stay_tied():
    row = np.array([0.5003, 0.1, 0.1, 0.2, 0.1])
    probs = np.stack([row, row[::-1], np.roll(row, 2), [0.2] * 5])
    predictions = build({"target": [0] * 4, "probs": probs}).arrays["probs"][0]
    assert "renormalised" in build({"target": [0] * 4, "probs": probs}).notes[0]
    assert len(set(predictions[:3].max(axis=1).tolist())) == 1
    assert len(set(predictions[:3].min(axis=1).tolist())) == 1


def test_probabilities_that_sum_to_one_but_for_rounding_keep_their_bits():
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        probs = rng.dirichlet(np.ones(7), 500).astype(dtype)
        predictions = build({"target": [0] * 500, "probs": probs})
        assert predictions.notes == ()
        np.testing.assert_array_equal(predictions.arrays["probs"][0], probs)
