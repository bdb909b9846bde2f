"""Frames of Hugging Face `datasets` (Lhoest et al., 2021), on disk.

`Dataset.save_to_disk` writes a folder of .arrow files with `state.json`, and
`to_parquet` one file. The features are stored with them: a `ClassLabel` has the names
of the classes. The true class is the column `label` (or `labels`, `target`), and
`probs` is a list of probabilities in every row.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from qualms.predictions import PredictionsError
from qualms.readers import ForeignContents, ForeignRequest, Reader
from qualms.readers._columns import (
    Columns,
    class_contents,
    columns_of_table,
    own_columns,
    unread_note,
)
from qualms.wording import plural

_TARGETS = ("target", "label", "labels")
_PROBS = ("probs", "probabilities", "prob")
_KEY = b"huggingface"


def huggingface() -> Reader:
    """Read frames of `datasets`: a folder of save_to_disk, or a file of to_parquet."""
    return Reader(recognise=_recognise, read=_read)


def _recognise(path: Path) -> bool:
    if path.is_dir():
        return (path / "state.json").is_file() and (
            path / "dataset_info.json"
        ).is_file()
    if path.suffix.lower() != ".parquet":
        return False
    try:
        from pyarrow import parquet

        schema = parquet.read_schema(path)
    # Reading the file as one of our tables then reports the fault.
    except Exception:
        return False
    named = _KEY in (schema.metadata or {})
    return named and any(name in schema.names for name in _PROBS)


def _read(path: Path, _request: ForeignRequest) -> ForeignContents:
    table, features = _stored(path)
    columns = columns_of_table(table)
    target = next((name for name in _TARGETS if name in columns), None)
    name = next((name for name in _PROBS if name in columns), None)
    if name is None:
        raise PredictionsError(
            f"must have a column of probabilities ({', '.join(_PROBS)}), got"
            f" {', '.join(columns)}; add one, a list of numbers in every row"
        )
    classes = _class_names(features, target)
    contents = _labelled(columns, name, target, classes)
    own = own_columns(columns, "classification")
    count = table.num_rows
    note = (
        f"read as a frame of Hugging Face datasets: {count} {plural(count, 'item')}"
        + (f", classes {', '.join(classes[:8])}" if classes else "")
    )
    return replace(
        contents,
        arrays={**contents.arrays, **own},
        notes=(note, *unread_note(columns, [name, target or "", *own])),
    )


def _labelled(
    columns: Columns, name: str, target: str | None, classes: tuple[str, ...]
) -> ForeignContents:
    probs, labels = columns[name], None if target is None else columns[target]
    if probs.ndim == 1:
        probs = np.stack([1.0 - probs, probs], axis=1)
    numbers = [str(number) for number in range(probs.shape[1])]
    if classes and len(classes) != len(numbers):
        raise PredictionsError(
            f"column '{name}' has {len(numbers)} probabilities in a row, and the"
            f" feature '{target}' names {len(classes)} classes; they must agree"
        )
    if labels is not None and labels.dtype.kind != "U":
        # Targets are stored as numbers, whatever the names of the classes are.
        named = class_contents(probs, numbers, labels)
        return replace(named, header={"classes": list(classes)} if classes else {})
    return class_contents(probs, classes or numbers, labels)


def _class_names(features: Mapping[str, Any], target: str | None) -> tuple[str, ...]:
    feature = features.get(target or "") or {}
    return tuple(map(str, feature.get("names") or ()))


def _stored(path: Path) -> tuple[Any, Mapping[str, Any]]:
    """Return the table of a frame, and its features."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise PredictionsError(
            "frames need pyarrow: pip install 'qualms-bench[tables]'"
        ) from error
    try:
        if path.is_file():
            table = parquet.read_table(path)
            metadata = json.loads((table.schema.metadata or {}).get(_KEY, b"{}"))
            return table, metadata.get("info", {}).get("features", {})
        state = json.loads((path / "state.json").read_bytes())
        parts = []
        for entry in state["_data_files"]:
            file = path / Path(entry["filename"]).name
            with pyarrow.memory_map(str(file)) as stream:
                parts.append(pyarrow.ipc.open_stream(stream).read_all())
        info = json.loads((path / "dataset_info.json").read_bytes())
        return pyarrow.concat_tables(parts), info.get("features") or {}
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise PredictionsError(
            f"cannot be read as a frame of Hugging Face datasets ({error}); save it"
            " again with save_to_disk or to_parquet"
        ) from error
