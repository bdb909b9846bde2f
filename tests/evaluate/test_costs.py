"""What judging a large file costs."""

import tracemalloc

import numpy as np
import pytest

import qualms
from qualms import predictions, scores
from qualms.evaluate import ScoreOptions

BARE = ScoreOptions(resamples=0, workers=1)


def peak(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def many_classes(items=4000, classes=200, draws=10):
    rng = np.random.default_rng(0)
    probs = rng.random((draws, items, classes), dtype=np.float32) ** 8
    probs /= probs.sum(axis=-1, keepdims=True)
    return {"target": rng.integers(0, classes, items), "probs": probs}


@pytest.mark.parametrize("shifted", [False, True])
def test_many_classes_need_less_than_twice_the_memory_of_their_file(tmp_path, shifted):
    arrays = many_classes()
    if shifted:
        arrays["shifted"] = np.arange(4000) >= 2000
    size = arrays["probs"].nbytes
    file = predictions.write(tmp_path / "a.safetensors", arrays)
    few = {
        name: values[..., :9, :] if name == "probs" else values[:9]
        for name, values in arrays.items()
    }
    qualms.score(few, options=BARE)  # what is imported and compiled is not counted
    del arrays, few
    assert peak(lambda: qualms.score(file, options=BARE)) < 1.75 * size


@pytest.mark.parametrize(
    ("more", "most"),
    [
        ({}, 660),
        ({"cluster": np.arange(60_000) // 2}, 660),
        ({"shifted": np.arange(60_000) >= 42_000}, 1100),
    ],
)
def test_memory_grows_slowly_with_the_items(more, most):
    rng = np.random.default_rng(0)
    prob = 1 / (1 + np.exp(-2 * rng.standard_normal(60_000)))
    arrays = {"target": rng.random(60_000) < prob, "prob": prob, **more}
    few = {name: values[np.r_[:50, -50:0]] for name, values in arrays.items()}
    qualms.score(few, options=BARE)  # what is imported and compiled is not counted
    assert peak(lambda: qualms.score(arrays, options=BARE)) < most * 60_000


def test_values_that_many_scores_rank_by_are_sorted_once(monkeypatch):
    rng = np.random.default_rng(0)
    arrays = {"target": rng.integers(0, 2, 500), "prob": rng.random(500)}
    sorts = []
    argsort = np.argsort
    monkeypatch.setattr(
        np, "argsort", lambda *a, **k: sorts.append(len(a[0])) or argsort(*a, **k)
    )
    results = qualms.score(arrays, options=BARE)
    # By probability, entropy, confidence (as score and for its interval), and by risk.
    assert sum(size == 500 for size in sorts) <= 8
    assert results.row("auroc").value == scores.auroc(
        score=arrays["prob"], positive=arrays["target"]
    )
