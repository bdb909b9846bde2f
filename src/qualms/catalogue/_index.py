"""An index of run folders: a cache of their records.

It holds the record of each folder and the time of its last change. A folder that has
changed since is read again, so that listing thousands of runs reads only a few. The
index may be deleted at any time, and listing works without it. An index that somebody
else made, or that is damaged, is not used (`qualms.caches`).
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from qualms.caches import Cache
from qualms.catalogue._record import RunRecord, recorded_run
from qualms.catalogue._scores import SCORES, read_scores
from qualms.runs import is_run_name

INDEX = ".runs"
"""Begins the name of the index, in the folder that is listed."""
_FORMAT = "1"
_Rows = dict[str, list[Any]]
"""A sign of the last change and what was read, by folder or file."""


def indexed_runs(folder: Path) -> list[RunRecord]:
    """Return every run below `folder`, and bring the index up to date."""
    cache = Cache(folder)
    stored = cache.get(INDEX, _FORMAT)
    known = json.loads(stored or '{"runs": {}, "scores": {}}')
    names = list(run_folders(folder))
    scores = _scores(folder, names, known["scores"])
    runs: _Rows = {}
    records = []
    for name, entry in names:
        sign, row = _sign(entry.path), known["runs"].get(name)
        record = RunRecord(**row[1]) if row is not None and row[0] == sign else None
        if record is None or record.status != "done":  # others change at any time
            record = recorded_run(Path(entry.path), name)
            row = [sign, record.to_json()]
        runs[name] = row
        records.append(record)
    text = json.dumps({"runs": runs, "scores": scores}).encode()
    if text != stored:
        cache.put(INDEX, _FORMAT, text)
    by_run = {
        (file.partition("/")[0], run): values
        for file, (_, content) in reversed(scores.items())
        for run, values in content.items()
    }
    return [
        replace(r, scores=by_run.get((_benchmark(folder, r), r.run), {}))
        for r in records
    ]


def _benchmark(folder: Path, record: RunRecord) -> str:
    """Return the name of the benchmark folder of a run."""
    return record.folder.partition("/")[0] if "/" in record.folder else folder.name


def run_folders(folder: Path) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
    """Yield the folders of runs with their paths below `folder`, in order."""
    own = [entry for entry in _entries(folder) if is_run_name(entry.name)]
    yield from ((entry.name, entry) for entry in own if entry.is_dir())
    if own:
        return
    for benchmark in _entries(folder):
        if not benchmark.name.startswith(".") and benchmark.is_dir():
            for entry in _entries(Path(benchmark.path)):
                if is_run_name(entry.name) and entry.is_dir():
                    yield f"{benchmark.name}/{entry.name}", entry


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)
    return []


def _scores(
    folder: Path, names: list[tuple[str, "os.DirEntry[str]"]], known: _Rows
) -> _Rows:
    """Return the contents of the files of scores, those of complete presets first."""
    inside = any("/" not in name for name, _ in names)
    benchmarks = [folder] if inside else [Path(e.path) for e in _entries(folder)]
    rows = {}
    for benchmark in benchmarks:
        for path in (
            *sorted(benchmark.glob(f"*/{SCORES}")),
            *sorted(benchmark.glob(f"*/part-*/{SCORES}")),
        ):
            file = f"{benchmark.name}/{path.relative_to(benchmark).as_posix()}"
            sign, row = _sign(str(path)), known.get(file)
            if row is None or row[0] != sign:
                row = [sign, read_scores(path)]
            rows[file] = row
    return rows


def _sign(path: str) -> str:
    """Return a text that changes with a file, or with the names in a folder."""
    status = os.stat(path)  # noqa: PTH116 - of thousands of folders
    return f"{status.st_ino} {status.st_mtime_ns} {status.st_size}"
