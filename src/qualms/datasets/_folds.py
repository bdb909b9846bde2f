"""Folds of cross-validation, as scikit-learn makes them."""

import numpy as np

FOLDS = 5


def fold_rows(count: int, *, seed: int, fold: int) -> set[int]:
    """Return the rows of one of five folds of `count` shuffled rows (sklearn's KFold).

    >>> sorted(fold_rows(12, seed=123, fold=4))
    [2, 11]
    """
    rows = np.random.RandomState(seed).permutation(count)
    chosen: list[int] = np.array_split(rows, FOLDS)[fold].tolist()
    return set(chosen)
