"""Presentation of a judged benchmark: its own, or an ordinary one."""

from pathlib import Path

from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.report.benchmark_report import BenchmarkReport, benchmark_report
from qualms.report.judged import ranking_notes
from qualms.report.ordinary import ordinary
from qualms.report.presentation import Presentation


def presentation_of(results: BenchmarkResults) -> Presentation:
    """Return the presentation of the benchmark of `results`."""
    declared = results.benchmark.presentation
    presentation = ordinary() if declared is None else declared()
    if not isinstance(presentation, Presentation):
        raise ValueError(
            f"the presentation of {results.benchmark.name} must be a Presentation, got"
            f" {type(presentation).__name__}; correct the function that returns it"
        )
    return presentation


def benchmark_notes(results: BenchmarkResults) -> list[str]:
    """Return all notes; those that change how numbers are read come first."""
    notes = presentation_of(results).notes(results)
    return [*ranking_notes(results), *results.notes, *notes]


def report_of(
    results: BenchmarkResults, *, command: str = "", data: Path | None = None
) -> BenchmarkReport:
    """Return the report of judged results, which pages show; nothing is written.

    Args:
        results: The judged benchmark.
        command: What made them.
        data: Folder of prepared datasets, for figures that show items.
    """
    presentation = presentation_of(results)
    return benchmark_report(
        results,
        (*presentation.tables(results), *presentation.counts(results, data)),
        list(presentation.figures(results, data)),
        notes=benchmark_notes(results),
        command=command,
    )
