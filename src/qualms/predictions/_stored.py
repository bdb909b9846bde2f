"""Whether the folder of a run has the predictions of a split."""

from pathlib import Path

from safetensors import SafetensorError, safe_open

from qualms.predictions._stem import split_stem

# What training writes, then what people may put in its place.
_ENDINGS = (".safetensors", ".npz", ".parquet", ".csv")


def stored(run: Path, split: str) -> Path | None:
    """The file, or the folder of maps, that holds them; None where there is none."""
    stem = split_stem(run, split)
    if stem.is_dir():
        return stem
    files = (stem.with_name(stem.name + ending) for ending in _ENDINGS)
    return next((file for file in files if file.is_file()), None)


def is_stored(run: Path, split: str) -> bool:
    """Whether they are there, and a file of ours is as long as it was written."""
    path = stored(run, split)
    if path is None or path.suffix != ".safetensors":
        return path is not None
    try:
        with safe_open(path, framework="np"):
            return True
    except (SafetensorError, OSError):
        return False
