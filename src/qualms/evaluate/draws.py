"""Draws in float32, judged in float64 without a second copy of all of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms import scores
from qualms.predictions import Header

LABELS = "draws are labels: aleatoric is mutual information, epistemic expected entropy"
UNSTATED = (
    "the file does not say what its draws vary: --draws models (ensemble, dropout) or"
    " labels (SSN, PHiSeg); which measure is aleatoric depends on it"
)

# Probabilities in float64 at a time.
_BLOCK = 1 << 18


def decomposed(probs: NDArray[Any]) -> scores.Decomposition:
    """Return `scores.decompose` of draws (M, N, C) in float64, a few items at a time.

    >>> parts = decomposed(np.full((2, 3, 4), 0.25, np.float32))
    >>> parts.total.dtype, parts.total.round(4).tolist()
    (dtype('float64'), [1.3863, 1.3863, 1.3863])
    """
    draws, items, classes = probs.shape
    step = max(1, _BLOCK // (draws * classes))
    parts = [
        scores.decompose(probs[:, start : start + step].astype(np.float64, copy=False))
        for start in range(0, items, step)
    ]
    return scores.Decomposition(*map(np.concatenate, zip(*parts, strict=True)))


def draws_notes(header: Header) -> list[str]:
    """Return a note on several draws, unless they are those of models."""
    note = {None: UNSTATED, "labels": LABELS}.get(header.draws)
    return [] if note is None else [note]
