"""Read pictures from one HDF5 file, a chunk of rows at a time.

Pictures are stored as (N, channels, 64, 64) uint8; the file's other arrays have one
value per picture.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._publisher_files import reading
from qualms.datasets._recipe import Unit

CHUNK = 500
SIDE = 64


@contextmanager
def open_hdf5(path: Path) -> Iterator[Any]:
    """Open a file for reading; errors name it."""
    import h5py  # type: ignore[import-untyped]

    with reading(path), h5py.File(path) as file:
        yield file


def read_columns(
    path: Path, *, pictures: str, needed: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, NDArray[Any]]:
    """Read the arrays `needed`, and those of `optional` that exist, each flattened."""
    with open_hdf5(path) as file:
        _check_names(file.keys(), (pictures, *needed))
        _check_pictures(pictures, file[pictures].shape, file[pictures].dtype)
        chosen = [*needed, *(name for name in optional if name in file)]
        return {name: np.ravel(file[name][()]) for name in chosen}


def chunk_units(split: str, index: NDArray[np.int64]) -> list[Unit]:
    """Make units of up to `CHUNK` rows; their `args` are the row numbers."""
    row = index.tolist()
    return [
        Unit(
            key=f"{split}-{start // CHUNK:04d}",
            split=split,
            args=tuple(row[start : start + CHUNK]),
        )
        for start in range(0, len(row), CHUNK)
    ]


def read_rows(
    path: Path, index: Sequence[int], *, pictures: str, others: Sequence[str]
) -> dict[str, NDArray[Any]]:
    """Read the rows `index`, all different; pictures as (k, 64, 64, C)."""
    # h5py reads rows in ascending order only.
    ascending, back = np.unique(np.asarray(index), return_inverse=True)
    with open_hdf5(path) as file:
        image = np.moveaxis(file[pictures][ascending], 1, -1)[back]
        values = {name: np.ravel(file[name][()])[list(index)] for name in others}
    return {pictures: image, **values}


def _check_names(present: Collection[str], needed: Sequence[str]) -> None:
    missing = [name for name in needed if name not in present]
    if missing:
        raise ValueError(
            f"it must have the arrays {', '.join(needed)}, "
            f"got {', '.join(present) or 'none'}"
        )


def _check_pictures(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    fits = len(shape) == 4 and shape[2:] == (SIDE, SIDE) and dtype == np.uint8
    if not fits:
        raise ValueError(
            f"{name} must be (N, channels, {SIDE}, {SIDE}) uint8, got {shape} {dtype}"
        )
