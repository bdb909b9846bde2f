"""The end of `qualms run`: judge the predictions, print tables, and write files."""

import os
import re
import shlex
import sys
from pathlib import Path

import typer
from rich.console import Console

from qualms.launch import Choice
from qualms.spec import digest

LONGEST = 60
"""Most characters of a part in the name of its folder."""


def show_judged(choice: Choice, out: Path, data: Path) -> None:
    """Print the tables of `choice` and its effects; write tables and figures."""
    from qualms.evaluate.benchmark import judge
    from qualms.report.benchmark import print_benchmark, write_all

    # Where there is no window to widen, tables must not be cut off.
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    console = Console(width=None if known else 160)
    whole = out / choice.benchmark.name / choice.preset.name
    folder = whole / _part_name(choice.part) if choice.part else whole
    with console.status("judging"):
        results = judge(choice.benchmark, choice.preset, out)
    command = shlex.join(["qualms", *sys.argv[1:]])
    try:  # before printing, since a closed pipe would end the command
        with console.status("drawing"):
            written = write_all(results, folder, command=command, data=data)
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
    if choice.part:
        typer.echo(
            f"these results are not of the whole preset {choice.preset.name}, but of:"
            f" {choice.part}; they have a folder of their own, and those of the whole"
            f" preset stay in {whole}"
        )
    typer.echo(
        f"wrote {written.results}, {len(written.tables)} files in {folder / 'tables'}"
        f" and {len(written.figures)} in {folder / 'figures'}; {written.page} shows all"
    )


def _part_name(part: str) -> str:
    """The name of the folder for results of a part of a preset.

    >>> _part_name("cells, map, seeds 0-1")
    'part-cells,map,seeds_0-1'
    """
    plain = part.replace(", ", ",").replace(" ", "_")
    if re.fullmatch(r"[\w.,=+-]+", plain, re.ASCII) and len(plain) <= LONGEST:
        return f"part-{plain}"
    safe = re.sub(r"[^\w.,=+-]+", "_", plain, flags=re.ASCII)
    return f"part-{safe[:LONGEST]}-{digest(part)[:8]}"
