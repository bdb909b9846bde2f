"""What shows a benchmark: three functions of its results."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from qualms.evaluate.benchmark import BenchmarkResults

Writer = Callable[[BenchmarkResults, Path], list[Path]]
"""Writes files for results into a folder; gives their paths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """How the tables and figures of one benchmark are made."""

    write_tables: Writer
    """As CSV and LaTeX."""
    write_figures: Writer
    """As PDF and PNG; called only where matplotlib is installed."""
    print_tables: Callable[[BenchmarkResults, Console, bool], list[str]]
    """Prints the main tables, or all of them if the last argument is true; gives notes
    on what was left out."""
