"""From finished shards to the arrays of a dataset.

Rows keep the order of the recipe's units; those of a divided part are shuffled with its
seed. Images are copied shard by shard, so memory does not grow with the dataset.
Encoded pictures keep the order of the units, and each row says where its picture lies.
Images of different shapes lie one after another, and a further array has their shapes.
"""

import os
import shutil
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from qualms.datasets._cache import Meta, file_name, identity, write_meta
from qualms.datasets._ragged import ANY, Ragged, common_shape, ragged
from qualms.datasets._recipe import DatasetError, Divide, Recipe, Unit
from qualms.datasets._shards import (
    ENCODED,
    SIDES,
    SPAN,
    ArrayLayout,
    read_items,
    read_layout,
    read_shard,
    shard_path,
)
from qualms.spec import digest


class Finished(NamedTuple):
    """A unit whose shard is on disk."""

    unit: Unit
    shard: Path
    layout: Mapping[str, ArrayLayout]

    @property
    def items(self) -> int:
        """Number of items in the unit."""
        return self.layout["item"].shape[0]


class Skipped(NamedTuple):
    """A unit that could not be loaded, and why."""

    key: str
    reason: str


class _Assignment(NamedTuple):
    """Split (a number in `splits`) and row that each item of a part goes to."""

    splits: Mapping[str, int]
    split: NDArray[np.intp]
    row: NDArray[np.intp]


def finished_units(recipe: Recipe, shards: Path) -> list[Finished]:
    """List the units that have a shard, in the recipe's order."""
    paths = ((unit, shard_path(shards, unit)) for unit in recipe.units)
    return [
        Finished(unit, path, read_layout(path)) for unit, path in paths if path.exists()
    ]


def count_items(recipe: Recipe, finished: Sequence[Finished]) -> dict[str, int]:
    """Count the items per final split in the finished units."""
    parts = dict.fromkeys((unit.split for unit in recipe.units), 0)
    for finished_unit in finished:
        parts[finished_unit.unit.split] += finished_unit.items
    counts: dict[str, int] = {}
    for part, total in parts.items():
        for split, size in _sizes(part, total, recipe.divide.get(part)).items():
            if split in counts:
                raise ValueError(f"split {split!r} of {recipe.name!r} is made twice")
            counts[split] = size
    return counts


def units_digest(recipe: Recipe) -> str:
    """Compute a digest of the names and splits of the units."""
    return digest("\n".join(f"{unit.split}\t{unit.key}" for unit in recipe.units))


def publish(
    recipe: Recipe,
    folder: Path,
    finished: Sequence[Finished],
    skipped: Sequence[Skipped],
) -> None:
    """Write every array of the dataset, then its record."""
    if (recipe.side is None) is any(
        ENCODED in finished_unit.layout for finished_unit in finished
    ):
        raise ValueError(
            f"{recipe.name!r} must state a side if its pictures are encoded, and only"
            f" then; got {recipe.side}"
        )
    arrays = new_arrays(folder)
    splits: Meta = {}
    for part in dict.fromkeys(unit.split for unit in recipe.units):
        chosen = [
            finished_unit
            for finished_unit in finished
            if finished_unit.unit.split == part and finished_unit.items
        ]
        columns = _columns(chosen, any_shape=recipe.any_shape)
        splits |= _write_part(part, recipe.divide.get(part), chosen, columns, arrays)
    fields = {
        "counts": count_items(recipe, finished),
        "skipped": [list(unit) for unit in skipped],
        "units": units_digest(recipe),
        "splits": splits,
    }
    write_record(recipe, folder, arrays, fields)


def new_arrays(folder: Path) -> Path:
    """Make a new folder for arrays in `folder`."""
    arrays = folder / f"arrays-{uuid.uuid4().hex[:8]}"
    arrays.mkdir()
    return arrays


def write_record(recipe: Recipe, folder: Path, arrays: Path, fields: Meta) -> None:
    """Write the record of the files in `arrays`, then remove older arrays."""
    declared: Meta = {"card": asdict(recipe.card), "shifts": dict(recipe.shifts)}
    if recipe.side is not None:
        declared["side"] = recipe.side
    write_meta(folder, identity(recipe) | declared | fields)
    for old in folder.glob("arrays-*"):
        if old != arrays:
            shutil.rmtree(old)


def _sizes(part: str, total: int, divide: Divide | None) -> dict[str, int]:
    if divide is None:
        return {part: total}
    first = int(divide.first * total)
    return {divide.into[0]: first, divide.into[1]: total - first}


def _write_part(
    part: str,
    divide: Divide | None,
    finished: Sequence[Finished],
    columns: dict[str, ArrayLayout],
    arrays: Path,
) -> Meta:
    """Write the splits of a part; return the entries of their files in `meta.json`."""
    places = _assign(part, divide, _items(finished))
    pictures = arrays / file_name(part, ENCODED)
    encoded = None
    if columns.pop(ENCODED, None) is not None:
        size = sum(unit.layout[ENCODED].shape[0] for unit in finished)
        encoded = _allocate(pictures, size, ArrayLayout((), np.dtype(np.uint8)))
    entries: Meta = {}
    targets: list[dict[str, NDArray[Any] | Ragged]] = []
    for number, (split, size) in enumerate(places.splits.items()):
        paths = {column: arrays / file_name(split, column) for column in columns}
        written: dict[str, NDArray[Any] | Ragged] = {}
        for column, row in columns.items():
            if ANY not in row.shape:
                written[column] = _allocate(paths[column], size, row)
                continue
            name = column + SIDES
            paths[name] = arrays / file_name(split, name)
            sides = _sides(finished, column, places, number)
            np.save(paths[name], sides)
            written[column] = _allocate_ragged(paths[column], sides, row.dtype)
        targets.append(written)
        if encoded is not None:
            paths[ENCODED] = pictures
        entries[split] = {
            column: {"file": f"{arrays.name}/{path.name}"}
            for column, path in paths.items()
        }
    _copy(finished, places, targets, encoded)
    return entries


def _allocate(path: Path, size: int, row: ArrayLayout) -> NDArray[Any]:
    array = open_memmap(path, "w+", row.dtype, (size, *row.shape))
    if sys.platform == "linux":
        # A full disk must raise here, not kill the process when a page is written.
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return array


def _allocate_ragged(path: Path, sides: NDArray[np.int64], dtype: Any) -> Ragged:
    total = int(sides.prod(axis=1).sum())
    return ragged(_allocate(path, total, ArrayLayout((), dtype)), sides)


def _sides(
    finished: Sequence[Finished], column: str, places: _Assignment, number: int
) -> NDArray[np.int64]:
    """Return the shape (N, axes) of each item of the split `number`, in its order."""
    shapes = [
        unit.layout[column].shape[1:] for unit in finished for _ in range(unit.items)
    ]
    rows = np.flatnonzero(places.split == number)
    order = rows[np.argsort(places.row[rows])]
    return np.array(shapes, np.int64)[order]


def _columns(
    finished: Sequence[Finished], *, any_shape: bool = False
) -> dict[str, ArrayLayout]:
    """Return row shape and type of every array; all units must have the same.

    With `any_shape` images may differ in all axes but channels, and label maps in all.
    """
    first = finished[0]
    columns = {
        name: ArrayLayout(x.shape[1:], x.dtype) for name, x in first.layout.items()
    }
    for unit in finished[1:]:
        if unit.layout.keys() != columns.keys():
            raise _disagreement(first, unit, list(columns), list(unit.layout))
        for name, (shape, dtype) in unit.layout.items():
            expected = columns[name]
            texts = dtype.kind == expected.dtype.kind == "U"
            row = _row_shape(name, shape[1:], expected.shape, any_shape=any_shape)
            if row is None or (dtype != expected.dtype and not texts):
                layout = f"{name} {shape[1:]} {dtype}"
                first_layout = f"{name} {expected.shape} {expected.dtype}"
                raise _disagreement(first, unit, first_layout, layout)
            columns[name] = ArrayLayout(row, np.promote_types(dtype, expected.dtype))
    return columns


def _row_shape(
    name: str, shape: tuple[int, ...], expected: tuple[int, ...], *, any_shape: bool
) -> tuple[int, ...] | None:
    """Return the shape that two units share; None if they must not differ."""
    if shape == expected:
        return expected
    if not any_shape or name not in ("image", "target") or len(shape) != len(expected):
        return None
    row = common_shape([shape, expected])
    return None if name == "image" and row[-1] == ANY else row


def _disagreement(
    first: Finished, other: Finished, first_layout: object, other_layout: object
) -> DatasetError:
    return DatasetError(
        f"all units of {first.unit.split!r} must have the same arrays, got"
        f" {first_layout} from {first.unit.key!r} and {other_layout} from"
        f" {other.unit.key!r}; leave one out"
    )


def _items(finished: Sequence[Finished]) -> NDArray[np.str_]:
    items = np.concatenate([read_items(unit.shard) for unit in finished])
    names, counts = np.unique(items, return_counts=True)
    if len(names) < len(items):
        raise DatasetError(
            f"item names of {finished[0].unit.split!r} must be unique,"
            f" got {names[counts > 1][0]!s} {counts.max()} times; rename or remove it"
        )
    return items


def _assign(part: str, divide: Divide | None, items: NDArray[np.str_]) -> _Assignment:
    total = len(items)
    sizes = _sizes(part, total, divide)
    if divide is None:
        return _Assignment(sizes, np.zeros(total, np.intp), np.arange(total))
    # Sorted first: the publisher's order of files means nothing.
    shuffle = np.random.default_rng(divide.seed).permutation(total)
    order = np.argsort(items, kind="stable")[shuffle]
    rank = np.empty(total, np.intp)
    rank[order] = np.arange(total)
    second = rank >= sizes[divide.into[0]]
    row = rank - second * sizes[divide.into[0]]
    return _Assignment(sizes, second.astype(np.intp), row)


def _copy(
    finished: Sequence[Finished],
    places: _Assignment,
    targets: Sequence[Mapping[str, NDArray[Any] | Ragged]],
    encoded: NDArray[np.uint8] | None,
) -> None:
    start = used = 0
    for unit in finished:
        arrays = read_shard(unit.shard)
        if encoded is not None:
            arrays[SPAN] += used
            end = used + len(arrays[ENCODED])
            encoded[used:end] = arrays[ENCODED]
            used = end
        split = places.split[start : start + unit.items]
        row = places.row[start : start + unit.items]
        for number, target in enumerate(targets):
            rows = np.flatnonzero(split == number)
            for column, array in target.items():
                array[row[rows]] = arrays[column][rows]
        start += unit.items
