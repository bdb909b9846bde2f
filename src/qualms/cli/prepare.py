"""`qualms prepare`: from a publisher's files, or a seed, to a fast cache."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qualms.cli._complete import complete_datasets
from qualms.cli._include import Include
from qualms.progress import showing
from qualms.wording import plural

if TYPE_CHECKING:
    from qualms.datasets import Prepared

SHOWN = 10
"""Unreadable files that are named."""


def prepare(
    name: Annotated[
        str,
        typer.Argument(
            help="See `qualms list datasets`.", autocompletion=complete_datasets
        ),
    ],
    source: Annotated[
        Path | None,
        typer.Option("--from", help="The publisher's folder; none for simulators."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The cache ($QUALMS_CACHE or ~/.cache/qualms).")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("-o", help="For example variant=tails.")
    ] = None,
    include: Include = None,  # noqa: ARG001 - its callback takes it
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; one per core by default.")
    ] = None,
    check_counts: Annotated[
        bool,
        typer.Option(
            "--check-counts/--no-check-counts",
            help="Refuse numbers of items that differ from the paper's.",
        ),
    ] = True,
) -> None:
    """Prepare a dataset for training.

    Files that cannot be read are named and left out. You may stop it at any time; the
    same command goes on with the remaining ones.
    """
    from qualms import datasets
    from qualms.launch import data_root, parse_options, recipe_of
    from qualms.spec import Part

    recipe = recipe_of(Part(name=name, options=parse_options(option or [])), source)
    folder = datasets.cache_folder(data_root(data), recipe)
    try:
        with showing(name, "parts") as advance:
            prepared = datasets.prepare(
                recipe,
                folder,
                workers=workers,
                progress=advance,
                check_counts=check_counts,
            )
    except KeyboardInterrupt:
        typer.echo("interrupted; run again to go on (what is loaded is kept)", err=True)
        raise typer.Exit(130) from None
    _report(prepared, folder)


def _report(prepared: "Prepared", folder: Path) -> None:
    counts = ", ".join(f"{split} {n:,}" for split, n in prepared.counts.items())
    typer.echo(f"{prepared.dataset.name}: {counts}; in {folder}")
    if prepared.skipped:
        skipped = len(prepared.skipped)
        verb = "and is left out" if skipped == 1 else "and are left out"
        typer.echo(f"{skipped} {plural(skipped, 'file')} could not be read {verb}:")
    for key, reason in prepared.skipped[:SHOWN]:
        typer.echo(f"  {key}: {reason}")
    if len(prepared.skipped) > SHOWN:
        typer.echo(
            f"  and {len(prepared.skipped) - SHOWN} more, see {folder}/meta.json"
        )
