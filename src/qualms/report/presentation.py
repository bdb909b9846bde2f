"""The presentation of a benchmark: its tables and figures, and what it leaves out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.report.figures import Drawing
from qualms.report.table import Table


def _no_figures(_results: BenchmarkResults, _data: Path | None) -> Iterator[Drawing]:
    return iter(())


def _no_counts(_results: BenchmarkResults, _data: Path | None) -> tuple[Table, ...]:
    return ()


def _no_notes(_results: BenchmarkResults) -> list[str]:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """Functions that make the tables, figures and notes of one benchmark."""

    tables: Callable[[BenchmarkResults], tuple[Table, ...]]
    """All of them; those with `main` are printed even where not all are asked for."""
    figures: Callable[[BenchmarkResults, Path | None], Iterator[Drawing]] = _no_figures
    """Figures of the results, and of the prepared datasets in a folder, if given."""
    counts: Callable[[BenchmarkResults, Path | None], tuple[Table, ...]] = _no_counts
    """Tables about prepared datasets, such as the sizes of their splits."""
    notes: Callable[[BenchmarkResults], list[str]] = _no_notes
    """Notes on what the paper has and these results do not have."""
