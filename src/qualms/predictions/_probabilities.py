"""Class probabilities: in [0, 1] with sum one, or logits if the user says so."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._errors import PredictionsError
from qualms.predictions._values import where_in

# Largest difference of a sum from one for which probabilities are renormalised.
SUM_TOLERANCE = 1e-3
# Largest error of rounding to float32. Rows within it stay as they are, so that equal
# values stay equal, and values written in float32 are read again with the same bits.
ROUNDING = 1e-6
_LOGITS = "if these are logits, say so: --logits (logits=True)"
_RENORMALISE = "--renormalise (renormalise=True) divides them by their sums"
_BY_HUNDRED = "if these are percentages, divide them by 100"
FEW_ROWS = 3
"""Fewest rows whose equal sums, or values in [0, 1], are no accident."""
DECIMALS = 6
"""Most decimals of values that are recognised as rounded."""
MOST_ROUNDED = 0.1
"""Largest difference from one of sums of rounded probabilities."""
MOST_BFLOAT = 0.02
"""The same for values with the 8 bits of bfloat16."""
MOST_SIGMOID = 30.0
"""Largest plausible logit of one class; percentages are often larger."""
PERCENT = 2.0
"""Largest difference from 100 of sums of percentages."""
ALIKE = 1e-3
"""Largest relative difference of sums that count as equal."""


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
    renormalise: bool = False,
) -> Converted:
    """Return `array` with sum one over its class axis 'C', divided in `dtype`.

    Sums may differ from one as far as rounding explains; with `renormalise`, by any
    factor.
    """
    axis = axes.index("C")
    if renormalise:
        return _renormalised(name, array, axes)
    array = unit_interval(name, array, axes, remedy=remedy)
    total = array.sum(axis=axis, keepdims=True, dtype=np.float64)
    off = np.abs(total - 1.0)
    worst = np.unravel_index(int(off.argmax()), off.shape)
    if off[worst] > SUM_TOLERANCE and not _is_rounded(array, axis, float(off[worst])):
        hint = (
            _classes_elsewhere(name, array, axis)
            or _remedy_of_rounding(array, axis, float(off[worst]))
            or _remedy_of_sums(total, remedy)
        )
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


def _renormalised(name: str, array: NDArray[Any], axes: str) -> Converted:
    """Divide every row by its sum."""
    axis = axes.index("C")
    # In float64, and sorted as below: equal rows in another order have equal sums.
    numbers = array.astype(np.float64, copy=False)
    total = np.sort(numbers, axis=axis).sum(axis=axis, keepdims=True)
    wrong = (numbers < 0.0).any(axis=axis, keepdims=True) | (total <= 0.0)
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0])
        raise PredictionsError(
            f"array '{name}' must have no negative number and a positive sum in every"
            f" row to be renormalised, {where_in(axes, where, skip='C')} has not; if"
            " these are logits, say --logits (logits=True) instead"
        )
    low, high = float(total.min()), float(total.max())
    note = f"array '{name}' was divided by its sums, from {low:.4g} to {high:.4g}"
    return Converted(numbers / total, (note,))


def _is_rounded(array: NDArray[Any], axis: int, off: float) -> bool:
    """Return whether sums that are `off` from one are explained by rounded values."""
    if off > MOST_ROUNDED:
        return False
    decimals = _decimals(array)
    if decimals is not None:
        return _explains(decimals, array.shape[axis], off)
    # The last 16 bits of a bfloat16 in float32 are zero.
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return bool(not (bits & 0xFFFF).any() and off <= MOST_BFLOAT)


def _decimals(array: NDArray[Any]) -> int | None:
    """Return the number of decimals of rounded values; None if they are not rounded."""
    for decimals in range(1, DECIMALS + 1):
        scaled = array.astype(np.float64, copy=False) * 10.0**decimals
        if np.abs(scaled - np.rint(scaled)).max() < 10.0**decimals * ROUNDING / 4:
            return decimals
    return None


def _explains(decimals: int, classes: int, off: float) -> bool:
    """Return whether the sum of so many rounded values may be `off` from one."""
    return bool(off <= classes * 0.5 * 10.0**-decimals + ROUNDING)


def _remedy_of_rounding(array: NDArray[Any], axis: int, off: float) -> str:
    """Return a remedy for values rounded too much; '' if rounding is no explanation."""
    decimals = _decimals(array)
    if decimals is None or not _explains(decimals, array.shape[axis], off):
        return ""
    places = "decimal" if decimals == 1 else "decimals"
    return (
        f"values are rounded to {decimals} {places}, which is too little for "
        f"{array.shape[axis]} classes; store more, or {_RENORMALISE}"
    )


def _remedy_of_sums(total: NDArray[np.float64], remedy: str) -> str:
    """Return a remedy for values in [0, 1] that do not sum to one."""
    if remedy != _LOGITS:
        return remedy
    low, high = float(total.min()), float(total.max())
    if high - low <= ALIKE * high:
        return f"all rows sum to about {high:.4g}; {_RENORMALISE}"
    return (
        f"rows sum to {low:.4g} to {high:.4g}: if each class has a sigmoid of its own,"
        " these are no probabilities of classes that exclude each other; store a"
        f" softmax, or {_RENORMALISE}"
    )


def unit_interval(
    name: str, array: NDArray[Any], axes: str, *, remedy: str = _LOGITS
) -> NDArray[Any]:
    """Return `array` clipped to [0, 1]; raise if it exceeds this beyond rounding."""
    low, high = float(array.min()), float(array.max())
    if low >= 0.0 and high <= 1.0:
        return array
    wrong = (array < -ROUNDING) | (array > 1.0 + ROUNDING)
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0])
        raise PredictionsError(
            f"array '{name}' must lie in [0, 1], {where_in(axes, where)} is "
            f"{float(array[where]):.6g}; {_remedy_of_range(array, axes, remedy)}"
        )
    return np.asarray(np.clip(array, 0.0, 1.0))


def _remedy_of_range(array: NDArray[Any], axes: str, remedy: str) -> str:
    """Return a remedy for values outside of [0, 1]: percentages, or perhaps logits."""
    if remedy != _LOGITS or array.min() < 0.0:
        return remedy
    percent = MOST_SIGMOID < array.max() <= 100.0 + PERCENT
    if "C" not in axes:
        return f"{_BY_HUNDRED}; {remedy}" if percent else remedy
    if words := _equal_sums(array, axes.index("C")):
        return f"{words}; {_RENORMALISE}"
    if percent:
        return (
            "none is negative, as logits would be: if each class has a percentage of "
            "its own, these are no probabilities of classes that exclude each other; "
            f"store a softmax, or {_RENORMALISE}"
        )
    return remedy


def _equal_sums(array: NDArray[Any], axis: int) -> str:
    """Explain non-negative numbers whose rows have equal sums; '' for unequal sums.

    Rows of logits have equal sums only by chance.
    """
    total = array.sum(axis=axis, dtype=np.float64)
    low, high = float(total.min()), float(total.max())
    if np.abs(total - 100.0).max() <= PERCENT:
        return "rows sum to 100: these are percentages"
    if total.size >= FEW_ROWS and high - low <= ALIKE * high:
        return f"all rows sum to about {high:.4g}"
    return ""


def softmax(name: str, logits: NDArray[Any], axes: str) -> NDArray[Any]:
    """Return the probabilities of `logits` over the last axis, in float64."""
    logits = logits.astype(np.float64, copy=False)
    total = logits.sum(axis=-1)
    inside = _all_in_unit(logits)
    if inside and np.abs(total - 1.0).max() <= SUM_TOLERANCE:
        raise PredictionsError(_not_logits(name, logits, axes))
    statement = f"array '{name}' was said to hold logits"
    if logits.min() >= 0.0 and (words := _equal_sums(logits, logits.ndim - 1)):
        raise PredictionsError(
            f"{statement}, but {words}; leave out --logits (logits=True):"
            f" {_RENORMALISE}"
        )
    if inside and total.size >= FEW_ROWS:
        raise PredictionsError(
            f"{statement}, but all its values lie in [0, 1], as a sigmoid for each"
            " class gives them; leave out --logits (logits=True). If they are logits,"
            " store their softmax"
        )
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def two_class_softmax(name: str, logits: NDArray[Any], axes: str) -> NDArray[Any]:
    """Return probabilities of both classes, last axis, from the logit of P(y=1)."""
    if _all_in_unit(logits):
        raise PredictionsError(_not_logits(name, logits, axes))
    largest = float(logits.max())
    if logits.min() >= 0.0 and MOST_SIGMOID < largest <= 100.0 + PERCENT:
        raise PredictionsError(
            f"array '{name}' was said to hold logits, but none is negative and the "
            f"largest is {largest:.4g}: {_BY_HUNDRED}, and leave out --logits "
            "(logits=True)"
        )
    # exp of the log-sigmoid keeps both tails; 1 - p would lose the small one.
    both = np.stack([np.logaddexp(0.0, logits), np.logaddexp(0.0, -logits)], axis=-1)
    return np.asarray(np.exp(-both))


def _classes_elsewhere(name: str, array: NDArray[Any], axis: int) -> str:
    """Return a remedy if the classes seem to lie on another axis, which sums to one."""
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
