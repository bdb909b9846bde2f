"""The scores of files as tables, and how `qualms score` prints them."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table as Grid

from qualms.benchmarks import settings_text
from qualms.evaluate import Comparison, Contrast, Curve, Results, Scored, ScoreRow
from qualms.report.table import Column, Table, TableCell, TableLine, digits
from qualms.report.terminal import escape, print_legend, print_table

ARROW = {"higher": "↑", "lower": "↓", "neither": " "}
_SHOWN = ("referral_accuracy", "referral_auroc", "risk_coverage", "coverage_by_target")
_BLOCKS = "▁▂▃▄▅▆▇█"
_Key = tuple[str, str, str]


def score_table(scored: Scored) -> Table:
    """Every score by set of items, with the files side by side."""
    contrasts = _by_key(scored.comparison)
    found = [{row.key: row for row in result.rows} for result in scored.results]
    keys = dict.fromkeys(key for rows in found for key in rows)
    names = [result.name for result in scored.results]
    first = scored.results[0]
    subsets = dict.fromkeys(key[1] for key in keys)
    ordered = [key for subset in subsets for key in keys if key[1] == subset]
    return Table(
        name="scores",
        title="Scores",
        left=("score", "by"),
        columns=tuple(Column(label=name, keys={"file": name}) for name in names),
        lines=tuple(
            _line(
                [rows.get(key) for rows in found],
                names,
                contrasts.get(key),
                sections=len(subsets) > 1,
            )
            for key in ordered
        ),
        level=first.level,
    )


def difference_table(comparison: Comparison) -> Table:
    """The difference of each file from the best, score by score."""
    lines = [
        TableLine(
            labels=(
                contrast.label,
                _values(contrast.settings),
                f"{name} - {contrast.best}",
            ),
            cells=(
                TableCell(mean=gap.value, low=gap.low, high=gap.high),
                TableCell(mean=gap.p, text="<0.001" if gap.p < 0.001 else ""),
            ),
            section=contrast.subset.replace("_", "-"),
        )
        for contrast in comparison.contrasts
        for name, gap in contrast.difference.items()
        if name != contrast.best
    ]
    columns = Column(label="difference", decimals=4), Column(label="p", decimals=3)
    return Table(
        name="differences",
        title="Differences from the best",
        left=("score", "by", "files"),
        columns=columns,
        lines=tuple(lines),
    )


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
    table = score_table(scored)
    print_table(table, console=console)
    print_legend([table], console=console)
    if differences and scored.comparison is not None:
        console.print()
        print_table(difference_table(scored.comparison), console=console)
    for result in scored.results:
        _print_curves(console, result)
    for note in score_notes(scored):
        console.print(f"note: {escape(note)}", style="dim", highlight=False)
    for path in written:
        if path is not None:
            console.print(f"wrote {escape(str(path))}", soft_wrap=True)


def score_notes(scored: Scored) -> list[str]:
    """What a reader of the scores must know, each said once."""
    notes = [note for result in scored.results for note in result.notes]
    notes += list(scored.comparison.notes) if scored.comparison else []
    notes += _unranked(scored.comparison)
    return list(dict.fromkeys(notes))


def _unranked(comparison: Comparison | None) -> list[str]:
    """Why it is not said which file is best, where that is so."""
    reasons: dict[str, list[str]] = {}
    for contrast in comparison.contrasts if comparison else ():
        if contrast.reason:
            reasons.setdefault(contrast.reason, []).append(contrast.label)
    return [
        f"which file is best is not said for {', '.join(dict.fromkeys(labels))}: {why}"
        for why, labels in reasons.items()
    ]


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
        _BLOCKS[int((value - low) / span * (len(_BLOCKS) - 1) + 0.5)]
        if np.isfinite(value)
        else " "
        for value in picked
    )


def _line(
    rows: list[ScoreRow | None],
    names: list[str],
    contrast: Contrast | None,
    *,
    sections: bool,
) -> TableLine:
    first = next(row for row in rows if row is not None)
    return TableLine(
        labels=(f"{ARROW[first.better]} {first.label}", first.detail),
        cells=tuple(
            _cell(row, name, contrast) for row, name in zip(rows, names, strict=True)
        ),
        section=first.subset.replace("_", "-") if sections else "",
        keys={
            "score": first.score,
            "subset": first.subset,
            "settings": settings_text(first.settings),
        },
    )


def _cell(row: ScoreRow | None, name: str, contrast: Contrast | None) -> TableCell:
    if row is None:
        return TableCell()
    undefined = math.isnan(row.value)
    ranked = contrast is not None and not contrast.reason
    return TableCell(
        mean=row.value,
        low=row.low,
        high=row.high,
        best=contrast is not None and ranked and name == contrast.best,
        tied=contrast is not None and ranked and name in contrast.tied,
        why=row.why or ("not defined on these items" if undefined else ""),
        no_interval=row.no_interval,
        text="undefined" if undefined else "",
    )


def _by_key(comparison: Comparison | None) -> Mapping[_Key, Contrast]:
    if comparison is None:
        return {}
    return {
        (c.score, c.subset, settings_text(c.settings)): c for c in comparison.contrasts
    }


def _values(settings: Mapping[str, object]) -> str:
    return ", ".join(map(str, settings.values()))


def _headline(result: Results) -> str:
    draws = f", {result.draws} draws" if result.draws > 1 else ""
    method = result.header.method
    return (
        f"[bold]{escape(result.name)}[/bold]: {result.task}, {result.n} items{draws}"
        + (f", method {escape(method)}" if method else "")
    )


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
        by = f", by {values}" if (values := _values(curve.settings)) else ""
        what = escape(f"{curve.label}, {curve.subset.replace('_', '-')}{by}")
        grid.add_row("", sparkline(curve.y, width=width), what, _ends(curve))
    console.print(grid)


def _ends(curve: Curve) -> str:
    defined = curve.y[np.isfinite(curve.y)]
    if defined.size == 0:
        return "undefined"
    return (
        f"[dim]{digits(float(defined[0]))} → {digits(float(defined[-1]))} "
        f"over {escape(curve.x_label)}[/dim]"
    )
