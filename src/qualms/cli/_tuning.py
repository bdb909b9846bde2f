"""`qualms tune`: list the trials of a search, make them, and summarise."""

import shlex
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from qualms.cli._grid import Workshop
from qualms.cli._progress import duration, view
from qualms.launch import (
    check_installed,
    default_workers,
    lacking,
    run_all,
    written,
)
from qualms.launch.tune import Proposals, Search, Trial, Tried, ranked_trials, tune
from qualms.runs import check_writable

__all__ = ["Workshop", "make_trials", "show_trials"]


def show_trials(search: Search, proposals: Proposals, out: Path) -> None:
    """Print the trials of a search, and which of them lack a result."""
    trials = proposals.known
    left = {spec.hash for spec in lacking([trial.spec for trial in trials], out)}
    typer.echo(_headline(search, proposals.count))
    later = proposals.count - len(trials)
    typer.echo(f"{len(left) + later} of {proposals.count} lack a result in {out}")
    rows = [
        [str(t.number), *_cells(t), "" if t.spec.hash in left else "done"]
        for t in trials
    ]
    _print_table(["trial", *trials[0].options, ""], rows)
    if later:
        typer.echo(f"the other {later} follow from the results of those before them")


def make_trials(search: Search, proposals: Proposals, shop: Workshop) -> int:
    """Make the trials and print the best; gives the exit code of the command."""
    started = time.monotonic()
    typer.echo(_headline(search, proposals.count))
    found: list[Tried] = []
    try:
        _make(search, proposals, shop, found)
    except KeyboardInterrupt:
        typer.echo(
            f"interrupted after {len(found)} of {proposals.count} trials; finished work"
            " is kept, run again to go on",
            err=True,
        )
        return 130
    _sum_up(search, ranked_trials(found), time.monotonic() - started)
    folder = search.folder(shop.out)
    if any(tried.value is not None for tried in found):
        typer.echo(f"wrote {folder / 'best.json'} and {folder / 'trials.csv'}")
        return 0
    typer.echo("no trial has a result", err=True)
    return 1


def _headline(search: Search, count: int) -> str:
    return f"{search.title}: {count} trials by {search.selection.label}"


def _make(
    search: Search, proposals: Proposals, shop: Workshop, found: list[Tried]
) -> None:
    specs = [trial.spec for trial in proposals.known]
    later = proposals.count - len(specs)
    left = later or len(lacking(specs, shop.out))
    check_writable(shop.out)
    if left:
        check_installed()
    usual = default_workers(shop.device) if left else 1
    # Workers that have nothing to do would still get their share of the cores.
    workers = shop.workers or min(usual, proposals.at_once)
    console = Console()
    with view(len({spec.hash for spec in specs}) + later, console) as seen:
        launch = partial(
            run_all,
            out=shop.out,
            data=shop.data,
            workers=workers,
            device=shop.device,
            watch=seen,
            progress=seen.data,
        )
        with closing(tune(search, proposals, launch=launch, out=shop.out)) as coming:
            for tried in coming:
                seen.ended(tried.outcome)
                found.append(tried)
                told = _line(search, tried)
                console.print(told, markup=False, highlight=False, soft_wrap=True)


def _line(search: Search, tried: Tried) -> str:
    given = ", ".join(written(tried.trial.options))
    value = "no value" if tried.value is None else f"{tried.value:.4f}"
    return f"trial {tried.trial.number}: {search.selection.rule} {value} with {given}"


def _sum_up(search: Search, found: Sequence[Tried], seconds: float) -> None:
    valued = [tried for tried in found if tried.value is not None]
    typer.echo(
        f"selection {search.selection.name}: {len(valued)} of {len(found)} trials have"
        f" a value of {search.selection.rule}; {duration(seconds)}"
    )
    if valued:
        rows = [
            [str(tried.trial.number), f"{tried.value:.4f}", *_cells(tried.trial)]
            for tried in valued
        ]
        _print_table(["trial", "value", *valued[0].trial.options], rows)
        best = valued[0]
        typer.echo(
            f"best by selection {search.selection.name}: trial {best.trial.number},"
            f" value {best.value:.4f}; use it with"
        )
        typer.echo(f"  {shlex.join(search.command(best.trial.options))}")
    for tried in found:
        if tried.value is None:
            number, run = tried.trial.number, tried.trial.spec.hash
            typer.echo(f"without a value: trial {number} ({run})", err=True)
            typer.echo(f"  {tried.error}", err=True)
            typer.echo(f"  log: {tried.outcome.log}", err=True)


def _cells(trial: Trial) -> list[str]:
    return [_told(value) for value in trial.options.values()]


def _told(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        typer.echo(("  " + "  ".join(cells)).rstrip())
