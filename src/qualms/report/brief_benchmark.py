"""A judged benchmark in short: findings in words, and one table that fits a screen."""

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from qualms.report._short_table import print_short_table
from qualms.report._terminal import counted, printable
from qualms.report.benchmark_report import BenchmarkReport
from qualms.report.site.leaderboard import main_tables
from qualms.report.site.markup import text_of
from qualms.report.site.verdicts import FALL, NO, RISE, YES, benchmark_sentences

MOST_LINES = 24
"""Lines of the table, with its title and how it is read."""
_STYLES = {FALL: "red", NO: "red", RISE: "green", YES: "green"}


def print_brief(
    report: BenchmarkReport,
    *,
    console: Console | None = None,
    most_lines: int = MOST_LINES,
) -> None:
    """Print the findings of a benchmark and its first table; the page has the rest.

    Args:
        report: The benchmark.
        console: Where to print.
        most_lines: Lines of the table at most.
    """
    console = console or Console()
    tables = main_tables(report)
    grid = Grid.grid(padding=(0, 1))
    for sign, words in findings_text(report):
        styled = Text(sign, style=_STYLES.get(sign, "none"))
        grid.add_row(styled, Text(printable(words)))
    console.print(grid, highlight=False)
    if tables:
        console.print()
        print_short_table(tables[0], console=console, most=most_lines)
    else:
        console.print("no table has a number yet", highlight=False)
    missing = sum(each.number for each in report.missing)
    more = {"more table": max(0, len(report.tables) - 1), "missing run": missing}
    if text := counted(more):
        console.print(f"{text} on the page", style="dim", highlight=False)


def findings_text(report: BenchmarkReport) -> list[tuple[str, str]]:
    """Return the findings of a benchmark as plain texts, each after its sign."""
    sentences = benchmark_sentences(report, main_tables(report), "benchmark")
    return [
        (each.sign, text_of(each.words).replace("\N{NO-BREAK SPACE}", " "))
        for each in sentences
    ]
