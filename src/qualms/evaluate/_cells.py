"""A cache of judged cells on disk, identified by a digest of their inputs.

A cell is the result of judging one variant, or one line of it. Its file states a digest
of all inputs: predictions, options, the code of judging and its libraries. If the
digest differs, or the file cannot be read, the cell is judged anew, so that deleting
files loses nothing but time.

Run folders may come from other people. So only records of numbers are read, and no code
named in a file is run.
"""

import hashlib
import io
import os
import pickle
import sys
from contextlib import suppress
from dataclasses import is_dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import qualms
from qualms.atomic import replacing
from qualms.shelf import names, outside_parts, source_of

MOST_BYTES = 2 << 30
"""Limit on the bytes of all cells of a benchmark; the longest unused are removed."""
_MAGIC = b"qualms cell 1\n"
_LIBRARIES = ("numpy", "scipy", "numba", "safetensors", "pyarrow")
_RECORDS = (
    "qualms.evaluate.",
    "qualms.inference.",
    "qualms.labels",
    "qualms.results",
    "qualms.runs",
    "qualms.scores.",
)
"""Modules of records, and of scores named by entries."""
_NUMPY = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
    ("functools", "partial"),
}


class CellFolder:
    """A folder of judged cells."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, name: str, key: str) -> Any:
        """Return the cell `name` if its inputs have the digest `key`, else None.

        Args:
            name: The name of its file.
            key: A digest of all its inputs.
        """
        path = self._path(name)
        try:
            content = path.read_bytes()
            head = _head(key)
            payload = memoryview(content)[len(head) + 32 :]
            if not content.startswith(head):
                return None
            if content[len(head) : len(head) + 32] != hashlib.sha256(payload).digest():
                return None
            cell = _Records(io.BytesIO(payload)).load()
        # Unpickling a file of another version may raise nearly every class of error.
        except Exception:
            return None
        with suppress(OSError):
            os.utime(path)  # the longest unused are removed first
        return cell

    def put(self, name: str, key: str, cell: object) -> None:
        """Write a cell, if it can be written and read again."""
        try:
            payload = pickle.dumps(cell, protocol=5)
            _Records(io.BytesIO(payload)).load()
        except Exception:  # it names a part from outside, or a function in a function
            return
        with suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            with replacing(self._path(name)) as temporary:
                temporary.write_bytes(
                    _head(key) + hashlib.sha256(payload).digest() + payload
                )

    def prune(self) -> None:
        """Remove the longest unused cells beyond `MOST_BYTES`."""
        with suppress(OSError):
            files = sorted(
                self._folder.glob("*.cell"), key=lambda path: -path.stat().st_mtime
            )
            total = 0
            for path in files:
                total += path.stat().st_size
                if total > MOST_BYTES:
                    path.unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.cell"


def text_digest(*texts: str) -> str:
    """Return a digest of several texts."""
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()


@cache
def package_digest() -> str:
    """Return a digest of the code of this package and of its libraries."""
    source = Path(qualms.__file__).parent
    digest = hashlib.blake2b(sys.version.encode(), digest_size=16)
    for path in sorted(source.rglob("*.py")):
        digest.update(str(path.relative_to(source)).encode())
        digest.update(path.read_bytes())
    for library in _LIBRARIES:
        with suppress(PackageNotFoundError):
            digest.update(f"{library} {version(library)}".encode())
    return digest.hexdigest()


def outside_digest() -> str:
    """Return a digest of the code of included benchmarks and scores."""
    parts = [
        f"{shelf}/{name} {source_of(shelf, name)}"
        for shelf in ("benchmarks", "scores")
        for name in names(shelf)
        if name in outside_parts(shelf)
    ]
    return text_digest(*parts) if parts else ""


def _head(key: str) -> bytes:
    return _MAGIC + key.encode() + b"\n"


class _Records(pickle.Unpickler):
    """Reads records of numbers, and refuses everything else."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a record or a score by the module that defines it."""
        if (module, name) in _NUMPY:
            return super().find_class(module, name)
        if module.startswith(_RECORDS) and "." not in name:
            part = super().find_class(module, name)
            if getattr(part, "__module__", "") == module and _is_harmless(part):
                return part
        raise pickle.UnpicklingError(f"{module}.{name} is no record of judging")


def _is_harmless(part: Any) -> bool:
    """Return whether `part` is a record, or a function from arrays to numbers."""
    if isinstance(part, type):
        return is_dataclass(part) or issubclass(part, tuple)
    return str(part.__module__).startswith("qualms.scores.")
