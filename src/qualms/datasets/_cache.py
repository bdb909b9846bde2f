"""A prepared dataset on disk: one `.npy` per array and split, and `meta.json`.

Encoded pictures are concatenated in one file, which splits and datasets may share; a
second array says where each picture begins and ends.

`meta.json` is written last and in one step, so a folder holds a whole dataset or none.
It records the size and hash of every file. The fingerprint is the hash of these hashes
and of the recipe.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from qualms.atomic import replacing
from qualms.datasets._encoded import Encoded
from qualms.datasets._recipe import Card, Dataset, DatasetError, Recipe, Split, Subset
from qualms.datasets._shards import ENCODED, SPAN
from qualms.spec import Task, digest

FORMAT = 1
Meta = dict[str, Any]


def open_dataset(folder: str | Path, *, verify: bool = False) -> Dataset:
    """The dataset that was prepared in `folder`, its arrays memory-mapped.

    File sizes are always compared with the record, hashes only with `verify`.
    """
    folder = Path(folder)
    meta = read_meta(folder)
    if meta is None:
        raise DatasetError(
            f"{folder} holds no prepared dataset; run `qualms prepare` first"
        )
    _check_unchanged(folder, meta, verify=verify)
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
    )


def identity(recipe: Recipe) -> Meta:
    """Everything that tells the result of `recipe` from other results, as JSON."""
    fields = {
        "format": FORMAT,
        "name": recipe.name,
        "version": recipe.version,
        "options": dict(recipe.options),
        "task": asdict(recipe.task),
        "subsets": {name: asdict(subset) for name, subset in recipe.subsets.items()},
    }
    try:
        loaded: Meta = json.loads(json.dumps(fields))
    except TypeError as error:
        raise TypeError(
            f"options of {recipe.name!r} must be plain JSON values: {error}"
        ) from error
    return loaded


def cache_folder(root: str | Path, recipe: Recipe) -> Path:
    """The folder of the result of `recipe` below `root`: its name and a digest."""
    return Path(root) / f"{recipe.name}-{recipe_digest(recipe)}"


def recipe_digest(recipe: Recipe) -> str:
    """A digest of `identity(recipe)`."""
    return digest(_canonical(identity(recipe)))


def file_name(split: str, column: str) -> str:
    """The file of an array; slashes in names are quoted, not made folders."""
    return f"{quote(split, safe='')}.{quote(column, safe='')}.npy"


def write_meta(folder: Path, meta: Meta) -> Meta:
    """Add sizes, hashes and the fingerprint to `meta` and write it in one step.

    Sizes and hashes that an entry already has are kept.
    """
    for _, entry in _entries(meta):
        path = folder / entry["file"]
        entry.setdefault("bytes", path.stat().st_size)
        if "sha256" not in entry:
            entry["sha256"] = _hash(path)
    meta["fingerprint"] = _fingerprint(meta)
    with replacing(folder / "meta.json") as temporary:
        text = json.dumps(meta, indent=1, ensure_ascii=False)
        temporary.write_text(text, encoding="utf-8")
    return meta


def read_meta(folder: Path) -> Meta | None:
    """The record of `folder`, or None where there is none."""
    path = folder / "meta.json"
    try:
        meta: Meta = json.loads(path.read_text(encoding="utf-8"))
        found = meta["format"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise DatasetError(
            f"{path} is not the record of a dataset ({error}); delete {folder} and"
            " prepare again"
        ) from error
    if found != FORMAT:
        raise DatasetError(
            f"{folder} has cache format {found} and this version of qualms reads"
            f" {FORMAT}; delete it and prepare again"
        )
    return meta


def _check_unchanged(folder: Path, meta: Meta, *, verify: bool) -> None:
    """Raise with both fingerprints if a file is not what was published."""
    wrong = [e["file"] for _, e in _entries(meta) if _size(folder, e) != e["bytes"]]
    if not wrong and not verify and meta["fingerprint"] == _fingerprint(meta):
        return
    now = json.loads(json.dumps(meta))
    for _, entry in _entries(now):
        path = folder / entry["file"]
        entry["sha256"] = _hash(path) if path.is_file() else "missing"
    found = _fingerprint(now)
    if found == meta["fingerprint"]:
        return
    changed = [
        entry["file"]
        for (_, entry), (_, recorded) in zip(_entries(now), _entries(meta), strict=True)
        if entry["sha256"] != recorded["sha256"]
    ]
    raise DatasetError(
        f"{folder} was changed after it was prepared: fingerprint {found} instead of"
        f" {meta['fingerprint']} ({', '.join(changed) or 'meta.json'});"
        f" {_remedy(folder, changed)}"
    )


def _remedy(folder: Path, changed: Sequence[str]) -> str:
    """What to do about files that changed.

    Preparing again writes all arrays anew where an album that is shown does not have
    the file any more, and only there.
    """
    shared = [file for file in changed if file.startswith("../")]
    if any(not _in_album(folder, file) for file in shared):
        return (
            "the pictures it shows are gone or were prepared again since then: prepare"
            " it again as well, nothing has to be deleted"
        )
    return "delete the folder and prepare again"


def _in_album(folder: Path, file: str) -> bool:
    """Whether the record of the album beside `folder` still names `file`."""
    _, album, *rest = file.split("/")
    meta = read_meta(folder.parent / album)
    return meta is not None and any(
        entry["file"] == "/".join(rest) for _, entry in _entries(meta)
    )


def _map(folder: Path, files: Mapping[str, Meta], side: int | None) -> Split:
    arrays = {
        column: np.load(folder / entry["file"], mmap_mode="r", allow_pickle=False)
        for column, entry in files.items()
    }
    extra = {
        column.removeprefix("extra/"): array
        for column, array in arrays.items()
        if column.startswith("extra/")
    }
    return Split(
        image=arrays["image"] if side is None else _encoded(arrays, side),
        target=arrays["target"],
        item=arrays["item"],
        extra=extra,
    )


def _encoded(arrays: Mapping[str, NDArray[Any]], side: int) -> Encoded:
    return Encoded(data=arrays[ENCODED], span=arrays[SPAN], side=side)


def _subset(fields: Meta) -> Subset:
    within = tuple((low, high) for low, high in fields["within"])
    return Subset(of=fields["of"], within=within)


def _entries(meta: Meta) -> Iterator[tuple[str, Meta]]:
    """Every stored file with the name it goes by in the fingerprint."""
    for split, files in meta["splits"].items():
        for column, entry in files.items():
            yield f"{split}:{column}", entry


def _fingerprint(meta: Meta) -> str:
    keys = ("format", "name", "version", "options", "task", "subsets")
    told = {key: meta[key] for key in keys}
    told["files"] = {name: entry["sha256"] for name, entry in _entries(meta)}
    return digest(_canonical(told))


def _canonical(fields: Meta) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def _size(folder: Path, entry: Meta) -> int:
    path = folder / entry["file"]
    return path.stat().st_size if path.is_file() else -1


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
