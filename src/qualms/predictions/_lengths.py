"""The uncertainty of embeddings without one of their own: one over their length."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

INVERSE_NORM = "uncertainty/inverse_norm"
LENGTH_TAKEN = (
    "the file has no 'uncertainty/<name>', so that one over the length of the embedding"
    " is taken: uncertainty/inverse_norm"
)
SAME_LENGTH = (
    "all embeddings have the same length, so that it says nothing; store them before"
    " they are normalised, or add an 'uncertainty/<name>'"
)
_ROUNDED = 1e-3
"""Relative difference of lengths that half precision explains."""
_TINY = float(np.finfo(np.float32).tiny)


def inverse_norm(embedding: ArrayLike) -> NDArray[np.float64]:
    """Return one over the length (N,) of embeddings (N, D); larger is less certain.

    If all lengths are equal up to rounding, all results are equal, so that rounding
    does not rank the items.

    >>> inverse_norm([[3.0, 4.0], [0.0, 2.0]])
    array([0.2, 0.5])
    """
    wide = np.asarray(embedding).astype(np.float64)
    length = np.sqrt(np.einsum("nd,nd->n", wide, wide))
    if np.ptp(length) <= _ROUNDED * length.max():
        length = np.full_like(length, length.mean())
    inverse: NDArray[np.float64] = 1.0 / np.maximum(length, _TINY)
    return inverse


def length_notes(inverse: NDArray[np.float64]) -> tuple[str, ...]:
    """Return notes on embeddings that are judged by one over their length."""
    alike = len(inverse) > 1 and not np.ptp(inverse)
    return (LENGTH_TAKEN, SAME_LENGTH) if alike else (LENGTH_TAKEN,)
