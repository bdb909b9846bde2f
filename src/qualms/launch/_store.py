"""The objects of an object store, such as S3, below one address.

Calls that fail are made again, since stores fail now and then. Of the clocks there are,
only that of the store is read.
"""

import errno
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from random import SystemRandom
from typing import Any, NamedTuple, NoReturn, Protocol, TypeVar, cast
from uuid import uuid4

from qualms.atomic import replacing
from qualms.wording import error_words

PATIENCE = 300.0
"""Seconds for which a failing call is made again."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
"""Seconds between the first two attempts, and most seconds between any two."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/.*", re.DOTALL)
_MISSING = ("NoSuchBucket", "InvalidBucketName")
_CREDENTIALS = ("NoCredentialsError", "PartialCredentialsError", "ProfileNotFound")
_Answer = TypeVar("_Answer")


class StoreError(OSError):
    """A store that does not do what is asked; the message says what to do."""


class FileSystem(Protocol):
    """The functions of fsspec's file systems that are used here."""

    def find(self, path: str, *, detail: bool) -> Mapping[str, Mapping[str, Any]]:
        """Return what the store knows about all objects below a path."""

    def info(self, path: str) -> Mapping[str, Any]:
        """Return what the store knows about an object."""

    def cat_file(self, path: str) -> bytes:
        """Return an object."""

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite") -> Any:
        """Write an object; in the mode "create" only where there is none."""

    def put_file(self, lpath: str, rpath: str) -> Any:
        """Upload a file."""

    def get_file(self, rpath: str, lpath: str) -> Any:
        """Download a file."""

    def cp_file(self, path1: str, path2: str) -> Any:
        """Copy an object inside the store."""

    def rm_file(self, path: str) -> Any:
        """Delete an object."""


class StoredObject(NamedTuple):
    """Facts of a store about an object."""

    tag: str
    """A text that changes with the content."""
    changed: float
    """Time at which it was written, in seconds of the store's clock."""


def connect_s3() -> FileSystem:
    """Return the file system of S3, or of a store with its interface."""
    try:
        import s3fs
    except ImportError as error:
        raise StoreError(
            "folders of runs in s3://... need s3fs; install it with"
            " `pip install 'qualms-bench[store]'`"
        ) from error
    system = s3fs.S3FileSystem(
        use_listings_cache=False,
        skip_instance_cache=True,
        config_kwargs={
            "retries": {"max_attempts": 1},  # they are made here
            "connect_timeout": 10,
            "read_timeout": 60,
        },
    )
    system.retries = 1
    return cast(FileSystem, system)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectStore:
    """Objects by their names below an address such as s3://bucket/prefix.

    Every function raises `StoreError` if the store does not answer for `patience`
    seconds, or says what no further attempt would change.
    """

    address: str
    connect: Callable[[], FileSystem] = connect_s3
    """Returns the file system; importable, since it is called in other processes."""
    patience: float = PATIENCE

    def objects(self, folder: str = "") -> dict[str, StoredObject]:
        """Return all objects below a folder, by their names from there on."""
        root = self._path(folder).rstrip("/") + "/"
        listed = self._persist("list", lambda system: system.find(root, detail=True))
        return {
            path[len(root) :]: _stored(facts)
            for path, facts in listed.items()
            if path.startswith(root) and len(path) > len(root)
        }

    def read(self, name: str) -> bytes:
        """Return an object; raise FileNotFoundError if there is none."""
        path = self._path(name)
        return self._persist("read", lambda system: system.cat_file(path))

    def write(self, name: str, content: bytes) -> None:
        """Write an object, whether or not there is one."""
        path = self._path(name)
        self._persist("write", lambda system: system.pipe_file(path, content))

    def create(self, name: str, content: bytes) -> bool:
        """Write an object only where there is none; return whether there was none.

        The content must be unlike that of any other process: if the answer of the
        store is lost, it says whose the object is.
        """
        path = self._path(name)
        try:
            self._persist("write", lambda s: s.pipe_file(path, content, mode="create"))
        except FileExistsError:
            try:
                return self.read(name) == content
            except FileNotFoundError:  # deleted since
                return False
        return True

    def written(self, name: str, content: bytes) -> float:
        """Write an object; return when, in seconds of the store's clock."""
        self.write(name, content)
        path = self._path(name)
        return _stored(self._persist("read", lambda system: system.info(path))).changed

    def upload(self, file: Path, name: str) -> None:
        """Write an object with the content of a file."""
        path = self._path(name)
        self._persist("write", lambda system: system.put_file(str(file), path))

    def download(self, name: str, file: Path) -> None:
        """Write a file, whole or not at all, with the content of an object."""
        path = self._path(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as temporary:
            self._persist("read", lambda system: system.get_file(path, str(temporary)))

    def copy(self, name: str, other: str) -> None:
        """Copy an object inside the store."""
        path, target = self._path(name), self._path(other)
        self._persist("write", lambda system: system.cp_file(path, target))

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects, as far as there are any."""
        for name in names:
            path = self._path(name)
            try:
                self._persist("delete", partial(_remove, path=path))
            except FileNotFoundError:
                continue

    def check(self) -> None:
        """Raise unless objects can be written, and created by one process only."""
        name, first, second = f".probe-{uuid4().hex}", b"first", b"second"
        try:
            if self.create(name, first) and not self.create(name, second):
                return
        finally:
            self.delete([name])
        raise StoreError(
            f"{self.address} lets two processes create one object, so that both would"
            " work on one run; use a store that follows the header If-None-Match, as"
            " S3 does"
        )

    def _path(self, name: str) -> str:
        return "/".join(filter(None, (self.address.partition("://")[2], name)))

    def _persist(self, verb: str, call: Callable[[FileSystem], _Answer]) -> _Answer:
        """Call until it succeeds, with growing pauses that no two processes share."""
        deadline = time.monotonic() + self.patience
        pause = FIRST_PAUSE
        while True:
            try:
                return call(_connected(self.connect))
            except (FileExistsError, StoreError):
                raise
            except Exception as error:
                if _code(error) == "PreconditionFailed":
                    raise FileExistsError(str(error)) from error
                self._raise_lasting(verb, error)
                if time.monotonic() + pause > deadline:
                    raise StoreError(
                        f"cannot {verb} objects in {self.address}:"
                        f" {error_words(error)}; check the network and the address, and"
                        " run again: what is done is kept"
                    ) from error
            time.sleep(pause * SystemRandom().uniform(0.5, 1))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _raise_lasting(self, verb: str, error: Exception) -> None:
        """Raise what further attempts would not change."""
        bucket = self.address.partition("://")[2].partition("/")[0]
        if _code(error) in _MISSING:
            self._refuse(
                error, f"there is no bucket {bucket!r}; create it, or correct the name"
            )
        if type(error).__name__ in _CREDENTIALS:
            self._refuse(
                error,
                "no credentials were found; set AWS_ACCESS_KEY_ID and"
                " AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
            )
        if isinstance(error, PermissionError):
            self._refuse(
                error,
                f"the store refuses to {verb} objects with these credentials ({error});"
                " use others, or grant them this",
            )
        lasting = isinstance(error, OSError) and error.errno in (
            errno.ENOENT,
            errno.ENOSPC,
            errno.EACCES,
            errno.EROFS,
        )
        if lasting or isinstance(error, (FileNotFoundError, ValueError, TypeError)):
            raise error

    def _refuse(self, error: Exception, sentence: str) -> NoReturn:
        raise StoreError(f"cannot use {self.address}: {sentence}") from error


def is_address(place: object) -> bool:
    """Return whether a text or path is the address of a store, such as s3://bucket.

    >>> is_address("s3://bucket/runs"), is_address("runs"), is_address("C:/runs")
    (True, False, False)
    """
    return _ADDRESS.fullmatch(str(place)) is not None


def checked_address(place: object) -> str:
    """Return an address in its normal form; a path may have lost one of its slashes.

    >>> checked_address("s3:/bucket/runs/")
    's3://bucket/runs'
    """
    kind, _, rest = str(place).partition(":/")
    names = [name for name in rest.split("/") if name]
    if kind.lower() != "s3":
        raise ValueError(
            f"runs are stored in a folder or in s3://BUCKET/PREFIX, got {str(place)!r}"
        )
    if not names or {".", ".."}.intersection(names):
        raise ValueError(
            f"an address of runs must read s3://BUCKET/PREFIX, got {str(place)!r}"
        )
    return f"s3://{'/'.join(names)}"


def _remove(system: FileSystem, path: str) -> None:
    system.rm_file(path)


@cache
def _connected(connect: Callable[[], FileSystem]) -> FileSystem:
    return connect()


def _stored(facts: Mapping[str, Any]) -> StoredObject:
    changed = cast(datetime, facts["LastModified"])
    return StoredObject(str(facts["ETag"]), changed.timestamp())


def _code(error: Exception) -> str:
    """Return the code of the store for an error; '' if it has none."""
    for each in (error, error.__cause__):
        response = getattr(each, "response", None)
        if isinstance(response, dict):
            return str(response.get("Error", {}).get("Code", ""))
    return ""
