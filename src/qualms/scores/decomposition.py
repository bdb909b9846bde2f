"""Uncertainty of draws, split into aleatoric and epistemic uncertainty.

Total is the entropy of the mean prediction, aleatoric the mean entropy of the draws,
and epistemic their difference, the mutual information between prediction and draw
(Depeweg et al., 2018). All are in nats, with 0 log 0 = 0.

The order of the draws and of the classes changes no bit. Items or pixels are worked on
block by block: besides the result, memory is that of one block.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from qualms.arrays import Array, Floats
from qualms.jit import jit
from qualms.scores._sums import add_to, column_sums, mean_over_draws, two_sum
from qualms.scores.arguments import SUM_TOLERANCE, as_array, finite

__all__ = [
    "Decomposition",
    "decompose",
    "entropy",
]

# Probabilities of one draw in memory at a time: few enough to stay in a core's cache.
BLOCK = 3 << 15
# Sums that miss one by at most this many units of rounding count as exact.
EXACT = 64
# Largest relative difference of float64 entropies that count as equal.
ROUNDING = 1e-14


class Decomposition(NamedTuple):
    """Uncertainty per item or pixel, in nats; larger is less certain."""

    total: Floats
    """Entropy of the mean over draws."""
    aleatoric: Floats
    """Mean over draws of the entropy."""
    epistemic: Floats
    """`total - aleatoric`; not clipped, so rounding may leave it just below zero."""


def decompose(probs: ArrayLike, *, class_axis: int | None = -1) -> Decomposition:
    """Return total, aleatoric, epistemic uncertainty of draws (Depeweg et al., 2018).

    Args:
        probs: draws first: (M, N, C), or (M, C, H, W) with `class_axis=1`. float32
            stays float32 (maps are large); anything else is computed in float64.
        class_axis: axis of the classes, counted over the whole array; None when
            `probs` holds P(y=1) alone, for example (M, N).

    Returns:
        Three arrays of the shape of `probs` without draws and classes.

    >>> parts = decompose([[[1.0, 0.0]], [[0.0, 1.0]]])
    >>> [float(part[0].round(4)) for part in parts]
    [0.6931, 0.0, 0.6931]
    """
    draws = _floats(probs)
    if draws.ndim < 2:
        raise ValueError(
            "probs must have draws on its first axis and items after it, got shape "
            f"{draws.shape}; for one prediction per item pass probs[None]"
        )
    if class_axis is None:
        total, aleatoric = _of_binary(draws)
    else:
        total, aleatoric = _of_classes(draws, _axis(draws, class_axis))
    return Decomposition(total, aleatoric, _difference(total, aleatoric))


def entropy(probs: ArrayLike, *, class_axis: int | None = -1) -> Floats:
    """Return Shannon entropy in nats of every prediction, draws or not (Shannon, 1948).

    `probs` is (N, C), or (C, H, W) with `class_axis=0`, or P(y=1) of any shape with
    `class_axis=None`; the result has its shape without the classes, and float32 stays
    float32.

    >>> entropy([[0.5, 0.5], [1.0, 0.0]]).round(4)
    array([0.6931, 0.    ])
    """
    single = _floats(probs)[None]
    if class_axis is None:
        return _of_binary(single)[0]
    axis = _axis(single[0], class_axis)
    return _of_classes(single, axis + 1, added=1)[0]


def double_entropy(probs: ArrayLike, *, class_axis: int) -> Array:
    """Return `entropy` in float64, of probabilities of any precision."""
    single = _floats(probs)[None]
    axis = _axis(single[0], class_axis)
    kind: np.dtype[Any] = np.dtype(np.float64)
    return _of_classes(single, axis + 1, added=1, kind=kind)[0].astype(kind, copy=False)


def _difference(total: Floats, aleatoric: Floats) -> Floats:
    """Return `total - aleatoric`, 0 where they differ by rounding alone."""
    difference: Floats = np.asarray(total - aleatoric)
    if difference.dtype == np.float64:
        difference[np.abs(difference) <= ROUNDING * total] = 0.0
    return difference


def _floats(probs: ArrayLike) -> Floats:
    array = as_array("probs", probs)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"probs must be numbers, got an array of {array.dtype}")
    if array.size == 0:
        raise ValueError(
            f"probs must have at least one draw and one item, got shape {array.shape}"
        )
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)


def _axis(array: Floats, class_axis: int) -> int:
    axis = class_axis + array.ndim if class_axis < 0 else class_axis
    if not 0 <= axis < array.ndim:
        raise ValueError(
            f"class_axis must name an axis of probs {array.shape}, got {class_axis}"
        )
    if array.shape[axis] < 2:
        raise ValueError(
            f"probs must have at least two classes on axis {class_axis}, got shape "
            f"{array.shape}; for P(y=1) pass class_axis=None"
        )
    return axis


def _of_classes(
    draws: Floats, axis: int, added: int = 0, kind: np.dtype[Any] | None = None
) -> tuple[Floats, Floats]:
    """Return the total and aleatoric entropy of draws (M, ..., C, ...).

    `added` is the number of axes in front that the caller's array does not have, and
    `kind` the precision, by default that of the draws.
    """
    kind = kind or draws.dtype
    if axis == 0:
        raise ValueError("class_axis must not be the first axis, which holds the draws")
    spread = _spread(draws, axis)
    _, before, classes, after = spread.shape
    total, aleatoric = np.empty((2, before, after), dtype=kind)
    step = min(after, max(1, BLOCK // classes))
    room = _Room(classes * step, kind)
    for row, start in product(range(before), range(0, after, step)):
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = _of_block(spread[:, row], start, min(step, after - start), room)
        if parts is None:
            _refuse(draws, axis, added)
        total[row, start : start + step], aleatoric[row, start : start + step] = parts
    shape = draws.shape[1:axis] + draws.shape[axis + 1 :]
    return total.reshape(shape), aleatoric.reshape(shape)


def _spread(draws: Floats, axis: int) -> Floats:
    """Return a view (M, before, C, after) with the long run of items or pixels last."""
    before = int(np.prod(draws.shape[1:axis]))
    after = int(np.prod(draws.shape[axis + 1 :]))
    view = draws.reshape(len(draws), before, draws.shape[axis], after)
    return view if after > 1 else view.swapaxes(1, 3)


class _Sums(NamedTuple):
    """Sums over the classes and draws of b items or pixels.

    Sums in float64 have a second row for rounding errors, unless the draws are float32.
    """

    entropy: Array
    """(rows, b)"""
    mean: Array
    """(rows, C, b) sums of probabilities over draws."""
    most: Floats
    """(2, b) the largest probability of a draw, and its term of the entropy."""
    others: Array
    """(rows, b) sum of all other probabilities of that draw."""


class _Room:
    """Memory that all blocks share: new memory costs more than the logarithm."""

    def __init__(self, size: int, kind: np.dtype[Any]) -> None:
        self.kind = kind
        # Sums of float32 are nearly exact in float64; others need the rounding errors.
        self.rows = 1 if kind == np.float32 else 2
        self._of_draw = np.empty((2, size), dtype=kind)
        self._of_mean = np.empty(self.rows * size)

    def for_draw(self, shape: tuple[int, ...]) -> list[Floats]:
        """Return two contiguous arrays (C, b) of the type of the draws."""
        size = shape[0] * shape[1]
        return [array[:size].reshape(shape) for array in self._of_draw]

    def for_sums(self, shape: tuple[int, ...]) -> tuple[_Sums, _Sums]:
        """Return sums for the draws and for their mean, which share their memory."""
        size, rows = shape[1], self.rows
        mean = self._of_mean[: rows * shape[0] * size].reshape(rows, *shape)
        mean[:] = 0.0
        most, others = np.empty((2, size), self._of_draw.dtype), np.empty((rows, size))
        expected, total = np.zeros((2, rows, size))
        return (
            _Sums(expected, mean, most, others),
            _Sums(total, mean, most, others),
        )


def _of_block(
    draws: Floats, start: int, size: int, room: _Room
) -> tuple[Floats, Floats] | None:
    """Return total and aleatoric entropy (size,) of `draws` from `start` on.

    None if they are not probabilities.
    """
    shape = (draws.shape[1], size)
    probs, logs = room.for_draw(shape)
    expected, total = room.for_sums(shape)
    take_in = _take_in if room.rows == 2 else _take_in_singles
    for draw in draws:
        source, first = _normalised(draw, start, probs)
        if source is None:
            return None
        # NumPy's float32 log has vector instructions where numba's has none.
        np.log(source[:, first : first + size], out=logs)
        take_in(source, first, logs, expected)
        _take_in_most(expected)
    aleatoric = (_corrected_sums(expected.entropy) / len(draws)).astype(room.kind)
    # The logarithm of a negative number is nan.
    if np.isnan(aleatoric).any():
        return None
    if len(draws) == 1:
        return aleatoric, aleatoric
    np.divide(
        _corrected_sums(expected.mean), len(draws), out=probs, casting="same_kind"
    )
    take_in(probs, 0, np.log(probs, out=logs), total)
    _take_in_most(total)
    return _corrected_sums(total.entropy).astype(room.kind), aleatoric


def _take_in_most(sums: _Sums) -> None:
    """Add the term of the most probable class to the entropies.

    The rounding error of a probability near 1 may exceed all others together: float32
    has no number between 1 and 1 - 6e-8. So one minus the sum of the others is used.
    The latter sum is overwritten.
    """
    most = _corrected_sums(sums.others)
    np.negative(most, out=most)
    term = np.log1p(most)
    most += 1.0
    term *= most
    if len(sums.entropy) == 1:
        sums.entropy[0] -= term
    else:
        np.negative(term, out=term)
        add_to(sums.entropy[0], sums.entropy[1], term)


def _corrected_sums(sums: Array) -> Array:
    """Return the sums, corrected by their rounding errors, if these are stored."""
    if len(sums) == 2:
        sums[0] += sums[1]
    added: Array = sums[0]
    return added


def _normalised(
    draw: Floats, start: int, room: Floats
) -> tuple[Floats, int] | tuple[None, int]:
    """Return the columns of `draw` (C, after) from `start` on, with sums of one.

    The result is an array and its first column: `draw` itself if it can be used
    directly, else `room` (C, size) with a copy. None if sums are far from one.
    """
    columns = draw[:, start : start + room.shape[1]]
    # Memory of another layout would be compiled for anew.
    ready = draw.flags.c_contiguous and draw.flags.writeable
    ready &= draw.dtype == room.dtype
    if not ready:
        np.copyto(room, columns)
        columns = room
    off = float(np.abs(columns.sum(axis=0) - 1.0).max())
    # Written so that a nan, which compares false, is refused.
    if not off <= SUM_TOLERANCE:
        return None, 0
    exact = EXACT * np.finfo(draw.dtype).eps
    if off > exact / 2:
        np.copyto(room, columns)
        total = column_sums(room)
        scale = np.where(np.abs(total - 1.0) > exact, total, 1.0)
        np.divide(room, scale, out=room, casting="same_kind")
        return room, 0
    return (draw, start) if ready else (room, 0)


@jit
def _take_in(probs: Floats, start: int, logs: Floats, sums: _Sums) -> None:
    """Add the probabilities of a draw to `sums`, and its terms of the entropy.

    `probs` (C, ...) from column `start` on belong to `logs` (C, b). The term of the
    most probable class is left to `_take_in_most`.
    """
    entropy, others, most = sums.entropy, sums.others, sums.most
    size = logs.shape[1]
    most[:] = 0.0
    others[:] = 0.0
    for c in range(len(logs)):
        row, log = probs[c, start : start + size], logs[c]
        # Two loops: the compiler makes vector instructions of either, but not of both.
        for i in range(size):
            p = row[i]
            # Not the product of 0 and the logarithm of 0, which is nan.
            term = p * log[i] if p != 0.0 else p
            less = p <= most[0, i]
            smaller = p if less else most[0, i]
            smaller_term = term if less else most[1, i]
            most[0, i] = most[0, i] if less else p
            most[1, i] = most[1, i] if less else term
            entropy[0, i], lost = two_sum(entropy[0, i], -smaller_term)
            entropy[1, i] += lost
            others[0, i], lost = two_sum(others[0, i], smaller)
            others[1, i] += lost
        add_to(sums.mean[0, c], sums.mean[1, c], row)


@jit
def _take_in_singles(probs: Floats, start: int, logs: Floats, sums: _Sums) -> None:
    """Do as `_take_in` does, for float32 and sums of one row."""
    entropy, others, most = sums.entropy[0], sums.others[0], sums.most
    size = logs.shape[1]
    most[:] = 0.0
    others[:] = 0.0
    for c in range(len(logs)):
        row, log, mean = probs[c, start : start + size], logs[c], sums.mean[0, c]
        for i in range(size):
            p = row[i]
            term = p * log[i] if p != 0.0 else p
            less = p <= most[0, i]
            smaller = p if less else most[0, i]
            smaller_term = term if less else most[1, i]
            most[0, i] = most[0, i] if less else p
            most[1, i] = most[1, i] if less else term
            entropy[i] -= smaller_term
            others[i] += smaller
            mean[i] += p


def _of_binary(draws: Floats) -> tuple[Floats, Floats]:
    """Return the total and aleatoric entropy of draws (M, ...) of P(y=1)."""
    finite("probs", draws)
    if draws.min() < 0.0 or draws.max() > 1.0:
        _refuse_range(draws)
    shape = draws.shape[1:]
    flat = draws.reshape(len(draws), -1)
    total, aleatoric = np.empty((2, flat.shape[1]), dtype=draws.dtype)
    step = max(1, BLOCK // len(flat))
    for start in range(0, flat.shape[1], step):
        block = flat[:, start : start + step]
        expected = mean_over_draws(_binary_entropy(block))
        aleatoric[start : start + step] = expected
        mean = block[0] if len(block) == 1 else mean_over_draws(block)
        total[start : start + step] = _binary_entropy(mean)
    return total.reshape(shape), aleatoric.reshape(shape)


def _binary_entropy(p: Floats) -> Floats:
    kind = np.finfo(p.dtype)
    below_one = kind.dtype.type(1.0) - kind.epsneg
    yes = p * np.log(p + kind.tiny)
    # log1p preserves the digits of a small p, which 1 - p would round away.
    no = (1.0 - p) * np.log1p(-np.minimum(p, below_one))
    result: Floats = 0.0 - (yes + no)
    return result


def _refuse(draws: Floats, axis: int, added: int) -> NoReturn:
    """Raise an error that describes why draws are not probabilities."""
    finite("probs", draws)
    if draws.min() < 0.0 or draws.max() > 1.0 + SUM_TOLERANCE:
        _refuse_range(draws)
    total = draws.sum(axis=axis)
    where = np.unravel_index(int(np.abs(total - 1.0).argmax()), total.shape)
    place = tuple(int(i) for i in where)[added:]
    raise ValueError(
        f"probs must sum to 1 over the classes, axis {axis - added}; position {place} "
        f"sums to {float(total[where]):.6g}; {_remedy(draws, axis, added)}"
    )


def _remedy(draws: Floats, axis: int, added: int) -> str:
    """Return advice on sums over `axis` that are not one."""
    for other in range(1, draws.ndim):
        off = np.abs(draws.sum(axis=other) - 1.0).max()
        if other != axis and off <= SUM_TOLERANCE:
            old, new = other - added, axis - added
            return (
                f"the classes are on axis {old}: pass class_axis={old}, or "
                f"np.moveaxis(probs, {old}, {new}) where there is no such argument"
            )
    return "pass softmax outputs, not logits"


def _refuse_range(draws: Floats) -> NoReturn:
    where = tuple(int(i) for i in np.argwhere((draws < 0.0) | (draws > 1.0))[0])
    raise ValueError(
        f"probs must lie in [0, 1], position {where} is {float(draws[where]):.6g}; "
        "if these are logits, apply softmax or sigmoid first"
    )
