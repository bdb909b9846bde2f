"""`qualms gc`: what can be deleted from folders of runs."""

from pathlib import Path
from typing import Annotated

import typer

from qualms.cli._complete import complete_kinds


def gc(
    folder: Annotated[Path, typer.Argument(help="The folder of `qualms run`.")] = Path(
        "runs"
    ),
    only: Annotated[
        str,
        typer.Option(
            help="checkpoints, failed, leftovers, features or cells, separated by"
            " commas; all by default.",
            autocompletion=complete_kinds,
        ),
    ] = "",
    every: Annotated[bool, typer.Option("--list", help="Name every path.")] = False,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete what is listed.")
    ] = False,
) -> None:
    """List what can be deleted, with sizes; delete it only with --delete.

    Predictions of finished runs are never listed, nor is anything of a run that a
    process works on or that was stopped and can go on.
    """
    from qualms.catalogue import KINDS, find_removable, remove_all
    from qualms.cli._listed import print_removable, size_text
    from qualms.wording import suggest

    kinds = [kind.strip() for kind in only.split(",") if kind.strip()]
    for kind in kinds:
        if kind not in KINDS:
            raise LookupError(
                f"nothing called {kind!r} can be deleted.{suggest(kind, KINDS)} Known:"
                f" {', '.join(KINDS)}."
            )
    if not folder.is_dir():
        raise ValueError(
            f"there is no folder {str(folder)!r} with runs; name the folder that"
            " qualms run wrote to"
        )
    removables = find_removable(folder, kinds)
    if not removables:
        typer.echo(f"nothing in {folder} can be deleted")
        return
    print_removable(removables, every=every)
    total = size_text(sum(each.bytes for each in removables))
    if not delete:
        typer.echo(f"{total:>9}  in all; nothing was deleted: --delete deletes it")
        return
    removed = remove_all(removables)
    typer.echo(f"deleted {removed.paths:,}, which took {size_text(removed.bytes)}")
    for sentence in removed.spared:
        typer.echo(sentence, err=True)
    if removed.spared:
        raise typer.Exit(1)
