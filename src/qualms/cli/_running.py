"""`qualms run`: print the plan of its runs, and what was judged."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import typer
from rich.console import Console

from qualms.launch import datasets_of, pending_runs, required_datasets
from qualms.launch.judging import JudgedPlan
from qualms.launch.progress import dataset_text
from qualms.launch.resources import Resources
from qualms.launch.running import data_line
from qualms.runs import run_folder, why_failed
from qualms.spec import RunSpec
from qualms.study import RunPlan
from qualms.wording import plural


@contextmanager
def stopping_on_request() -> Iterator[None]:
    """End a command with a sentence on Ctrl-C or on SIGTERM, which schedulers send."""
    received = [signal.SIGINT]

    def stop(number: int, _frame: FrameType | None) -> None:
        received.append(signal.Signals(number))
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        name = {signal.SIGINT: "interrupted"}.get(received[-1], "asked to stop")
        typer.echo(f"{name}; finished work is kept, run again to go on", err=True)
        raise typer.Exit(128 + received[-1]) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def show_plans(plans: Sequence[RunPlan], resources: Resources) -> None:
    """Print the runs that lack a result, and the data they need."""
    for plan in plans:
        pending = pending_runs(plan.runs, resources.out)
        typer.echo(
            f"{plan.benchmark.name}, preset {plan.preset.name}: {len(pending)} of"
            f" {len(plan.runs)} runs lack a result in {resources.out}"
        )
        for variant in plan.variants:
            selection = plan.selection_text(variant)
            if selection:
                typer.echo(f"  {variant.name}: {selection}")
        for line in _run_lines(pending, resources.out):
            typer.echo(f"  {line}")
        for dataset in required_datasets(datasets_of(pending), resources.data):
            typer.echo(f"data: {data_line(dataset)}")


def show_judged(judged: JudgedPlan) -> None:
    """Print the tables and effects of a plan, and where its files are."""
    from qualms.report.benchmark import print_benchmark

    # Where there is no window to widen, tables must not be cut off.
    is_sized = sys.stdout.isatty() or "COLUMNS" in os.environ
    results, folder, files, predictions = judged
    print_benchmark(results, console=Console(width=None if is_sized else 160))
    if files is None:
        return
    plan = results.plan
    if plan.left_out:
        rows = ", ".join(plan.left_out)
        typer.echo(f"left out, as they pool more runs than there are seeds: {rows}")
    for note in files.notes:
        typer.echo(f"note: {note}")
    if plan.part:
        typer.echo(
            f"partial results of preset {plan.preset.name} ({plan.part}); they have a"
            f" folder of their own, and results of the whole preset stay in"
            f" {folder.parent}"
        )
    typer.echo(
        f"wrote {files.results}, {len(files.tables)}"
        f" {plural(len(files.tables), 'file')} in {folder / 'tables'}"
        f" and {len(files.figures)} in {folder / 'figures'}; {files.page} shows all"
    )
    if predictions:
        _show_predictions(plan, predictions)


def show_brief(judged: JudgedPlan) -> None:
    """Print the findings of a plan, one table, and where the rest is."""
    from qualms.report.benchmark_report import benchmark_report
    from qualms.report.brief_benchmark import print_brief
    from qualms.report.presented import presentation_of

    results = judged.results
    tables = presentation_of(results).tables(results)
    print_brief(benchmark_report(results, tables, ()), console=Console())
    if judged.files is not None:
        typer.echo(f"the page: {judged.files.page}")


def _show_predictions(plan: RunPlan, folders: Sequence[Path]) -> None:
    """Say where predictions are, and how to choose a referral threshold by them."""
    test = next(folders[0].glob(f"{plan.variants[0].test}.*"), None)
    typer.echo(f"predictions of every run, by row and seed: {folders[0].parent}")
    if test is not None and plan.benchmark.task in ("classification", "regression"):
        typer.echo(f"whom to refer: qualms refer {test} --budget 0.2")


def _run_lines(specs: Sequence[RunSpec], out: Path) -> list[str]:
    """Return a line for each run, which also says why its last attempt failed."""
    rows = [
        (spec.hash, dataset_text(spec.dataset), spec.method.name, f"seed {spec.seed}")
        for spec in specs
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    errors = (why_failed(run_folder(out, spec)) for spec in specs)
    return [
        f"{line}  failed before: {error}" if error else line
        for line, error in zip(lines, errors, strict=True)
    ]
