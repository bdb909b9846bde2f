"""Uncertainty of draws, split into what the draws agree on and what they do not.

Total = entropy of the mean prediction, aleatoric = mean entropy of the draws,
epistemic = their difference, the mutual information between prediction and draw
(Depeweg et al., 2018). All in nats, with 0 log 0 = 0.

Works blockwise over items or pixels: besides the result, memory is that of one block.
"""

from itertools import product
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.scores._arrays import SUM_TOLERANCE, finite

Floats = NDArray[np.floating[Any]]

# Probabilities of one draw held at a time: few enough to stay in a core's own cache.
BLOCK = 1 << 17


class Decomposition(NamedTuple):
    """Uncertainty per item or pixel, in nats; larger is less certain."""

    total: Floats
    """Entropy of the mean over draws."""
    aleatoric: Floats
    """Mean over draws of the entropy."""
    epistemic: Floats
    """`total - aleatoric`, not clipped: rounding may leave it a hair below zero."""


def decompose(probs: ArrayLike, *, class_axis: int | None = -1) -> Decomposition:
    """Total, aleatoric and epistemic uncertainty of draws (Depeweg et al., 2018).

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
    return Decomposition(total, aleatoric, total - aleatoric)


def entropy(probs: ArrayLike, *, class_axis: int | None = -1) -> Floats:
    """Shannon entropy in nats of every prediction, draws or not (Shannon, 1948).

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
    return _of_classes(single, axis + 1)[0]


def _floats(probs: ArrayLike) -> Floats:
    array = np.asarray(probs)
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


def _of_classes(draws: Floats, axis: int) -> tuple[Floats, Floats]:
    """Total and aleatoric entropy of draws (M, ..., C, ...)."""
    if axis == 0:
        raise ValueError("class_axis must not be the first axis, which holds the draws")
    spread = _spread(draws, axis)
    _, before, classes, after = spread.shape
    total, aleatoric = np.empty((2, before, after), dtype=draws.dtype)
    step = min(after, max(1, BLOCK // classes))
    # Used again by every block: fresh memory would cost more than the logarithm.
    buffers = np.empty((3, classes, step), dtype=draws.dtype)
    for row, start in product(range(before), range(0, after, step)):
        block = spread[:, row, :, start : start + step]
        parts = _of_block(block, *buffers[..., : block.shape[2]])
        if parts is None:
            _refuse(draws, axis)
        total[row, start : start + step], aleatoric[row, start : start + step] = parts
    shape = draws.shape[1:axis] + draws.shape[axis + 1 :]
    return total.reshape(shape), aleatoric.reshape(shape)


def _spread(draws: Floats, axis: int) -> Floats:
    """A view (M, before, C, after) with the long run of items or pixels last."""
    before = int(np.prod(draws.shape[1:axis]))
    after = int(np.prod(draws.shape[axis + 1 :]))
    view = draws.reshape(len(draws), before, draws.shape[axis], after)
    return view if after > 1 else view.swapaxes(1, 3)


def _of_block(
    block: Floats, copy: Floats, mean: Floats, room: Floats
) -> tuple[Floats, Floats] | None:
    """Total and aleatoric entropy (b,) of (M, C, b); None if it holds no probabilities.

    The last three, of shape (C, b), are written to.
    """
    mean[:] = 0.0
    aleatoric = np.zeros_like(mean[0])
    for piece in block:
        if piece.strides[-1] != piece.itemsize:
            np.copyto(copy, piece)
            piece = copy
        draw = _normalised(piece)
        if draw is None:
            return None
        mean += draw
        aleatoric += _class_entropy(draw, room)
    mean /= len(block)
    aleatoric /= len(block)
    return (aleatoric if len(block) == 1 else _class_entropy(mean, room)), aleatoric


def _normalised(piece: Floats) -> Floats | None:
    """Probabilities (C, b) whose sums a little off are put right; None if far off."""
    total = piece.sum(axis=0)
    off = float(np.abs(total - 1.0).max())
    # Written so that a nan, which compares false, is refused.
    if not (off <= SUM_TOLERANCE and piece.min() >= 0.0):
        return None
    exact = off <= 64 * np.finfo(piece.dtype).eps
    return piece if exact else piece / total


def _class_entropy(probs: Floats, room: Floats) -> Floats:
    """(b,) entropies of (C, b); `room`, of the same shape, is written to."""
    # Adding the smallest number leaves every probability that matters as it is and
    # makes log(0) finite, so that its product with 0 is 0. maximum() costs five times
    # as much, and NumPy's float32 log has vector instructions where numba's has none.
    np.add(probs, np.finfo(probs.dtype).tiny, out=room)
    np.log(room, out=room)
    negative: Floats = np.einsum("cb,cb->b", probs, room)
    return np.subtract(0.0, negative, dtype=probs.dtype)


def _of_binary(draws: Floats) -> tuple[Floats, Floats]:
    """Total and aleatoric entropy of draws (M, ...) of P(y=1)."""
    finite("probs", draws)
    if draws.min() < 0.0 or draws.max() > 1.0:
        _refuse_range(draws)
    aleatoric = np.zeros(draws.shape[1:], dtype=draws.dtype)
    for draw in draws:
        aleatoric += _binary_entropy(draw)
    aleatoric /= len(draws)
    return _binary_entropy(draws.mean(axis=0)), aleatoric


def _binary_entropy(p: Floats) -> Floats:
    kind = np.finfo(p.dtype)
    below_one = kind.dtype.type(1.0) - kind.epsneg
    yes = p * np.log(p + kind.tiny)
    # log1p keeps the digits of a small p that 1 - p would round away.
    no = (1.0 - p) * np.log1p(-np.minimum(p, below_one))
    result: Floats = 0.0 - (yes + no)
    return result


def _refuse(draws: Floats, axis: int) -> NoReturn:
    """Say what is wrong with the probabilities that a block found wanting."""
    finite("probs", draws)
    if draws.min() < 0.0 or draws.max() > 1.0 + SUM_TOLERANCE:
        _refuse_range(draws)
    total = draws.sum(axis=axis)
    where = np.unravel_index(int(np.abs(total - 1.0).argmax()), total.shape)
    place = tuple(int(i) for i in where)
    raise ValueError(
        f"probs must sum to 1 over the class axis, position {place} sums to "
        f"{float(total[where]):.6g}; pass softmax outputs, not logits"
    )


def _refuse_range(draws: Floats) -> NoReturn:
    where = tuple(int(i) for i in np.argwhere((draws < 0.0) | (draws > 1.0))[0])
    raise ValueError(
        f"probs must lie in [0, 1], position {where} is {float(draws[where]):.6g}; "
        "if these are logits, apply softmax or sigmoid first"
    )
