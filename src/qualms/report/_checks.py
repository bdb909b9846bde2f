"""What holds for any benchmark in a terminal: its effects, and the runs it lacks."""

import math
from collections import Counter

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from qualms.evaluate.benchmark import BenchmarkResults, Check


def print_checks(results: BenchmarkResults, *, console: Console | None = None) -> None:
    """Print each expected effect with whether it held, and the numbers."""
    console = console or Console()
    if not results.checks:
        return
    console.print("[bold]expected effects[/bold]")
    lines = Table.grid(padding=(0, 1))
    for check in results.checks:
        numbers = ", ".join(
            f"{row} {value:.3f}" if math.isfinite(value) else f"{row} missing"
            for row, value in check.values.items()
        )
        text = f"{check.expectation.text}: {numbers}"
        lines.add_row(" ", _verdict(check), escape(text))
    console.print(lines, highlight=False)


def print_missing(results: BenchmarkResults, *, console: Console) -> None:
    """Print how many runs have no predictions, by kind and reason."""
    if not results.missing:
        return
    kinds = Counter((m.dataset, m.method, m.reason) for m in results.missing)
    console.print(f"[bold]{len(results.missing)} runs are missing[/bold]")
    for (dataset, method, reason), count in list(kinds.items())[:12]:
        text = f"  {count} of {method} on {dataset}: {reason}"
        console.print(escape(text), highlight=False, soft_wrap=True)
    if len(kinds) > 12:
        console.print(f"  and {len(kinds) - 12} kinds more")


def _verdict(check: Check) -> str:
    if not check.known:
        return "[yellow]unknown[/yellow]"
    return "[green]held[/green]" if check.held else "[red]NOT HELD[/red]"
