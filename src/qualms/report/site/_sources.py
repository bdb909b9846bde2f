"""Sources at the paths of a user: judged folders, tables, predictions, runs."""

import csv
import io
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from qualms.predictions import reader_of
from qualms.regular import open_file
from qualms.report.search_report import FILE as SEARCH
from qualms.report.search_report import SearchReport, read_search
from qualms.report.site.contents import SiteGap
from qualms.report.stored_report import RESULTS
from qualms.runs import predictions_folder, was_finished, why_failed
from qualms.wording import plural

ENDINGS = (".npz", ".safetensors", ".parquet", ".csv")
"""Endings of predictions files."""
DEPTH = 4
"""Folders below a given one in which judged results are looked for."""
_RESULT_COLUMNS = frozenset(("score", "value", "low", "high"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionsSource:
    """A predictions file, with validation predictions of the same run."""

    path: Path
    val: Path | None = None


@dataclass(frozen=True, slots=True)
class Sources:
    """Sources of a site, by kind, as they were found at the paths of a user."""

    judged: list[Path] = field(default_factory=list)
    """Folders with a results.csv."""
    tables: list[Path] = field(default_factory=list)
    """Results tables alone."""
    predictions: list[PredictionsSource] = field(default_factory=list)
    searches: list[SearchReport] = field(default_factory=list)
    gaps: list[SiteGap] = field(default_factory=list)

    def add(self, path: Path) -> None:
        """Add what is at a path; raise if it is nothing that a site can show."""
        if not path.exists():
            raise FileNotFoundError(f"there is no file or folder {path}")
        if path.is_dir():
            self._add_folder(path)
        elif _is_results_table(path):
            beside = path.name == RESULTS and (path.parent / "tables").is_dir()
            (self.judged if beside else self.tables).append(
                path.parent if beside else path
            )
        else:
            self.predictions.append(PredictionsSource(path=path))

    def _add_folder(self, folder: Path) -> None:
        if _is_predictions(folder):  # segmented items
            self.predictions.append(PredictionsSource(path=folder))
            return
        judged = list(_folders_with(RESULTS, folder))
        self.judged.extend(judged)
        searches = [read_search(path) for path in _folders_with(SEARCH, folder)]
        self.searches.extend(searches)
        trials = {trial.run for search in searches for trial in search.trials}
        self.gaps.extend(_unfinished(folder, judged, trials))
        if judged or searches:
            return
        stored = predictions_folder(folder)
        files = list(_predictions_in(stored if stored.is_dir() else folder))
        self.predictions.extend(files)
        if not files and not self.gaps:
            raise ValueError(
                f"{folder} holds neither judged results nor predictions; give a folder"
                " that `qualms run` or `qualms tune` wrote to, a results.csv, or"
                " predictions files"
            )


def _is_results_table(path: Path) -> bool:
    """Return whether a file is a table of results, and not of predictions."""
    if path.suffix.lower() != ".csv":
        return False
    with (
        open_file(path) as content,
        io.TextIOWrapper(content, "utf-8", errors="replace", newline="") as file,
    ):
        return set(next(csv.reader(file), [])) >= _RESULT_COLUMNS


def _folders_with(file: str, folder: Path, depth: int = DEPTH) -> Iterator[Path]:
    """Yield the folders with a file of this name, not following links."""
    if (folder / file).is_file():
        yield folder
    if depth == 0:
        return
    for below in sorted(folder.iterdir()):
        if below.is_dir() and not below.is_symlink() and below.name[0] != ".":
            yield from _folders_with(file, below, depth - 1)


def _predictions_in(folder: Path) -> Iterator[PredictionsSource]:
    """Yield the predictions of a folder; those of split val belong to the others."""
    paths = [path for path in sorted(folder.iterdir()) if _is_predictions(path)]
    val = next((path for path in paths if path.stem == "val"), None)
    for path in paths:
        if not path.stem.startswith("val") or val is None or len(paths) == 1:
            yield PredictionsSource(path=path, val=val if path != val else None)


def _is_predictions(path: Path) -> bool:
    if path.is_dir():
        return (path / "index.json").is_file() or reader_of(path) is not None
    return path.suffix in ENDINGS


def _unfinished(
    folder: Path, judged: list[Path], trials: Collection[str]
) -> Iterator[SiteGap]:
    """Yield benchmarks whose runs were not judged, and runs that failed.

    Trials of searches are left out: they are not judged, and their pages list them.
    """
    for benchmark in sorted({path.parent.parent for path in _specs(folder)}):
        specs = benchmark.glob("*/spec.json")
        runs = [path.parent for path in specs if path.parent.name not in trials]
        finished = sum(map(was_finished, runs))
        if finished and not any(path.is_relative_to(benchmark) for path in judged):
            yield SiteGap(
                what=f"results of {benchmark.name}",
                why=f"{finished} finished {plural(finished, 'run')} and no results",
                remedy=f"qualms run {benchmark.name} --out {benchmark.parent}",
                group=benchmark.name,
            )
        for run in runs:
            if error := why_failed(run):
                yield SiteGap(
                    what=f"run {run.name}",
                    why=f"it failed: {error}",
                    remedy=f"its log is {run / 'log.txt'}",
                    group=benchmark.name,
                )


def _specs(folder: Path) -> Iterator[Path]:
    """Yield the specs of the runs in a folder of runs, or of one benchmark."""
    yield from folder.glob("*/*/spec.json")
    yield from folder.glob("*/spec.json")
