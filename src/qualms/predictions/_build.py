"""Predictions from arrays in memory, of any framework."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from qualms.predictions._error import PredictionsError, naming
from qualms.predictions._foreign import to_array
from qualms.predictions._header import Header, as_header
from qualms.predictions._maps import held_in_memory
from qualms.predictions._normal import Asked, Raw, normal_form
from qualms.predictions._record import Predictions
from qualms.predictions._schema import known
from qualms.predictions._segmentation import segmentation

_SOURCE = "arrays"


def build(
    arrays: Mapping[str, Any],
    *,
    header: Header | Mapping[str, Any] | None = None,
    task: str | None = None,
    logits: bool = False,
) -> Predictions:
    """Predictions from a mapping of names to arrays, checked and in normal form.

    Takes NumPy, PyTorch, JAX and TensorFlow arrays, pandas columns and lists. For
    segmentation, `maps` is a sequence of `Maps`, checked item by item when asked for,
    with `item`, `group`, `cluster` and `shifted` beside it. `task` and `logits` are
    those of `read`.

    >>> made = build({"target": [0, 1], "prob": [0.2, 0.9]})
    >>> made.task, made.arrays["probs"].shape
    ('classification', (1, 2, 2))
    """
    asked = Asked(task, logits)
    with naming(_SOURCE):
        _refuse_unnamed(arrays)
        raw = Raw(
            arrays={
                name: to_array(name, values)
                for name, values in arrays.items()
                if known(name) and name != "maps"
            },
            header=as_header(header),
            header_at="header=...",
            unread=tuple(name for name in arrays if not known(name)),
        )
        if "maps" not in arrays:
            return normal_form(raw, asked, _SOURCE)
        maps = _sequence(arrays["maps"])
    return segmentation(raw, partial(held_in_memory, maps), asked, _SOURCE)


def _refuse_unnamed(arrays: Any) -> None:
    if not isinstance(arrays, Mapping):
        raise PredictionsError(
            f"must be a mapping of names to arrays, got {type(arrays).__name__}; pass "
            "for example {'target': ..., 'probs': ...}"
        )
    wrong = next((name for name in arrays if not isinstance(name, str)), None)
    if wrong is not None:
        raise PredictionsError(f"the name of an array must be text, got {wrong!r:.60}")


def _sequence(maps: Any) -> Sequence[Any]:
    if isinstance(maps, Sequence):
        return maps
    raise PredictionsError(
        f"'maps' must be a sequence of Maps, got {type(maps).__name__}; pass a list, "
        "or stream the items with qualms.predictions.SegmentationWriter"
    )
