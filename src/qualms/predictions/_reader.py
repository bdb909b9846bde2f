"""Files of other programs: recognition of their layouts, and reading.

The shelf `readers` has one file for each layout. A reader recognises it by the names of
files, columns and arrays alone, and returns arrays and a header as they would be passed
to `build`, so that they are checked like all others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from qualms.predictions._array_file import array_names
from qualms.predictions._errors import PredictionsError, listed, naming
from qualms.predictions._foreign import to_array
from qualms.predictions._item_maps import ItemForm, check_maps
from qualms.predictions._normal import RawArrays, ReadOptions, normal_form
from qualms.predictions._opened import FileVersions, versions_of
from qualms.predictions._record import LazyMaps, Maps, Predictions
from qualms.predictions._segmentation import ItemMaps, segmentation_form
from qualms.shelf import broken, find, names

_OURS = frozenset(
    ("target", "prob", "probs", "prob_0", "mean", "lower", "embedding", "embedding_0")
)
"""Arrays and columns that show one of our own files."""


class ForeignRequest(NamedTuple):
    """Options of the user for files of another program."""

    raters: tuple[Path, ...] = ()
    """Folders with the label maps of raters."""
    task: str | None = None


class ForeignCases(NamedTuple):
    """Segmented items of another program, which are read one at a time."""

    load: Callable[[int], Maps]
    """Reads the maps of the item in this row. It must be picklable: a function of a
    module, or a `partial` of one."""
    names: tuple[str, ...]
    """The items, as messages name them."""
    draws: int = 1
    """The most draws of an item."""
    files: Sequence[Sequence[Path]] = ()
    """The files of each item. Those in the folders that are read must stay as they
    were; without them, nothing notices that one is replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignContents:
    """Contents that a reader returns: arrays and a header, not checked yet."""

    arrays: Mapping[str, Any] = field(default_factory=dict)
    """Arrays over items by name, as `build` takes them."""
    header: Mapping[str, Any] = field(default_factory=dict)
    cases: ForeignCases | None = None
    """The items of a segmentation, whose names are the array `item`."""
    notes: tuple[str, ...] = ()
    """Sentences on what was read and left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A layout in which another program writes predictions."""

    recognise: Callable[[Path], bool]
    """Returns whether a file or folder has this layout, by names alone."""
    read: Callable[[Path, ForeignRequest], ForeignContents]
    """Reads a file or folder."""


def reader_of(path: Path) -> Reader | None:
    """Return the reader that recognises `path`; None for predictions of our own kinds.

    Raises:
        PredictionsError: If several readers recognise it.
    """
    # A pipe is neither; opening it would wait for its writer.
    if not (path.is_file() or path.is_dir()) or _is_ours(path):
        return None
    readers = _readers()
    matching = [name for name, reader in readers.items() if reader.recognise(path)]
    if len(matching) > 1:
        raise PredictionsError(
            f"{path}: {listed(matching)} can read it, each in its own way; say which:"
            f" qualms convert {matching[0]} {path} --out FILE"
        )
    return readers[matching[0]] if matching else None


def _is_ours(path: Path) -> bool:
    """Return whether a file or folder has one of our own formats, by names alone."""
    if path.is_dir():
        return (path / "index.json").is_file()
    return path.suffix.lower() == ".safetensors" or not _OURS.isdisjoint(
        array_names(path)
    )


def _readers() -> dict[str, Reader]:
    """Return all readers by name.

    Readers of installed packages that cannot be loaded are left out, because the user
    did not ask for them; `qualms list readers` names them.
    """
    left_out = broken("readers")
    return {
        name: find("readers", name)()
        for name in names("readers")
        if name not in left_out
    }


def read_foreign(
    path: Path, reader: Reader, raters: tuple[Path, ...], options: ReadOptions
) -> Predictions:
    """Read `path` by `reader`, check it and return its normal form.

    Raises:
        PredictionsError: If something in it is missing or wrong.
    """
    source = str(path)
    with naming(source):
        versions = versions_of((path, *filter(Path.is_dir, raters)))
        contents = reader.read(path, ForeignRequest(raters, options.task))
        versions.check()
        if raters and contents.cases is None:
            raise PredictionsError(
                "holds no label maps, and raters are folders of label maps; leave out"
                " --raters (raters=...)"
            )
        arrays = {name: to_array(name, a) for name, a in contents.arrays.items()}
        raw = RawArrays(
            shapes={name: array.shape for name, array in arrays.items()},
            load=arrays.__getitem__,
            header=contents.header,
            header_at="what was read",
        )
        if contents.cases is None:
            predictions = normal_form(raw, options, source)
    if contents.cases is not None:
        maps = ItemMaps(
            partial(_open, source, contents.cases, versions),
            partial(_draws, contents.cases),
        )
        predictions = segmentation_form(raw, maps, options, source)
    return replace(predictions, notes=(*contents.notes, *predictions.notes))


def _open(
    source: str, cases: ForeignCases, versions: FileVersions, form: ItemForm
) -> LazyMaps:
    load = partial(_load, source, cases, versions, form)
    return LazyMaps(load, range(len(cases.names)), on_disk=True)


def _draws(cases: ForeignCases) -> int:
    return cases.draws


def _load(
    source: str, cases: ForeignCases, versions: FileVersions, form: ItemForm, row: int
) -> Maps:
    files = cases.files[row] if cases.files else ()
    with naming(f"{source}, {cases.names[row]}"):
        versions.check(files)
        maps = cases.load(row)
        versions.check(files)
        return check_maps(maps, form)
