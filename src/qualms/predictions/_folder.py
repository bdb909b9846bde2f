"""Segmentation predictions on disk: a folder with `index.json` and a file per item.

`index.json` is {"header": {...}, "items": [{"item": "case 1", "file":
"000000.safetensors"}, ...]}, where an entry may also state `group`, `cluster`,
`shifted`, `known` and `shapes`. Item files are .safetensors or .npz.
"""

import json
import shutil
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from qualms.atomic import beside, replace_folder, sync
from qualms.predictions._binary import read_npz, read_safetensors, write_safetensors
from qualms.predictions._errors import (
    PredictionsError,
    encoding,
    naming,
    refuse_undecodable,
    shortened,
)
from qualms.predictions._foreign import numpy_array
from qualms.predictions._header import (
    Header,
    as_header,
    as_json,
    check_shapes,
    loads,
    parse_header,
    shapes_of,
)
from qualms.predictions._normal import RawArrays, ReadOptions
from qualms.predictions._record import LazyMaps, Maps, Predictions
from qualms.predictions._segmentation import (
    ARRAYS,
    Counts,
    check_maps,
    counts_of,
    load_maps,
    segmentation_form,
)

_READERS = {".safetensors": read_safetensors, ".npz": read_npz}
_OPTIONAL = ("group", "cluster", "shifted", "known")
_FLAGS = ("shifted", "known")


class ItemFile(NamedTuple):
    """An item of the index: its file, and the shapes stated for it."""

    path: Path
    shapes: dict[str, tuple[int, ...]]


def read_folder(folder: Path, asked: ReadOptions) -> Predictions:
    """The segmentation predictions in `folder`; its maps are read when asked for."""
    with naming(str(folder)):
        index = _index(folder)
        items = _items(index)
        entries = [_item_file(folder, row, item) for row, item in enumerate(items)]
        _refuse_shared(entries)
        arrays = _arrays(items)
        raw = RawArrays(
            shapes={name: array.shape for name, array in arrays.items()},
            load=arrays.__getitem__,
            header=_header(index),
            header_at="'header' in index.json",
        )
    return segmentation_form(raw, partial(_open, entries), asked, str(folder))


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


def _open(entries: Sequence[ItemFile], counts: Counts) -> LazyMaps:
    load = partial(_load, entries, counts)
    return LazyMaps(load, range(len(entries)), on_disk=True)


def _load(entries: Sequence[ItemFile], counts: Counts, row: int) -> Maps:
    path, shapes = entries[row]
    with naming(str(path)):
        raw = _READERS[path.suffix.lower()](path)
        check_shapes(shapes, raw.shapes, frozenset(raw.unread))
        unread = dict.fromkeys(raw.unread, ())
        return load_maps({**raw.shapes, **unread}, raw.array, counts)


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


def _item_file(folder: Path, row: int, item: Mapping[str, Any]) -> ItemFile:
    file = item["file"]
    if not isinstance(file, str) or Path(file).suffix.lower() not in _READERS:
        raise PredictionsError(
            f"row {row} of 'items' in index.json must name a .safetensors or .npz "
            f"file, got {file!r:.80}; correct it"
        )
    path = folder / file
    if _leaves(file) or not _inside(folder, path):
        raise PredictionsError(
            f"row {row} of 'items' in index.json names a file outside the folder, "
            f"{file!r:.80}; keep the files of all items inside"
        )
    if not path.is_file():
        raise PredictionsError(
            f"row {row} of 'items' in index.json names '{shortened(file)}', which is "
            "not there; the folder is incomplete: copy or write it again"
        )
    return ItemFile(path, shapes_of(item.get("shapes")))


def _leaves(file: str) -> bool:
    parts = (PurePosixPath(file), PureWindowsPath(file))
    return any(p.is_absolute() or p.anchor or ".." in p.parts for p in parts)


def _inside(folder: Path, path: Path) -> bool:
    """Whether a path below `folder` stays there, wherever links lead."""
    steps = (path, *path.parents[: len(path.parts) - len(folder.parts) - 1])
    try:
        # Without links it does; following all of them takes far longer.
        if not any(step.is_symlink() for step in steps):
            return True
        return path.resolve().is_relative_to(folder.resolve())
    # A link that leads back to itself, or a name that no system takes.
    except (OSError, RuntimeError, ValueError):
        return False


def _refuse_shared(entries: Sequence[ItemFile]) -> None:
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
    return numpy_array(name, held)


_FILES = (".safetensors", ".npz")


class SegmentationWriter:
    """Writes a folder of segmentation predictions, holding one item at a time.

    Statistics are stored in float32, labels in uint8: with 16 bits, items that are
    almost equally uncertain would change places. The folder appears when the `with`
    block ends, and not at all if it fails; predictions that were there are then
    replaced. If `threads` write in the background, a later call or the end of the block
    tells of an item that cannot be written.

        with SegmentationWriter("preds", header={"ignore": 255}) as writer:
            writer.add("case 1", maps)
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        *,
        header: Header | Mapping[str, Any] | None = None,
        threads: int = 0,
    ) -> None:
        self._folder = Path(folder)
        with naming(str(folder)):
            refuse_undecodable(self._folder)
            self._header = _segmentation_header(header)
            refuse_replacing(self._folder)
        self._temporary: Path | None = None
        self._items: dict[str, dict[str, Any]] = {}
        self._counts = Counts(ignore=self._header.ignore)
        self._pool = ThreadPoolExecutor(threads) if threads else None
        self._most = 2 * threads
        self._waiting: deque[Future[None]] = deque()

    def __enter__(self) -> Self:
        with naming(str(self._folder)):
            self._temporary = beside(self._folder)
            self._temporary.mkdir()
        return self

    def add(
        self,
        item: str,
        maps: Maps,
        *,
        group: str | int | None = None,
        cluster: str | int | None = None,
        shifted: bool | None = None,
        known: bool | None = None,
    ) -> None:
        """Check `maps` and write them to a file of their own."""
        with naming(f"{self._folder}, item {item!r:.60}"):
            stated = dict(zip(_OPTIONAL, (group, cluster, shifted, known), strict=True))
            self._add(str(item), maps, _stated_entry(stated))

    def _add(self, item: str, maps: Maps, entry: dict[str, Any]) -> None:
        if self._temporary is None:
            raise PredictionsError("the writer is not open; use it in a 'with' block")
        if item in self._items:
            raise PredictionsError("was added before; items must have different names")
        _refuse_partial(entry, next(iter(self._items.values()), entry))
        path = self._temporary / f"{len(self._items):06d}.safetensors"
        held = {"item": item, "file": path.name, **entry}
        # The first item says what all others must have.
        if self._pool is None or not self._items:
            self._counts = counts_of(self._put(path, held, maps), self._header.ignore)
            self._items[item] = held
            return
        self._items[item] = held
        self._waiting.append(self._pool.submit(self._put_named, path, held, maps))
        while len(self._waiting) > self._most:
            self._waiting[0].result()
            self._waiting.popleft()

    def _put_named(self, path: Path, held: dict[str, Any], maps: Maps) -> None:
        with naming(f"{self._folder}, item {held['item']!r:.60}"):
            self._put(path, held, maps)

    def _put(self, path: Path, held: dict[str, Any], maps: Maps) -> Maps:
        """Check `maps`, write them to `path`, and say in `held` what was written."""
        checked = check_maps(maps, self._counts)
        arrays = {name: getattr(checked, name) for name in ARRAYS}
        with encoding(path):
            write_safetensors(path, arrays, None)
        sync(path)
        held["shapes"] = {name: array.shape for name, array in arrays.items()}
        return checked

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        temporary, self._temporary = self._temporary, None
        if temporary is None:
            return
        try:
            if kind is None:
                for written in self._waiting:
                    written.result()
                with naming(str(self._folder)):
                    self._finish(temporary)
        finally:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
            shutil.rmtree(temporary, ignore_errors=True)

    def _finish(self, temporary: Path) -> None:
        if not self._items:
            raise PredictionsError("no item was added; there must be at least one")
        index = {"header": as_json(self._header), "items": list(self._items.values())}
        path = temporary / "index.json"
        path.write_text(json.dumps(index, indent=1), encoding="utf-8")
        sync(path)
        replace_folder(temporary, self._folder)


def _segmentation_header(given: Header | Mapping[str, Any] | None) -> Header:
    header = parse_header(as_header(given)).header
    if header.task not in (None, "segmentation"):
        raise PredictionsError(
            f"header 'task' must be 'segmentation' here, got '{header.task}'; leave it "
            "out"
        )
    return replace(header, task="segmentation")


def refuse_replacing(folder: Path) -> None:
    """Refuse a folder that predictions cannot take the place of."""
    if folder.suffix.lower() in (*_FILES, ".csv", ".parquet"):
        raise PredictionsError(
            "segmentation predictions are a folder; give a path without "
            f"'{folder.suffix}'"
        )
    if not folder.exists():
        return
    if not folder.is_dir():
        raise PredictionsError("is a file, not a folder; choose another path")
    # Replacing deletes what was there, so it must be predictions and nothing else.
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "index.json" and path.suffix not in _FILES:
            raise PredictionsError(
                f"is a folder that holds other files such as '{path.name}', which "
                "would be lost; choose another path"
            )


def _stated_entry(stated: Mapping[str, Any]) -> dict[str, Any]:
    entry = {
        key: value.item() if isinstance(value, np.generic) else value
        for key, value in stated.items()
        if value is not None
    }
    for key, value in entry.items():
        wanted = "true or false" if key in _FLAGS else "text or a whole number"
        if isinstance(value, bool) != (key in _FLAGS) or not isinstance(
            value, str | int
        ):
            raise PredictionsError(f"{key} must be {wanted}, got {value!r:.60}")
    return entry


def _refuse_partial(entry: Mapping[str, Any], first: Mapping[str, Any]) -> None:
    for key in _OPTIONAL:
        if (key in entry) != (key in first) or (
            key in entry and type(entry[key]) is not type(first[key])
        ):
            raise PredictionsError(
                f"{key} must be given for all items or none, and be all text or all "
                f"numbers, got {entry.get(key)!r:.60} after {first.get(key)!r:.60}"
            )
