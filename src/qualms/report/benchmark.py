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
from qualms.report._csv_files import write_table_csv
from qualms.report._draw import MISSING, draw
from qualms.report._index import DrawnFigure, benchmark_summary, write_benchmark_page
from qualms.report._latex import latex_table
from qualms.report._results_file import write_results
from qualms.report._terminal import escape, print_legend, print_table
from qualms.report.figures import Drawing
from qualms.report.judged import check_numbers, ranking_notes
from qualms.report.ordinary import ordinary
from qualms.report.presentation import Presentation
from qualms.report.table import Table
from qualms.wording import plural


class Written(NamedTuple):
    """The files made, and why others were not."""

    results: Path
    tables: tuple[Path, ...]
    figures: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    page: Path | None = None
    """The page that links all of them."""


def write_all(
    results: BenchmarkResults,
    folder: Path,
    *,
    command: str = "",
    data: Path | None = None,
) -> Written:
    """Write results.csv, tables/, figures/ and index.html under `folder`.

    Tables and figures that lie there from an earlier time and are not written again are
    removed: they would be of other numbers than results.csv. So a folder is for one
    preset. Where matplotlib is not installed the figures are left out, and a note says
    so.

    Args:
        results: What was judged.
        folder: Where the files go.
        command: What made them; it stands in results.csv and on the page.
        data: Prepared datasets, for figures that show items.
    """
    folder.mkdir(parents=True, exist_ok=True)
    presentation = presentation_of(results)
    numbers = write_results(results, folder / "results.csv", command=command)
    tables = (*presentation.tables(results), *presentation.counts(results, data))
    written = write_tables(tables, folder / "tables")
    _remove_others(folder / "tables", "table_", {".csv", ".tex"}, written)
    can_draw = find_spec("matplotlib") is not None
    drawings = list(presentation.figures(results, data)) if can_draw else []
    drawn = [_drawn(drawing, folder / "figures") for drawing in drawings]
    figures = [path for figure in drawn for path in figure.paths]
    _remove_others(folder / "figures", "figure_", {".pdf", ".png", ".txt"}, figures)
    page = write_benchmark_page(
        results, tables, drawn, folder / "index.html", command=command
    )
    notes = () if can_draw else (MISSING,)
    return Written(numbers, tuple(written), tuple(figures), notes, page)


def print_benchmark(
    results: BenchmarkResults, *, console: Console | None = None, full: bool = False
) -> None:
    """Print the main tables (all with `full`), the effects, and what is missing."""
    console = console or Console()
    presentation = presentation_of(results)
    tables = presentation.tables(results)
    shown = [table for table in tables if full or table.main]
    for table in shown:
        print_table(table, console=console)
        console.print()
    print_legend(shown, console=console)
    print_checks(results, console=console)
    _print_missing(results, console=console)
    notes = [*presentation.notes(results), *ranking_notes(results)]
    if len(shown) < len(tables):
        more = len(tables) - len(shown)
        are = "table is" if more == 1 else "tables are"
        notes.append(f"{more} more {are} written as {plural(more, 'file')}")
    for note in (*notes, *results.notes):
        console.print(f"note: {escape(note)}", style="dim", highlight=False)


def notebook_html(results: BenchmarkResults) -> str:
    """Return the effects and main tables as HTML, as a notebook shows results."""
    tables = presentation_of(results).tables(results)
    return benchmark_summary(results, [table for table in tables if table.main])


def presentation_of(results: BenchmarkResults) -> Presentation:
    """Return how the benchmark of `results` is shown."""
    declared = results.benchmark.presentation
    return ordinary() if declared is None else declared()


def write_tables(tables: Collection[Table], folder: Path) -> list[Path]:
    """Write each table as CSV and LaTeX; gives the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for table in tables:
        written.append(write_table_csv(table, folder / f"{table.name}.csv"))
        path = folder / f"{table.name}.tex"
        with replacing(path) as temporary:
            temporary.write_text(latex_table(table), encoding="utf-8")
        written.append(path)
    return written


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
    for (dataset, method, reason), count in list(kinds.items())[:12]:
        text = f"  {count} of {method} on {dataset}: {reason}"
        console.print(escape(text), highlight=False, soft_wrap=True)
    if len(kinds) > 12:
        console.print(f"  and {len(kinds) - 12} more kinds")


def _drawn(drawing: Drawing, folder: Path) -> DrawnFigure:
    return DrawnFigure(drawing, tuple(draw(drawing, folder)))


def _remove_others(
    folder: Path, start: str, endings: Collection[str], written: Collection[Path]
) -> None:
    """Remove files of ours, by their names, that were not written this time."""
    kept = set(written)
    for path in sorted(folder.glob(f"{start}*")):
        if path.suffix in endings and path not in kept:
            path.unlink()
