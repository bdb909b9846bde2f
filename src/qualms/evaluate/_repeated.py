"""Rows that are there twice: in one file, or in a file and its validation file.

Rows with equal predictions need not be copies, since many models give few different
probabilities. But then their targets differ now and then; those of copies never do.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.arrays import Index
from qualms.predictions import Predictions
from qualms.shelf import traits

PREDICTED = {"probs": 1, "mean": 1, "var": 1, "lower": 0, "upper": 0, "embedding": 0}
"""Arrays of predictions, and the axis of their items."""
ENOUGH = 4.0
"""Rows are copies if so many should have another target by chance, and none has."""
FEW_VALUES = 10
"""Rows are no copies if each value of the predictions has more rows than this."""
BLOCK = 1 << 16


def repeated_rows(predictions: Predictions) -> tuple[str, ...]:
    """Return a note if rows without names are copies of others."""
    if predictions.maps is not None or predictions.get("item") is not None:
        return ()
    keys, rows = _keys(predictions), _with_target(predictions)
    order = rows[np.argsort(keys[rows], kind="stable")]
    again = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    if not again.size or (len(order) - len(again)) * FEW_VALUES < len(order):
        return ()
    target = predictions.arrays["target"]
    one, other = order[again], order[again + 1]
    if (target[one] != target[other]).any():
        return ()
    if _by_chance(predictions, one, np.ones(len(one), np.int64)) < ENOUGH:
        return ()
    return (
        f"{len(again)} of {predictions.n} rows repeat another one, with its target: if"
        " these items are in the file twice, intervals are too narrow; leave copies"
        " out, or name the items in an array 'item'",
    )


def shared_rows(predictions: Predictions, val: Predictions) -> int:
    """Return how many validation items are scored as well; 0 if that is not sure."""
    if predictions.maps is not None or val.maps is not None:
        return 0
    rows, val_rows = _with_target(predictions), _with_target(val)
    if not len(rows) or not len(val_rows):
        return 0
    named = "item" in predictions.arrays and "item" in val.arrays
    of = (lambda file: file.arrays["item"].astype(np.str_)) if named else _keys
    key, val_key = _numbered(of(predictions)[rows], of(val)[val_rows])
    target, val_target = _numbered(
        predictions.arrays["target"][rows], val.arrays["target"][val_rows]
    )
    count = np.bincount(key, minlength=int(val_key.max()) + 1)
    found = np.flatnonzero(count[val_key])
    targets = int(max(target.max(), val_target.max())) + 1
    whole, val_whole = key * targets + target, val_key * targets + val_target
    if not np.isin(val_whole[found], whole).all():
        return 0
    by_chance = _by_chance(val, val_rows[found], count[val_key[found]])
    return len(found) if by_chance >= ENOUGH else 0


def _numbered(one: NDArray[Any], other: NDArray[Any]) -> tuple[Index, Index]:
    """Return both with numbers in place of values, equal ones for equal values."""
    number = np.unique(np.concatenate([one, other]), return_inverse=True)[1]
    return number[: len(one)], number[len(one) :]


def _by_chance(predictions: Predictions, rows: Index, times: Index) -> float:
    """Return how many rows should have the target of none of so many other rows."""
    if "probabilities" in traits(predictions.task):
        probs = predictions.arrays["probs"][:, rows].mean(axis=0, dtype=np.float64)
        return float((probs * (1.0 - probs) ** times[:, None]).sum())
    share = np.unique(predictions.arrays["target"], return_counts=True)[1]
    same = float(np.square(share / share.sum()).sum())
    return float(((1.0 - same) ** times).sum())


def _with_target(predictions: Predictions) -> Index:
    target, known = predictions.get("target"), predictions.get("known")
    if target is None:
        return np.zeros(0, np.int64)
    there = np.ones(len(target), bool) if known is None else known
    if "probabilities" in traits(predictions.task):
        there = there & (target >= 0)
    return np.flatnonzero(there)


def _keys(predictions: Predictions) -> NDArray[np.uint64]:
    """Return (N,) numbers that are equal where all predictions of two rows are."""
    keys = np.zeros(predictions.n, np.uint64)
    rng = np.random.default_rng(0)
    for name, axis in PREDICTED.items():
        array = predictions.get(name)
        if array is None:
            continue
        rows = np.moveaxis(array, axis, 0)
        width = int(np.prod(rows.shape[1:], dtype=np.int64))
        odd = rng.integers(0, 1 << 63, width, np.uint64) * 2 + 1
        step = max(1, BLOCK // width)
        for start in range(0, len(rows), step):
            with np.errstate(over="ignore"):  # beyond float32 all are infinite
                part = rows[start : start + step].reshape(-1, width).astype(np.float32)
            # 0.0 in place of -0.0; float32 as files in other formats may have it.
            bits = (part + np.float32(0.0)).view(np.uint32).astype(np.uint64)
            mixed = bits * odd
            keys[start : start + step] += (mixed ^ (mixed >> np.uint64(32))).sum(axis=1)
    return keys
