"""The seeded segmentation items that the golden values were computed on."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "values.json").read_text())


class Item(NamedTuple):
    probs: np.ndarray
    raters: np.ndarray

    @property
    def draws(self):
        return self.probs.argmax(axis=1)

    @property
    def prediction(self):
        return self.probs.mean(axis=0).argmax(axis=0)


def ball(seed):
    """A noisy ball, two classes, 5 draws (5, 2, 16, 16, 16) and 4 nested raters."""
    grid = np.arange(16) - 7.5
    distance = np.sqrt(sum(axis**2 for axis in np.meshgrid(grid, grid, grid)))
    noise = np.random.default_rng(seed).normal(size=(5, 16, 16, 16))
    shift = 0.5 * (np.arange(5) - 2)
    logit = 4.5 + shift[:, None, None, None] - distance + 0.5 * noise
    p1 = 1 / (1 + np.exp(-logit))
    raters = np.stack([distance <= radius for radius in (3, 4, 5, 6)]).astype(np.int32)
    return Item(np.stack([1 - p1, p1], axis=1), raters)


def tiles(seed):
    """Tiles of 6 classes, 10 draws (10, 6, 64, 64), 5 raters that ignore four rows."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:64, 0:64]
    base = (y // 16 + x // 16) % 4
    logits = rng.normal(size=(10, 6, 64, 64))
    for k in range(6):
        logits[:, k] += 2.5 * (base == k) + 1.8 * ((base == k - 4) & (base < 2))
    odds = np.exp(logits)
    probs = (odds / odds.sum(axis=1, keepdims=True)).astype(np.float32)
    flipped = rng.random((5, 2)) < 1 / 3
    raters = np.stack([base] * 5)
    for rater, k in np.argwhere(flipped):
        raters[rater][base == k] = 4 + k
    raters[:, :4] = 255
    return Item(probs, raters)
