"""Reading, building and writing predictions, by what the path ends in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
)
from qualms.predictions._folder import read_folder
from qualms.predictions._folder_writer import refuse_replacing, write_folder
from qualms.predictions._foreign import to_array
from qualms.predictions._header import Header, as_header, dumps, parse_header
from qualms.predictions._normal import RawArrays, ReadOptions, normal_form
from qualms.predictions._record import Predictions
from qualms.predictions._schema import is_array_name
from qualms.predictions._segmentation import held_in_memory, segmentation_form
from qualms.predictions._tables import (
    Frame,
    columns_of,
    frame_arrays,
    read_parquet,
    sidecar,
    table_arrays,
    write_parquet_table,
)
from qualms.wording import suggest

_SOURCE = "arrays"
_Arrays = Mapping[str, NDArray[Any]]
_Write = Callable[[Path, _Arrays, Header], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKind:
    """How one kind of file is read and written."""

    read: Callable[[Path], RawArrays]
    write: _Write


def read(
    path: str | PathLike[str], *, task: str | None = None, logits: bool = False
) -> Predictions:
    """The predictions at `path`, checked in full and in normal form.

    Reads .safetensors, .npz, .csv and .parquet files, and folders of segmented items,
    whose maps are read and checked when asked for. The task is that of the header, else
    what the names of the arrays show; `task` overrules both. `logits` says that `probs`
    or `prob` hold logits, which is never guessed.

    Raises:
        PredictionsError: In one sentence: which array, which row, what was found and
            what to do. Rows count from 0.
    """
    where = Path(path)
    asked = ReadOptions(task, logits)
    refuse_undecodable(where)
    if where.is_dir():
        return read_folder(where, asked)
    with naming(str(path)):
        _refuse_absent(where)
        _refuse_index(where)
        return normal_form(_file_kind(where).read(where), asked, str(path))


def build(
    arrays: Mapping[str, Any] | Frame,
    *,
    header: Header | Mapping[str, Any] | None = None,
    task: str | None = None,
    logits: bool = False,
) -> Predictions:
    """Predictions from a mapping of names to arrays, checked and in normal form.

    Takes NumPy, PyTorch, JAX and TensorFlow arrays, pandas columns and lists, and a
    whole frame of pandas or polars with the columns of a .csv file. For
    segmentation, `maps` is a sequence of `Maps`, checked item by item when asked for,
    with `item`, `group`, `cluster`, `shifted` and `known` beside it. `task` and
    `logits` are those of `read`.

    >>> made = build({"target": [0, 1], "prob": [0.2, 0.9]})
    >>> made.task, made.arrays["probs"].shape
    ('classification', (1, 2, 2))
    """
    return _built(arrays, header, ReadOptions(task, logits))


def write(
    path: str | PathLike[str],
    predictions: Predictions | Mapping[str, Any] | Frame,
    *,
    header: Header | Mapping[str, Any] | None = None,
    task: str | None = None,
    logits: bool = False,
) -> Path:
    """Write predictions, whole or not at all; gives the path written.

    `predictions` may be a mapping of arrays of any framework, which is checked first,
    as in `build`; an array that is not part of the task is refused, for it would be
    lost. The ending of `path` decides: .safetensors (float32; added where there is no
    ending), .npz, .csv, .parquet; segmentation makes a folder. `header` stands in for
    that of the predictions.
    """
    refuse_undecodable(Path(path))
    if not isinstance(predictions, Predictions):
        asked = ReadOptions(task, logits, strict=True)
        predictions = _built(predictions, header, asked)
    else:
        _refuse_again(predictions, task, logits=logits)
        if header is not None:
            stated = parse_header(as_header(header), strict=True).header
            predictions = replace(
                predictions, header=replace(stated, task=predictions.task)
            )
    where = Path(path)
    if predictions.maps is not None:
        return write_folder(where, predictions)
    if not where.suffix:
        where = where.with_name(f"{where.name}.safetensors")
    with naming(str(where)):
        kind = _file_kind(where)
        with encoding(where):
            kind.write(where, predictions.arrays, predictions.header)
    return where


def check_destination(path: str | PathLike[str], *, task: str) -> None:
    """Refuse a path that predictions of `task` cannot be written to, before the work.

    Raises:
        PredictionsError: If the ending is unknown, or the folder is not there.
    """
    where = Path(path)
    refuse_undecodable(where)
    with naming(str(path)):
        if not where.parent.is_dir():
            raise PredictionsError(
                f"there is no folder {where.parent}; make it first, or choose another"
            )
        if task == "segmentation":
            refuse_replacing(where)
        elif where.suffix:
            _file_kind(where)


def _built(
    arrays: Mapping[str, Any] | Frame,
    header: Header | Mapping[str, Any] | None,
    asked: ReadOptions,
) -> Predictions:
    with naming(_SOURCE):
        if not isinstance(arrays, Mapping) and isinstance(arrays, Frame):
            arrays = frame_arrays(arrays)
        _refuse_unnamed(arrays)
        held = {
            name: to_array(name, values)
            for name, values in arrays.items()
            if is_array_name(name) and name != "maps"
        }
        raw = RawArrays(
            shapes={name: array.shape for name, array in held.items()},
            load=held.__getitem__,
            header=as_header(header),
            header_at="header=...",
            unread=tuple(name for name in arrays if not is_array_name(name)),
        )
        if "maps" not in arrays:
            return normal_form(raw, asked, _SOURCE)
        maps = _sequence(arrays["maps"])
    return segmentation_form(raw, partial(held_in_memory, maps), asked, _SOURCE)


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


def _refuse_again(predictions: Predictions, task: str | None, *, logits: bool) -> None:
    if logits or task not in (None, predictions.task):
        raise PredictionsError(
            f"{predictions.source}: these {predictions.task} predictions are checked "
            "already; task=... and logits=True are for a mapping of arrays"
        )


def _refuse_absent(path: Path) -> None:
    if path.is_file():
        return
    there = path.parent.iterdir() if path.parent.is_dir() else ()
    hint = suggest(path.name, [other.name for other in there])
    raise PredictionsError(f"there is no such file.{hint} Check the path")


def _refuse_index(path: Path) -> None:
    if path.name == "index.json":
        raise PredictionsError(
            "is the index of a folder of segmentation predictions; give the folder, "
            f"{path.parent}"
        )


def _file_kind(path: Path) -> FileKind:
    kind = FILE_KINDS.get(path.suffix.lower())
    if kind is None:
        raise PredictionsError(
            f"must end in {', '.join(FILE_KINDS)} or be a folder, it ends in "
            f"'{path.suffix}'; write it with qualms.predictions.write(...)"
        )
    return kind


def _whole(write: _Write) -> _Write:
    def atomic(path: Path, arrays: _Arrays, header: Header) -> None:
        with replacing(path) as temporary:
            write(temporary, arrays, header)

    return atomic


def _table(write: Callable[[Path, _Arrays], None]) -> _Write:
    def atomic(path: Path, arrays: _Arrays, header: Header) -> None:
        held = table_arrays(arrays)
        text = dumps(header, {name: array.shape for name, array in held.items()})
        with replacing(sidecar(path)) as header_file, replacing(path) as temporary:
            header_file.write_text(text, encoding="utf-8")
            write(temporary, columns_of(held))

    return atomic


FILE_KINDS = {
    ".safetensors": FileKind(read=read_safetensors, write=_whole(write_safetensors)),
    ".npz": FileKind(read=read_npz, write=_whole(write_npz)),
    ".csv": FileKind(read=read_csv, write=_table(write_csv_table)),
    ".parquet": FileKind(read=read_parquet, write=_table(write_parquet_table)),
}
