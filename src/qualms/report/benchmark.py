"""Everything about a judged benchmark: tables, figures and numbers into one folder."""

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from qualms.evaluate.benchmark import BenchmarkResults
from qualms.report._benchmark_terminal import print_benchmark, print_checks
from qualms.report.figures import write_figures
from qualms.report.figures._style import MISSING
from qualms.report.tables import write_results, write_tables

__all__ = ["Written", "print_benchmark", "print_checks", "write_all"]


class Written(NamedTuple):
    """The files made, and why others were not."""

    results: Path
    tables: tuple[Path, ...]
    figures: tuple[Path, ...]
    notes: tuple[str, ...] = ()


def write_all(results: BenchmarkResults, folder: Path, *, command: str = "") -> Written:
    """Write results.csv, tables/ and figures/ under `folder`.

    Where matplotlib is not installed the figures are left out, and a note says so.
    """
    folder.mkdir(parents=True, exist_ok=True)
    numbers = write_results(results, folder / "results.csv", command=command)
    tables = write_tables(results, folder / "tables")
    if find_spec("matplotlib") is None:
        return Written(numbers, tuple(tables), (), (MISSING,))
    figures = write_figures(results, folder / "figures")
    return Written(numbers, tuple(tables), tuple(figures))
