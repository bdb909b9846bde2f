"""The toy run of the golden file: three sets of noisy images and a fixed network."""

import numpy as np
import torch

RECIPES = {
    "upstream": (210, 40, 6, 0.0),
    "hard": (211, 60, 5, 0.3),
    "soft": (212, 50, 4, 0.1),
}
"""Seed, items, classes, and what is added to every pixel."""


def images(seed, count, classes, shift):
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=(classes, 3, 16, 16))
    target = rng.integers(0, classes, size=count)
    noise = 2 * rng.normal(size=(count, 3, 16, 16))
    return (centre[target] + noise + shift).astype(np.float32), target


def toy_network(x):
    """Embeddings, uncertainties and predicted classes."""
    rng = np.random.default_rng(200)
    to_feature = (rng.normal(size=(48, 8)) / 7).astype(np.float32)
    to_uncertainty = (rng.normal(size=48) / 5).astype(np.float32)
    to_class = rng.normal(size=(8, 12)).astype(np.float32)
    pooled = x.reshape(len(x), 3, 4, 4, 4, 4).mean(axis=(3, 5)).reshape(len(x), 48)
    feature = pooled @ to_feature
    predicted = (feature @ to_class).argmax(axis=1)
    return feature, np.logaddexp(0, pooled @ to_uncertainty), predicted


def kept_shares(name):
    """The share of each image's side that its crop keeps."""
    seed, count, _, _ = RECIPES[name]
    return np.random.default_rng(seed + 10).uniform(0.1, 0.75, count)


def centre_crops(x, share):
    def crop(image, side):
        edge = round((16 - side) / 2)
        part = torch.tensor(image[None, :, edge : edge + side, edge : edge + side])
        return torch.nn.functional.interpolate(part, size=(16, 16), mode="bilinear")[0]

    sides = np.round(16 * share).astype(int)
    return np.stack([crop(*pair).numpy() for pair in zip(x, sides, strict=True)])


def toy(name):
    """Embeddings, uncertainties, targets, and uncertainties of the crops."""
    x, target = images(*RECIPES[name])
    if name == "soft":
        target = toy_votes().argmax(axis=1)
    cropped = toy_network(centre_crops(x, kept_shares(name)))[1]
    return *toy_network(x)[:2], target, cropped


def toy_votes():
    votes = np.random.default_rng(213).multinomial(10, [0.4, 0.3, 0.2, 0.1], 50)
    votes[7] = 0
    return votes


def drawn(name):
    """The 40 items of a set that are compared with upstream ones, in their order."""
    seed = {"upstream": 230, "hard": 231, "soft": 232}[name]
    return np.random.default_rng(seed).permutation(RECIPES[name][1])[:40]
