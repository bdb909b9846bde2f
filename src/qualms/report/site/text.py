"""A site as text for a terminal: findings, leaderboards, verdicts of files, gaps."""

import html
import re

from rich.console import Console

from qualms.report._printed import print_results
from qualms.report._terminal import escape, print_legend, print_table
from qualms.report.site.contents import ShownBenchmark, SiteContents
from qualms.report.site.leaderboard import main_tables
from qualms.report.site.markup import Child, html_of
from qualms.report.site.tables import own_numbers
from qualms.report.site.verdicts import benchmark_sentences
from qualms.wording import plural

MOST_NOTES = 2
"""Lines of notes below a table."""
MOST_GAPS = 8
_TAG = re.compile(r"<[^>]*>")


def print_contents(contents: SiteContents, *, console: Console | None = None) -> None:
    """Print what the front page of a site says."""
    console = console or Console()
    for shown in contents.benchmarks:
        _print_benchmark(shown, console)
    for group in contents.groups:
        print_results(group.scored, brief=True, console=console)
        console.print()
    if not contents.gaps:
        return
    count = len(contents.gaps)
    console.print(f"[bold]{count} {plural(count, 'thing')} missing[/bold]")
    for gap in contents.gaps[:MOST_GAPS]:
        console.print(escape(f"  {gap.what}: {gap.why}"), highlight=False)
        if gap.remedy:
            console.print(escape(f"    {gap.remedy}"), style="dim", highlight=False)
    if count > MOST_GAPS:
        console.print(f"  and {count - MOST_GAPS} more", highlight=False)


def plain_text(words: Child) -> str:
    """Return pieces of a page as text.

    >>> from qualms.report.site.markup import element
    >>> plain_text(["a < b, ", element("b", "not c")])
    'a < b, not c'
    """
    text = html.unescape(_TAG.sub("", html_of(words).text))
    return text.replace("\N{NO-BREAK SPACE}", " ")


def _print_benchmark(shown: ShownBenchmark, console: Console) -> None:
    report, tables = shown.report, main_tables(shown.report)
    data = ", simulated data" if report.simulated else ""
    console.rule(f"[bold]{escape(report.title)}[/bold]{data}", align="left")
    for each in benchmark_sentences(report, tables, shown.slug):
        words = escape(f"{each.sign} {plain_text(each.words)}")
        console.print(words, highlight=False)
    console.print()
    for table in map(own_numbers, tables[:1]):
        print_table(table, console=console, most_lines=MOST_NOTES)
        print_legend([table], console=console)
        console.print()
