"""`qualms tune`: list the trials of a search, make them, and summarise."""

import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from qualms.launch import check_installed, default_workers, option_texts, run_all
from qualms.launch.progress import print_line, runs_view
from qualms.launch.resources import Resources
from qualms.launch.tune import START, Search, TrialResult, config_path, tune
from qualms.progress import duration_text
from qualms.report.search_report import FILE, SearchReport, read_search
from qualms.runs import check_writable


def show_trials(search: Search, count: int, out: Path) -> None:
    """Print the trials of a search so far, and how many lack a result."""
    typer.echo(_headline(search, count))
    report = _report(search, out)
    trials = report.trials if report else ()
    ended = sum(trial.state in ("done", "pruned") for trial in trials)
    typer.echo(f"{max(0, count - ended)} of {count} lack a result in {out}")
    if trials:
        rows = [[str(t.number), *_cells(t.options), t.state] for t in trials]
        _print_table(["trial", *trials[0].options, ""], rows)
    if len(trials) < count:
        ranges = ", ".join(each.option for each in search.ranges)
        typer.echo(f"the next follow from the results of those before: {ranges}")


def make_trials(search: Search, count: int, resources: Resources) -> int:
    """Make the trials and print the best; return the exit code of the command."""
    started = time.monotonic()
    typer.echo(_headline(search, count))
    results: list[TrialResult] = []
    try:
        _make(search, count, resources, results)
    except KeyboardInterrupt:
        typer.echo(
            f"interrupted after {len(results)} new trials of {count}; finished work is"
            " kept, run again to go on",
            err=True,
        )
        return 130
    report = read_search(search.folder(resources.out))
    _print_summary(search, report, time.monotonic() - started)
    _print_without_value(results)
    if report.best is None:
        typer.echo("no trial has a result", err=True)
        return 1
    typer.echo(f"wrote {config_path(report.folder)} and {report.folder / FILE}")
    typer.echo(f"a config of the best trial: {report.command}")
    return 0


def _report(search: Search, out: Path) -> SearchReport | None:
    folder = search.folder(out)
    return read_search(folder) if (folder / FILE).exists() else None


def _headline(search: Search, count: int) -> str:
    return f"{search.title}: {count} trials by {search.selection.label}"


def _make(
    search: Search, count: int, resources: Resources, results: list[TrialResult]
) -> None:
    check_writable(resources.out)
    report = _report(search, resources.out)
    ended = [t for t in report.trials if t.state != "failed"] if report else []
    if len(ended) < count:
        check_installed()
    at_once = resources.workers or _at_once(resources)
    console = Console()
    with runs_view(max(0, count - len(ended)), console) as view:
        launch = partial(
            run_all,
            out=resources.out,
            data=resources.data,
            workers=at_once,
            device=resources.device,
            engine=resources.engine,
            callbacks=view,
            progress=view.data,
        )
        made = tune(search, count, launch=launch, out=resources.out, at_once=at_once)
        with closing(made):
            for result in made:
                view.ended(result.outcome)
                results.append(result)
                print_line(console, _line(search, result))


def _at_once(resources: Resources) -> int:
    """Return how many trials are made at a time: of more, too few would know others."""
    if resources.engine.launcher == "ray":
        return START
    return min(default_workers(resources.device), START)


def _line(search: Search, result: TrialResult) -> str:
    options = ", ".join(option_texts(result.trial.options))
    value = f"{result.values[0]:.4f}" if result.values else "no value"
    score = "pruned" if result.is_pruned else f"{search.selection.rule} {value}"
    return f"trial {result.trial.number}: {score} with {options}"


def _print_summary(search: Search, report: SearchReport, seconds: float) -> None:
    ranked = report.ranked
    typer.echo(
        f"selection {search.selection.name}: {len(ranked)} of {len(report.trials)}"
        f" trials have a value of {search.selection.rule}; {duration_text(seconds)}"
    )
    if ranked:
        rows = [
            [str(t.number), *(f"{v:.4f}" for v in t.values), *_cells(t.options)]
            for t in ranked
        ]
        names = [each.name for each in report.objectives[1:]]
        _print_table(["trial", "value", *names, *ranked[0].options], rows)
        best = ranked[0]
        typer.echo(
            f"best by selection {search.selection.name}: trial {best.number}, value"
            f" {best.values[0]:.4f}; use it with"
        )
        typer.echo(f"  {shlex.join(search.command(best.options))}")
    for trial in report.trials:
        if trial.state == "pruned":
            typer.echo(f"trial {trial.number}: {trial.error}")


def _print_without_value(results: Iterable[TrialResult]) -> None:
    for result in results:
        if not result.values and not result.is_pruned:
            number, run = result.trial.number, result.trial.spec.hash
            typer.echo(f"without a value: trial {number} ({run})", err=True)
            typer.echo(f"  {result.error}", err=True)
            typer.echo(f"  log: {result.outcome.log}", err=True)


def _cells(options: Mapping[str, Any]) -> list[str]:
    values = options.values()
    return [f"{v:.6g}" if isinstance(v, float) else str(v) for v in values]


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        typer.echo(("  " + "  ".join(cells)).rstrip())
