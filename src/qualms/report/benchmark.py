"""Everything about a judged benchmark: tables, figures, numbers and an index page.

How a benchmark's tables and figures look is declared by the benchmark; one that
declares nothing gets ordinary tables.
"""

from collections import Counter
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table as Grid

from qualms.atomic import replacing
from qualms.evaluate.benchmark_results import BenchmarkResults, Check
from qualms.evaluate.notebook import notebook_lines
from qualms.report._csv_files import write_results, write_table_csv
from qualms.report._draw import MISSING, draw
from qualms.report._findings import print_findings, write_findings
from qualms.report._html import effects_html, html_table
from qualms.report._latex import latex_table
from qualms.report._terminal import (
    counted,
    escape,
    print_legend,
    print_notes,
    print_table,
)
from qualms.report.benchmark_report import benchmark_report
from qualms.report.brief_benchmark import findings_text
from qualms.report.judged import check_numbers
from qualms.report.presented import benchmark_notes, presentation_of
from qualms.report.site.alone import write_benchmark_page
from qualms.report.stored_report import write_report
from qualms.report.table import Table

MOST_LINES = 3
"""Lines of notes below a table, and below all of them, in a terminal."""
MOST_KINDS = 12
"""Kinds of missing runs that are listed."""


class Written(NamedTuple):
    """The files that were written, and why others were not."""

    results: Path
    tables: tuple[Path, ...]
    figures: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    page: Path | None = None
    """The page that shows them all."""


def write_all(
    results: BenchmarkResults,
    folder: Path,
    *,
    command: str = "",
    data: Path | None = None,
) -> Written:
    """Write results.csv, findings.json, report.npz, tables/, figures/ and index.html.

    Tables and figures of an earlier call that are not written again are removed, since
    they would be of other numbers than results.csv. So a folder is for one preset.
    Without matplotlib figures are left out, and a note says so.

    Args:
        results: The judged benchmark.
        folder: Where the files go.
        command: What made them; it stands in results.csv and on the page.
        data: Folder of prepared datasets, for figures that show items.
    """
    folder.mkdir(parents=True, exist_ok=True)
    presentation = presentation_of(results)
    numbers = write_results(results, folder / "results.csv", command=command)
    if results.findings:
        write_findings(results, folder / "findings.json")
    tables = (*presentation.tables(results), *presentation.counts(results, data))
    written = write_tables(tables, folder / "tables")
    _remove_others(folder / "tables", "table_", {".csv", ".tex"}, written)
    drawings = list(presentation.figures(results, data))
    can_draw = find_spec("matplotlib") is not None
    figures = [
        path
        for drawing in drawings
        if can_draw
        for path in draw(drawing, folder / "figures")
    ]
    _remove_others(folder / "figures", "figure_", {".pdf", ".png", ".txt"}, figures)
    report = benchmark_report(
        results,
        tables,
        drawings,
        notes=benchmark_notes(results),
        command=command,
        folder=folder,
    )
    write_report(report, folder)
    page = write_benchmark_page(report, folder / "index.html")
    notes = () if can_draw else (MISSING,)
    return Written(numbers, tuple(written), tuple(figures), notes, page)


def print_benchmark(
    results: BenchmarkResults, *, console: Console | None = None, full: bool = False
) -> None:
    """Print the main tables, the effects, the missing runs, and a few notes.

    Args:
        results: The judged benchmark.
        console: Where to print.
        full: Whether all tables and notes are printed; else the page has the others.
    """
    console = console or Console()
    presentation = presentation_of(results)
    tables = presentation.tables(results)
    shown = [table for table in tables if full or table.main]
    most_lines = None if full else MOST_LINES
    for table in shown:
        print_table(table, console=console, most_lines=most_lines)
        console.print()
    print_legend(shown, console=console)
    print_checks(results, console=console)
    print_findings(results, console=console)
    _print_missing(results, console=console)
    notes = print_notes(
        benchmark_notes(results),
        console=console,
        most_lines=most_lines,
        head="note: ",
    )
    more = {"more note": notes, "more table": len(tables) - len(shown)}
    if text := counted(more):
        console.print(f"{text} on the page, index.html", style="dim", highlight=False)


def notebook_html(results: BenchmarkResults) -> str:
    """Return findings, effects and main tables, as a notebook shows results."""
    tables = presentation_of(results).tables(results)
    shown = [table for table in tables if table.main]
    findings = findings_text(benchmark_report(results, tables, ()))
    lines = notebook_lines(f"{sign} {words}" for sign, words in findings)
    return lines + effects_html(results) + "".join(map(html_table, shown))


def write_tables(tables: Collection[Table], folder: Path) -> list[Path]:
    """Write each table as CSV and LaTeX, and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for table in tables:
        paths.append(write_table_csv(table, folder / f"{table.name}.csv"))
        path = folder / f"{table.name}.tex"
        with replacing(path) as temporary:
            temporary.write_text(latex_table(table), encoding="utf-8")
        paths.append(path)
    return paths


def print_checks(results: BenchmarkResults, *, console: Console | None = None) -> None:
    """Print each expected effect with whether it held, and the numbers."""
    console = console or Console()
    if not results.checks:
        return
    console.print("[bold]expected effects[/bold]")
    lines = Grid.grid(padding=(0, 1))
    for check in results.checks:
        text = f"{check.expectation.text}: {check_numbers(results, check)}"
        lines.add_row(" ", _verdict(check), escape(text))
        if check.expectation.meaning:
            lines.add_row(" ", "", f"[dim]{escape(check.expectation.meaning)}[/dim]")
    console.print(lines, highlight=False)


def _verdict(check: Check) -> str:
    if not check.known:
        return "[yellow]unknown[/yellow]"
    return "[green]held[/green]" if check.held else "[red]NOT HELD[/red]"


def _print_missing(results: BenchmarkResults, *, console: Console) -> None:
    """Print how many runs have no predictions, by kind and reason."""
    if not results.missing:
        return
    kinds = Counter(
        (m.dataset, m.method, "; ".join(filter(None, (m.reason, m.remedy))))
        for m in results.missing
    )
    count = len(results.missing)
    are = "run is" if count == 1 else "runs are"
    console.print(f"[bold]{count} {are} missing[/bold]")
    for (dataset, method, reason), count in list(kinds.items())[:MOST_KINDS]:
        text = f"  {count} of {method} on {dataset}: {reason}"
        console.print(escape(text), highlight=False, soft_wrap=True)
    if len(kinds) > MOST_KINDS:
        console.print(f"  and {len(kinds) - MOST_KINDS} more kinds")


def _remove_others(
    folder: Path, start: str, endings: Collection[str], written: Collection[Path]
) -> None:
    """Remove files with such names that were not written this time."""
    new = set(written)
    for path in sorted(folder.glob(f"{start}*")):
        if path.suffix in endings and path not in new:
            path.unlink()
