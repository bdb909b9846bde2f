"""How each benchmark is shown: the tables and figures of its paper, and more.

The folder is the registry: `qualms.shelf.find("report.papers", "regression")()` is what
shows the benchmark `regression`. A benchmark without a file here is shown by ordinary
tables.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from qualms.evaluate.results import BenchmarkResults
from qualms.report.figures import Drawing
from qualms.report.table import Table

__all__ = ["Paper"]


def _nothing(_results: BenchmarkResults, _data: Path | None) -> Iterator[Drawing]:
    return iter(())


def _no_counts(_results: BenchmarkResults, _data: Path | None) -> tuple[Table, ...]:
    return ()


def _no_notes(_results: BenchmarkResults) -> list[str]:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """Which tables and figures of one benchmark are made."""

    tables: Callable[[BenchmarkResults], tuple[Table, ...]]
    """All of them; those with `main` are printed even where not all are asked for."""
    figures: Callable[[BenchmarkResults, Path | None], Iterator[Drawing]] = _nothing
    """Of the results, and of the prepared datasets in a folder where one is given."""
    counts: Callable[[BenchmarkResults, Path | None], tuple[Table, ...]] = _no_counts
    """Tables about prepared datasets, such as the sizes of their splits."""
    notes: Callable[[BenchmarkResults], list[str]] = _no_notes
    """What the paper has and these results do not."""
