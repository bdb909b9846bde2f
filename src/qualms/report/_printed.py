"""Results of `qualms score` on the terminal."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import wrap

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table as Grid

from qualms.evaluate import Answer, Curve, Results, Scored, with_shown_items
from qualms.evaluate.rows import QUESTIONS
from qualms.evaluate.subsets import SIDE_BY_SIDE, subset_label
from qualms.labels import values_text
from qualms.report._brief import answer_table, brief_scores, brief_tables
from qualms.report._group_spreads import spread_tables
from qualms.report._operating_points import point_tables
from qualms.report._scored import difference_table, score_notes, score_table
from qualms.report._terminal import escape, print_legend, print_table, printable
from qualms.report.table import Table, digits
from qualms.wording import plural

NOTES = 2
"""Notes under the main scores, at most."""
_SHOWN = (
    *("referral_accuracy", "referral_auroc", "referral_recall_at_1"),
    *("risk_coverage", "coverage_by_target"),
)
_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH = max(map(len, QUESTIONS.values())) + 1


def print_results(
    scored: Scored,
    *,
    brief: bool = False,
    chosen: bool = False,
    differences: bool = False,
    written: Sequence[Path] = (),
    console: Console | None = None,
) -> None:
    """Print the scores of all files, then notes and what was written.

    Args:
        scored: The results.
        brief: Whether only the main scores are printed, without curves.
        chosen: Whether the user named the scores; then neither the verdict nor curves
            are printed.
        differences: Whether differences from the best file are printed.
        written: Files that were written; their paths are printed.
        console: Where to print.
    """
    console = console or Console()
    for result in scored.results:
        console.print(_headline(result))
    if not chosen:
        _print_verdicts(scored, console=console)
        console.print()
    chosen_items = with_shown_items(scored)
    shown = brief_scores(scored) if brief else chosen_items
    tables = brief_tables(shown) if brief else [score_table(shown)]
    if not chosen:
        tables += spread_tables(chosen_items, brief=brief)
        tables += point_tables(chosen_items, brief=brief)
    _print_apart(tables, console=console)
    print_legend(tables, console=console)
    if differences and shown.comparison is not None:
        console.print()
        print_table(difference_table(shown.comparison), console=console)
    for result in () if chosen or brief else chosen_items.results:
        _print_curves(console, result)
    _print_notes(shown, brief=brief, console=console)
    if differences and scored.comparison is None:
        console.print("note: --compare needs a second file", style="dim")
    for path in filter(None, written):
        console.print(f"wrote {escape(str(path))}", soft_wrap=True)


def _print_apart(tables: Sequence[Table], *, console: Console) -> None:
    for number, table in enumerate(tables):
        if number:
            console.print()
        print_table(table, console=console)


def _print_notes(scored: Scored, *, brief: bool, console: Console) -> None:
    notes = score_notes(scored)
    shown = notes[:NOTES] if brief else notes
    for note in shown:
        console.print(f"note: {escape(note)}", style="dim", highlight=False)
    if brief:
        more = len(notes) - len(shown)
        also = f" and {more} more note{'s' if more > 1 else ''}" if more else ""
        hint = f"All scores{also}: --all. Some scores: --scores NAME,..."
        console.print(hint, style="dim", highlight=False)


def _print_verdicts(scored: Scored, *, console: Console) -> None:
    """Print each question with its answer; those of several files side by side."""
    if len(scored.results) > 1:
        print_table(answer_table(scored), console=console)
        return
    for answer in scored.results[0].verdict:
        for line in _lines(answer, console.width):
            console.print(line, highlight=False)


def _lines(answer: Answer, width: int) -> Iterator[str]:
    """Yield an answer in lines of at most `width` characters, its first word bold."""
    words = answer.words or answer.answer
    lines = wrap(printable(f"{words}: {answer.because}"), max(20, width - _WIDTH))
    for number, line in enumerate(lines):
        head = "" if number else QUESTIONS[answer.question]
        first = line.startswith(words) and not number
        rest = escape(line.removeprefix(words)) if first else escape(line)
        bold = f"[bold]{escape(words)}[/bold]" if first else ""
        yield f"{head:{_WIDTH}}{bold}{rest}"


def sparkline(values: NDArray[np.float64], *, width: int = 32) -> str:
    """Return `values` as a line of block characters; undefined stretches stay blank."""
    picked = values[
        np.linspace(0, len(values) - 1, min(width, len(values))).astype(int)
    ]
    defined = picked[np.isfinite(picked)]
    if defined.size == 0:
        return " " * len(picked)
    low, span = defined.min(), np.ptp(defined) or 1.0
    return "".join(
        _BLOCKS[int((value - low) / span * (len(_BLOCKS) - 1) + 0.5)]
        if np.isfinite(value)
        else " "
        for value in picked
    )


def _headline(result: Results) -> str:
    draws = f", {result.draws} draws" if result.draws > 1 else ""
    method = result.header.method
    return (
        f"[bold]{escape(result.name)}[/bold]: {result.task}, {result.n}"
        f" {plural(result.n, 'item')}{draws}"
        + (f", method {escape(method)}" if method else "")
        + _items_words(result)
    )


def _items_words(result: Results) -> str:
    """Return which items the output is about, where only some are shifted."""
    words = {
        SIDE_BY_SIDE: "about in-domain items",
        ("in_domain",): "about in-domain items only",
        ("shifted",): "about shifted items only",
    }
    together = "about in-domain and shifted items together" if result.has_shift else ""
    about = words.get(result.subsets, together)
    return f"; {about}" if about else ""


def _print_curves(console: Console, result: Results) -> None:
    shown = [curve for curve in result.curves if curve.name in _SHOWN]
    if not shown:
        return
    console.print(f"\ncurves of [bold]{escape(result.name)}[/bold]")
    width = min(32, console.width // 4)
    grid = Grid.grid(padding=(0, 1))
    for size in (0, width, None, None):
        grid.add_column(width=size, no_wrap=size is not None)
    for curve in shown:
        by = f", by {values}" if (values := values_text(curve.settings)) else ""
        label = escape(f"{curve.label}, {subset_label(curve.subset)}{by}")
        grid.add_row("", sparkline(curve.y, width=width), label, _ends(curve))
    console.print(grid)


def _ends(curve: Curve) -> str:
    defined = curve.y[np.isfinite(curve.y)]
    if defined.size == 0:
        return "undefined"
    return (
        f"[dim]{digits(float(defined[0]))} → {digits(float(defined[-1]))} "
        f"over {escape(curve.x_label)}[/dim]"
    )
