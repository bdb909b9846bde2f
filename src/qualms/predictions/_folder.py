"""The carrier of segmentation: a folder with `index.json` and one file per item.

`index.json` is {"header": {...}, "items": [{"item": "case 1", "file":
"000000.safetensors"}, ...]}, where an entry may also state `group`, `cluster`,
`shifted` and `shapes`. Item files are .safetensors or .npz.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._error import PredictionsError, naming
from qualms.predictions._foreign import plain
from qualms.predictions._header import check_shapes, loads, shapes_of
from qualms.predictions._maps import Counts, check_maps, complete
from qualms.predictions._normal import Asked, Raw
from qualms.predictions._npz import read_npz
from qualms.predictions._record import LazyMaps, Maps, Predictions
from qualms.predictions._safetensors import read_safetensors
from qualms.predictions._segmentation import segmentation
from qualms.predictions._writer import SegmentationWriter

_READERS = {".safetensors": read_safetensors, ".npz": read_npz}
_OPTIONAL = ("group", "cluster", "shifted")


class Entry(NamedTuple):
    """An item of the index: its file, and the shapes stated for it."""

    path: Path
    shapes: dict[str, tuple[int, ...]]


def read_folder(folder: Path, asked: Asked) -> Predictions:
    """The segmentation predictions in `folder`; its maps are read when asked for."""
    with naming(str(folder)):
        index = _index(folder)
        items = _items(index)
        entries = [_entry(folder, row, item) for row, item in enumerate(items)]
        _refuse_shared(entries)
        raw = Raw(
            arrays=_arrays(items),
            header=_header(index),
            header_at="'header' in index.json",
        )
    return segmentation(raw, partial(_open, entries), asked, str(folder))


def write_folder(folder: Path, predictions: Predictions) -> Path:
    """Write segmentation predictions as a folder, one item in memory at a time."""
    names = predictions.get("item")
    extra = {name: predictions.get(name) for name in _OPTIONAL}
    with SegmentationWriter(folder, header=predictions.header) as writer:
        for row, maps in enumerate(predictions.maps or ()):
            name = f"{row:06d}" if names is None else str(names[row])
            held = {k: None if a is None else a[row].item() for k, a in extra.items()}
            writer.add(name, maps, **held)
    return folder


def _open(entries: Sequence[Entry], counts: Counts) -> LazyMaps:
    return LazyMaps(partial(_load, entries, counts), range(len(entries)))


def _load(entries: Sequence[Entry], counts: Counts, row: int) -> Maps:
    path, shapes = entries[row]
    with naming(str(path)):
        raw = _READERS[path.suffix.lower()](path)
        check_shapes(shapes, {name: a.shape for name, a in raw.arrays.items()})
        return check_maps(complete(raw.arrays, raw.unread), counts)


def _index(folder: Path) -> dict[str, Any]:
    path = folder / "index.json"
    if not path.is_file():
        raise PredictionsError(
            "is a folder without index.json, so no segmentation predictions; give the "
            "path of a file in it, or write the folder with "
            "qualms.predictions.SegmentationWriter"
        )
    return loads(path.read_bytes(), "index.json")


def _header(index: Mapping[str, Any]) -> dict[str, Any]:
    header = index.get("header") or {}
    if not isinstance(header, dict):
        raise PredictionsError(
            f"'header' in index.json must be a JSON object, got {header!r:.60}; "
            "correct it or leave it out"
        )
    return header


def _items(index: Mapping[str, Any]) -> list[dict[str, Any]]:
    items = index.get("items")
    if not isinstance(items, list) or not items:
        raise PredictionsError(
            "'items' in index.json must be a list with at least one item, got "
            f"{items!r:.60}; each is {{'item': name, 'file': path}}"
        )
    for row, item in enumerate(items):
        if not isinstance(item, dict) or "item" not in item or "file" not in item:
            raise PredictionsError(
                f"row {row} of 'items' in index.json must have 'item' and 'file', got "
                f"{item!r:.60}; add them"
            )
    return items


def _entry(folder: Path, row: int, item: Mapping[str, Any]) -> Entry:
    file = item["file"]
    if not isinstance(file, str) or Path(file).suffix.lower() not in _READERS:
        raise PredictionsError(
            f"row {row} of 'items' in index.json must name a .safetensors or .npz "
            f"file, got {file!r:.80}; correct it"
        )
    path = folder / file
    if _leaves(file) or not path.resolve().is_relative_to(folder.resolve()):
        raise PredictionsError(
            f"row {row} of 'items' in index.json names a file outside the folder, "
            f"{file!r:.80}; keep the files of all items inside"
        )
    if not path.is_file():
        raise PredictionsError(
            f"row {row} of 'items' in index.json names '{file}', which is not there; "
            "the folder is incomplete: copy or write it again"
        )
    return Entry(path, shapes_of(item.get("shapes")))


def _leaves(file: str) -> bool:
    parts = (PurePosixPath(file), PureWindowsPath(file))
    return any(p.is_absolute() or p.anchor or ".." in p.parts for p in parts)


def _refuse_shared(entries: Sequence[Entry]) -> None:
    rows: dict[Path, int] = {}
    for row, (path, _) in enumerate(entries):
        if rows.setdefault(path, row) != row:
            raise PredictionsError(
                f"rows {rows[path]} and {row} of 'items' in index.json name the same "
                f"file '{path.name}'; give each item its own"
            )


def _arrays(items: Sequence[Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    arrays = {"item": _column("item", [item["item"] for item in items])}
    for name in _OPTIONAL:
        values = [item.get(name) for item in items]
        if any(value is not None for value in values):
            arrays[name] = _column(name, values)
    return arrays


def _column(name: str, values: Sequence[Any]) -> NDArray[Any]:
    if None in values and name != "item":
        raise PredictionsError(
            f"'{name}' in index.json must be given for all items or none, row "
            f"{values.index(None)} has none; add it"
        )
    held = np.empty(len(values), dtype=object)
    held[:] = values
    return plain(name, held)
