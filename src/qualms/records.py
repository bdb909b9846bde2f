"""Records of numbers as .npz archives: a JSON text, and one array of each type.

Reading makes nothing but numbers, texts, tuples, lists, mappings, arrays of numbers,
and the records that the caller names. No file can make it call anything else, and it
takes no more memory than the file announces, up to a limit.
"""

import io
import json
import math
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

ROOM = 64 << 20
"""Bytes that any archive may have when it is unpacked, however small it is."""
RATIO = 100
"""Times by which larger archives may grow when they are unpacked."""
DAMAGE = (
    *(OSError, EOFError, ValueError, LookupError, TypeError, AttributeError),
    *(RuntimeError, zipfile.BadZipFile, zlib.error),
)
"""Errors that reading a damaged archive may raise."""
_TYPES = ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "b1")
"""Types of arrays of numbers; there are no others in a file."""
_PLAIN = (str, int, float, bool, type(None))
_TEXT = "records"
_COMPRESSED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
Kinds = Mapping[str, Callable[..., Any]]
"""Records by their names: frozen dataclasses and NamedTuples."""


def kinds_of(records: Iterable[type]) -> Kinds:
    """Return records by their names."""
    return {record.__name__: record for record in records}


def packed(value: Any, kinds: Kinds, *, compressed: bool = False) -> bytes:
    """Return a value as the bytes of an archive.

    Raises:
        TypeError: If something in it is neither plain nor one of `kinds`.
    """
    writer = _Writer(kinds, {}, {}, Counter())
    text = json.dumps({"value": writer.plain(value), "fields": writer.fields})
    arrays = {name: np.concatenate(parts) for name, parts in writer.arrays.items()}
    arrays[_TEXT] = np.frombuffer(text.encode(), np.uint8)
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def unpacked(content: bytes, kinds: Kinds) -> Any:
    """Return what `packed` was given; arrays of NumPy's scalars as Python's numbers.

    Raises:
        Exception: One of `DAMAGE`, if `content` is no such archive.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        most = max(ROOM, RATIO * len(content))
        if sum(member.file_size for member in members) > most:
            raise ValueError("the archive is too large when it is unpacked")
        if any(member.compress_type not in _COMPRESSED for member in members):
            raise ValueError("the archive is compressed in an unusual way")
        arrays = {
            member.filename.removesuffix(".npy"): _array(archive.read(member))
            for member in members
        }
    parsed = json.loads(arrays[_TEXT].tobytes())
    return _Reader(kinds, parsed["fields"], arrays).value(parsed["value"])


def _array(content: bytes) -> NDArray[Any]:
    """Return the array of one axis in an .npy file, whose numbers are all there."""
    file = io.BytesIO(content)
    npy.read_magic(file)  # type: ignore[no-untyped-call]
    shape, _, dtype = npy.read_array_header_1_0(file)  # type: ignore[no-untyped-call]
    if dtype.str[1:] not in _TYPES or dtype.names is not None or len(shape) != 1:
        raise ValueError("an array must hold numbers, in one axis")
    array: NDArray[Any] = np.frombuffer(content, dtype, offset=file.tell())
    if array.shape != shape:
        raise ValueError("an array must have as many numbers as it says")
    return array


class _Writer(NamedTuple):
    """Values as JSON: a list begins with the name of what it is."""

    kinds: Kinds
    arrays: dict[str, list[NDArray[Any]]]
    fields: dict[str, tuple[str, ...]]
    counts: Counter[str]
    """Numbers so far, by the type of their arrays."""

    def plain(self, value: Any) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is tuple or kind is list:
            return [kind.__name__, *map(self.plain, value)]
        if isinstance(value, np.generic):
            return self.plain(value.item())
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, Mapping):
            pairs = [[self.plain(k), self.plain(v)] for k, v in value.items()]
            return ["dict", *pairs]
        name = kind.__name__
        if self.kinds.get(name) is not kind:
            raise TypeError(f"a {name} is no record of numbers")
        if name not in self.fields:
            self.fields[name] = _field_names(kind)
        return [name, *(self.plain(getattr(value, n)) for n in self.fields[name])]

    def _array(self, value: NDArray[Any]) -> Any:
        name = value.dtype.str[1:]
        if name not in _TYPES:
            raise TypeError(f"an array of {value.dtype} holds no numbers")
        start = self.counts[name]
        self.counts[name] += value.size
        self.arrays.setdefault(name, []).append(value.astype(name).ravel())
        return ["array", name, start, *value.shape]


class _Reader(NamedTuple):
    kinds: Kinds
    fields: Mapping[str, list[str]]
    arrays: Mapping[str, NDArray[Any]]

    def value(self, plain: Any) -> Any:
        if type(plain) is not list:
            if type(plain) in _PLAIN:
                return plain
            raise ValueError("an object has no place in an archive of records")
        name, *rest = plain
        if name == "array":
            return self._array(*rest)
        if name == "dict":
            return {self.value(key): self.value(value) for key, value in rest}
        values = [v if type(v) in _PLAIN else self.value(v) for v in rest]
        if name == "list":
            return values
        if name == "tuple":
            return tuple(values)
        return self.kinds[name](**dict(zip(self.fields[name], values, strict=True)))

    def _array(self, name: str, start: int, *shape: int) -> NDArray[Any]:
        if min((start, *shape)) < 0:
            raise ValueError("an array must lie inside its file")
        flat = self.arrays[name][start : start + math.prod(shape)]
        return flat.reshape(shape).copy()


def _field_names(kind: Any) -> tuple[str, ...]:
    if is_dataclass(kind):
        return tuple(each.name for each in fields(kind))
    return tuple(kind._fields)
