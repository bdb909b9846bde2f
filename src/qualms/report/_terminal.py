"""Results in a terminal: a table of scores, sparklines for curves."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape as escape_markup
from rich.table import Table

from qualms.evaluate import Comparison, Contrast, Curve, Results, Row, Scored

ARROW = {"higher": "↑", "lower": "↓", "neither": " "}
SHOWN = ("referral_accuracy", "referral_auroc", "risk_coverage", "coverage_by_target")
BLOCKS = "▁▂▃▄▅▆▇█"
Key = tuple[str, str, str]


def print_results(
    scored: Scored,
    *,
    differences: bool = False,
    written: Sequence[Path | None] = (),
    console: Console | None = None,
) -> None:
    """Print one table over all files, then curves, notes and what was written."""
    console = console or Console()
    for result in scored.results:
        console.print(_headline(result))
    console.print(_table(scored))
    console.print(_legend(scored), style="dim")
    if differences and scored.comparison is not None:
        console.print(_difference_table(scored.comparison))
    for result in scored.results:
        _print_curves(console, result)
    _print_notes(console, scored)
    for path in written:
        if path is not None:
            console.print(f"wrote {escape(str(path))}", soft_wrap=True)


def _headline(result: Results) -> str:
    draws = f", {result.draws} draws" if result.draws > 1 else ""
    method = result.header.method
    return (
        f"[bold]{escape(result.name)}[/bold]: {result.task}, {result.n} items{draws}"
        + (f", method {escape(method)}" if method else "")
    )


def _table(scored: Scored) -> Table:
    """Scores by subset, files side by side."""
    contrasts = _by_key(scored.comparison)
    tables = [{row.key: row for row in result.rows} for result in scored.results]
    keys = list(dict.fromkeys(key for table in tables for key in table))
    subsets = list(dict.fromkeys(key[1] for key in keys))
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("score", no_wrap=True)
    table.add_column("by", overflow="fold")
    for result in scored.results:
        table.add_column(escape(result.name), justify="right", overflow="fold")
    for subset in subsets:
        if len(subsets) > 1:
            table.add_row()
            table.add_row(f"[bold]{escape(subset)}[/bold]")
        for key in (key for key in keys if key[1] == subset):
            rows = [found.get(key) for found in tables]
            first = next(row for row in rows if row is not None)
            cells = [
                _cell(row, contrasts.get(key), result.name)
                for row, result in zip(rows, scored.results, strict=True)
            ]
            label = f"{ARROW[first.better]} {escape(first.label)}"
            table.add_row(label, escape(first.variant), *cells)
    return table


def _undefined(scored: Scored) -> list[str]:
    """Why values are undefined, each reason once with the rows it holds for."""
    reasons: dict[str, list[str]] = {}
    for result in scored.results:
        for row in result.rows:
            if math.isnan(row.value):
                what = ", ".join(part for part in (row.label, row.variant) if part)
                reason = row.why or "not defined on these items"
                reasons.setdefault(reason, []).append(f"{what} ({row.subset})")
    return [
        f"undefined: {', '.join(dict.fromkeys(rows))}: {reason}"
        for reason, rows in reasons.items()
    ]


def _by_key(comparison: Comparison | None) -> Mapping[Key, Contrast]:
    if comparison is None:
        return {}
    return {(c.score, c.subset, c.variant): c for c in comparison.contrasts}


def _cell(row: Row | None, contrast: Contrast | None, name: str) -> str:
    if row is None:
        return "-"
    if math.isnan(row.value):
        return "[dim]undefined[/dim]"
    interval = ""
    if math.isfinite(row.low):
        interval = f" [dim]\\[{number(row.low)}, {number(row.high)}][/dim]"
    mark = " ●" if contrast and name in contrast.tied else ("  " if contrast else "")
    style = "bold" if contrast and name == contrast.best else "none"
    return f"[{style}]{number(row.value)}[/{style}]{interval}{mark}"


def escape(text: str) -> str:
    """A name from a file, safe to print: no markup, no control characters."""
    return escape_markup(printable(text))


def printable(text: str) -> str:
    """`text` with control characters, which could steer a terminal, replaced."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def number(value: float) -> str:
    """Four significant digits, without an exponent in the usual range."""
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    # Below this only rounding is left, as in the E-AURC of a perfect ranking.
    if abs(value) < 1e-12 or 1e-3 <= abs(value) < 1:
        return f"{abs(value) if abs(value) < 1e-12 else value:.4f}"
    return f"{value:.4g}"


def _legend(scored: Scored) -> str:
    first = scored.results[0]
    text = "↑ higher is better, ↓ lower is better"
    if first.resamples:
        text += f"; \\[{first.level:.0%} interval, {first.resamples} resamples]"
    if scored.comparison and scored.comparison.contrasts:
        text += "; ● cannot be told apart from the best (paired, Holm)"
    return text


def _difference_table(comparison: Comparison) -> Table:
    table = Table(
        title="difference to the best", box=None, pad_edge=False, title_justify="left"
    )
    for column in ("score", "items", "by", "file", "difference", "p"):
        table.add_column(column, justify="right" if column == "p" else "left")
    for contrast in comparison.contrasts:
        for name, gap in contrast.difference.items():
            if name == contrast.best:
                continue
            interval = f"{gap.value:+.4f} \\[{gap.low:+.4f}, {gap.high:+.4f}]"
            table.add_row(
                escape(contrast.label),
                escape(contrast.subset),
                escape(contrast.variant),
                f"{escape(name)} - {escape(contrast.best)}",
                interval,
                f"{gap.p:.3f}",
            )
    return table


def _print_curves(console: Console, result: Results) -> None:
    shown = [curve for curve in result.curves if curve.name in SHOWN]
    if not shown:
        return
    console.print(f"\ncurves of [bold]{escape(result.name)}[/bold]")
    grid = Table.grid(padding=(0, 1))
    for curve in shown:
        by = f", by {curve.variant}" if curve.variant else ""
        what = escape(f"{curve.label}, {curve.subset}{by}")
        grid.add_row("", sparkline(curve.y), what, _ends(curve))
    console.print(grid)


def _ends(curve: Curve) -> str:
    defined = curve.y[np.isfinite(curve.y)]
    if defined.size == 0:
        return "undefined"
    return (
        f"[dim]{number(float(defined[0]))} → {number(float(defined[-1]))} "
        f"over {escape(curve.x_label)}[/dim]"
    )


def sparkline(values: NDArray[np.float64], *, width: int = 32) -> str:
    """`values` as a line of block characters; undefined stretches stay blank."""
    picked = values[
        np.linspace(0, len(values) - 1, min(width, len(values))).astype(int)
    ]
    defined = picked[np.isfinite(picked)]
    if defined.size == 0:
        return " " * len(picked)
    low, span = defined.min(), np.ptp(defined) or 1.0
    return "".join(
        BLOCKS[int((value - low) / span * (len(BLOCKS) - 1) + 0.5)]
        if np.isfinite(value)
        else " "
        for value in picked
    )


def _print_notes(console: Console, scored: Scored) -> None:
    notes = _undefined(scored)
    notes += [note for result in scored.results for note in result.notes]
    notes += list(scored.comparison.notes) if scored.comparison else []
    for note in dict.fromkeys(notes):
        console.print(f"note: {escape(note)}", style="dim", highlight=False)
