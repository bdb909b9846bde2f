"""The predictions in the folder of a run: their paths, and checks of their headers."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from qualms.regular import as_object, read_object
from qualms.runs._files import done_path, split_stem
from qualms.spec import CORRUPTIONS, RunSpec, parse_split

# Training writes the first kind; users may replace such a file by one of the others.
_ENDINGS = (".safetensors", ".npz", ".parquet", ".csv")


def stored(folder: Path, split: str) -> Path | None:
    """Return the file or folder with the predictions of `split`; None if missing."""
    stem = split_stem(folder, split)
    if stem.is_dir():
        return stem
    files = (stem.with_name(stem.name + ending) for ending in _ENDINGS)
    return next((file for file in files if file.is_file()), None)


def is_stored(folder: Path, split: str, spec: RunSpec) -> bool:
    """Return whether `folder` holds readable predictions of `spec` on `split`.

    Only files of the kind that training writes are opened; other kinds count by name.
    """
    path = stored(folder, split)
    if path is None:
        return False
    header = _read_header(path)
    return header is not None and not mismatch(spec, split, header)


def mismatch(spec: RunSpec, split: str, header: Mapping[str, Any]) -> str:
    """Describe how predictions differ from those of `spec` on `split`; '' if equal.

    Args:
        spec: the expected run.
        split: the expected split.
        header: the header of the predictions, as a mapping. Fields that it leaves out
            are not compared.
    """
    dataset, name_of_split = parse_split(split)
    options = header.get("options") or {}
    actual = {**header, "run": options.get("run")}
    corruption = as_object(options.get("corruption"))
    code = spec.sources.get(f"{CORRUPTIONS}/{corruption.get('name')}", "")
    if corruption.get("code", "") != code:
        return (
            f"the predictions of split {split!r} are of another version of corruption"
            f" {corruption['name']!r}: its code has changed since"
        )
    expected = {
        "benchmark": spec.benchmark,
        "run": spec.hash,
        "method": spec.method.name,
        "seed": spec.seed,
        "dataset": spec.parts[dataset].name,
        "split": name_of_split,
    }
    for name, value in expected.items():
        if actual.get(name) not in (None, value):
            return (
                f"the predictions of split {split!r} are of {name} {actual[name]!r},"
                f" and not of {value!r}: they were put in the place of others"
            )
    return ""


def is_done(folder: Path, spec: RunSpec) -> bool:
    """Return whether `folder` holds the finished run of `spec` with all predictions."""
    record = read_object(done_path(folder))
    return record.get("hash") == spec.hash and all(
        is_stored(folder, split, spec) for split in spec.splits
    )


def was_finished(folder: Path) -> bool:
    """Return whether the run that `folder` is named after was finished there."""
    return read_object(done_path(folder)).get("hash") == folder.name


def remade(folder: Path, spec: RunSpec) -> Iterator[str]:
    """Yield a sentence for each file for which a finished run is made again.

    These are predictions that cannot be read, or other predictions that replaced those
    of `spec`.
    """
    if not was_finished(folder):
        return
    for split in spec.splits:
        path = stored(folder, split)
        if path is None:
            continue
        header = _read_header(path)
        why = "it cannot be read" if header is None else mismatch(spec, split, header)
        if why:
            yield f"{path} is made again: {why}"


def _read_header(path: Path) -> dict[str, Any] | None:
    """Return the header of predictions; None if the file is damaged.

    It is {} for kinds of files that are not opened.
    """
    if path.is_dir():
        return as_object(read_object(path / "index.json").get("header"))
    if path.suffix != ".safetensors":
        return {}
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as opened:
            metadata = opened.metadata() or {}
        return as_object(json.loads(metadata.get("header", "{}")))
    except (SafetensorError, OSError, ValueError):
        return None
