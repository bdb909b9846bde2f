"""Finished units on disk: one file each, written atomically, never unpickled.

A shard holds the arrays of `LoadedItems` by name: image, target, item, extra/<name>.
Encoded pictures have, instead of `image`, their concatenated bytes and the span (k, 2)
of each. The file name depends on the unit's key and split alone, so a later run finds
what is done.
"""

import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._recipe import DatasetError, LoadedItems, Unit
from qualms.spec import digest

ENCODED = "encoded"
SPAN = "span"


class ArrayLayout(NamedTuple):
    """Shape and type of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def shard_path(folder: Path, unit: Unit) -> Path:
    """Where the arrays of `unit` are kept."""
    name = digest("\n".join((unit.split, unit.key)))
    return folder / f"{name}.npz"


def make_shard(load: Callable[[Unit], LoadedItems], folder: Path, unit: Unit) -> str:
    """Load `unit` and write its shard; return '' or what is wrong with the unit.

    An error while writing is an error of this machine, not of the unit: it is raised.
    """
    try:
        arrays = _arrays(load(unit))
    except (OSError, ValueError) as error:
        return _sentence(error)
    path = shard_path(folder, unit)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    with partial.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    partial.replace(path)
    return ""


def read_layout(path: Path) -> dict[str, ArrayLayout]:
    """Shape and type of each array of a shard, read from the headers alone."""
    with _mended(path), zipfile.ZipFile(path) as archive:
        return {
            name.removesuffix(".npy"): _header(archive, name)
            for name in archive.namelist()
        }


def read_shard(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a shard; zip checksums are verified."""
    with _mended(path), np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def read_items(path: Path) -> NDArray[np.str_]:
    """The item names of a shard."""
    with _mended(path), np.load(path, allow_pickle=False) as archive:
        items: NDArray[np.str_] = archive["item"]
        return items


@contextmanager
def _mended(path: Path) -> Iterator[None]:
    """Remove a shard that cannot be read, so that the next run makes it again."""
    try:
        yield
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError) as error:
        path.unlink()
        raise DatasetError(
            f"{path} was damaged and has been removed; run again to load its unit again"
        ) from error


def _arrays(loaded: LoadedItems) -> dict[str, NDArray[Any]]:
    items = np.array(loaded.item, dtype=np.str_).reshape(len(loaded.item))
    image = loaded.image
    arrays = _packed(image) if isinstance(image, tuple) else {"image": image}
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


def _packed(pictures: Sequence[bytes]) -> dict[str, NDArray[Any]]:
    """Concatenated pictures, and where each begins and ends."""
    ends = np.cumsum([0, *map(len, pictures)], dtype=np.int64)
    span = np.stack([ends[:-1], ends[1:]], axis=1)
    return {ENCODED: np.frombuffer(b"".join(pictures), np.uint8), SPAN: span}


def _sentence(error: Exception) -> str:
    """What went wrong, on one line."""
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror.lower()}{where}"
    return " ".join(str(error).split()) or type(error).__name__


def _header(archive: zipfile.ZipFile, name: str) -> ArrayLayout:
    with archive.open(name) as file:
        if np.lib.format.read_magic(file) == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        else:
            shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    return ArrayLayout(shape, dtype)
