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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import (
    Any,
    Literal,
    NamedTuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

ROOM = 64 << 20
"""Bytes that any archive may have when it is from_archive, however small it is."""
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


def record_kinds(records: Iterable[type]) -> Kinds:
    """Return records by their names."""
    return {record.__name__: record for record in records}


def to_archive(value: Any, kinds: Kinds, *, compressed: bool = False) -> bytes:
    """Return a value as the bytes of an archive.

    Raises:
        TypeError: If something in it is neither plain nor one of `kinds`.
    """
    writer = _ArchiveWriter(kinds, {}, {}, Counter())
    text = json.dumps({"value": writer.plain(value), "fields": writer.fields})
    arrays = {name: np.concatenate(parts) for name, parts in writer.arrays.items()}
    arrays[_TEXT] = np.frombuffer(text.encode(), np.uint8)
    file = io.BytesIO()
    save: Any = np.savez_compressed if compressed else np.savez
    save(file, **arrays)
    return file.getvalue()


def from_archive(content: bytes, kinds: Kinds, *, checked: bool = False) -> Any:
    """Return what `to_archive` was given, NumPy's scalars as Python's numbers.

    Args:
        content: The bytes of an archive.
        kinds: Records that may be in it.
        checked: Whether fields must have the types that their records declare. Nobody
            else can have written a file that is sealed.

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
    reader = _ArchiveReader(kinds, parsed["fields"], arrays, checked)
    return reader.value(parsed["value"])


def _array(content: bytes) -> NDArray[Any]:
    """Return the array of one axis in an .npy file, whose numbers are all there."""
    file = io.BytesIO(content)
    npy.read_magic(file)
    shape, _, dtype = npy.read_array_header_1_0(file)
    if dtype.str[1:] not in _TYPES or dtype.names is not None or len(shape) != 1:
        raise ValueError("an array must hold numbers, in one axis")
    array: NDArray[Any] = np.frombuffer(content, dtype, offset=file.tell())
    if array.shape != shape:
        raise ValueError("an array must have as many numbers as it says")
    return array


class _ArchiveWriter(NamedTuple):
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


class _ArchiveReader(NamedTuple):
    kinds: Kinds
    fields: Mapping[str, list[str]]
    arrays: Mapping[str, NDArray[Any]]
    checked: bool

    def value(self, plain: Any) -> Any:
        if type(plain) in _PLAIN:
            return plain
        if type(plain) is dict:
            raise ValueError("an object has no place in an archive of records")
        name, *rest = plain
        if name == "array":
            return self._array(*rest)
        if name == "dict":
            return {self.value(key): self.value(value) for key, value in rest}
        values = [v if type(v) in _PLAIN else self.value(v) for v in rest]
        if name in ("list", "tuple"):
            return values if name == "list" else tuple(values)
        named = dict(zip(self.fields[name], values, strict=True))
        if self.checked:
            _check_fields(name, named, _hints(self.kinds[name]))
        return self.kinds[name](**named)

    def _array(self, name: str, start: int, *shape: int) -> NDArray[Any]:
        if min((start, *shape)) < 0:
            raise ValueError("an array must lie inside its file")
        flat = self.arrays[name][start : start + math.prod(shape)]
        return flat.reshape(shape).copy()


def _field_names(kind: Any) -> tuple[str, ...]:
    if is_dataclass(kind):
        return tuple(each.name for each in fields(kind))
    return tuple(kind._fields)


def _check_fields(
    record: str, values: Mapping[str, Any], hints: Mapping[str, Any]
) -> None:
    for name, value in values.items():
        if not _fits(value, hints[name]):
            raise ValueError(f"{record}.{name} must be {hints[name]}, got {value!r}")


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value has a type; records in it are checked on their own."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in (Any, object):
        return True
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in args)
    if origin is Literal:
        return value in args
    if origin in (tuple, list, Sequence, Mapping, dict):
        return isinstance(value, (tuple, list, dict)) and _fit(value, origin, args)
    if isinstance(value, bool):
        return hint is bool
    return isinstance(value, (int, float) if hint is float else origin or hint)


def _fit(values: Any, origin: Any, args: tuple[Any, ...]) -> bool:
    """Return whether a collection and its members have a type."""
    if origin in (Mapping, dict):
        return isinstance(values, dict) and all(
            _fits(key, args[0]) and _fits(value, args[1])
            for key, value in values.items()
        )
    if isinstance(values, dict):
        return False
    if origin is tuple and Ellipsis not in args:
        return len(values) == len(args) and all(map(_fits, values, args))
    return all(_fits(value, args[0]) for value in values)
