"""Valid predictions of every task, small and seeded."""

import numpy as np

from qualms.predictions import Maps

N, DRAWS, CLASSES = 12, 3, 4
HEADER = {
    "benchmark": "retina",
    "dataset": "eyepacs",
    "split": "test",
    "method": "mc_dropout",
    "seed": 3,
    "options": {"rate": 0.1, "names": ["a", "b"]},
    "fingerprint": "abc",
    "commit": "0123",
    "hardware": "cpu",
    "seconds": 1.5,
}


def everywhere(rng):
    return {
        "item": np.array([f"eye {i}" for i in range(N)]),
        "group": rng.integers(0, 5, N),
        "cluster": np.array([f"patient {i // 2}" for i in range(N)]),
        "shifted": np.arange(N) % 3 == 0,
    }


def classification(draws=DRAWS, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "target": np.random.default_rng(9).integers(0, CLASSES, N),
        "probs": rng.dirichlet(np.ones(CLASSES), (draws, N)).astype(np.float32),
        "uncertainty/entropy": rng.random(N).astype(np.float32),
        "target_probs": np.random.default_rng(8)
        .dirichlet(np.ones(CLASSES), N)
        .astype(np.float32),
        **everywhere(np.random.default_rng(7)),
    }


def regression(draws=DRAWS, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "target": np.random.default_rng(9).normal(100, 20, N).astype(np.float32),
        "mean": rng.normal(100, 20, (draws, N)).astype(np.float32),
        "var": rng.random((draws, N)).astype(np.float32),
        "select/gmm": rng.normal(-10, 3, (draws, N)).astype(np.float32),
        "select/knn": rng.random(N).astype(np.float32),
        **everywhere(np.random.default_rng(7)),
    }


def intervals():
    rng = np.random.default_rng(0)
    lower = rng.normal(0, 1, N).astype(np.float32)
    return {
        "target": rng.normal(0, 1, N).astype(np.float32),
        "lower": lower,
        "upper": lower + np.float32(0.5),
    }


def embedding():
    rng = np.random.default_rng(0)
    return {
        "embedding": rng.normal(0, 1, (N, 5)).astype(np.float32),
        "target": rng.integers(0, 3, N),
        "uncertainty/norm": rng.random(N).astype(np.float32),
        "uncertainty_cropped/norm": rng.random(N).astype(np.float32),
        "votes": rng.integers(0, 9, (N, 3)).astype(np.float32),
        "upstream": np.arange(N) % 2 == 0,
        **everywhere(rng),
    }


def maps(seed=0, draws=2, space=(4, 5), classes=3, raters=2):
    """Maps of one item, with the raters fixed and one pixel to ignore."""
    rng = np.random.default_rng(seed)
    labels = np.random.default_rng(5).integers(0, classes, (raters, *space))
    labels[:, 0, 0] = 255
    probs = np.moveaxis(rng.dirichlet(np.ones(classes), space), -1, 0)
    return Maps(
        mean_probs=probs,
        # Draws are at most as uncertain as their mean.
        expected_entropy=rng.random(space) * -(probs * np.log(probs)).sum(axis=0),
        draw_labels=rng.integers(0, classes, (draws, *space)).astype(np.uint8),
        raters=labels.astype(np.uint8),
    )


def segmentation(items=3, seed=0, draws=2):
    return {
        "maps": [maps(10 * seed + i, draws=draws) for i in range(items)],
        "item": [f"case {i}" for i in range(items)],
        "group": [f"site {i % 2}" for i in range(items)],
        "cluster": list(range(items)),
        "shifted": [i == 0 for i in range(items)],
    }
