"""Finished units on disk: one file each, written atomically, never unpickled.

A shard holds the arrays of `LoadedItems` by name: image, target, item, extra/<name>.
Encoded pictures have, instead of `image`, their concatenated bytes and the span (k, 2)
of each. The file name depends on the unit's key and split alone, so a later run finds
what is done.

A shard begins with one line of JSON: type and shape of each array, and a checksum of
the bytes of all arrays, which follow in the same order. There is one for each of a
million pictures, and a zip file takes ten times as long to read.
"""

import json
import math
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._recipe import DatasetError, LoadedItems, Unit
from qualms.spec import digest
from qualms.wording import error_words

ENCODED = "encoded"
SPAN = "span"
SIDES = "/sides"
"""Ends the name of the array that has the shapes of the items of another array."""


class ArrayLayout(NamedTuple):
    """Shape and type of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize


class _Head(NamedTuple):
    """The first line of a shard."""

    layout: dict[str, ArrayLayout]
    checksum: int


def shard_path(folder: Path, unit: Unit) -> Path:
    """Return where the arrays of `unit` are kept."""
    name = digest("\n".join((unit.split, unit.key)))
    return folder / f"{name}.shard"


def make_shard(
    load: Callable[[Unit], LoadedItems], folder: Path, dataset: str, unit: Unit
) -> str:
    """Load `unit` and write its shard; return '' or what is wrong with the unit.

    An error while writing is an error of this machine, not of the unit: it is raised.

    Raises:
        DatasetError: If `load` fails as no damaged file makes it fail, or returns
            something else than `LoadedItems`: the code of the dataset is wrong.
    """
    try:
        loaded = load(unit)
        if isinstance(loaded, LoadedItems):
            arrays = _arrays(loaded)
    except (OSError, ValueError) as error:
        return _sentence(error)
    # The code of somebody else may raise anything.
    except Exception as error:
        raise DatasetError(
            f"dataset {dataset!r}: load of unit {unit.key!r} fails with"
            f" {error_words(error)}; correct the function"
        ) from error
    if not isinstance(loaded, LoadedItems):
        raise DatasetError(
            f"dataset {dataset!r}: load of unit {unit.key!r} must return LoadedItems,"
            f" got {type(loaded).__name__}; correct the function"
        )
    path = shard_path(folder, unit)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    with partial.open("wb") as file:
        file.writelines(_shard_bytes(arrays))
    partial.replace(path)
    return ""


def read_layout(path: Path) -> dict[str, ArrayLayout]:
    """Read shape and type of each array of a shard from its first line alone."""
    with _removing_damaged(path), path.open("rb") as file:
        head = _head(file)
        remaining = os.fstat(file.fileno()).st_size - file.tell()
        if remaining != sum(array.nbytes for array in head.layout.values()):
            raise ValueError("the file was cut off")
        return head.layout


def read_shard(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of a shard and verify their checksum."""
    with _removing_damaged(path), path.open("rb") as file:
        head = _head(file)
        data = bytearray(file.read())
        if zlib.crc32(data) != head.checksum:
            raise ValueError("its bytes have changed")
        return _cut(data, head.layout)


def read_items(path: Path) -> NDArray[np.str_]:
    """Read the item names of a shard, without its other arrays."""
    with _removing_damaged(path), path.open("rb") as file:
        layout = _head(file).layout
        for name, array in layout.items():
            if name == "item":
                return _cut(bytearray(file.read(array.nbytes)), {name: array})[name]
            file.seek(array.nbytes, os.SEEK_CUR)
        raise KeyError("item")


@contextmanager
def _removing_damaged(path: Path) -> Iterator[None]:
    """Remove a shard that cannot be read, so that the next run makes it again."""
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        path.unlink()
        raise DatasetError(
            f"{path} was damaged and has been removed; run again to load its unit again"
        ) from error


def _arrays(loaded: LoadedItems) -> dict[str, NDArray[Any]]:
    items = np.array(loaded.item, dtype=np.str_).reshape(len(loaded.item))
    image = loaded.image
    arrays = _pack(image) if isinstance(image, tuple) else {"image": image}
    arrays |= {"target": loaded.target, "item": items}
    arrays |= {f"extra/{name}": value for name, value in loaded.extra.items()}
    for name, array in arrays.items():
        if len(array) != len(items) and name != ENCODED:
            raise ValueError(
                f"{name} must have one row per item, got {len(array)} rows for"
                f" {len(items)} items"
            )
        if array.dtype.hasobject:
            raise ValueError(f"{name} must hold numbers or text, got {array.dtype}")
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _pack(pictures: Sequence[bytes]) -> dict[str, NDArray[Any]]:
    """Concatenate pictures, and return where each begins and ends."""
    ends = np.cumsum([0, *map(len, pictures)], dtype=np.int64)
    span = np.stack([ends[:-1], ends[1:]], axis=1)
    return {ENCODED: np.frombuffer(b"".join(pictures), np.uint8), SPAN: span}


def _sentence(error: Exception) -> str:
    """Describe an error on one line."""
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror.lower()}{where}"
    return " ".join(str(error).split()) or type(error).__name__


def _shard_bytes(arrays: Mapping[str, NDArray[Any]]) -> list[bytes]:
    """Return the lines and bytes of a shard."""
    data = [array.tobytes() for array in arrays.values()]
    checksum = 0
    for part in data:
        checksum = zlib.crc32(part, checksum)
    layout = {name: [array.dtype.str, array.shape] for name, array in arrays.items()}
    head = json.dumps({"arrays": layout, "crc32": checksum})
    return [f"{head}\n".encode(), *data]


def _head(file: BinaryIO) -> _Head:
    fields = json.loads(file.readline())
    layout = {
        name: ArrayLayout(tuple(shape), np.dtype(dtype))
        for name, (dtype, shape) in fields["arrays"].items()
    }
    return _Head(layout, fields["crc32"])


def _cut(data: bytearray, layout: Mapping[str, ArrayLayout]) -> dict[str, NDArray[Any]]:
    arrays, start = {}, 0
    for name, array in layout.items():
        part = memoryview(data)[start : start + array.nbytes]
        arrays[name] = np.frombuffer(part, array.dtype).reshape(array.shape)
        start += array.nbytes
    return arrays
