"""Where the folder of a run keeps its predictions."""

from pathlib import Path


def split_stem(run: Path, split: str) -> Path:
    """The path of the predictions of `split`, without an ending.

    >>> split_stem(Path("run"), "test/shifted").as_posix()
    'run/predictions/test~shifted'
    """
    return run / "predictions" / split.replace("/", "~")
