"""Datasets of noise, on which training is as fast as on pictures."""

import numpy as np

from qualms.datasets import Card, Dataset, Split


def split(shape, seed, target):
    """Return random bytes of `shape` (items, *space, channels), and their targets."""
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 256, shape, dtype=np.uint8)
    item = np.arange(shape[0]).astype(str)
    return Split(image=image, target=target(image), item=item)


def dataset(task, splits):
    """Return a dataset of `splits` by name."""
    return Dataset(
        name="noise",
        options={},
        card=Card(title="noise", licence="", citation="", url="", obtain=""),
        task=task,
        splits=splits,
        shifts={},
        fingerprint="0" * 16,
    )


def brightness(image):
    """Return (N,) targets of a regression."""
    return image.mean((1, 2, 3)).astype(np.float32)


def parity(image):
    """Return (N,) targets of two classes."""
    return image[:, 0, 0, 0].astype(np.int64) % 2
