"""A store in a folder, with the few functions that are used of a file system of fsspec.

Processes find it by the environment. It creates objects for one process only, as S3
does, and fails one call in so many: before it, or after it, when the answer is lost.
"""

import hashlib
import os
import random
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from qualms.launch._store import ObjectStore
from qualms.launch._store_runs import RunStore

RNG = random.SystemRandom()


def connect():
    return FolderStore()


def fake_runs(monkeypatch, folder, *, fails=0.0, seconds=60.0, patience=20.0):
    """Runs in such a store, whose mirror is in `folder` as well."""
    (folder / "store").mkdir(exist_ok=True)
    monkeypatch.setenv("FAKE_STORE", str(folder / "store"))
    monkeypatch.setenv("FAKE_STORE_FAILS", str(fails))
    monkeypatch.setenv("QUALMS_SCRATCH", str(folder / "scratch"))
    return RunStore(store=fake_store(patience=patience), seconds=seconds)


def fake_store(patience=20.0):
    return ObjectStore(address="s3://bucket/runs", connect=connect, patience=patience)


def on_another_machine(monkeypatch, folder):
    """Let this process, and those that it starts, work on another machine."""
    monkeypatch.setenv("QUALMS_SCRATCH", str(folder))


class FolderStore:
    """Each call reads the environment, since a process connects once."""

    @property
    def root(self):
        return Path(os.environ["FAKE_STORE"])

    def _call(self, work):
        if (self.root / ".down").exists():
            raise TimeoutError("the store does not answer")
        fails = float(os.environ["FAKE_STORE_FAILS"])
        share = RNG.random() / fails if fails else 2
        if share < 0.5:
            raise ConnectionError("the call was lost")
        answer = work()
        if share < 1:
            raise ConnectionError("the answer was lost")
        return answer

    def _facts(self, path):
        content = path.read_bytes()
        return {
            "ETag": hashlib.md5(content).hexdigest(),
            "LastModified": datetime.fromtimestamp(path.stat().st_mtime, UTC),
        }

    def find(self, path, *, detail):  # noqa: ARG002 - always in detail
        def work():
            below = (self.root / path).rglob("*")
            return {
                file.relative_to(self.root).as_posix(): self._facts(file)
                for file in below
                if file.is_file() and not file.name.endswith(".part")
            }

        while True:
            try:
                return self._call(work)
            except FileNotFoundError:  # deleted while it is listed
                continue

    def info(self, path):
        return self._call(lambda: self._facts(self.root / path))

    def cat_file(self, path):
        return self._call((self.root / path).read_bytes)

    def pipe_file(self, path, value, mode="overwrite"):
        self._call(lambda: self._put(path, lambda part: part.write_bytes(value), mode))

    def put_file(self, lpath, rpath):
        self._call(lambda: self._put(rpath, lambda part: shutil.copyfile(lpath, part)))

    def get_file(self, rpath, lpath):
        self._call(lambda: shutil.copyfile(self.root / rpath, lpath))

    def cp_file(self, path1, path2):
        source = self.root / path1
        self._call(lambda: self._put(path2, lambda part: shutil.copyfile(source, part)))

    def rm_file(self, path):
        self._call((self.root / path).unlink)

    def _put(self, path, write, mode="overwrite"):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{uuid4().hex}.part")
        write(part)
        if mode == "create":
            try:
                os.link(part, target)
            finally:
                part.unlink()
        else:
            part.replace(target)


def names(folder):
    """What is in the store, without leases."""
    root = folder / "store/bucket/runs"
    files = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return sorted(f.as_posix() for f in files if ".leases" not in f.parts)


def age(folder, seconds):
    """Let everything in the store be so many seconds older."""
    for path in (folder / "store").rglob("*"):
        os.utime(path, (time.time() - seconds,) * 2)
