"""Writing segmentation predictions: a folder that appears complete or not at all."""

import json
import shutil
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from qualms.atomic import replace_folder, sync, temporary_path
from qualms.predictions._binary import write_safetensors
from qualms.predictions._errors import (
    PredictionsError,
    encoding,
    naming,
    refuse_undecodable,
    shortened,
)
from qualms.predictions._folder import OPTIONAL
from qualms.predictions._foreign import to_array
from qualms.predictions._header import Header, as_header, as_json, parse_header
from qualms.predictions._item_maps import OWN, check_maps, form_of, stored_arrays
from qualms.predictions._record import Maps, Predictions
from qualms.predictions._segmentation import form_of_header
from qualms.predictions.schema import folder_task
from qualms.progress import counting

_FILES = (".safetensors", ".npz")
_FLAGS = ("shifted", "known")


def write_folder(folder: Path, predictions: Predictions) -> Path:
    """Write segmentation predictions as a folder, one item in memory at a time."""
    names = predictions.get("item")
    extra = {name: predictions.get(name) for name in OPTIONAL}
    own = predictions.named("uncertainty")
    with SegmentationWriter(folder, header=predictions.header) as writer:
        items = counting(predictions.maps or (), predictions.n)
        for row, maps in enumerate(items):
            name = f"{row:06d}" if names is None else str(names[row])
            about = {k: None if a is None else a[row].item() for k, a in extra.items()}
            numbers = {key: float(values[row]) for key, values in own.items()}
            writer.add(name, maps, uncertainty=numbers, **about)
    return folder


class SegmentationWriter:
    """Writer of a folder of segmentation predictions, one item in memory at a time.

    Statistics are stored in float32, because 16 bits would change the order of items
    that are almost equally uncertain; labels are uint8. The folder appears when the
    `with` block ends, and replaces predictions of the same name; if the block fails,
    nothing changes. With `threads` that write in the background, the error of an item
    that cannot be written is raised by a later call or at the end of the block.

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
        self._form = form_of_header(self._header)
        self._pool = ThreadPoolExecutor(threads) if threads else None
        self._most = 2 * threads
        self._waiting: deque[Future[None]] = deque()

    def __enter__(self) -> Self:
        with naming(str(self._folder)):
            self._temporary = temporary_path(self._folder)
            self._temporary.mkdir()
        return self

    def add(  # noqa: PLR0913 - what may be known of an item
        self,
        item: str,
        maps: Maps,
        *,
        group: str | int | None = None,
        cluster: str | int | None = None,
        shifted: bool | None = None,
        known: bool | None = None,
        uncertainty: Mapping[str, float] | None = None,
    ) -> None:
        """Check `maps` and write them to a file of their own.

        `uncertainty` holds your own uncertainties of the whole item, one number each,
        by name; maps of your own are part of `maps`.
        """
        with naming(f"{self._folder}, item {item!r:.60}"):
            about = dict(zip(OPTIONAL, (group, cluster, shifted, known), strict=True))
            entry = _checked_entry(about) | _checked_numbers(uncertainty or {})
            self._add(str(item), maps, entry)

    def _add(self, item: str, maps: Maps, entry: dict[str, Any]) -> None:
        if self._temporary is None:
            raise PredictionsError("the writer is not open; use it in a 'with' block")
        if item in self._items:
            raise PredictionsError("was added before; items must have different names")
        _refuse_partial(entry, next(iter(self._items.values()), entry))
        path = self._temporary / f"{len(self._items):06d}.safetensors"
        entry = {"item": item, "file": path.name, **entry}
        # All other items must have the form of the first.
        if self._pool is None or not self._items:
            self._form = form_of(self._put(path, entry, maps), self._form)
            self._items[item] = entry
            return
        self._items[item] = entry
        self._waiting.append(self._pool.submit(self._put_named, path, entry, maps))
        while len(self._waiting) > self._most:
            self._waiting[0].result()
            self._waiting.popleft()

    def _put_named(self, path: Path, entry: dict[str, Any], maps: Maps) -> None:
        with naming(f"{self._folder}, item {entry['item']!r:.60}"):
            self._put(path, entry, maps)

    def _put(self, path: Path, entry: dict[str, Any], maps: Maps) -> Maps:
        """Check `maps`, write them to `path`, and state their shapes in `entry`."""
        checked = check_maps(maps, self._form)
        arrays = stored_arrays(checked)
        with encoding(path):
            write_safetensors(path, arrays, None)
        sync(path)
        entry["shapes"] = {name: array.shape for name, array in arrays.items()}
        if checked.grid is not None:
            entry["grid"] = checked.grid._asdict()
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
                for write in self._waiting:
                    write.result()
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


def _segmentation_header(fields: Header | Mapping[str, Any] | None) -> Header:
    header = parse_header(as_header(fields), strict=True).header
    if header.task not in (None, folder_task()):
        raise PredictionsError(
            f"header 'task' must be 'segmentation' here, got '{header.task}'; leave it "
            "out"
        )
    return replace(header, task=folder_task())


def refuse_replacing(folder: Path) -> None:
    """Raise unless `folder` is new, or holds only predictions, to be replaced."""
    if folder.suffix.lower() in (*_FILES, ".csv", ".parquet"):
        raise PredictionsError(
            "segmentation predictions are a folder; give a path without "
            f"'{folder.suffix}'"
        )
    if not folder.exists():
        return
    if not folder.is_dir():
        raise PredictionsError("is a file, not a folder; choose another path")
    # Replacing deletes all files, so the folder must hold nothing but predictions.
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "index.json" and path.suffix not in _FILES:
            raise PredictionsError(
                f"is a folder that holds other files such as '{path.name}', which "
                "would be lost; choose another path"
            )


def _checked_entry(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts about an item that are not None, as JSON values."""
    entry = {
        key: value.item() if isinstance(value, np.generic) else value
        for key, value in about.items()
        if value is not None
    }
    for key, value in entry.items():
        wanted = "true or false" if key in _FLAGS else "text or a whole number"
        if isinstance(value, bool) != (key in _FLAGS) or not isinstance(
            value, str | int
        ):
            raise PredictionsError(f"{key} must be {wanted}, got {value!r:.60}")
    return entry


def _checked_numbers(uncertainty: Mapping[str, float]) -> dict[str, Any]:
    """Return the numbers of an item's own uncertainties, as entries of the index."""
    if not isinstance(uncertainty, Mapping):
        raise PredictionsError(
            "uncertainty must be a mapping of names to numbers, got "
            f"{type(uncertainty).__name__}; write uncertainty={{'mine': 0.3}}"
        )
    numbers = {}
    for name, value in uncertainty.items():
        array = to_array(f"{OWN}{name}", value)
        if array.dtype.kind not in "fiu" or array.size != 1:
            raise PredictionsError(
                f"uncertainty {str(name)!r:.60} of an item must be one number, got "
                f"{value!r:.60}; maps of your own belong to Maps(uncertainty={{...}})"
            )
        numbers[f"{OWN}{name}"] = float(array.item())
    return numbers


def _refuse_partial(entry: Mapping[str, Any], first: Mapping[str, Any]) -> None:
    own = (key for key in {**entry, **first} if key.startswith(OWN))
    for key in (*OPTIONAL, *own):
        if (key in entry) != (key in first) or (
            key in entry and type(entry[key]) is not type(first[key])
        ):
            raise PredictionsError(
                f"{shortened(key)} must be given for all items or none, and be all "
                f"text or all numbers, got {entry.get(key)!r:.60} after "
                f"{first.get(key)!r:.60}"
            )
