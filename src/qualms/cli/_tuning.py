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

from qualms.launch import (
    check_installed,
    default_workers,
    option_texts,
    pending_runs,
    run_all,
)
from qualms.launch.progress import print_line, runs_view
from qualms.launch.resources import Resources
from qualms.launch.tune import (
    Proposals,
    Search,
    Storage,
    Trial,
    TrialResult,
    checked_storage,
    config_path,
    front_of,
    front_path,
    ranked_trials,
    tune,
)
from qualms.progress import duration_text
from qualms.runs import check_writable


def show_trials(search: Search, proposals: Proposals, out: Path) -> None:
    """Print the trials of a search, and which of them lack a result."""
    trials = proposals.first
    specs = pending_runs([trial.spec for trial in trials], out)
    pending = {spec.hash for spec in specs}
    typer.echo(_headline(search, proposals.count))
    later = proposals.count - len(trials)
    typer.echo(f"{len(pending) + later} of {proposals.count} lack a result in {out}")
    rows = [
        [str(t.number), *_cells(t), "" if t.spec.hash in pending else "done"]
        for t in trials
    ]
    _print_table(["trial", *trials[0].options, ""], rows)
    if later:
        typer.echo(f"the other {later} follow from the results of those before them")


def make_trials(
    search: Search, proposals: Proposals, resources: Resources, *, storage: str
) -> int:
    """Make the trials and print the best; return the exit code of the command."""
    started = time.monotonic()
    typer.echo(_headline(search, proposals.count))
    results: list[TrialResult] = []
    try:
        _make(search, proposals, resources, results, checked_storage(storage))
    except KeyboardInterrupt:
        typer.echo(
            f"interrupted after {len(results)} of {proposals.count} trials; finished"
            " work is kept, run again to go on",
            err=True,
        )
        return 130
    _print_summary(search, ranked_trials(results), time.monotonic() - started)
    folder = search.folder(resources.out)
    if any(result.value is not None for result in results):
        typer.echo(f"wrote {folder / 'best.json'} and {folder / 'trials.csv'}")
        config = search.with_config(config_path(folder))
        typer.echo(f"and a config of the best trial: {shlex.join(config)}")
        _print_front(search, results, folder)
        return 0
    typer.echo("no trial has a result", err=True)
    return 1


def _print_front(search: Search, results: Sequence[TrialResult], folder: Path) -> None:
    if not search.objectives:
        return
    front = front_of(search, ranked_trials(results))
    rule = search.selection.rule
    typer.echo(
        f"front of {', '.join((rule, *search.objectives))}: trials that no other is"
        f" better than in one objective without being worse in another: {len(front)}"
    )
    for result in front:
        values = ", ".join(f"{value:.4f}" for value in result.values)
        path = front_path(folder, result)
        typer.echo(f"  trial {result.trial.number}: {values}; {path}")


def _headline(search: Search, count: int) -> str:
    return f"{search.title}: {count} trials by {search.selection.label}"


def _make(
    search: Search,
    proposals: Proposals,
    resources: Resources,
    results: list[TrialResult],
    storage: Storage,
) -> None:
    specs = [trial.spec for trial in proposals.first]
    later = proposals.count - len(specs)
    pending = later or len(pending_runs(specs, resources.out))
    check_writable(resources.out)
    if pending:
        check_installed()
    workers = resources.workers or _workers(proposals, resources, pending=bool(pending))
    console = Console()
    with runs_view(len({spec.hash for spec in specs}) + later, console) as view:
        launch = partial(
            run_all,
            out=resources.out,
            data=resources.data,
            workers=workers,
            device=resources.device,
            engine=resources.engine,
            callbacks=view,
            progress=view.data,
        )
        search_results = tune(
            search, proposals, launch=launch, out=resources.out, storage=storage
        )
        with closing(search_results):
            for result in search_results:
                view.ended(result.outcome)
                results.append(result)
                print_line(console, _line(search, result))


def _workers(
    proposals: Proposals, resources: Resources, *, pending: bool
) -> int | None:
    """Return how many processes can be busy; None for as many as a cluster has.

    Workers that have nothing to do would still get their share of the cores.
    """
    if resources.engine.launcher == "ray":
        planned = proposals.at_once >= proposals.count
        return None if planned else proposals.at_once
    usual = default_workers(resources.device) if pending else 1
    return min(usual, proposals.at_once)


def _line(search: Search, result: TrialResult) -> str:
    options = ", ".join(option_texts(result.trial.options))
    value = "no value" if result.value is None else f"{result.value:.4f}"
    score = "pruned" if result.is_pruned else f"{search.selection.rule} {value}"
    return f"trial {result.trial.number}: {score} with {options}"


def _print_summary(
    search: Search, results: Sequence[TrialResult], seconds: float
) -> None:
    valued = [result for result in results if result.value is not None]
    typer.echo(
        f"selection {search.selection.name}: {len(valued)} of {len(results)} trials"
        f" have a value of {search.selection.rule}; {duration_text(seconds)}"
    )
    if valued:
        rows = [
            [str(r.trial.number), *(f"{v:.4f}" for v in r.values), *_cells(r.trial)]
            for r in valued
        ]
        head = ["trial", "value", *search.objectives]
        _print_table([*head, *valued[0].trial.options], rows)
        best = valued[0]
        typer.echo(
            f"best by selection {search.selection.name}: trial {best.trial.number},"
            f" value {best.value:.4f}; use it with"
        )
        typer.echo(f"  {shlex.join(search.command(best.trial.options))}")
    for result in results:
        if result.is_pruned:
            typer.echo(f"trial {result.trial.number}: {result.error}")
        elif result.value is None:
            number, run = result.trial.number, result.trial.spec.hash
            typer.echo(f"without a value: trial {number} ({run})", err=True)
            typer.echo(f"  {result.error}", err=True)
            typer.echo(f"  log: {result.outcome.log}", err=True)


def _cells(trial: Trial) -> list[str]:
    return [_cell(value) for value in trial.options.values()]


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        typer.echo(("  " + "  ".join(cells)).rstrip())
