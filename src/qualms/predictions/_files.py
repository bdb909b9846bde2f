"""Reading, building and writing predictions; the ending of a path sets the format."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from qualms.atomic import replacing
from qualms.predictions._binary import (
    read_npz,
    read_safetensors,
    write_npz,
    write_safetensors,
)
from qualms.predictions._csv import read_csv, write_csv_table
from qualms.predictions._errors import (
    PredictionsError,
    encoding,
    naming,
    refuse_undecodable,
    remedy_of_ending,
)
from qualms.predictions._folder import read_folder
from qualms.predictions._folder_writer import refuse_replacing, write_folder
from qualms.predictions._foreign import to_array
from qualms.predictions._header import Header, as_header, dumps, parse_header
from qualms.predictions._hugging_face import (
    HuggingFaceDataset,
    dataset_arrays,
    feature_names,
    refuse_several,
)
from qualms.predictions._normal import RawArrays, ReadOptions, normal_form
from qualms.predictions._opened import OpenedFile, opened, refuse_pipe
from qualms.predictions._reader import Reader, read_foreign, reader_of
from qualms.predictions._record import Predictions
from qualms.predictions._segmentation import maps_in_memory, segmentation_form
from qualms.predictions._sidecar import write_table
from qualms.predictions._tables import (
    Frame,
    columns_of,
    frame_arrays,
    read_parquet,
    table_arrays,
    write_parquet_table,
)
from qualms.predictions.schema import is_array_name, schemas
from qualms.wording import in_one_line, suggest

_SOURCE = "arrays"
Paths = str | PathLike[str] | Sequence[str | PathLike[str]]
"""One path or several."""
_Arrays = Mapping[str, NDArray[Any]]
_Write = Callable[[Path, _Arrays, Header], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKind:
    """Functions that read and write one kind of file."""

    read: Callable[[OpenedFile], RawArrays]
    write: _Write


@in_one_line
def read(  # noqa: PLR0913 - what may be said of a file
    path: str | PathLike[str],
    *,
    task: str | None = None,
    logits: bool = False,
    renormalise: bool = False,
    alpha: float | None = None,
    raters: Paths = (),
    reader: Reader | None = None,
) -> Predictions:
    """Read the predictions at `path`, check them in full and return their normal form.

    `path` may be a .safetensors, .npz, .csv or .parquet file, or a folder of segmented
    items, whose maps are read and checked on access. It may also be what another
    program wrote, if a reader on the shelf `readers` recognises it, or if `reader` is
    that for its layout; `raters` are folders with the label maps of its items.

    The header states the task, or the names of the arrays show it; `task` overrules
    both. `logits` says that `probs` or `prob` hold logits, which is never guessed;
    `renormalise` divides probabilities, such as percentages, by their sums. `alpha` is
    the miscoverage of intervals if the header states none.

    Raises:
        PredictionsError: If anything is wrong; its sentence names the array, the row
            (counted from 0), the value and a remedy.
    """
    source = Path(path)
    options = ReadOptions(task, logits, renormalise, alpha=alpha)
    refuse_undecodable(source)
    folders = paths_of(raters)
    with naming(str(path)):
        _refuse_absent(source)
    reader = reader_of(source) if reader is None else reader
    if reader is not None:
        return read_foreign(source, reader, folders, options)
    _refuse_raters(source, folders)
    if source.is_dir():
        return read_folder(source, options)
    with naming(str(path)):
        _refuse_index(source)
        kind = _file_kind(
            source,
            remedy_of_ending(source) or "write it with qualms.predictions.write(...)",
        )
        with opened(source) as file:
            return normal_form(kind.read(file), options, str(path))


@in_one_line
def build(
    arrays: Mapping[str, Any] | Frame | HuggingFaceDataset,
    *,
    header: Header | Mapping[str, Any] | None = None,
    task: str | None = None,
    logits: bool = False,
    renormalise: bool = False,
    alpha: float | None = None,
) -> Predictions:
    """Build predictions from a mapping of names to arrays, checked and in normal form.

    Arrays may be of NumPy, PyTorch, JAX and TensorFlow, columns of pandas, or lists;
    `arrays` may be a frame of pandas or polars, or a `datasets.Dataset` of Hugging
    Face, with the columns of a .csv file. For segmentation, `maps` is a sequence of
    `Maps`, each of which is checked on access, with `item`, `group`, `cluster`,
    `shifted` and `known` beside it. `task`, `logits`, `renormalise` and `alpha` are
    those of `read`.

    >>> predictions = build({"target": [0, 1], "prob": [0.2, 0.9]})
    >>> predictions.task, predictions.arrays["probs"].shape
    ('classification', (1, 2, 2))
    """
    options = ReadOptions(task, logits, renormalise, alpha=alpha)
    return _built(arrays, header, options)


@in_one_line
def write(
    path: str | PathLike[str],
    predictions: Predictions | Mapping[str, Any] | Frame | HuggingFaceDataset,
    *,
    header: Header | Mapping[str, Any] | None = None,
    task: str | None = None,
    logits: bool = False,
) -> Path:
    """Write predictions, completely or not at all, and return the path.

    `predictions` may be a mapping of arrays of any framework, which is checked first,
    as in `build`; an array that is not part of the task is refused because it would be
    lost. The ending of `path` sets the format: .safetensors (float32; the default),
    .npz, .csv or .parquet; segmentation makes a folder. `header` replaces the header of
    the predictions.
    """
    refuse_undecodable(Path(path))
    if not isinstance(predictions, Predictions):
        options = ReadOptions(task, logits, strict=True)
        predictions = _built(predictions, header, options)
    else:
        _refuse_options(predictions, task, logits=logits)
        if header is not None:
            new = parse_header(as_header(header), strict=True).header
            predictions = replace(
                predictions, header=replace(new, task=predictions.task)
            )
    destination = Path(path)
    if predictions.maps is not None:
        return write_folder(destination, predictions)
    if not destination.suffix:
        destination = destination.with_name(f"{destination.name}.safetensors")
    with naming(str(destination)):
        kind = _file_kind(destination, "choose one of these")
        with encoding(destination):
            kind.write(destination, predictions.arrays, predictions.header)
    return destination


def check_destination(path: str | PathLike[str], *, task: str) -> None:
    """Raise unless predictions of `task` can be written to `path`.

    Call it before predictions are made.

    Raises:
        PredictionsError: If the ending is unknown, or the folder does not exist.
    """
    destination = Path(path)
    refuse_undecodable(destination)
    with naming(str(path)):
        if not destination.parent.is_dir():
            raise PredictionsError(
                f"there is no folder {destination.parent}; make it first, or choose"
                " another"
            )
        if task is not None and schemas()[task].folder:
            refuse_replacing(destination)
        elif destination.suffix:
            _file_kind(destination, "choose one of these")


def _built(
    arrays: Mapping[str, Any] | Frame | HuggingFaceDataset,
    header: Header | Mapping[str, Any] | None,
    options: ReadOptions,
) -> Predictions:
    with naming(_SOURCE):
        if isinstance(arrays, Mapping):
            refuse_several(arrays)
        elif isinstance(arrays, HuggingFaceDataset):
            names = feature_names(arrays)
            header = ({"classes": names} if names else {}) | as_header(header)
            arrays = dataset_arrays(arrays)
        elif isinstance(arrays, Frame):
            arrays = frame_arrays(arrays)
        _refuse_unnamed(arrays)
        converted = {
            name: to_array(name, values)
            for name, values in arrays.items()
            if is_array_name(name) and name != "maps"
        }
        raw = RawArrays(
            shapes={name: array.shape for name, array in converted.items()},
            load=converted.__getitem__,
            header=as_header(header),
            header_at="header=...",
            unread=tuple(name for name in arrays if not is_array_name(name)),
        )
        if "maps" not in arrays:
            return normal_form(raw, options, _SOURCE)
        maps = _sequence(arrays["maps"])
    return segmentation_form(raw, maps_in_memory(maps), options, _SOURCE)


def _refuse_unnamed(arrays: Any) -> None:
    if not isinstance(arrays, Mapping):
        raise PredictionsError(
            f"must be a mapping of names to arrays, got {type(arrays).__name__}; pass "
            "for example {'target': ..., 'probs': ...}"
        )
    wrong = next((name for name in arrays if not isinstance(name, str)), None)
    if wrong is not None:
        raise PredictionsError(f"the name of an array must be text, got {wrong!r:.60}")


def _sequence(maps: Any) -> Sequence[Any]:
    if isinstance(maps, Sequence):
        return maps
    raise PredictionsError(
        f"'maps' must be a sequence of Maps, got {type(maps).__name__}; pass a list, "
        "or stream the items with qualms.predictions.SegmentationWriter"
    )


def _refuse_options(
    predictions: Predictions, task: str | None, *, logits: bool
) -> None:
    if logits or task not in (None, predictions.task):
        raise PredictionsError(
            f"{predictions.source}: these {predictions.task} predictions are checked "
            "already; task=... and logits=True are for a mapping of arrays"
        )


def paths_of(paths: Paths) -> tuple[Path, ...]:
    """Return one path or several as a tuple."""
    several = [paths] if isinstance(paths, str | PathLike) else paths
    return tuple(map(Path, several))


def _refuse_raters(path: Path, raters: Sequence[Path]) -> None:
    if raters and path.exists():
        raise PredictionsError(
            f"{path}: folders of raters belong to the files of another program, and "
            "these are predictions with raters of their own; leave out --raters "
            "(raters=...)"
        )


def _refuse_absent(path: Path) -> None:
    if path.is_dir():
        return
    if path.exists():
        refuse_pipe(path.stat())
        return
    siblings = path.parent.iterdir() if path.parent.is_dir() else ()
    hint = suggest(path.name, [sibling.name for sibling in siblings])
    several = "; separate several files by spaces" if "," in path.name else ""
    raise PredictionsError(f"there is no such file.{hint} Check the path{several}")


def _refuse_index(path: Path) -> None:
    if path.name == "index.json":
        raise PredictionsError(
            "is the index of a folder of segmentation predictions; give the folder, "
            f"{path.parent}"
        )


def _file_kind(path: Path, remedy: str) -> FileKind:
    kind = FILE_KINDS.get(path.suffix.lower())
    if kind is None:
        raise PredictionsError(
            f"must end in {', '.join(FILE_KINDS)} or be a folder, it ends in "
            f"'{path.suffix}'; {remedy}"
        )
    return kind


def _atomic(write: _Write) -> _Write:
    """Return a writer whose file appears completely or not at all."""

    def write_atomically(path: Path, arrays: _Arrays, header: Header) -> None:
        with replacing(path) as temporary:
            write(temporary, arrays, header)

    return write_atomically


def _table(write: Callable[[Path, _Arrays], None]) -> _Write:
    """Return a writer of a table with its header beside it."""

    def write_both(path: Path, arrays: _Arrays, header: Header) -> None:
        one_draw = table_arrays(arrays)
        text = dumps(header, {name: array.shape for name, array in one_draw.items()})
        columns = columns_of(one_draw)
        write_table(path, text, lambda temporary: write(temporary, columns))

    return write_both


FILE_KINDS = {
    ".safetensors": FileKind(read=read_safetensors, write=_atomic(write_safetensors)),
    ".npz": FileKind(read=read_npz, write=_atomic(write_npz)),
    ".csv": FileKind(read=read_csv, write=_table(write_csv_table)),
    ".parquet": FileKind(read=read_parquet, write=_table(write_parquet_table)),
}
