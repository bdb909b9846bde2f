"""Datasets that show the pictures of albums.

An album is prepared once, in a folder beside those of the datasets that show it. The
folder of such a dataset has the labels of its splits, and where each picture lies in
the album's file. A picture that the album lacks is left out and reported.

An album may also hold images as arrays, such as crops, with their targets. A dataset
that shows it has the numbers of its rows, and the fingerprint of a dataset with arrays
of its own. A folder with arrays of its own, as earlier versions prepared it, is kept.
"""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets._cache import Meta, file_name, read_meta, recipe_digest
from qualms.datasets._counts import check_not_empty, tally
from qualms.datasets._encoded import Encoded
from qualms.datasets._publish import Skipped, new_arrays, write_record
from qualms.datasets._recipe import Labels, Recipe, Split
from qualms.datasets._shards import ENCODED, SPAN
from qualms.datasets._shared_rows import ROWS, SharedRows
from qualms.spec import digest


class Album(NamedTuple):
    """A prepared album."""

    folder: Path
    fingerprint: str
    pictures: Split
    skipped: Sequence[Skipped]


class _ShownPictures(NamedTuple):
    """The labels that have a picture, and the rows of these pictures in the album."""

    labels: Labels
    album: Album
    rows: NDArray[np.intp]


def albums_of(recipe: Recipe) -> dict[str, Recipe]:
    """Return the albums that `recipe` shows, each once, by its digest."""
    return {recipe_digest(shown.album): shown.album for shown in recipe.shown.values()}


def has_own_arrays(recipe: Recipe, folder: Path) -> bool:
    """Return whether an earlier version prepared all items in `folder` itself."""
    meta = read_meta(folder)
    return (
        meta is not None
        and "albums" not in meta
        and meta["units"] == _items_digest(recipe)
        and not (folder / "shards").exists()
    )


def show(recipe: Recipe, folder: Path, albums: Mapping[str, Album]) -> None:
    """Publish the splits of `recipe` in `folder`, unless that is done already."""
    record: Meta = {
        "albums": {name: album.fingerprint for name, album in albums.items()},
        "units": _labels_digest(recipe),
    }
    if _is_published(recipe, read_meta(folder), record, albums):
        return
    pictures = {
        split: _find(shown.labels, albums[recipe_digest(shown.album)])
        for split, shown in recipe.shown.items()
    }
    totals = tally({split: shown.labels for split, shown in pictures.items()})
    skipped = _skipped_pictures(recipe, albums)
    check_not_empty(recipe, totals.counts, skipped)
    arrays = new_arrays(folder)
    record |= totals._asdict()
    record["skipped"] = [list(unit) for unit in skipped]
    record["splits"] = {
        split: _write(split, *shown, arrays) for split, shown in pictures.items()
    }
    write_record(recipe, folder, arrays, record)


def _is_published(
    recipe: Recipe, meta: Meta | None, expected: Meta, albums: Mapping[str, Album]
) -> bool:
    """Return whether `meta` records these labels and the albums' present files."""
    if meta is None or any(meta.get(key) != expected[key] for key in expected):
        return False
    # An album that was deleted and made again has the same pictures in another file.
    return all(
        _file_of(meta["splits"][split][column]) == _file_of(entry)
        for split, shown in recipe.shown.items()
        for column, entry in _entries(albums[recipe_digest(shown.album)]).items()
    )


def _file_of(entry: Meta) -> tuple[object, ...]:
    """Return what tells a file from others; caches of older versions lack checksums."""
    return entry["file"], entry["bytes"], entry.get("crc32")


def _items_digest(recipe: Recipe) -> str:
    """Compute the digest that a dataset with these items has, if each is a unit."""
    names = (
        f"{split}\t{item}"
        for split, shown in recipe.shown.items()
        for item in shown.labels.item
    )
    return digest("\n".join(names))


def _labels_digest(recipe: Recipe) -> str:
    """Compute a digest of all labels."""
    hashed = hashlib.sha256()
    for split, shown in recipe.shown.items():
        for name, array in _columns(shown.labels).items():
            hashed.update(f"{split}\t{name}\t{array.dtype}\t{array.shape}\n".encode())
            hashed.update(np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()[:16]


def _columns(labels: Labels) -> dict[str, NDArray[Any]]:
    extra = {f"extra/{name}": array for name, array in labels.extra.items()}
    target = {} if labels.target is None else {"target": labels.target}
    return {**target, "item": labels.item, **extra}


def _find(labels: Labels, album: Album) -> _ShownPictures:
    names = np.asarray(album.pictures.item)
    order = np.argsort(names)
    position = np.searchsorted(names, labels.item, sorter=order)
    rows = order[np.minimum(position, len(names) - 1)]
    matching = np.flatnonzero(names[rows] == labels.item)
    matched = Labels(
        item=labels.item[matching],
        target=None if labels.target is None else labels.target[matching],
        extra={name: array[matching] for name, array in labels.extra.items()},
    )
    return _ShownPictures(matched, album, rows[matching])


def _skipped_pictures(recipe: Recipe, albums: Mapping[str, Album]) -> list[Skipped]:
    """List what `recipe` leaves out, and its pictures that could not be loaded."""
    items: dict[str, set[str]] = {name: set() for name in albums}
    for split in recipe.shown.values():
        items[recipe_digest(split.album)].update(split.labels.item.tolist())
    unreadable = (
        skipped
        for name, album in albums.items()
        for skipped in album.skipped
        if skipped.key in items[name]
    )
    return [*starmap(Skipped, recipe.left_out.items()), *unreadable]


def _write(
    split: str, labels: Labels, album: Album, rows: NDArray[np.intp], arrays: Path
) -> Meta:
    """Write the arrays of a split; return their entries in `meta.json`."""
    entries = _entries(album)
    pictures = album.pictures.image
    if isinstance(pictures, Encoded):
        places = {SPAN: pictures.span[rows]}
    else:
        places = {ROWS: rows}
        stored = {"image": pictures, "target": album.pictures.target}
        for column, data in stored.items():
            assert isinstance(data, np.ndarray)
            entries[column]["sha256"] = SharedRows(data=data, rows=rows).file_hash()
    for column, array in (_columns(labels) | places).items():
        path = arrays / file_name(split, column)
        np.save(path, array, allow_pickle=False)
        entries[column] = {"file": f"{arrays.name}/{path.name}"}
    return entries


def _entries(album: Album) -> Meta:
    """Return the entries of the album's pictures, with paths from a folder beside it.

    These are encoded pictures, or images and targets.
    """
    meta = read_meta(album.folder)
    assert meta is not None
    (files,) = meta["splits"].values()
    columns = (ENCODED,) if ENCODED in files else ("image", "target")
    beside = f"../{album.folder.name}"
    return {c: files[c] | {"file": f"{beside}/{files[c]['file']}"} for c in columns}
