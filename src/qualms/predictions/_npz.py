"""The carrier .npz: arrays by name, the header as a 0-d string `header`."""

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qualms.predictions._error import PredictionsError
from qualms.predictions._foreign import plain
from qualms.predictions._header import Header, dumps, loads
from qualms.predictions._normal import Raw
from qualms.predictions._schema import known
from qualms.predictions._unreadable import parsing

HEADER_AT = "a 0-d string array 'header' (JSON)"


def read_npz(path: Path) -> Raw:
    """The arrays and header of an .npz file; nothing in it is ever unpickled."""
    with parsing(path):
        _refuse_bomb(path)
        with np.load(path, allow_pickle=False) as found:
            names = [name for name in found.files if name != "header"]
            arrays = {name: _member(found, name) for name in names if known(name)}
            header = _member(found, "header") if "header" in found.files else None
    return Raw(
        arrays=arrays,
        header={} if header is None else _header(header),
        header_at=HEADER_AT,
        unread=tuple(name for name in names if name not in arrays),
    )


def write_npz(path: Path, arrays: Mapping[str, NDArray[Any]], header: Header) -> None:
    """Write an .npz file, numbers as they are in memory."""
    text = dumps(header, {name: array.shape for name, array in arrays.items()})
    held: dict[str, Any] = {**arrays, "header": np.array(text)}
    with path.open("xb") as file:
        np.savez(file, **held)


def _refuse_bomb(path: Path) -> None:
    # A few bytes can claim to unpack to more than the machine holds; look first.
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        size = sum(member.file_size for member in archive.infolist())
        file.seek(0)
        if file.read(2) != b"PK":  # np.load would take the rest for a pickle
            raise zipfile.BadZipFile("bytes before the beginning of the zip file")
    if size > memory():
        raise PredictionsError(
            f"unpacks to {size / 2**30:.0f} GiB, more than this machine's memory; "
            "split it into several files"
        )


def memory() -> int:
    """The machine's memory in bytes."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2**40


def _member(found: Any, name: str) -> NDArray[Any]:
    try:
        array = found[name]
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise PredictionsError(
            f"array '{name}' holds Python objects, which are never loaded; save it as "
            "numbers or text, for example np.asarray(values, dtype=float)"
        ) from error
    return plain(name, np.asarray(array))


def _header(array: NDArray[Any]) -> dict[str, Any]:
    if array.size != 1 or array.dtype.kind not in "US":
        raise PredictionsError(
            "array 'header' must be one string of JSON, got shape "
            f"{array.shape} of {array.dtype}; save it as np.array(json.dumps(...))"
        )
    return loads(array.item(), "the array 'header'")
