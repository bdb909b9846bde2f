"""The maps of one segmented item, checked: shapes, ranges, labels."""

from collections.abc import Mapping, Sequence
from functools import partial
from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._error import PredictionsError, naming
from qualms.predictions._foreign import to_array
from qualms.predictions._probs import probabilities
from qualms.predictions._record import LazyMaps, Maps
from qualms.predictions._schema import listed
from qualms.predictions._values import finite, numbers, place, to_bytes

ARRAYS = ("mean_probs", "expected_entropy", "draw_labels", "raters")
_LEADING = {
    "mean_probs": "C",
    "expected_entropy": "",
    "draw_labels": "M",
    "raters": "R",
}
_CALLED = {"C": "class", "M": "draw", "R": "rater"}
_REMEDY = "store probabilities averaged over draws, not logits"


class Counts(NamedTuple):
    """What all items of a file share: classes and draws, and the label to ignore."""

    classes: int | None = None
    draws: int | None = None
    ignore: int | None = None


def check_maps(maps: Maps, counts: Counts) -> Maps:
    """`maps` in the normal dtypes, probabilities renormalised."""
    arrays = {name: to_array(name, getattr(maps, name)) for name in ARRAYS}
    _check_shapes(arrays)
    _check_counts(arrays, counts)
    classes = arrays["mean_probs"].shape[0]
    with np.errstate(all="ignore"):
        return Maps(
            mean_probs=_mean_probs(arrays["mean_probs"]),
            expected_entropy=_entropy(arrays["expected_entropy"], classes),
            draw_labels=_labels("draw_labels", arrays, classes, counts.ignore),
            raters=_labels("raters", arrays, classes, counts.ignore),
        )


def counted(maps: Maps, ignore: int | None) -> Counts:
    """The counts of checked `maps`, which every further item must have as well."""
    return Counts(
        classes=maps.mean_probs.shape[0],
        draws=maps.draw_labels.shape[0],
        ignore=ignore,
    )


def held_in_memory(maps: Sequence[Maps], counts: Counts) -> LazyMaps:
    """`maps` of any kind, each checked when asked for."""
    return LazyMaps(partial(_check_row, maps, counts), range(len(maps)))


def complete(arrays: Mapping[str, Any], unread: tuple[str, ...]) -> Maps:
    """The four arrays of an item as a record, none of them missing."""
    missing = [name for name in ARRAYS if name not in arrays]
    if missing:
        raise PredictionsError(
            f"a segmented item needs {listed(ARRAYS)}, found only "
            f"{listed((*arrays, *unread))}; add {listed(missing)}"
        )
    return Maps(**{name: arrays[name] for name in ARRAYS})


def _check_row(maps: Sequence[Maps], counts: Counts, row: int) -> Maps:
    with naming(f"maps[{row}]"):
        given = maps[row]
        if not isinstance(given, Maps):
            raise PredictionsError(
                f"must be a Maps record, got {type(given).__name__}; build it with "
                "qualms.predictions.Maps(mean_probs=..., ...)"
            )
        return check_maps(given, counts)


def _check_shapes(arrays: Mapping[str, NDArray[Any]]) -> None:
    space = arrays["expected_entropy"].shape
    if not space or 0 in space:
        raise PredictionsError(
            f"array 'expected_entropy' must have the shape of the image, got {space}"
        )
    for name, array in arrays.items():
        lead = _LEADING[name]
        if array.shape[len(lead) :] != space or array.ndim != len(space) + len(lead):
            wanted = ", ".join([*lead, *map(str, space)])
            raise PredictionsError(
                f"array '{name}' must have shape ({wanted}) to fit 'expected_entropy', "
                f"got {array.shape}; put the {_CALLED[lead]} axis first, then space"
            )
        if array.shape[0] == 0:
            raise PredictionsError(
                f"array '{name}' has no {_CALLED[lead]} (shape {array.shape}); there "
                "must be at least one"
            )


def _check_counts(arrays: Mapping[str, NDArray[Any]], counts: Counts) -> None:
    classes = arrays["mean_probs"].shape[0]
    if classes < 2:
        raise PredictionsError(
            "array 'mean_probs' must have at least two classes on its first axis, got "
            f"shape {arrays['mean_probs'].shape}; for P(y=1) stack 1 - p and p"
        )
    for name, axis, wanted in (
        ("mean_probs", "classes", counts.classes),
        ("draw_labels", "draws", counts.draws),
    ):
        got = arrays[name].shape[0]
        if wanted is not None and got != wanted:
            raise PredictionsError(
                f"array '{name}' has {got} {axis}, the first item has {wanted}; all "
                "items of one file must agree"
            )


def _mean_probs(array: NDArray[Any]) -> NDArray[Any]:
    given = numbers("mean_probs", array)
    finite("mean_probs", given, "C")
    made = given.astype(np.float32, copy=False)
    return np.ascontiguousarray(
        probabilities("mean_probs", made, "C", remedy=_REMEDY).probs
    )


def _entropy(array: NDArray[Any], classes: int) -> NDArray[Any]:
    name = "expected_entropy"
    given = numbers(name, array)
    low, high = finite(name, given, "")
    # Half precision rounds; an entropy in bits misses by far more than this.
    limit, slack = log(classes), 2e-3 * (1.0 + log(classes))
    if low < -slack or high > limit + slack:
        wrong = (given < -slack) | (given > limit + slack)
        where = tuple(np.argwhere(wrong)[0])
        raise PredictionsError(
            f"array '{name}' must lie in [0, {limit:.4g}] (log C, in nats), "
            f"{place('', where)} is {float(given[where]):.6g}; use natural logarithms"
        )
    return np.ascontiguousarray(np.maximum(given.astype(np.float32, copy=False), 0))


def _labels(
    name: str, arrays: Mapping[str, NDArray[Any]], classes: int, ignore: int | None
) -> NDArray[Any]:
    axes = _LEADING[name]
    labels = np.ascontiguousarray(to_bytes(name, arrays[name], axes))
    if labels.max() < classes:
        return labels
    wrong = labels >= classes
    if ignore is not None:
        wrong &= labels != ignore
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0])
        raise PredictionsError(
            f"array '{name}' must lie in 0..{classes - 1} or be the header's 'ignore' "
            f"({ignore}), {place(axes, where)} is {labels[where]}; correct it, or "
            "state 'ignore' in the header"
        )
    return labels
