"""A prepared dataset on disk: one `.npy` per array and split, and `meta.json`.

Encoded pictures are concatenated in one file, which splits and datasets may share; a
second array says where each picture begins and ends. Arrays that are shared have the
numbers of the rows of each split beside them, and the hash that these rows would have
in a file of their own, so that a dataset has the same fingerprint either way.

`meta.json` is written last and in one step, so a folder holds a whole dataset or none.
It records the size, hash and checksums of every file. The fingerprint is the hash of
these hashes and of the recipe. Checksums are compared before every launch, because they
are faster than hashes and can be computed by several threads.
"""

import hashlib
import json
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

from qualms.atomic import replacing
from qualms.datasets._recipe import DatasetError, Recipe, Subset
from qualms.datasets._shared_rows import ROWS
from qualms.spec import digest

FORMAT = 1
BLOCK = 2**26
"""Bytes that a checksum covers."""
CHUNK = 2**20
"""Bytes that are read at once."""
Meta = dict[str, Any]


def identity(recipe: Recipe) -> Meta:
    """Return everything that tells this recipe's result from others, as JSON."""
    fields = {
        "format": FORMAT,
        "name": recipe.name,
        "version": recipe.version,
        "options": dict(recipe.options),
        "task": asdict(recipe.task),
        "subsets": {
            name: _subset_fields(subset) for name, subset in recipe.subsets.items()
        },
    }
    if recipe.swaps:
        pairs = sorted([int(a), int(b)] for a, b in recipe.swaps.items())
        fields["swaps"] = {"labels": pairs, "share": recipe.swap_share}
    try:
        loaded: Meta = json.loads(json.dumps(fields))
    except TypeError as error:
        raise TypeError(
            f"options of {recipe.name!r} must be plain JSON values: {error}"
        ) from error
    return loaded


def _subset_fields(subset: Subset) -> Meta:
    """Return the fields of a subset that are set; older caches lack `half`."""
    return {key: value for key, value in asdict(subset).items() if value is not None}


def cache_folder(root: str | Path, recipe: Recipe) -> Path:
    """Return the folder of a recipe's result below `root`: its name and a digest."""
    return Path(root) / f"{recipe.name}-{recipe_digest(recipe)}"


def recipe_digest(recipe: Recipe) -> str:
    """Compute the digest of `identity(recipe)`."""
    return digest(_canonical(identity(recipe)))


def file_name(split: str, column: str) -> str:
    """Return the file name of an array; slashes in names are quoted."""
    return f"{quote(split, safe='')}.{quote(column, safe='')}.npy"


def write_meta(folder: Path, meta: Meta) -> Meta:
    """Add sizes, hashes and the fingerprint to `meta` and write it in one step.

    An entry that has a hash already is kept as it is.
    """
    for _, entry in entries(meta):
        if "sha256" not in entry:
            entry |= _file_entry(folder / entry["file"])
    meta["fingerprint"] = fingerprint(meta)
    with replacing(folder / "meta.json") as temporary:
        text = json.dumps(meta, indent=1, ensure_ascii=False)
        temporary.write_text(text, encoding="utf-8")
    return meta


def read_meta(folder: Path) -> Meta | None:
    """Read the record of `folder`; return None where there is none."""
    path = folder / "meta.json"
    try:
        meta: Meta = json.loads(path.read_text(encoding="utf-8"))
        version = meta["format"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise DatasetError(
            f"{path} is not the record of a dataset ({error}); delete {folder} and"
            " prepare again"
        ) from error
    if version != FORMAT:
        raise DatasetError(
            f"{folder} has cache format {version} and this version of qualms reads"
            f" {FORMAT}; delete it and prepare again"
        )
    return meta


def entries(meta: Meta) -> Iterator[tuple[str, Meta]]:
    """Yield the entry of every stored file, with its name in the fingerprint."""
    for split, files in meta["splits"].items():
        for column, entry in files.items():
            yield f"{split}:{column}", entry


def fingerprint(meta: Meta) -> str:
    """Compute the hash of the recipe and of every file that `meta` names."""
    keys = ("format", "name", "version", "options", "task", "subsets", "swaps")
    fields = {key: meta[key] for key in keys if key in meta}
    # Numbers of shared rows count by the hash of what they choose.
    fields["files"] = {
        name: entry["sha256"]
        for name, entry in entries(meta)
        if not name.endswith(f":{ROWS}")
    }
    return digest(_canonical(fields))


def _canonical(fields: Meta) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def file_hash(path: Path) -> str:
    """Compute the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def block_checksum(path: Path, block: int) -> int:
    """Compute the CRC-32 of a block of `BLOCK` bytes of a file."""
    checksum, remaining = 0, BLOCK
    with path.open("rb") as file:
        file.seek(block * BLOCK)
        while chunk := file.read(min(CHUNK, remaining)):
            checksum = zlib.crc32(chunk, checksum)
            remaining -= len(chunk)
    return checksum


def _file_entry(path: Path) -> Meta:
    """Return size, hash and checksums of a file."""
    size = path.stat().st_size
    blocks = range(-(-size // BLOCK))
    return {
        "bytes": size,
        "sha256": file_hash(path),
        "crc32": [block_checksum(path, block) for block in blocks],
    }
