"""Arrays of any framework as NumPy arrays, without importing a framework."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._errors import PredictionsError, said_by
from qualms.predictions._values import text_array


def to_array(name: str, values: Any) -> NDArray[Any]:
    """Return `values` as a NumPy array of numbers, booleans or text.

    They may be arrays of NumPy, PyTorch (any device, bfloat16, with gradient), JAX,
    TensorFlow and pandas, or nested lists.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise PredictionsError(
            f"array '{name}' has masked values; fill them or drop those items"
        )
    if isinstance(values, list | tuple) and values and _are_texts(values):
        return text_array(name, values)  # NumPy would drop a NUL at an end
    try:
        array = np.asarray(_on_host(values))
    except MemoryError:
        raise
    # Converting a foreign array may raise any class of exception.
    except Exception as error:
        raise PredictionsError(
            f"array '{name}' cannot be turned into an array ({said_by(error)}); "
            "pass numbers in a rectangular shape"
        ) from error
    return numpy_array(name, array)


def numpy_array(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return `array` in a dtype of NumPy itself; unbox objects or raise."""
    kind = array.dtype.kind
    if kind == "V" and array.dtype.names is None:
        return _widened(name, array)
    if kind in "OT":
        return _unboxed(name, array.astype(object))
    return array


def _are_texts(values: Sequence[Any]) -> bool:
    return isinstance(values[0], str) and all(isinstance(v, str) for v in values)


@runtime_checkable
class _Torch(Protocol):
    def detach(self) -> Any: ...
    def cpu(self) -> Any: ...
    def element_size(self) -> int: ...
    def is_floating_point(self) -> bool: ...


def _on_host(values: Any) -> Any:
    if isinstance(values, _Torch):
        tensor = values.detach().cpu()
        # NumPy has no bfloat16; every float below 32 bits fits into float32 exactly.
        if tensor.is_floating_point() and tensor.element_size() < 4:
            tensor = tensor.float()
        return tensor.numpy()
    if isinstance(values, list | tuple) and values and isinstance(values[0], _Torch):
        return np.stack([np.asarray(_on_host(value)) for value in values])
    return values


def _widened(name: str, array: NDArray[Any]) -> NDArray[Any]:
    # JAX and TensorFlow have a bfloat16 dtype that supports only casts.
    try:
        return array.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise PredictionsError(
            f"array '{name}' must be numbers or text, got {array.dtype}; convert it"
        ) from error


def _unboxed(name: str, array: NDArray[Any]) -> NDArray[Any]:
    values = array.ravel().tolist()
    if all(isinstance(value, str) for value in values):
        return text_array(name, values).reshape(array.shape)
    for kind in (bool, int | np.integer, int | float | np.number):
        if all(isinstance(value, kind) for value in values):
            unboxed = np.array(values).reshape(array.shape)
            if unboxed.dtype.kind != "O":
                return unboxed
    row = next((i for i, v in enumerate(values) if _is_foreign(v)), 0)
    where = f"row {row}" if array.ndim == 1 else f"value {row}"
    shown = f", {where} is {values[row]!r:.60}" if values else ""
    raise PredictionsError(
        f"array '{name}' must be numbers or text, not Python objects{shown}; convert "
        "it, for example with np.asarray(values, dtype=float)"
    )


def _is_foreign(value: Any) -> bool:
    return not isinstance(value, str | bool | int | float | np.number)
