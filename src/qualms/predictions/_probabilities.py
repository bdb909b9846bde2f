"""Class probabilities: in [0, 1] with sum one, or logits if the user says so."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._errors import PredictionsError
from qualms.predictions._values import where_in

# Probabilities whose sum differs from one by at most this much are renormalised.
SUM_TOLERANCE = 1e-3
# Largest error of rounding to float32. Rows within it stay as they are, so that equal
# values stay equal, and values written in float32 are read again with the same bits.
ROUNDING = 1e-6
_LOGITS = "if these are logits, say so: --logits (logits=True)"


class Converted(NamedTuple):
    """An array in normal form, and notes on how it was converted."""

    array: NDArray[Any]
    notes: tuple[str, ...]


def checked_probs(
    name: str,
    array: NDArray[Any],
    axes: str,
    *,
    remedy: str = _LOGITS,
    dtype: type[np.floating[Any]] = np.float64,
) -> Converted:
    """Return `array` with sum one over its class axis 'C', divided in `dtype`."""
    array = unit_interval(name, array, axes, remedy=remedy)
    axis = axes.index("C")
    total = array.sum(axis=axis, keepdims=True, dtype=np.float64)
    off = np.abs(total - 1.0)
    worst = np.unravel_index(int(off.argmax()), off.shape)
    if off[worst] > SUM_TOLERANCE:
        hint = _classes_elsewhere(name, array, axis) or remedy
        raise PredictionsError(
            f"array '{name}' must sum to 1 over its classes, "
            f"{where_in(axes, worst, skip='C')} sums to {float(total[worst]):.6g}; "
            f"{hint}"
        )
    if off[worst] <= ROUNDING:
        return Converted(array, ())
    note = (
        f"array '{name}' missed summing to 1 by up to {float(off[worst]):.1g} "
        f"({where_in(axes, worst, skip='C')}) and was renormalised"
    )
    if dtype == np.float64:
        # Sorted, so that the same probabilities in another order of the classes have
        # the same sum to the last bit, and ties between items stay ties.
        ordered = np.sort(array.astype(dtype, copy=False), axis=axis)
        total = ordered.sum(axis=axis, keepdims=True)
    divisor = np.where(off > ROUNDING, total, 1.0).astype(dtype)
    return Converted(array / divisor, (note,))


def unit_interval(
    name: str, array: NDArray[Any], axes: str, *, remedy: str = _LOGITS
) -> NDArray[Any]:
    """Return `array` cut to [0, 1]; raise if it exceeds that by more than rounding."""
    low, high = float(array.min()), float(array.max())
    if low >= 0.0 and high <= 1.0:
        return array
    wrong = (array < -ROUNDING) | (array > 1.0 + ROUNDING)
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0])
        raise PredictionsError(
            f"array '{name}' must lie in [0, 1], {where_in(axes, where)} is "
            f"{float(array[where]):.6g}; {remedy}"
        )
    return np.asarray(np.clip(array, 0.0, 1.0))


def softmax(name: str, logits: NDArray[Any], axes: str) -> NDArray[Any]:
    """Return the probabilities of `logits` over the last axis, in float64."""
    logits = logits.astype(np.float64, copy=False)
    total = logits.sum(axis=-1)
    if _all_in_unit(logits) and np.abs(total - 1.0).max() <= SUM_TOLERANCE:
        raise PredictionsError(_not_logits(name, logits, axes))
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def two_class_softmax(name: str, logits: NDArray[Any], axes: str) -> NDArray[Any]:
    """Return probabilities of both classes, last axis, from the logit of P(y=1)."""
    if _all_in_unit(logits):
        raise PredictionsError(_not_logits(name, logits, axes))
    # exp of the log-sigmoid keeps both tails; 1 - p would lose the small one.
    both = np.stack([np.logaddexp(0.0, logits), np.logaddexp(0.0, -logits)], axis=-1)
    return np.asarray(np.exp(-both))


def _classes_elsewhere(name: str, array: NDArray[Any], axis: int) -> str:
    """Return a remedy if another axis has sum one, so that the classes lie there."""
    for other in reversed(range(array.ndim)):
        if other == axis or array.shape[other] < 2:
            continue
        total = array.sum(axis=other, dtype=np.float64)
        if np.abs(total - 1.0).max() <= SUM_TOLERANCE:
            return (
                f"axis {other} sums to 1 instead, so the classes seem to lie there: "
                f"move them with np.moveaxis({name}, {other}, {axis})"
            )
    return ""


def _all_in_unit(array: NDArray[Any]) -> bool:
    return bool(array.min() >= 0.0 and array.max() <= 1.0)


def _not_logits(name: str, array: NDArray[Any], axes: str) -> str:
    first = (0,) * array.ndim
    return (
        f"array '{name}' was said to hold logits, but all its values are probabilities "
        f"already ({where_in(axes, first)} is {float(array[first]):.6g}); leave out "
        "--logits (logits=True)"
    )
