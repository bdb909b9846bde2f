"""Paths of the files of a run; reading and writing them."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from qualms.atomic import replacing
from qualms.spec import RunSpec


def run_folder(out: Path, spec: RunSpec) -> Path:
    """Return the folder of the run of `spec` below `out`."""
    return out / spec.benchmark / spec.hash


def sibling(folder: Path, run: str) -> Path:
    """Return the folder of the run with hash `run`, which lies beside `folder`."""
    return folder.parent / run


def is_run_name(name: str) -> bool:
    """Return whether a folder of this name may hold a run: the name is a hash.

    >>> is_run_name("0123456789abcdef"), is_run_name("small")
    (True, False)
    """
    return len(name) == 16 and set(name) <= set("0123456789abcdef")


def lock_path(folder: Path) -> Path:
    """Return the lock file of the process that works on the run."""
    return folder / "lock"


def log_path(folder: Path) -> Path:
    """Return the file with all output of the run's process."""
    return folder / "log.txt"


def done_path(folder: Path) -> Path:
    """Return the file that marks the run as finished; it is written last."""
    return folder / "done.json"


def epochs_path(folder: Path) -> Path:
    """Return the file with one JSON object for each epoch."""
    return folder / "log.jsonl"


def items_path(folder: Path) -> Path:
    """Return the file that lists the training items chosen by a rule."""
    return folder / "items.json"


def checkpoint_paths(folder: Path) -> tuple[Path, Path]:
    """Return the paths of the last checkpoint and of the checkpoint before it."""
    return folder / "checkpoint.pt", folder / "checkpoint.previous.pt"


def predictions_folder(folder: Path) -> Path:
    """Return the folder with the predictions of all splits."""
    return folder / "predictions"


def split_stem(folder: Path, split: str) -> Path:
    """Return the path of the predictions of `split`, without an ending.

    >>> split_stem(Path("run"), "birds:test/shifted").as_posix()
    'run/predictions/birds@test~shifted'
    """
    return predictions_folder(folder) / split.replace("/", "~").replace(":", "@")


def shared_features(benchmark: Path) -> Path:
    """Return the folder for features of frozen backbones beside the runs' folders."""
    return benchmark / ".features"


def judged_cells(benchmark: Path) -> Path:
    """Return the folder for judged cells beside the runs' folders."""
    return benchmark / ".judged"


class JudgedFile(NamedTuple):
    """A file of a run that judging reads."""

    name: str
    """Its path in the folder of the run."""
    path: str
    status: os.stat_result


def judged_files(folder: Path) -> list[JudgedFile]:
    """Return the files of a run that judging reads."""
    files = []
    done = str(done_path(folder))
    with suppress(OSError):
        # Paths are texts: Path objects would be slow for thousands of folders.
        files.append(JudgedFile("done.json", done, os.stat(done)))  # noqa: PTH116
    files += _files_below(f"{folder}{os.sep}predictions", "predictions")
    return [file for file in files if stat.S_ISREG(file.status.st_mode)]


def _files_below(folder: str, name: str) -> Iterator[JudgedFile]:
    try:
        with os.scandir(folder) as files:
            entries = list(files)
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        path = f"{name}/{entry.name}"
        if entry.is_dir():
            yield from _files_below(entry.path, path)
        else:
            with suppress(OSError):  # a link to nowhere
                yield JudgedFile(path, entry.path, os.stat(entry.path))  # noqa: PTH116


def write_text(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def now_text() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
