"""From a recipe to a memory-mapped dataset: parallel, resumable, never silent.

Units are loaded by several processes, and each finished unit is kept as a shard. After
a crash, the next call goes on with the remaining units. When all units are done,
the arrays and their record are published in one step. The number of processes changes
no bit of the result. The albums that a recipe shows are prepared first, in folders
beside its own.
"""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from pathlib import Path

from qualms.datasets._albums import Album, albums_of, has_own_arrays, show
from qualms.datasets._cache import (
    Meta,
    cache_folder,
    identity,
    read_meta,
    recipe_digest,
)
from qualms.datasets._counts import (
    Tally,
    check_complete,
    check_not_empty,
    check_tally,
    differences,
    published_tally,
    tally,
)
from qualms.datasets._open import open_dataset
from qualms.datasets._publish import (
    Skipped,
    count_items,
    finished_units,
    publish,
    units_digest,
)
from qualms.datasets._recipe import Dataset, DatasetError, Recipe
from qualms.datasets._shards import make_shard, shard_path
from qualms.processes import (
    LockError,
    LostProcessError,
    cores,
    each,
    is_portable,
    locked,
)

__all__ = ["Prepared", "Skipped", "cache_folder", "open_dataset", "prepare"]

Progress = Callable[[int, int], None]
"""Called with the number of units done and of all units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A prepared dataset, and the units that could not be loaded."""

    dataset: Dataset
    skipped: tuple[Skipped, ...]
    """(unit key, sentence) of every unit that could not be loaded, and of every file
    that the recipe leaves out."""
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
    """Prepare the dataset of `recipe` in `folder`, or open it if it is there already.

    Args:
        recipe: what a dataset file returns.
        folder: where it is kept; see `cache_folder`.
        workers: processes that load units. None takes one per core, 1 loads all units
            in this process.
        progress: called after every unit.
        check_counts: raise if the numbers of items differ from the paper's.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    folder = Path(folder)
    _check_keys(recipe)
    try:
        if recipe.shown:
            _show(recipe, folder, workers, progress, check_counts)
        elif _is_complete(recipe, folder):
            _tidy(folder)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            with locked(folder / "lock", wait=True):
                _make(recipe, folder, workers, progress, check_counts)
    except LockError as error:
        raise DatasetError(str(error)) from error
    except OSError as error:
        raise DatasetError(
            f"cannot write the cache in {folder}: {error.strerror or error}; free some"
            " space or choose another folder (what is loaded is kept)"
        ) from error
    return _result(recipe, folder, check_counts)


def _check_keys(recipe: Recipe) -> None:
    keys = [unit.key for unit in recipe.units]
    if not keys and not recipe.shown:
        raise DatasetError(f"{recipe.name}: no data was found. {recipe.card.obtain}")
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"unit keys must be unique, got {twice!r} twice")


def _show(
    recipe: Recipe,
    folder: Path,
    workers: int | None,
    progress: Progress | None,
    check_counts: bool,
) -> None:
    _check_same(recipe, folder, read_meta(folder))
    if check_counts:  # before hours of work
        labels = {split: shown.labels for split, shown in recipe.shown.items()}
        check_tally(recipe, tally(labels), ())
    if has_own_arrays(recipe, folder):
        return
    recipes = albums_of(recipe)
    total, done = sum(len(album.units) for album in recipes.values()), 0
    albums = {}
    for name, album in recipes.items():
        album_folder = cache_folder(folder.parent, album)
        advance = partial(_overall, progress, done, total)
        prepared = prepare(
            album,
            album_folder,
            workers=workers,
            progress=advance,
            check_counts=check_counts,
        )
        (pictures,) = prepared.dataset.splits.values()
        albums[name] = Album(
            album_folder, prepared.dataset.fingerprint, pictures, prepared.skipped
        )
        done += len(album.units)
    folder.mkdir(exist_ok=True)
    with locked(folder / "lock", wait=True):
        show(recipe, folder, albums)
        # An earlier version loaded items here, and did not finish.
        shutil.rmtree(folder / "shards", ignore_errors=True)


def _overall(
    progress: Progress | None, before: int, total: int, done: int, _units: int
) -> None:
    """Report the progress of one album as progress of all albums."""
    if progress is not None:
        progress(before + done, total)


def _is_complete(recipe: Recipe, folder: Path) -> bool:
    """Return whether exactly these units are published and none is left to retry."""
    meta = read_meta(folder)
    if meta is None:
        return False
    _check_same(recipe, folder, meta)
    return meta["units"] == units_digest(recipe) and not (folder / "shards").exists()


def _check_same(recipe: Recipe, folder: Path, meta: Meta | None) -> None:
    if meta is None:
        return
    mine = {"swaps": None} | identity(recipe)
    differing = {key: meta.get(key) for key in mine if meta.get(key) != mine[key]}
    if differing:
        words = ", ".join(f"{key} {value}" for key, value in differing.items())
        raise DatasetError(
            f"{folder} holds another dataset ({meta['name']}: {words}); choose another"
            " folder"
        )


def _make(
    recipe: Recipe,
    folder: Path,
    workers: int | None,
    progress: Progress | None,
    check_counts: bool,
) -> None:
    if _is_complete(recipe, folder):  # by another process, while we waited for the lock
        return
    _tidy(folder)
    shards = folder / "shards" / recipe_digest(recipe)
    shards.mkdir(parents=True, exist_ok=True)
    failed = _load_missing(recipe, shards, workers, progress)
    if recipe.complete:
        check_complete(recipe, failed)
    skipped = [*starmap(Skipped, recipe.left_out.items()), *failed]
    finished = finished_units(recipe, shards)
    counts = count_items(recipe, finished)
    check_not_empty(recipe, counts, skipped)
    if check_counts:
        check_tally(recipe, Tally(counts, {}), skipped)
    if _differs(read_meta(folder), recipe, skipped):
        publish(recipe, folder, finished, skipped)
    if failed or differences(Tally(counts, {}), published_tally(recipe)):
        return  # shards stay, so that repaired files can be added later
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
    make = partial(make_shard, recipe.load, shards, recipe.name)
    # There is a process for every core already, so OpenCV must start no threads.
    threads = {"OPENCV_FOR_THREADS_NUM": os.environ.get("OPENCV_FOR_THREADS_NUM", "1")}
    load = recipe.load.func if isinstance(recipe.load, partial) else recipe.load
    if len(missing) > 1 and (workers or cores()) > 1:
        _check_importable(recipe.name, load)
    reasons = each(
        make,
        missing,
        workers=workers or cores(),
        environment=threads,
        # Scripts are run again by processes that import them.
        script=getattr(load, "__module__", "") == "__main__",
    )
    try:
        for unit, reason in zip(missing, reasons, strict=True):
            if reason:
                skipped.append(Skipped(unit.key, reason))
            done += 1
            if progress is not None:
                progress(done, total)
    except LostProcessError as error:
        raise DatasetError(
            f"{error}; run again with fewer workers, what is loaded is kept"
        ) from error
    finally:
        reasons.close()
    return skipped


def _check_importable(name: str, load: Callable[..., object]) -> None:
    """Raise unless other processes can import `load`."""
    if not is_portable(load):
        raise DatasetError(
            f"dataset {name!r}: load must be a function of a module, or a partial of"
            " one, so that other processes can import it; define it outside of the"
            " function of the dataset, at the left edge of the file"
        )


def _differs(meta: Meta | None, recipe: Recipe, skipped: Sequence[Skipped]) -> bool:
    """Return whether other units are published than those that could be loaded now."""
    if meta is None or meta["units"] != units_digest(recipe):
        return True
    return {key for key, _ in meta["skipped"]} != {key for key, _ in skipped}


def _result(recipe: Recipe, folder: Path, check_counts: bool) -> Prepared:
    meta = read_meta(folder)
    assert meta is not None
    skipped = tuple(Skipped(key, reason) for key, reason in meta["skipped"])
    if check_counts:
        check_tally(recipe, Tally(meta["counts"], meta.get("grades", {})), skipped)
    return Prepared(
        dataset=open_dataset(folder), skipped=skipped, counts=meta["counts"]
    )
