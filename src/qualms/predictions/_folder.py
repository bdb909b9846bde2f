"""Reading segmentation predictions: a folder with `index.json` and a file per item.

`index.json` is {"header": {...}, "items": [{"item": "case 1", "file":
"000000.safetensors"}, ...]}, where an entry may also state `group`, `cluster`,
`shifted`, `known`, `uncertainty/<name>` (one number), `grid` and `shapes`. Item files
are .safetensors or .npz.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._binary import read_npz, read_safetensors
from qualms.predictions._errors import PredictionsError, listed, naming, shortened
from qualms.predictions._foreign import numpy_array
from qualms.predictions._header import check_shapes, loads, shapes_of
from qualms.predictions._hugging_face import FOLDER
from qualms.predictions._item_maps import (
    OWN,
    ItemForm,
    is_map_name,
    load_maps,
    with_grid,
)
from qualms.predictions._names import ignored_notes, spelling_hint
from qualms.predictions._normal import RawArrays, ReadOptions
from qualms.predictions._opened import FileVersion, file_state, opened
from qualms.predictions._record import LazyMaps, Maps, Predictions
from qualms.predictions._segmentation import ItemMaps, segmentation_form
from qualms.predictions.schema import folder_task
from qualms.wording import suggest

_READERS = {".safetensors": read_safetensors, ".npz": read_npz}
OPTIONAL = ("group", "cluster", "shifted", "known")
_ENTRY = ("item", "file", *OPTIONAL, "grid", "shapes")
_INDEX = ("header", "items")
_FORM = '{"header": {...}, "items": [{"item": ..., "file": ...}, ...]}'


class ItemFile(NamedTuple):
    """An item of the index: its file, and the shapes stated for it."""

    path: Path
    shapes: dict[str, tuple[int, ...]]
    state: FileVersion
    """The version of the file when the index was read."""
    grid: Any = None
    """The fields of its grid, not checked yet."""


def read_folder(folder: Path, options: ReadOptions) -> Predictions:
    """Read the segmentation predictions in `folder`; maps are read on access."""
    with naming(str(folder)):
        _refuse_without_index(folder)
        # The index stays open until all files of items are checked to belong to it.
        with opened(folder / "index.json") as source:
            index = loads(source.content(), "index.json", form=_FORM)
            items = _items(index)
            notes = _unknown_keys(index, items)
            entries = [_item_file(folder, row, item) for row, item in enumerate(items)]
            _refuse_shared(entries)
        arrays = _arrays(items)
        raw = RawArrays(
            shapes={name: array.shape for name, array in arrays.items()},
            load=arrays.__getitem__,
            header=_header(index),
            header_at="'header' in index.json",
        )
    maps = ItemMaps(partial(_open, entries), partial(_most_draws, entries))
    predictions = segmentation_form(raw, maps, options, str(folder))
    # Only the first item is checked: the others are read on access.
    notes += ignored_notes(folder_task(), _unknown_arrays(entries[0]))
    return replace(predictions, notes=(*predictions.notes, *notes))


def _unknown_arrays(entry: ItemFile) -> list[str]:
    path = entry.path
    with naming(str(path)), opened(path, entry.state) as source:
        raw = _READERS[path.suffix.lower()](source)
    return [name for name in (*raw.shapes, *raw.unread) if not is_map_name(name)]


def _open(entries: Sequence[ItemFile], form: ItemForm) -> LazyMaps:
    load = partial(_load, entries, form)
    return LazyMaps(load, range(len(entries)), on_disk=True)


def _most_draws(entries: Sequence[ItemFile]) -> int:
    """Return the most draws of an item; one that cannot be read counts as one draw."""
    return max(map(_draws, entries), default=1)


def _draws(entry: ItemFile) -> int:
    path, shapes, state, _ = entry
    if "draw_labels" not in shapes:
        try:
            with naming(str(path)), opened(path, state) as source:
                shapes = dict(_READERS[path.suffix.lower()](source).shapes)
        except PredictionsError:
            return 1  # the error is raised on access, as for all other items
    return next(iter(shapes.get("draw_labels", ())), 1)


def _load(entries: Sequence[ItemFile], form: ItemForm, row: int) -> Maps:
    path, shapes, state, grid = entries[row]
    with naming(str(path)), opened(path, state) as source:
        raw = _READERS[path.suffix.lower()](source)
        check_shapes(shapes, raw.shapes, frozenset(raw.unread))
        unread = dict.fromkeys(raw.unread, ())
        return with_grid(load_maps({**raw.shapes, **unread}, raw.array, form), grid)


def _refuse_without_index(folder: Path) -> None:
    if all((folder / name).is_file() for name in FOLDER):
        raise PredictionsError(
            "is a dataset of Hugging Face, which is taken in Python and not from its"
            " folder; pass qualms.score(datasets.load_from_disk(...))"
        )
    if not (folder / "index.json").is_file():
        raise PredictionsError(
            "is a folder without index.json, so no segmentation predictions; give the "
            "path of a file in it, or write the folder with "
            "qualms.predictions.SegmentationWriter"
        )


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


def _unknown_keys(
    index: Mapping[str, Any], items: Sequence[Mapping[str, Any]]
) -> tuple[str, ...]:
    """Raise on misspelt keys in the index; return a note on other unknown keys."""
    unknown = _unknown("index.json", index, _INDEX)
    for row, item in enumerate(items):
        unknown |= _unknown(f"row {row} of 'items' in index.json", item, _ENTRY)
    if not unknown:
        return ()
    return (f"unknown keys in index.json were ignored: {listed(unknown)}",)


def _unknown(
    where: str, entry: Mapping[str, Any], allowed: tuple[str, ...]
) -> dict[str, None]:
    unknown = [key for key in entry if key not in allowed and not _own(key, entry)]
    # No key is a misspelling of one that is present too.
    absent = tuple(key for key in allowed if key not in entry)
    for key in unknown:
        if hint := _hint(key, absent) or _family_hint(key, entry):
            raise PredictionsError(
                f"{where} has '{key}', which is not known.{hint} Rename it, or leave "
                "it out"
            )
    return dict.fromkeys(unknown)


def _family_hint(key: str, entry: Mapping[str, Any]) -> str:
    if "file" not in entry or OWN[:-1] not in spelling_hint(folder_task(), key):
        return ""
    return spelling_hint(folder_task(), key)


def _own(key: str, entry: Mapping[str, Any]) -> bool:
    """Return whether a key of an item names an uncertainty of the user's own."""
    return "file" in entry and key.startswith(OWN) and key != OWN


# Every item may have the same unknown keys.
@lru_cache(maxsize=1024)
def _hint(key: str, allowed: tuple[str, ...]) -> str:
    return suggest(key, allowed, cutoff=0.8) if len(key) < 40 else ""


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
    state = file_state(path) if path.is_file() else None
    if state is None:
        raise PredictionsError(
            f"row {row} of 'items' in index.json names '{shortened(file)}', which is "
            "not there; the folder is incomplete: copy or write it again"
        )
    return ItemFile(path, shapes_of(item.get("shapes")), state, item.get("grid"))


def _leaves(file: str) -> bool:
    parts = (PurePosixPath(file), PureWindowsPath(file))
    return any(p.is_absolute() or p.anchor or ".." in p.parts for p in parts)


def _inside(folder: Path, path: Path) -> bool:
    """Return whether a path below `folder` stays inside it when links are followed."""
    steps = (path, *path.parents[: len(path.parts) - len(folder.parts) - 1])
    try:
        # Resolving every path takes far longer than looking for links.
        if not any(step.is_symlink() for step in steps):
            return True
        return path.resolve().is_relative_to(folder.resolve())
    # A link that leads back to itself, or a name that no system takes.
    except (OSError, RuntimeError, ValueError):
        return False


def _refuse_shared(entries: Sequence[ItemFile]) -> None:
    rows: dict[Path, int] = {}
    for row, (path, *_) in enumerate(entries):
        if rows.setdefault(path, row) != row:
            raise PredictionsError(
                f"rows {rows[path]} and {row} of 'items' in index.json name the same "
                f"file '{path.name}'; give each item its own"
            )


def _arrays(items: Sequence[Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    arrays = {"item": _column("item", [item["item"] for item in items])}
    own = dict.fromkeys(key for item in items for key in item if _own(key, item))
    for name in (*OPTIONAL, *own):
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
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return numpy_array(name, array)
