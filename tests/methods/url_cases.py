"""The inputs of URL's golden losses, made as their recipes say."""

import numpy as np
import torch
from torch.nn import functional

from qualms.methods._uncertain import UncertainEmbedding


def normal(seed, *shape):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def uniform(seed, low, high, *shape):
    return torch.from_numpy(np.random.default_rng(seed).uniform(low, high, shape))


FEATURES = normal(10, 12, 16)
LOGITS = 2 * normal(11, 12, 7)
TARGET = torch.from_numpy(np.random.default_rng(12).integers(0, 7, 12))
UNCERTAINTY = uniform(13, 0.01, 0.5, 12)
WEIGHT = 0.7 * normal(14, 7, 16)
FOUND = UncertainEmbedding(FEATURES, UNCERTAINTY)
DRAWN = functional.normalize(
    functional.normalize(FEATURES, dim=1) + 0.2 * normal(30, 16, 12, 16), dim=2
)
"""Draws of the 12 embeddings, (16, 12, 16)."""


def as_views(rows):
    """Pairs of neighbours on axis -2 as two views, one after the other."""
    return torch.cat([rows[..., 0::2, :], rows[..., 1::2, :]], -2)
