"""Open prepared datasets, and check that their files have not changed."""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._cache import (
    Meta,
    block_checksum,
    entries,
    file_hash,
    fingerprint,
    read_meta,
)
from qualms.datasets._encoded import Encoded
from qualms.datasets._ragged import Ragged, ragged
from qualms.datasets._recipe import Card, Dataset, DatasetError, Split, Subset
from qualms.datasets._shards import ENCODED, SIDES, SPAN
from qualms.datasets._shared_rows import ROWS, SharedRows
from qualms.processes import cores
from qualms.spec import Task
from qualms.wording import error_words

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

T = TypeVar("T")
TICK = 2_000_000_000
"""Nanoseconds in which a file may be written twice and show the same time."""


class _FileState(NamedTuple):
    """A file at a certain time; it changes whenever the file is written."""

    path: Path
    size: int
    modified: int
    changed: int


def open_dataset(folder: str | Path) -> Dataset:
    """Open the dataset that was prepared in `folder`, its arrays memory-mapped.

    File sizes are compared with the record; `verify_dataset` compares contents.
    """
    folder = Path(folder)
    meta = _read_record(folder)
    swaps = meta.get("swaps", {"labels": [], "share": 0.0})
    return Dataset(
        name=meta["name"],
        options=meta["options"],
        card=Card(**meta["card"]),
        task=Task(**meta["task"]),
        splits={
            name: _map(folder, files, meta.get("side"))
            for name, files in meta["splits"].items()
        },
        shifts=meta["shifts"],
        fingerprint=meta["fingerprint"],
        subsets={name: _subset(fields) for name, fields in meta["subsets"].items()},
        swaps=dict(swaps["labels"]),
        swap_share=swaps["share"],
    )


def verify_dataset(folder: str | Path) -> None:
    """Raise if a file in `folder` has other contents than when it was prepared.

    It reads every file once, at one to two gigabytes a second on each core. A file that
    this process has verified and nobody has written since is not read again.
    """
    folder = Path(folder)
    meta = _read_record(folder)
    files = {entry["file"]: entry for _, entry in entries(meta)}
    with ThreadPoolExecutor(cores()) as threads:
        checks = {
            file: _start_checks(threads, folder / file, entry)
            for file, entry in files.items()
        }
        wrong = [
            file
            for file, parts in checks.items()
            if not all(part.result() for part in parts)
        ]
    if wrong:
        raise _changed_error(folder, meta, wrong)


def _read_record(folder: Path) -> Meta:
    """Read the record of `folder`; raise if its files have other sizes."""
    meta = read_meta(folder)
    if meta is None:
        raise DatasetError(
            f"{folder} holds no prepared dataset; run `qualms prepare` first"
        )
    wrong = [e["file"] for _, e in entries(meta) if _size(folder, e) != e["bytes"]]
    if wrong or meta["fingerprint"] != fingerprint(meta):
        raise _changed_error(folder, meta, wrong)
    return meta


def _size(folder: Path, entry: Meta) -> int:
    path = folder / entry["file"]
    return path.stat().st_size if path.is_file() else -1


def _start_checks(
    threads: ThreadPoolExecutor, path: Path, entry: Meta
) -> list[Future[bool]]:
    """Start checking the parts of a file."""
    status = path.stat()
    state = _FileState(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    if "crc32" not in entry:  # prepared by an older version
        return [threads.submit(_has_hash, state, entry["sha256"])]
    return [
        threads.submit(_has_checksum, state, block, checksum)
        for block, checksum in enumerate(entry["crc32"])
    ]


def _has_checksum(state: _FileState, block: int, checksum: int) -> bool:
    return _cached(_checksum, state)(state, block) == checksum


def _has_hash(state: _FileState, sha256: str) -> bool:
    return _cached(_hash, state)(state) == sha256


@lru_cache(maxsize=65_536)
def _checksum(state: _FileState, block: int) -> int:
    return block_checksum(state.path, block)


@lru_cache(maxsize=1_024)
def _hash(state: _FileState) -> str:
    return file_hash(state.path)


def _cached(read: "_lru_cache_wrapper[T]", state: _FileState) -> Callable[..., T]:
    """Return `read`, without its cache if the file may have just been written."""
    latest = max(state.modified, state.changed)
    return read if time.time_ns() - latest > TICK else read.__wrapped__


def _changed_error(folder: Path, meta: Meta, wrong: Sequence[str]) -> DatasetError:
    """Return the error that names changed files, fingerprints and the remedy."""
    now = json.loads(json.dumps(meta))
    for _, entry in entries(now):
        path = folder / entry["file"]
        if entry["file"] in wrong or not entry["file"].startswith("../"):
            entry["sha256"] = file_hash(path) if path.is_file() else "missing"
    names = [os.path.normpath(folder / file) for file in dict.fromkeys(wrong)]
    return DatasetError(
        f"{', '.join(names) or folder / 'meta.json'} changed after the dataset was"
        f" prepared: fingerprint {fingerprint(now)} instead of {meta['fingerprint']};"
        f" {_remedy(folder, wrong)}"
    )


def _remedy(folder: Path, wrong: Sequence[str]) -> str:
    """Say what to do about changed files.

    Preparing again writes all arrays anew if an album does not have a shown file any
    more, and only then.
    """
    shared = [file for file in wrong if file.startswith("../")]
    if any(not _in_album(folder, file) for file in shared):
        return (
            "the pictures it shows were deleted or prepared again since then; prepare"
            " it again as well, nothing has to be deleted"
        )
    albums = {folder.parent / file.split("/")[1] for file in shared}
    spoilt = [str(path) for path in sorted(albums)]
    if len(shared) < len(wrong) or not wrong:
        spoilt.append(str(folder))
    return f"delete {' and '.join(spoilt)} and prepare the dataset again"


def _in_album(folder: Path, file: str) -> bool:
    """Return whether the record of the album beside `folder` still names `file`."""
    _, album, *rest = file.split("/")
    meta = read_meta(folder.parent / album)
    return meta is not None and any(
        entry["file"] == "/".join(rest) for _, entry in entries(meta)
    )


def _map(folder: Path, files: Mapping[str, Meta], side: int | None) -> Split:
    arrays = {column: _mapped(folder, entry["file"]) for column, entry in files.items()}
    extra = {
        column.removeprefix("extra/"): array
        for column, array in arrays.items()
        if column.startswith("extra/")
    }
    return Split(
        image=_array(arrays, "image") if side is None else _encoded(arrays, side),
        target=_array(arrays, "target"),
        item=arrays["item"],
        extra=extra,
    )


def _mapped(folder: Path, file: str) -> NDArray[Any]:
    """Return the array in a file, memory-mapped."""
    try:
        array: NDArray[Any] = np.load(folder / file, "r", allow_pickle=False)
    except (OSError, MemoryError):
        raise
    # NumPy parses the header of a damaged file as Python code.
    except Exception as error:
        path = os.path.normpath(folder / file)
        raise DatasetError(
            f"{path} was damaged after the dataset was prepared ({error_words(error)});"
            f" {_remedy(folder, [file])}"
        ) from error
    return array


def _array(
    arrays: Mapping[str, NDArray[Any]], name: str
) -> NDArray[Any] | Ragged | SharedRows:
    """Return an array of one shape for all items, or of one shape per item."""
    if ROWS in arrays:
        return SharedRows(data=arrays[name], rows=np.asarray(arrays[ROWS]))
    sides = arrays.get(name + SIDES)
    return arrays[name] if sides is None else ragged(arrays[name], np.asarray(sides))


def _encoded(arrays: Mapping[str, NDArray[Any]], side: int) -> Encoded:
    return Encoded(data=arrays[ENCODED], span=arrays[SPAN], side=side)


def _subset(fields: Meta) -> Subset:
    within = tuple((low, high) for low, high in fields["within"])
    return Subset(of=fields["of"], within=within, half=fields.get("half"))
