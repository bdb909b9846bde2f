"""An index of run folders: a cache of their records.

It holds the record of each folder and the time of its last change. A folder that has
changed since is read again, so that listing thousands of runs reads only a few. The
index may be deleted at any time; listing works without it if it is damaged or cannot
be written.
"""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from qualms.catalogue._record import RunRecord, recorded_run
from qualms.catalogue._scores import SCORES, read_scores
from qualms.runs import is_run_name

INDEX = ".runs.sqlite"
"""The file of the index, in the folder that is listed."""
FORMAT = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS runs (folder TEXT PRIMARY KEY, sign TEXT, record TEXT);
CREATE TABLE IF NOT EXISTS scores (file TEXT PRIMARY KEY, sign TEXT, content TEXT);
"""
_PATIENCE = 2.0
"""Seconds to wait for another process that writes to the index."""


class IndexedRuns(NamedTuple):
    """The runs below a folder, and a note on the index."""

    records: list[RunRecord]
    note: str = ""


class _Rows(NamedTuple):
    """Rows of the index by folder or file: a sign of the last change, and JSON."""

    runs: dict[str, tuple[str, str]]
    scores: dict[str, tuple[str, str]]


def indexed_runs(folder: Path) -> IndexedRuns:
    """Return every run below `folder`, and bring the index up to date."""
    path = folder / INDEX
    known, note = _stored(path)
    names = list(run_folders(folder))
    scores = _scores(folder, names, known)
    runs, records = {}, []
    for name, entry in names:
        sign = _sign(entry.path)
        row = known.runs.get(name)
        record = _from_json(row[1]) if row is not None and row[0] == sign else None
        if record is None or record.status != "done":  # others change at any time
            record = recorded_run(Path(entry.path), name)
            runs[name] = sign, json.dumps(record.to_json())
        records.append(record)
    by_run = {
        (file.partition("/")[0], run): values
        for file, (_, content) in reversed(scores.items())
        for run, values in json.loads(content).items()
    }
    present = {name for name, _ in names}
    gone = [name for name in known.runs if name not in present]
    _store(path, known, _Rows(runs, scores), gone)
    judged = [
        replace(r, scores=by_run.get((_benchmark(folder, r), r.run), {}))
        for r in records
    ]
    return IndexedRuns(judged, note)


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
) -> dict[str, tuple[str, str]]:
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
            sign = _sign(str(path))
            row = known.scores.get(file)
            if row is None or row[0] != sign:
                row = sign, json.dumps(read_scores(path))
            rows[file] = row
    return rows


def _sign(path: str) -> str:
    """Return a text that changes with a file, or with the names in a folder."""
    status = os.stat(path)  # noqa: PTH116 - of thousands of folders
    return f"{status.st_ino} {status.st_mtime_ns} {status.st_size}"


def _from_json(text: str) -> RunRecord | None:
    with suppress(ValueError, TypeError):
        return RunRecord(**json.loads(text))
    return None


def _stored(path: Path) -> tuple[_Rows, str]:
    """Return the rows of an index, and a sentence if it had to be made anew."""
    empty = _Rows({}, {})
    if not path.exists():
        return empty, ""
    try:
        with closing(_opened(path)) as database:
            if database.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
                raise sqlite3.DatabaseError("of another version")
            return _Rows(_rows(database, "runs"), _rows(database, "scores")), ""
    except sqlite3.OperationalError:  # another process writes, or it cannot be read
        return empty, ""
    except (sqlite3.DatabaseError, ValueError, TypeError):
        with suppress(OSError):
            path.unlink()
        return empty, f"{path} was damaged, and was made again from the runs"


def _rows(database: sqlite3.Connection, table: str) -> dict[str, tuple[str, str]]:
    rows = database.execute(f"SELECT * FROM {table}")
    return {name: (sign, content) for name, sign, content in rows}


def _store(path: Path, known: _Rows, new: _Rows, gone: list[str]) -> None:
    """Write changed rows; do nothing if the index cannot be written."""
    runs = {n: row for n, row in new.runs.items() if known.runs.get(n) != row}
    scores = {n: row for n, row in new.scores.items() if known.scores.get(n) != row}
    old = [file for file in known.scores if file not in new.scores]
    if not (runs or scores or gone or old):
        return
    with suppress(sqlite3.Error, OSError), closing(_opened(path)) as database, database:
        database.executescript(_TABLES)
        database.execute(f"PRAGMA user_version = {FORMAT}")
        for table, rows, removed in (("runs", runs, gone), ("scores", scores, old)):
            place = "folder" if table == "runs" else "file"
            database.executemany(
                f"DELETE FROM {table} WHERE {place} = ?",
                [(name,) for name in removed],
            )
            database.executemany(
                f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)",
                [(name, *row) for name, row in rows.items()],
            )


def _opened(path: Path) -> sqlite3.Connection:
    database: Any = sqlite3.connect(path, timeout=_PATIENCE)
    # The index can be made again, so it need not survive a loss of power.
    database.execute("PRAGMA synchronous = OFF")
    return database  # type: ignore[no-any-return]
