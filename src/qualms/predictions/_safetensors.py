"""The carrier .safetensors: float32, header in its metadata.

The format has no text, so an array of text (`item`, `group`, `cluster`) stands in the
metadata under its own name, as a JSON list.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import deserialize, safe_open
from safetensors.numpy import save_file

from qualms.predictions._error import PredictionsError
from qualms.predictions._header import Header, dumps, loads
from qualms.predictions._normal import Raw
from qualms.predictions._schema import known
from qualms.predictions._unreadable import parsing
from qualms.predictions._values import place

HEADER_AT = "the metadata under 'header' (JSON)"
_TEXTS = ("item", "group", "cluster")


def read_safetensors(path: Path) -> Raw:
    """The arrays and header of a .safetensors file."""
    with parsing(path), safe_open(path, framework="np") as found:
        metadata = found.metadata() or {}
        names = list(found.keys())
        arrays = {name: _tensor(path, found, name) for name in names if known(name)}
    for name in _TEXTS:
        if name in metadata and name not in arrays:
            arrays[name] = _text(name, metadata[name])
    header = metadata.get("header")
    return Raw(
        arrays=arrays,
        header={} if header is None else loads(header, "the metadata's 'header'"),
        header_at=HEADER_AT,
        unread=tuple(name for name in names if name not in arrays),
    )


def write_safetensors(
    path: Path, arrays: Mapping[str, NDArray[Any]], header: Header | None
) -> None:
    """Write a .safetensors file, float64 as float32."""
    texts = {name: a for name, a in arrays.items() if a.dtype.kind == "U"}
    tensors = {
        name: _single(name, a) for name, a in arrays.items() if name not in texts
    }
    metadata = {name: json.dumps(array.tolist()) for name, array in texts.items()}
    if header is not None:
        shapes = {name: array.shape for name, array in arrays.items()}
        metadata["header"] = dumps(header, shapes)
    save_file(tensors, path, metadata=metadata)


def _tensor(path: Path, found: Any, name: str) -> NDArray[Any]:
    if found.get_slice(name).get_dtype() == "BF16":
        # NumPy has no bfloat16: its bits are the upper half of a float32.
        held = deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
        entry = dict(held)[name]
        halves = np.frombuffer(entry["data"], dtype="<u2").astype(np.uint32) << 16
        return halves.view(np.float32).reshape(entry["shape"])
    return np.asarray(found.get_tensor(name))


def _text(name: str, text: str) -> NDArray[Any]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, list) or not set(map(type, values)) <= {str}:
        raise PredictionsError(
            f"the metadata's '{name}' must be a JSON list of text, got {text[:40]!r}; "
            "write json.dumps([...]) of one text per row"
        )
    return np.array(values, dtype=np.str_)


def _single(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype != np.float64:
        return np.ascontiguousarray(array)
    with np.errstate(all="ignore"):
        single = np.ascontiguousarray(array, dtype=np.float32)
    if np.isfinite(single.min()) and np.isfinite(single.max()):
        return single
    where = tuple(np.argwhere(~np.isfinite(single))[0])
    raise PredictionsError(
        f"array '{name}' does not fit into float32, {place('', where)} is "
        f"{float(array[where]):g}; write .npz, which keeps float64"
    )
