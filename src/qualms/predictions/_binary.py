"""The files .npz and .safetensors: arrays by name, with a header.

In .npz the header is a 0-d string named `header`. In .safetensors numbers are float32
and the header stands in the metadata. That format has no text, so an array of text
(`item`, `group`, `cluster`) stands in the metadata under its own name, as a JSON list.
"""

import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import deserialize, safe_open
from safetensors import numpy as safetensors_numpy

from qualms.predictions._errors import PredictionsError, parsing
from qualms.predictions._foreign import numpy_array
from qualms.predictions._header import Header, dumps, loads
from qualms.predictions._normal import RawArrays
from qualms.predictions._schema import is_array_name
from qualms.predictions._values import where_in

_NPZ_HEADER = "a 0-d string array 'header' (JSON)"
_SAFETENSORS_HEADER = "the metadata under 'header' (JSON)"
_TEXTS = ("item", "group", "cluster")


def read_npz(path: Path) -> RawArrays:
    """The arrays and header of an .npz file; nothing in it is ever unpickled."""
    with parsing(path):
        _refuse_bomb(path)
        with np.load(path, allow_pickle=False) as found:
            names = [name for name in found.files if name != "header"]
            arrays = {
                name: _member(found, name) for name in names if is_array_name(name)
            }
            header = _member(found, "header") if "header" in found.files else None
    return RawArrays(
        arrays=arrays,
        header={} if header is None else _header(header),
        header_at=_NPZ_HEADER,
        unread=tuple(name for name in names if name not in arrays),
    )


def write_npz(path: Path, arrays: Mapping[str, NDArray[Any]], header: Header) -> None:
    """Write an .npz file, numbers as they are in memory."""
    text = dumps(header, {name: array.shape for name, array in arrays.items()})
    held: dict[str, Any] = {**arrays, "header": np.array(text)}
    with path.open("xb") as file:
        np.savez(file, **held)


def _refuse_bomb(path: Path) -> None:
    # A few bytes can claim to unpack to more than the machine holds; look first.
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        size = sum(member.file_size for member in archive.infolist())
        file.seek(0)
        if file.read(2) != b"PK":  # np.load would take the rest for a pickle
            raise zipfile.BadZipFile("bytes before the beginning of the zip file")
    if size > machine_memory():
        raise PredictionsError(
            f"unpacks to {size / 2**30:.0f} GiB, more than this machine's memory; "
            "split it into several files"
        )


def machine_memory() -> int:
    """The machine's memory in bytes."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2**40


def _member(found: Any, name: str) -> NDArray[Any]:
    try:
        array = found[name]
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise PredictionsError(
            f"array '{name}' holds Python objects, which are never loaded; save it as "
            "numbers or text, for example np.asarray(values, dtype=float)"
        ) from error
    return numpy_array(name, np.asarray(array))


def _header(array: NDArray[Any]) -> dict[str, Any]:
    if array.size != 1 or array.dtype.kind not in "US":
        raise PredictionsError(
            "array 'header' must be one string of JSON, got shape "
            f"{array.shape} of {array.dtype}; save it as np.array(json.dumps(...))"
        )
    return loads(array.item(), "the array 'header'")


def read_safetensors(path: Path) -> RawArrays:
    """The arrays and header of a .safetensors file."""
    with parsing(path), safe_open(path, framework="np") as found:
        metadata = found.metadata() or {}
        names = list(found.keys())
        arrays = {
            name: _tensor(path, found, name) for name in names if is_array_name(name)
        }
    for name in _TEXTS:
        if name in metadata and name not in arrays:
            arrays[name] = _text(name, metadata[name])
    header = metadata.get("header")
    return RawArrays(
        arrays=arrays,
        header={} if header is None else loads(header, "the metadata's 'header'"),
        header_at=_SAFETENSORS_HEADER,
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
    safetensors_numpy.save_file(tensors, path, metadata=metadata)


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
        f"array '{name}' does not fit into float32, {where_in('', where)} is "
        f"{float(array[where]):g}; write .npz, which keeps float64"
    )
