"""Writing segmentation predictions one item at a time."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from qualms.atomic import beside, replace_folder, sync
from qualms.predictions._error import PredictionsError, naming
from qualms.predictions._header import Header, as_header, as_json, parse
from qualms.predictions._maps import ARRAYS, Counts, check_maps, counted
from qualms.predictions._record import Maps
from qualms.predictions._safetensors import write_safetensors
from qualms.predictions._unreadable import encoding

_FILES = (".safetensors", ".npz")


class SegmentationWriter:
    """Writes a folder of segmentation predictions, holding one item at a time.

    Statistics are stored in float16, labels in uint8. The folder appears when the
    `with` block ends, and not at all if it fails; predictions that were there are then
    replaced.

        with SegmentationWriter("preds", header={"ignore": 255}) as writer:
            writer.add("case 1", maps)
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        *,
        header: Header | Mapping[str, Any] | None = None,
    ) -> None:
        self._folder = Path(folder)
        with naming(str(folder)):
            self._header = _segmentation_header(header)
            _refuse_replacing(self._folder)
        self._temporary: Path | None = None
        self._items: dict[str, dict[str, Any]] = {}
        self._counts = Counts(ignore=self._header.ignore)

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
    ) -> None:
        """Check `maps` and write them to a file of their own."""
        with naming(f"{self._folder}, item {item!r:.60}"):
            stated = {"group": group, "cluster": cluster, "shifted": shifted}
            self._add(str(item), maps, _entry(stated))

    def _add(self, item: str, maps: Maps, entry: dict[str, Any]) -> None:
        if self._temporary is None:
            raise PredictionsError("the writer is not open; use it in a 'with' block")
        if item in self._items:
            raise PredictionsError("was added before; items must have different names")
        _refuse_partial(entry, next(iter(self._items.values()), entry))
        checked = check_maps(maps, self._counts)
        self._counts = counted(checked, self._header.ignore)
        arrays = {name: _stored(getattr(checked, name)) for name in ARRAYS}
        path = self._temporary / f"{len(self._items):06d}.safetensors"
        with encoding(path):
            write_safetensors(path, arrays, None)
        sync(path)
        self._items[item] = {
            "item": item,
            "file": path.name,
            "shapes": {name: array.shape for name, array in arrays.items()},
            **entry,
        }

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
                with naming(str(self._folder)):
                    self._finish(temporary)
        finally:
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
    header = parse(as_header(given)).header
    if header.task not in (None, "segmentation"):
        raise PredictionsError(
            f"header 'task' must be 'segmentation' here, got '{header.task}'; leave it "
            "out"
        )
    return replace(header, task="segmentation")


def _refuse_replacing(folder: Path) -> None:
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


def _entry(stated: Mapping[str, Any]) -> dict[str, Any]:
    entry = {
        key: value.item() if isinstance(value, np.generic) else value
        for key, value in stated.items()
        if value is not None
    }
    for key, value in entry.items():
        wanted = "true or false" if key == "shifted" else "text or a whole number"
        if isinstance(value, bool) != (key == "shifted") or not isinstance(
            value, str | int
        ):
            raise PredictionsError(f"{key} must be {wanted}, got {value!r:.60}")
    return entry


def _refuse_partial(entry: Mapping[str, Any], first: Mapping[str, Any]) -> None:
    for key in ("group", "cluster", "shifted"):
        if (key in entry) != (key in first) or (
            key in entry and type(entry[key]) is not type(first[key])
        ):
            raise PredictionsError(
                f"{key} must be given for all items or none, and be all text or all "
                f"numbers, got {entry.get(key)!r:.60} after {first.get(key)!r:.60}"
            )


def _stored(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(np.float16) if array.dtype.kind == "f" else array
