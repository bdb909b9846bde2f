"""Tables of the regression benchmark in a terminal, beside the paper's."""

import math

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from qualms.evaluate.benchmark import BenchmarkResults
from qualms.report._compared import Compared, pair
from qualms.report.papers.regression._tables import (
    Line,
    PaperTable,
    absent_tables,
    paper_tables,
)

_SHORT = {
    "test_coverage": "coverage",
    "test_prediction_rate": "rate",
    "val_interval_length": "val length",
    "val_mae": "val MAE",
}
_LEGEND = (
    "first line: ours, mean ± deviation over repeats; second: the paper's, and how far "
    "ours by its rule lies from it, in its deviations; ● cannot be told apart from the "
    "best (coverage: the nearest to 1 - alpha)"
)
_MAIN = 0.1
_WIDE = 120
"""Columns of a terminal that hold all four scores."""


def print_tables(results: BenchmarkResults, console: Console, full: bool) -> list[str]:
    """Print the main tables, or all with `full`; gives notes on what is not shown."""
    tables = paper_tables(results)
    shown = [t for t in tables if full or _is_main(t)]
    for table in shown:
        console.print(_rendered(table, results, console.width))
    console.print(_LEGEND, style="dim")
    return _rest(results, tables, shown)


def _is_main(table: PaperTable) -> bool:
    complete = any(line.row.name == "gaussian" for line in table.lines)
    return complete and table.alpha == _MAIN


def _rendered(table: PaperTable, results: BenchmarkResults, width: int) -> Table:
    shift = f", shifted: {table.variant.shift}" if table.variant.shift else ""
    title = f"Table {table.name}: {table.variant.label}, alpha {table.alpha:g}{shift}"
    about = f"{table.data}; preset {table.preset}"
    made = Table(
        title=f"[bold]{escape(title)}[/bold] [yellow]{escape(about)}[/yellow]",
        title_justify="left",
        box=None,
        pad_edge=False,
        header_style="bold",
    )
    made.add_column("method", overflow="fold", min_width=18)
    metrics = [m for m in _SHORT if width >= _WIDE or m.startswith("test")]
    for metric in metrics:
        made.add_column(_SHORT[metric], justify="right", no_wrap=True)
        if metric == "test_coverage":
            made.add_column(f"{results.level:.0%} interval", no_wrap=True)
    reasons: list[str] = []
    for line in table.lines:
        made.add_row(escape(line.label), *_cells(line, metrics, reasons))
    if reasons:
        made.caption = escape("; ".join(dict.fromkeys(reasons)))
        made.caption_justify = "left"
    return made


def _cells(line: Line, metrics: list[str], reasons: list[str]) -> list[str]:
    cells = []
    for metric in metrics:
        compared = line.compared[metric]
        if compared.cell.why:
            reasons.append(f"{line.label}: {compared.cell.why}")
        cells.append(_cell(compared))
        if metric == "test_coverage":
            low, high = compared.cell.low, compared.cell.high
            known = math.isfinite(low)
            cells.append(f"\\[{low:.3f}, {high:.3f}]" if known else "")
    return cells


def _cell(compared: Compared) -> str:
    ours = pair(*compared.cell.ours)
    mark = "●" if compared.tied else " "
    if compared.number is None:
        return f"{ours}{mark}"
    paper = pair(compared.number.mean, compared.number.spread)
    gap = compared.difference
    shown = f" {gap:+.1f}" if math.isfinite(gap) else ""
    return f"{ours}{mark}\n[dim]{paper}{shown}[/dim] "


def _rest(
    results: BenchmarkResults, tables: tuple[PaperTable, ...], shown: list[PaperTable]
) -> list[str]:
    notes = []
    absent = absent_tables(results)
    if absent:
        notes.append(
            f"preset {results.preset.name} has no data for {len(absent)} tables of the "
            f"paper, those of {', '.join(dict.fromkeys(absent.values()))}"
        )
    if len(shown) < len(tables):
        notes.append(
            f"{len(tables) - len(shown)} more tables (other alphas, variations) are "
            "written as files"
        )
    return notes
