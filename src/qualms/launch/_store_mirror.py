"""A folder on this machine that mirrors a folder of an object store.

An interrupted transfer leaves a folder that is right or says that it is not done:
`done.json` comes last, and goes first if anything before it changes.
"""

import json
import os
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import NamedTuple

from qualms.atomic import LEFTOVER, replacing
from qualms.launch._store import ObjectStore, StoredObject
from qualms.regular import read_object
from qualms.runs import checkpoint_paths, done_path, lock_path, owner_path

THREADS = 16
"""Transfers at a time."""
_RECORD = ".stored.json"
"""File that lists what was the same in the store and here after the last transfer."""


class FileStamp(NamedTuple):
    """Facts that change when a file is written anew, and stay when it is renamed."""

    size: int
    changed: int
    number: int


class StoredFile(NamedTuple):
    """A file that is the same in the store and here."""

    tag: str
    """Tag of the object."""
    facts: FileStamp


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorRecord:
    """The last transfer of a folder."""

    claim: int = 0
    """Number of the lease under which this machine worked on it last; 0 for none."""
    files: Mapping[str, StoredFile]


def read_record(folder: Path) -> MirrorRecord:
    """Return the record of the last transfer; an empty one if there was none."""
    try:
        record = read_object(folder / _RECORD)
        files = {
            name: StoredFile(tag, FileStamp(*facts))
            for name, (tag, facts) in record["files"].items()
        }
        return MirrorRecord(claim=int(record["claim"]), files=files)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return MirrorRecord(files={})


def _write_record(folder: Path, claim: int, files: Mapping[str, StoredFile]) -> None:
    with replacing(folder / _RECORD) as temporary:
        text = json.dumps({"claim": claim, "files": files})
        temporary.write_text(text, encoding="utf-8")


def pull(
    store: ObjectStore,
    name: str,
    folder: Path,
    *,
    objects: Mapping[str, StoredObject],
    claim: int = 0,
    skip: Collection[str] = (),
) -> None:
    """Make `folder` equal to the folder `name` of the store.

    Args:
        store: the store.
        name: a folder of the store.
        folder: the folder on this machine.
        objects: the objects of the folder in the store, by their names there.
        claim: number of the lease under which this process works; 0 for none.
        skip: names of files that are left as they are.
    """
    folder.mkdir(parents=True, exist_ok=True)
    record, local = read_record(folder), _files(folder)
    same = _unchanged(record, local, objects)
    stale = local.keys() - objects.keys() - set(skip)
    missing = objects.keys() - same.keys() - set(skip)
    done = done_path(folder).name
    if stale or missing:
        done_path(folder).unlink(missing_ok=True)
        missing |= {done} & objects.keys()
    for each in stale:
        (folder / each).unlink(missing_ok=True)
    for each in sorted(missing, key=lambda each: (each == done, each)):
        store.download(f"{name}/{each}", folder / each)
        same[each] = StoredFile(objects[each].tag, _facts(folder / each))
    _write_record(folder, claim or record.claim, same)


def complete(
    store: ObjectStore,
    name: str,
    folder: Path,
    *,
    objects: Mapping[str, StoredObject],
    claim: int,
) -> None:
    """Download files that were never on this machine; all others here are newer.

    The arguments are those of `pull`.
    """
    record = read_record(folder)
    for each in objects.keys() - _files(folder).keys() - record.files.keys():
        store.download(f"{name}/{each}", folder / each)
    _write_record(folder, claim, record.files)


def push(
    store: ObjectStore,
    name: str,
    folder: Path,
    *,
    claim: int,
    check: Callable[[], None],
) -> None:
    """Make the folder `name` of the store equal to `folder`.

    A checkpoint that was renamed is copied inside the store. Logs are stored before
    the checkpoint that they lead to, and `done.json` last.

    Args:
        store: the store.
        name: a folder of the store.
        folder: the folder on this machine.
        claim: number of the lease under which this process works.
        check: raises if this process may not write there any more.
    """
    stored = store.objects(name)
    record, local = read_record(folder), _files(folder)
    same = _unchanged(record, local, stored)
    changed, stale = local.keys() - same.keys(), stored.keys() - local.keys()
    if changed or stale:
        check()
        done = done_path(folder).name
        if done in stored:
            store.delete([f"{name}/{done}"])
            changed |= {done} & local.keys()
        sources = {file.facts: each for each, file in record.files.items()}
        renamed = {
            each: sources[local[each]]
            for each in changed - {done}
            if sources.get(local[each]) in stored
        }
        for each, source in renamed.items():
            store.copy(f"{name}/{source}", f"{name}/{each}")
        store.delete(f"{name}/{each}" for each in stale - {done})
        for each in sorted(changed - renamed.keys(), key=partial(_rank, folder)):
            store.upload(folder / each, f"{name}/{each}")
        stored = store.objects(name)
    same = {
        each: StoredFile(stored[each].tag, facts)
        for each, facts in local.items()
        if each in stored
    }
    _write_record(folder, claim, same)


def _unchanged(
    record: MirrorRecord,
    local: Mapping[str, FileStamp],
    stored: Mapping[str, StoredObject],
) -> dict[str, StoredFile]:
    """Return the files that neither side has changed since the last transfer."""
    return {
        name: file
        for name, file in record.files.items()
        if local.get(name) == file.facts
        and name in stored
        and stored[name].tag == file.tag
    }


def push_files(store: ObjectStore, name: str, folder: Path) -> None:
    """Store all files of a folder, whatever is in the store."""
    with ThreadPoolExecutor(THREADS) as threads:
        work = (
            threads.submit(store.upload, folder / each, f"{name}/{each}")
            for each in _files(folder)
        )
        for each in list(work):
            each.result()


def _rank(folder: Path, name: str) -> tuple[int, str]:
    last = [path.name for path in (*checkpoint_paths(folder), done_path(folder))]
    return (last.index(name) + 1 if name in last else 0, name)


def _files(folder: Path) -> dict[str, FileStamp]:
    """Return the files that are mirrored, with their facts; links are left out."""
    paths = (Path(root) / name for root, _, names in os.walk(folder) for name in names)
    return {
        path.relative_to(folder).as_posix(): _facts(path)
        for path in paths
        if path not in (lock_path(folder), owner_path(folder), folder / _RECORD)
        and not fnmatch(path.name, LEFTOVER)
        and not path.is_symlink()
    }


def _facts(path: Path) -> FileStamp:
    stat = path.stat()
    return FileStamp(stat.st_size, stat.st_mtime_ns, stat.st_ino)
