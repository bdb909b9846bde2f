"""Everything about a judged benchmark: tables, figures and numbers into one folder.

How a benchmark's tables and figures look is found by its name in `report/papers/`.
"""

from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.markup import escape

from qualms.evaluate.benchmark import BenchmarkResults
from qualms.report._checks import print_checks, print_missing
from qualms.report._results_file import write_results
from qualms.report._style import MISSING
from qualms.report.papers import Paper
from qualms.shelf import find

__all__ = ["Written", "print_benchmark", "print_checks", "write_all"]


class Written(NamedTuple):
    """The files made, and why others were not."""

    results: Path
    tables: tuple[Path, ...]
    figures: tuple[Path, ...]
    notes: tuple[str, ...] = ()


def write_all(results: BenchmarkResults, folder: Path, *, command: str = "") -> Written:
    """Write results.csv, tables/ and figures/ under `folder`, and nothing else stays.

    Tables and figures of an earlier time that are not written again are removed: they
    would be of other numbers than results.csv. So a folder is for one preset. Where
    matplotlib is not installed the figures are left out, and a note says so.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paper = _paper(results)
    numbers = write_results(results, folder / "results.csv", command=command)
    tables = paper.write_tables(results, folder / "tables")
    _remove_others(folder / "tables", "table_", {".csv", ".tex"}, tables)
    drawn = find_spec("matplotlib") is not None
    figures = paper.write_figures(results, folder / "figures") if drawn else []
    _remove_others(folder / "figures", "figure_", {".pdf", ".png"}, figures)
    notes = () if drawn else (MISSING,)
    return Written(numbers, tuple(tables), tuple(figures), notes)


def print_benchmark(
    results: BenchmarkResults, *, console: Console | None = None, full: bool = False
) -> None:
    """Print the main tables (all with `full`), the effects, and what is missing."""
    console = console or Console()
    notes = _paper(results).print_tables(results, console, full)
    print_checks(results, console=console)
    print_missing(results, console=console)
    for note in (*notes, *results.notes):
        console.print(f"note: {escape(note)}", style="dim", highlight=False)


def _remove_others(
    folder: Path, start: str, endings: Collection[str], written: Collection[Path]
) -> None:
    """Remove files of ours, by their names, that were not written this time."""
    for path in sorted(folder.glob(f"{start}*")):
        if path.suffix in endings and path not in written:
            path.unlink()


def _paper(results: BenchmarkResults) -> Paper:
    made: Paper = find("report.papers", results.benchmark.name)()
    return made
