"""The end of `qualms run`: judge what the runs predicted, show it, write it down."""

import os
import shlex
import sys
from pathlib import Path

import typer
from rich.console import Console

from qualms.launch import Choice


def show_judged(choice: Choice, out: Path) -> None:
    """Print the tables of `choice` and its effects; write tables and figures."""
    from qualms.evaluate.benchmark import judge
    from qualms.report.benchmark import print_benchmark, write_all

    # A table must not be cut off where nobody can widen the window.
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    console = Console(width=None if known else 160)
    folder = out / choice.benchmark.name / choice.preset.name
    with console.status("judging"):
        results = judge(choice.benchmark, choice.preset, out)
    command = shlex.join(["qualms", *sys.argv[1:]])
    try:  # before anything is printed, which a pipe may cut short
        with console.status("drawing"):
            written = write_all(results, folder, command=command)
    except OSError as error:
        raise OSError(
            f"cannot write tables to {folder}: {error.strerror or error}; free space"
            " there or make it writable, and run again: what is done is kept"
        ) from error
    finally:
        print_benchmark(results, console=console)
    if choice.dropped:
        typer.echo(f"rows that pool more runs than seeds: {', '.join(choice.dropped)}")
    for note in written.notes:
        typer.echo(f"note: {note}")
    typer.echo(
        f"wrote {written.results}, {len(written.tables)} files in {folder / 'tables'}"
        f" and {len(written.figures)} in {folder / 'figures'}"
    )
