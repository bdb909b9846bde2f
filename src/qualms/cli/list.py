"""`qualms list`: what is on a shelf, and which options it has."""

import sys
from typing import Annotated

import typer

from qualms.cli._complete import SHELVES, complete_shelves
from qualms.cli._include import Include


def list_parts(
    shelf: Annotated[
        str,
        typer.Argument(
            metavar="SHELF",
            help=f"{', '.join(SHELVES)}; without one, all of these.",
            show_default=False,
            autocompletion=complete_shelves,
        ),
    ] = "",
    include: Include = None,  # noqa: ARG001 - its callback takes it
) -> None:
    """List what is on a shelf, such as methods, datasets or corruptions."""
    from rich.console import Console, OverflowMethod
    from rich.table import Table

    from qualms.cli._shelves import TABLES, shelves
    from qualms.shelf import refused
    from qualms.wording import suggest

    if shelf and shelf not in TABLES:
        raise LookupError(
            f"no shelf {shelf!r}.{suggest(shelf, TABLES)} Known: {', '.join(TABLES)}."
        )
    columns, rows, broken = TABLES.get(shelf, shelves)()
    table = Table(box=None, pad_edge=False, header_style="bold")
    short = shelf in ("", "benchmarks")
    for column in columns:
        one_line = short or column == "name"
        overflow: OverflowMethod = "ellipsis" if short else "fold"
        table.add_column(column, no_wrap=one_line, overflow=overflow)
    for row in rows:
        table.add_row(*row)
    for sentence in (*(refused(shelf) if shelf else ()), *broken):
        typer.echo(sentence, err=True)
    # A program that reads the output wants one line per part.
    Console(width=None if sys.stdout.isatty() else 2000).print(table)
