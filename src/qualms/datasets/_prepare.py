"""From a recipe to a memory-mapped dataset: parallel, resumable, never silent.

Units are loaded by several processes, and each finished unit is kept as a shard. Kill
it at any moment: the next call goes on with the units that are left. When all are done
the arrays and their record are published in one step. The number of processes changes
no bit of the result.
"""

import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context, parent_process
from pathlib import Path

from qualms.datasets._cache import (
    Meta,
    cache_folder,
    identity,
    open_dataset,
    read_meta,
    recipe_digest,
)
from qualms.datasets._publish import (
    Skipped,
    count_items,
    finished_units,
    publish,
    units_digest,
)
from qualms.datasets._recipe import Dataset, DatasetError, Recipe, Unit
from qualms.datasets._shards import make_shard, shard_path

__all__ = ["Prepared", "Skipped", "cache_folder", "open_dataset", "prepare"]

Progress = Callable[[int, int], None]
"""Called with the number of units done and of all units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A prepared dataset and what could not be loaded for it."""

    dataset: Dataset
    skipped: tuple[Skipped, ...]
    """(unit key, sentence) of every unit that could not be loaded."""
    counts: Mapping[str, int]
    """Items per stored split."""


def prepare(
    recipe: Recipe,
    folder: str | Path,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
    check_counts: bool = True,
) -> Prepared:
    """The dataset of `recipe`, made in `folder` as far as it is not there yet.

    Args:
        recipe: what a dataset file returns.
        folder: where it is kept; see `cache_folder`.
        workers: processes that load units; as many as there are cores by default, and
            1 loads them in this process.
        progress: called after every unit.
        check_counts: whether numbers of items other than the paper's are an error.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    folder = Path(folder)
    _check_keys(recipe)
    try:
        if _settled(recipe, folder):
            _tidy(folder)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            with _locked(folder):
                _make(recipe, folder, workers, progress, check_counts)
    except OSError as error:
        raise DatasetError(
            f"cannot write the cache in {folder}: {error.strerror or error}; free space"
            " or choose another folder, what is loaded is kept"
        ) from error
    return _result(recipe, folder, check_counts)


def _check_keys(recipe: Recipe) -> None:
    keys = [unit.key for unit in recipe.units]
    if not keys:
        raise DatasetError(f"{recipe.name}: no data was found. {recipe.card.obtain}")
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"unit keys must be unique, got {twice!r} twice")


def _settled(recipe: Recipe, folder: Path) -> bool:
    """Whether all is done: published from these units, and nothing left to retry."""
    meta = read_meta(folder)
    if meta is None:
        return False
    mine = identity(recipe)
    other = {key: meta[key] for key in mine if meta[key] != mine[key]}
    if other:
        told = ", ".join(f"{key} {value}" for key, value in other.items())
        raise DatasetError(
            f"{folder} holds another dataset ({meta['name']}: {told}); choose another"
            " folder"
        )
    return meta["units"] == units_digest(recipe) and not (folder / "shards").exists()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Wait until no other process prepares this folder; a killed one holds no lock."""
    with (folder / "lock").open("w") as file:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _make(
    recipe: Recipe,
    folder: Path,
    workers: int | None,
    progress: Progress | None,
    check_counts: bool,
) -> None:
    if _settled(recipe, folder):  # by another process, while this one waited
        return
    _tidy(folder)
    shards = folder / "shards" / recipe_digest(recipe)
    shards.mkdir(parents=True, exist_ok=True)
    skipped = _load_missing(recipe, shards, workers, progress)
    finished = finished_units(recipe, shards)
    counts = count_items(recipe, finished)
    _check_not_empty(recipe, counts, skipped)
    if check_counts:
        _check_counts(recipe, counts, skipped)
    if _differs(read_meta(folder), recipe, skipped):
        publish(recipe, folder, finished, skipped)
    if _differences(recipe, counts):
        return  # shards stay, so that mended files can be added later
    shards.parent.rename(folder / "shards-done")
    _tidy(folder)


def _tidy(folder: Path) -> None:
    """Remove what a killed process may have left behind."""
    shutil.rmtree(folder / "shards-done", ignore_errors=True)
    for stale in folder.glob("shards/*/*.partial"):
        stale.unlink()


def _load_missing(
    recipe: Recipe, shards: Path, workers: int | None, progress: Progress | None
) -> list[Skipped]:
    missing = [u for u in recipe.units if not shard_path(shards, u).exists()]
    done, total = len(recipe.units) - len(missing), len(recipe.units)
    skipped = []
    make = partial(make_shard, recipe.load, shards)
    reasons = _each(make, missing, workers or _cores())
    for unit, reason in zip(missing, reasons, strict=True):
        if reason:
            skipped.append(Skipped(unit.key, reason))
        done += 1
        if progress is not None:
            progress(done, total)
    return skipped


def _cores() -> int:
    limited = sys.platform == "linux"
    return len(os.sched_getaffinity(0)) if limited else os.cpu_count() or 1


def _each(
    make: Callable[[Unit], str], units: Sequence[Unit], workers: int
) -> Iterator[str]:
    """Apply `make` to every unit, in order, over several processes."""
    workers = min(workers, len(units))
    if workers <= 1:
        yield from map(make, units)
        return
    # A process started afresh inherits no threads or locks, unlike a forked one.
    spawn = get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=spawn, initializer=_follow_parent)
    try:
        share = len(units) // (8 * workers)
        yield from pool.map(make, units, chunksize=max(1, min(32, share)))
    except BrokenProcessPool as error:
        raise DatasetError(
            "a process that loads units was killed, perhaps for lack of memory; run"
            " again with fewer workers, what is loaded is kept"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _follow_parent() -> None:
    """Leave an interrupt to the parent, and do not outlive it when it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_after_parent, daemon=True).start()


def _exit_after_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _check_not_empty(
    recipe: Recipe, counts: Mapping[str, int], skipped: Sequence[Skipped]
) -> None:
    empty = [split for split, count in counts.items() if count == 0]
    if empty:
        raise DatasetError(
            f"{recipe.name}: no items for {', '.join(empty)}.{_told(skipped)}"
            f" {recipe.card.obtain}"
        )


def _check_counts(
    recipe: Recipe, counts: Mapping[str, int], skipped: Sequence[Skipped]
) -> None:
    differences = _differences(recipe, counts)
    if differences:
        raise DatasetError(
            f"{recipe.name}: items per split differ from the expected ones:"
            f" {'; '.join(differences)}.{_told(skipped)} Mend the files and run again"
            " (what is loaded is kept), or accept this with --no-check-counts."
        )


def _differences(recipe: Recipe, counts: Mapping[str, int]) -> list[str]:
    return [
        f"{split} {counts.get(split, 0)} instead of {expected}"
        for split, expected in recipe.counts.items()
        if counts.get(split, 0) != expected
    ]


def _told(skipped: Sequence[Skipped], most: int = 5) -> str:
    if not skipped:
        return ""
    named = "; ".join(f"{key} ({reason})" for key, reason in skipped[:most])
    more = ", ..." if len(skipped) > most else ""
    return f" {len(skipped)} units could not be loaded: {named}{more}."


def _differs(meta: Meta | None, recipe: Recipe, skipped: Sequence[Skipped]) -> bool:
    """Whether what is published lacks units, or has units that are gone."""
    if meta is None or meta["units"] != units_digest(recipe):
        return True
    return {key for key, _ in meta["skipped"]} != {key for key, _ in skipped}


def _result(recipe: Recipe, folder: Path, check_counts: bool) -> Prepared:
    meta = read_meta(folder)
    assert meta is not None
    skipped = tuple(Skipped(key, reason) for key, reason in meta["skipped"])
    if check_counts:
        _check_counts(recipe, meta["counts"], skipped)
    return Prepared(
        dataset=open_dataset(folder), skipped=skipped, counts=meta["counts"]
    )
