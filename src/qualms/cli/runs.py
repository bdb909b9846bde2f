"""`qualms runs`: which runs there are, chosen, sorted, compared and exported."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from qualms.cli._complete import complete_filters


def runs(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FOLDER] [FILTERS]...",
            help="The folder of `qualms run`, and conditions: method=mfvi,map"
            " 'auroc>0.9' status=failed network.width=16",
            autocompletion=complete_filters,
        ),
    ] = None,
    sort: Annotated[
        list[str] | None,
        typer.Option(help="Names to sort by; -auroc sorts from the highest down."),
    ] = None,
    columns: Annotated[
        str, typer.Option(help="Names to show, separated by commas.")
    ] = "",
    compare: Annotated[
        bool, typer.Option("--compare", help="Show what differs between the runs.")
    ] = False,
    limit: Annotated[
        int, typer.Option(min=0, help="Most runs to print; 0 for all.")
    ] = 30,
    export: Annotated[
        Path | None,
        typer.Option(help="A .csv, .json or .parquet file to write."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print them as JSON for programs.")
    ] = False,
) -> None:
    """List runs: filter them by labels, options and scores, sort, compare, export.

    Scores are those of single runs, once `qualms run` or `qualms.judge` judged them.
    """
    from qualms.catalogue import list_runs
    from qualms.cli._listed import print_differences, print_json, print_runs

    folder, filters = _split(arguments or [])
    listing = list_runs(folder, filters, sort=sort or ())
    if export is not None:
        path = listing.write(export)
        typer.echo(f"wrote {path} ({len(listing):,} runs)", err=as_json)
    if as_json:
        print_json(listing)
    elif compare:
        print_differences(listing, limit)
    elif export is None:
        names = [name.strip() for name in columns.split(",") if name.strip()]
        print_runs(listing, names, limit)
    sys.stdout.flush()


def _split(arguments: list[str]) -> tuple[Path, list[str]]:
    """Return the folder, which has no operator, and the filters after it."""
    if arguments and not any(sign in arguments[0] for sign in "=<>"):
        return Path(arguments[0]), arguments[1:]
    return Path("runs"), arguments
